// SPDX-License-Identifier: Apache-2.0
//
// Test workload with the shape of an LLM server: a request is a prefill and some decode steps,
// marked with gpuwhy/nvtx.h. It needs no GPU and no model. Options make it misbehave as real
// programs do, to test captures.
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "gpuwhy/nvtx.h"

namespace {

constexpr std::int64_t kPromptTokens = 512;

struct Options {
  long steps = 20;
  double prefill_ms = 30;
  double step_ms = 2;
  long threads = 1;
  long bench_pairs = 0;
  int exit_code = 0;
  bool forks = false;
  bool forks_first = false;
  bool spawns = false;
  bool execs = false;
  bool segfaults = false;
  bool ignores_sigterm = false;
  bool marks_nothing = false;
  bool uses_start_end = false;
  bool uses_plain_strings = false;
  bool hangs = false;
  bool ends_by_underscore_exit = false;
};

const char* const kUsage =
    "usage: gpuwhy_nvtx_workload [options]\n"
    "  --steps N          decode steps a request (20)\n"
    "  --prefill-ms MS    length of the prefill (30)\n"
    "  --step-ms MS       length of a decode step (2)\n"
    "  --threads N        concurrent requests, one per thread (1)\n"
    "  --fork             a forked child handles a request of its own\n"
    "  --fork-first       the same, forked before anything is marked, as engines do\n"
    "  --spawn            the same in a newly started program\n"
    "  --exec             after the request, this process starts the program over with exec\n"
    "  --start-end        NVTX start/end ranges in place of push/pop\n"
    "  --unregistered     plain strings in place of registered ones\n"
    "  --no-ranges        work without marks\n"
    "  --bench PAIRS      each thread pushes and pops PAIRS ranges, and nothing else\n"
    "  --exit CODE        how to end: with this code,\n"
    "  --_exit            by _exit(),\n"
    "  --segfault         by SIGSEGV,\n"
    "  --hang             never\n"
    "  --ignore-sigterm   nor by SIGTERM\n";

bool parse(int argc, char** argv, Options& options) {
  const auto number = [&](int& i, double& value) {
    char* end = nullptr;
    value = ++i < argc ? std::strtod(argv[i], &end) : 0;
    return end != nullptr && end != argv[i] && *end == '\0' && value >= 0 && value <= 1e12;
  };
  const struct {
    const char* name;
    bool* flag;
  } flags[] = {{"--fork", &options.forks},
               {"--fork-first", &options.forks_first},
               {"--spawn", &options.spawns},
               {"--exec", &options.execs},
               {"--segfault", &options.segfaults},
               {"--ignore-sigterm", &options.ignores_sigterm},
               {"--no-ranges", &options.marks_nothing},
               {"--start-end", &options.uses_start_end},
               {"--unregistered", &options.uses_plain_strings},
               {"--hang", &options.hangs},
               {"--_exit", &options.ends_by_underscore_exit}};
  const struct {
    const char* name;
    void (*set)(Options&, double);
  } numbers[] = {
      {"--steps", [](Options& to, double value) { to.steps = static_cast<long>(value); }},
      {"--prefill-ms", [](Options& to, double value) { to.prefill_ms = value; }},
      {"--step-ms", [](Options& to, double value) { to.step_ms = value; }},
      {"--threads", [](Options& to, double value) { to.threads = static_cast<long>(value); }},
      {"--bench", [](Options& to, double value) { to.bench_pairs = static_cast<long>(value); }},
      {"--exit", [](Options& to, double value) { to.exit_code = static_cast<int>(value); }}};
  for (int i = 1; i < argc; ++i) {
    bool is_known = false;
    for (const auto& flag : flags) {
      if (std::strcmp(argv[i], flag.name) == 0) {
        *flag.flag = is_known = true;
      }
    }
    for (const auto& option : numbers) {
      double value = 0;
      if (!is_known && std::strcmp(argv[i], option.name) == 0) {
        if (!number(i, value)) {
          return false;
        }
        option.set(options, value);
        is_known = true;
      }
    }
    if (!is_known) {
      return false;
    }
  }
  return true;
}

// Sleeps up to the last millisecond, which it computes: the lengths are right to some microseconds
// even on a busy machine, and cost it little.
void work(double milliseconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
  if (milliseconds > 1) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds - 1));
  }
  while (Clock::now() < end) {
  }
}

#if GPUWHY_HAS_NVTX
// What the header does not offer: start/end ranges and plain strings.
class OtherRange {
 public:
  OtherRange(const Options& options, const char* name, std::int64_t tokens)
      : is_start_end_(options.uses_start_end) {
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = tokens;
    if (options.uses_plain_strings) {
      attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
      attributes.message.ascii = name;
    } else {
      attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
      attributes.message.registered = nvtxDomainRegisterStringA(gpuwhy::nvtx::domain(), name);
    }
    if (is_start_end_) {
      id_ = nvtxDomainRangeStartEx(gpuwhy::nvtx::domain(), &attributes);
    } else {
      nvtxDomainRangePushEx(gpuwhy::nvtx::domain(), &attributes);
    }
  }
  ~OtherRange() {
    if (is_start_end_) {
      nvtxDomainRangeEnd(gpuwhy::nvtx::domain(), id_);
    } else {
      nvtxDomainRangePop(gpuwhy::nvtx::domain());
    }
  }
  OtherRange(const OtherRange&) = delete;
  OtherRange& operator=(const OtherRange&) = delete;

 private:
  bool is_start_end_;
  nvtxRangeId_t id_ = 0;
};
#else
struct OtherRange {
  OtherRange(const Options&, const char*, std::int64_t) {}
  ~OtherRange() {}
};
#endif

void serve_marked(const Options& options) {
  const gpuwhy::nvtx::Request request(kPromptTokens + options.steps);
  {
    const gpuwhy::nvtx::Prefill mark(kPromptTokens);
    work(options.prefill_ms);
  }
  const gpuwhy::nvtx::DecodeAll decode(options.steps);
  for (long step = 0; step < options.steps; ++step) {
    const gpuwhy::nvtx::DecodeStep mark(1);
    work(options.step_ms);
  }
}

void serve_marked_otherwise(const Options& options) {
  const OtherRange request(options, "request", kPromptTokens + options.steps);
  {
    const OtherRange mark(options, "prefill", kPromptTokens);
    work(options.prefill_ms);
  }
  const OtherRange decode(options, "decode_all", options.steps);
  for (long step = 0; step < options.steps; ++step) {
    const OtherRange mark(options, "decode_step", 1);
    work(options.step_ms);
  }
}

void serve(const Options& options) {
  if (options.marks_nothing) {
    work(options.prefill_ms + static_cast<double>(options.steps) * options.step_ms);
  } else if (options.uses_start_end || options.uses_plain_strings) {
    serve_marked_otherwise(options);
  } else {
    serve_marked(options);
  }
}

double thread_cpu_ns() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// Processor time, not wall time: what a range costs, however many other programs run.
void bench(const Options& options) {
  const double start = thread_cpu_ns();
  if (options.uses_start_end || options.uses_plain_strings) {
    for (long pair = 0; pair < options.bench_pairs; ++pair) {
      const OtherRange mark(options, "decode_step", pair);
    }
  } else {
    for (long pair = 0; pair < options.bench_pairs; ++pair) {
      const gpuwhy::nvtx::DecodeStep mark(pair);
    }
  }
  const double spent = thread_cpu_ns() - start;
  std::printf("ns_per_pair %.2f\n", spent / static_cast<double>(options.bench_pairs));
}

void serve_on_threads(const Options& options) {
  const auto body = options.bench_pairs > 0 ? bench : serve;
  std::vector<std::thread> threads;
  for (long i = 1; i < options.threads; ++i) {
    threads.emplace_back(body, options);
  }
  body(options);
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// By its own path, so that it keeps its name.
void start_anew(char** argv) {
  char path[4096] = {};
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) > 0) {
    execl(path, argv[0], nullptr);
  }
}

// A child by fork, which serves in this very program, or by fork and exec, which starts it over.
void serve_in_child(const Options& options, char** argv, bool is_exec) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0 && is_exec) {
    start_anew(argv);
    _exit(127);
  }
  if (child == 0) {
    serve(options);
    std::exit(0);  // by _exit nsys' buffers would be lost
  }
  if (child > 0) {
    waitpid(child, nullptr, 0);
  }
}

[[noreturn]] void end(const Options& options, char** argv) {
  std::fflush(nullptr);
  if (options.execs) {
    start_anew(argv);
  }
  while (options.hangs) {
    pause();
  }
  if (options.segfaults) {
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
  }
  if (options.ends_by_underscore_exit) {
    _exit(options.exit_code);
  }
  std::exit(options.exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (options.ignores_sigterm) {
    std::signal(SIGTERM, SIG_IGN);
  }
  if (options.forks_first) {
    serve_in_child(options, argv, false);
  }
#if GPUWHY_HAS_NVTX
  nvtxInitialize(nullptr);
#endif
  std::printf("nvtx %s\n", GPUWHY_HAS_NVTX != 0 ? "yes" : "no");
  serve_on_threads(options);
  if (options.forks) {
    serve_in_child(options, argv, false);
  }
  if (options.spawns) {
    serve_in_child(options, argv, true);
  }
  end(options, argv);
}
