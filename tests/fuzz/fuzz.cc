// SPDX-License-Identifier: Apache-2.0
//
// libFuzzer entry point of all targets; LLMPROF_FUZZ_TARGET selects one.
//
// An input that takes too much memory is a failure like a crash: 64 bytes for each of its own, and
// 256 MB. libFuzzer's -timeout judges the time.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <sanitizer/allocator_interface.h>

#include "fuzz/targets.h"

namespace {

const llmprof::FuzzTarget* chosen() {
  const char* wanted = std::getenv("LLMPROF_FUZZ_TARGET");
  for (const llmprof::FuzzTarget& target : llmprof::fuzz_targets()) {
    if (wanted != nullptr && std::string_view(wanted) == target.name) {
      return &target;
    }
  }
  std::fprintf(stderr, "LLMPROF_FUZZ_TARGET must be one of:");
  for (const llmprof::FuzzTarget& target : llmprof::fuzz_targets()) {
    std::fprintf(stderr, " %s", target.name);
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
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

constexpr std::int64_t kMostPerByte = 64;
constexpr std::int64_t kMostAlways = 256'000'000;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const llmprof::FuzzTarget* const kTarget = chosen();
  static const int kHooks = __sanitizer_install_malloc_and_free_hooks(note_malloc, note_free);
  if (kHooks == 0) {
    std::fprintf(stderr, "memory cannot be watched\n");
    std::abort();
  }
  const std::int64_t before = live_bytes;
  peak_bytes = before;
  kTarget->run({reinterpret_cast<const char*>(data), size});
  const std::int64_t taken = peak_bytes - before;
  if (taken > kMostPerByte * static_cast<std::int64_t>(size) + kMostAlways) {
    std::fprintf(stderr, "ERROR: %zu bytes of input took %lld bytes of memory\n", size,
                 static_cast<long long>(taken));
    std::abort();
  }
  return 0;
}
