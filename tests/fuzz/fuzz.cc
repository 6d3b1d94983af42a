// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer entry point of all targets; GPUWHY_FUZZ_TARGET selects one.
//
// An input that takes too much is a failure like a crash: more memory than 64 bytes for each of
// its own and 256 MB, or more processor time than 20 us for each and a second, under sanitizers.
// One that does not end is stopped at three times that: by processor time too, since a busy machine
// may let a second take minutes.
// What grows with the square of the input is small in an input of 100 kB, so GPUWHY_FUZZ_GROW=1
// lets every input grow first, by its own rows or events, and compares the times of two sizes.
//
// Nearly every change of an input keeps its structure, where the target has one (structure.h);
// GPUWHY_FUZZ_BYTES=1 leaves all changes to libFuzzer, to see what the difference is.
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <sanitizer/allocator_interface.h>
#include <sys/time.h>
#include <unistd.h>

#include "fuzz/targets.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using gpuwhy::FuzzTarget;

double used_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void spin(double seconds) {
  for (const double start_s = used_s(); used_s() - start_s < seconds;) {
  }
}

// Offenders, to see that the limits hold: 300 MB in small pieces, two seconds, time without an end,
// and time that grows with the square of the size.
bool take_memory(std::string_view /*bytes*/) {
  std::vector<std::vector<char>> pieces;
  for (int i = 0; i < 300; ++i) {
    pieces.emplace_back(1'000'000);
  }
  return pieces.size() == 300;
}

bool take_time(std::string_view /*bytes*/) {
  spin(2.0);
  return true;
}

bool take_for_ever(std::string_view /*bytes*/) {
  for (;;) {
    spin(1.0);
  }
}

bool take_square(std::string_view bytes) {
  constexpr double kSecondsAtMegabyte = 0.3;
  const double megabytes = static_cast<double>(bytes.size()) / 1e6;
  spin(kSecondsAtMegabyte * megabytes * megabytes);
  return true;
}

std::optional<std::string> repeated(std::string_view bytes, std::size_t num_bytes,
                                    gpuwhy::Random& /*random*/) {
  std::string grown;
  while (grown.size() < num_bytes && !bytes.empty()) {
    grown += bytes;
  }
  return grown;
}

constexpr FuzzTarget kOffenders[] = {{"takes_memory", take_memory},
                                     {"takes_time", take_time},
                                     {"takes_for_ever", take_for_ever},
                                     {"takes_square", take_square, nullptr, repeated}};

const FuzzTarget& chosen() {
  const char* wanted = std::getenv("GPUWHY_FUZZ_TARGET");
  const std::string_view name = wanted == nullptr ? "" : wanted;
  for (const FuzzTarget& target : gpuwhy::fuzz_targets()) {
    if (name == target.name) {
      return target;
    }
  }
  for (const FuzzTarget& target : kOffenders) {
    if (name == target.name) {
      return target;
    }
  }
  std::fprintf(stderr, "GPUWHY_FUZZ_TARGET must be one of:");
  for (const FuzzTarget& target : gpuwhy::fuzz_targets()) {
    std::fprintf(stderr, " %s", target.name);
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

const FuzzTarget& target() {
  static const FuzzTarget& chosen_target = chosen();
  return chosen_target;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view(value) == "1";
}

std::atomic<std::int64_t> live_bytes{0};
std::atomic<std::int64_t> peak_bytes{0};

void note_malloc(const volatile void* /*block*/, std::size_t size) {
  const std::int64_t now =
      live_bytes.fetch_add(static_cast<std::int64_t>(size)) + static_cast<std::int64_t>(size);
  std::int64_t peak = peak_bytes.load();
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
}

void note_free(const volatile void* block) {
  if (block != nullptr) {
    live_bytes -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(block));
  }
}

// Those of the seeds and of the kept corpus that are not refused. What libFuzzer keeps later is
// mostly refused, since every error is code that was not reached before.
std::vector<std::string> accepted_seeds;
bool has_changed_inputs = false;

// Tells now and then how many inputs were not refused: libFuzzer ends without destructors.
void count(bool is_accepted) {
  static std::uint64_t num_run = 0;
  static std::uint64_t num_accepted = 0;
  num_accepted += is_accepted ? 1 : 0;
  if (std::has_single_bit(++num_run)) {
    std::fprintf(stderr, "accepted: %llu %%\n",
                 static_cast<unsigned long long>(100 * num_accepted / num_run));
  }
}

[[noreturn]] void fail(std::size_t size, double taken, const char* of_what) {
  std::fprintf(stderr, "ERROR: %zu bytes of input took %.3g %s\n", size, taken, of_what);
  std::abort();
}

// In a signal handler: libFuzzer keeps the input when the program aborts.
void on_no_end(int /*signal*/) {
  constexpr std::string_view kWords = "ERROR: the input takes processor time and does not end\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kWords.data(), kWords.size());
  std::abort();
}

// Of processor time; 0 stops it.
void end_after(double seconds) {
  static const auto kBefore = std::signal(SIGPROF, on_no_end);
  static_cast<void>(kBefore);
  itimerval left{};
  left.it_value.tv_sec = static_cast<time_t>(seconds);
  ::setitimer(ITIMER_PROF, &left, nullptr);
}

struct Judged {
  bool is_accepted;
  double taken_s;
};

// Both limits are judged.
Judged run(std::string_view bytes) {
  constexpr std::int64_t kMostBytesPerByte = 64;
  constexpr std::int64_t kMostBytes = 256'000'000;
  constexpr double kMostSecondsPerByte = 20e-6;
  constexpr double kMostSeconds = 1.0;
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t before = live_bytes;
  peak_bytes = before;
  const double most_s = kMostSecondsPerByte * static_cast<double>(size) + kMostSeconds;
  end_after(3 * most_s);
  const double start_s = used_s();
  const bool is_accepted = target().run(bytes);
  const double taken_s = used_s() - start_s;
  end_after(0);
  const std::int64_t taken = peak_bytes - before;
  if (taken > kMostBytesPerByte * size + kMostBytes) {
    fail(bytes.size(), static_cast<double>(taken), "bytes of memory");
  }
  if (taken_s > most_s) {
    fail(bytes.size(), taken_s, "s of processor time");
  }
  count(is_accepted);
  return {is_accepted, taken_s};
}

// Four times as much may take eight times as long: sorting, and caches that are too small.
void run_grown(std::string_view bytes) {
  constexpr std::size_t kSmall = 500'000;
  constexpr std::size_t kLarge = 2'000'000;
  constexpr double kNoise = 0.3;
  if (target().grown == nullptr) {
    return;
  }
  gpuwhy::Random random(bytes.size());
  const auto small = target().grown(bytes, kSmall, random);
  random.seed(bytes.size());
  const auto large = target().grown(bytes, kLarge, random);
  if (!small || !large || large->size() < 2 * small->size()) {
    return;
  }
  const double small_s = run(*small).taken_s;
  const double large_s = run(*large).taken_s;
  const double ratio = static_cast<double>(large->size()) / static_cast<double>(small->size());
  if (large_s > 2 * ratio * small_s + kNoise) {
    std::fprintf(stderr, "%zu bytes took %.2f s, and ", small->size(), small_s);
    fail(large->size(), large_s, "s of processor time: more than in proportion");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool kGrows = is_set("GPUWHY_FUZZ_GROW");
  static const int kHooks = __sanitizer_install_malloc_and_free_hooks(note_malloc, note_free);
  if (kHooks == 0) {
    std::fprintf(stderr, "memory cannot be watched\n");
    std::abort();
  }
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kMostSeeds = 500;
  if (kGrows) {
    run_grown(bytes);
  } else if (run(bytes).is_accepted && !has_changed_inputs && accepted_seeds.size() < kMostSeeds) {
    accepted_seeds.emplace_back(bytes);
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  static const bool kBytesOnly = is_set("GPUWHY_FUZZ_BYTES");
  gpuwhy::Random random(seed);
  has_changed_inputs = true;
  // libFuzzer changes an input five times and runs each: about half of them then come from a seed.
  constexpr std::size_t kSeedOneIn = 4;
  if (!accepted_seeds.empty() && gpuwhy::pick(random, kSeedOneIn) == 0) {
    const std::string& accepted = gpuwhy::one_of(accepted_seeds, random);
    if (accepted.size() <= max_size) {
      std::memcpy(data, accepted.data(), accepted.size());
      size = accepted.size();
    }
  }
  // One change of bytes is mostly the end of a structure.
  constexpr std::size_t kBytesOneIn = 16;
  if (target().changed != nullptr && !kBytesOnly && gpuwhy::pick(random, kBytesOneIn) != 0) {
    if (const auto changed =
            target().changed({reinterpret_cast<const char*>(data), size}, max_size, random)) {
      std::memcpy(data, changed->data(), changed->size());
      return changed->size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}
