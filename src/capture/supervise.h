// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "capture/subprocess.h"

namespace gpuwhy {

// Why a step ended.
enum class StepEnd {
  kItself,
  kTimeout,      // the time limit was reached
  kTooLarge,     // what it wrote passed the limit
  kDiskFull,     // the disk was about to be full
  kNoProgress,   // it neither wrote nor said anything for too long
  kInterrupted,  // the user asked once: stopped, what exists is kept
  kAborted,      // the user asked twice: killed
};
const char* step_end_name(StepEnd end);  // "itself", "timeout", ...

// Limits of a step. Exceeding one stops the step; it is not an error by itself.
struct StepLimits {
  std::chrono::seconds timeout{3600};
  std::uint64_t most_bytes = UINT64_MAX;
  std::uint64_t least_free_bytes = 0;
  std::chrono::seconds most_silence{0};  // 0: no limit
  // Escalation, counted from the first SIGINT: the workload gets SIGTERM, then SIGKILL; the tool
  // around it has time to write its report.
  std::chrono::milliseconds until_term{8'000};
  std::chrono::milliseconds until_kill{14'000};
  std::chrono::seconds patience{600};
};

// A long-running program: the workload, alone or under a tool.
struct Step {
  Process process;            // its own timeout is ignored
  std::filesystem::path log;  // its output is appended here
  // Files and folders it writes. Their sizes and the free space around them are watched.
  std::vector<std::filesystem::path> outputs;
  StepLimits limits;
  // Set by another thread when the program, a server, is no longer needed. It is stopped as by a
  // limit, and its end counts as its own.
  const std::atomic<bool>* is_done = nullptr;
  // The program is a launcher with a profiler around each rank. To stop, its ranks get the signal:
  // mpirun would kill the profilers before they have written.
  bool has_ranks = false;
};

// State of a running step, for a progress display.
struct StepProgress {
  std::chrono::nanoseconds elapsed{0};
  std::uint64_t bytes = 0;
  std::string last_line;  // what the program printed last; not made safe for a terminal
  bool is_stopping = false;
  std::string output = {};  // what it printed since the last call, as it printed it
};

// How a step ended.
struct StepResult {
  int exit_code = -1;  // 128 + signal when a signal ended it; -1: unknown
  StepEnd end = StepEnd::kItself;
  int stop_signal = 0;  // that the user or the system sent, if it ended the step; 0: none
  std::int64_t duration_ns = 0;
  std::uint64_t bytes = 0;
  std::uint64_t peak_memory_bytes = 0;  // resident, of its largest process; 0: unknown
  std::vector<std::string> left_over;   // processes it left that were ended, as "name (pid 12)"
  std::string last_lines;               // the end of what it printed, a few KiB
  bool has_lost_output = false;         // the log could not be written, at least in part
};

// Runs a step to its end or to a limit. All its descendants are found and ended with it, including
// those that left its process group or were orphaned: when this returns, none is alive.
// `on_progress` is called several times per second. Throws kEnvironment if the program cannot be
// started.
StepResult supervise(const Step& step, const std::function<void(const StepProgress&)>& on_progress);

// While one exists, SIGINT, SIGTERM and SIGHUP are counted and handled by supervise() instead of
// ending this program. They may be nested; the outermost starts the count.
class InterruptCounter {
 public:
  InterruptCounter();
  // As above, and a signal that comes while no program is supervised gives this program a second
  // and a half to end by itself. Then all its descendants are killed, temporary files are removed,
  // `clean_up` is called, and the signal ends it. A signal that nobody acknowledges ends it when
  // the outermost counter goes. `clean_up` runs in another thread.
  explicit InterruptCounter(std::function<void()> clean_up);
  ~InterruptCounter();
  InterruptCounter(const InterruptCounter&) = delete;
  InterruptCounter& operator=(const InterruptCounter&) = delete;

  static int count();
  static int num_new();       // since the last acknowledgement
  static void acknowledge();  // all so far: somebody acts on them

 private:
  std::vector<void (*)(int)> previous_;
  bool is_watched_ = false;
};

}  // namespace gpuwhy
