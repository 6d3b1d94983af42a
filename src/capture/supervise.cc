// SPDX-License-Identifier: Apache-2.0
//
// Runs the workload, alone or under a tool, with limits, and leaves no process behind.
//
// A process group is not enough: nsys starts agents that become daemons, Python's multiprocessing
// and Ray create sessions, and all of them hold GPU memory after their parents died. So this
// program becomes the reaper of its orphans (PR_SET_CHILD_SUBREAPER): every descendant stays below
// it in the process tree, and one look at /proc finds it.
//
// Stopping escalates. SIGINT to the group makes both tools finish and write the report, as Ctrl-C
// would. A workload that is still running some seconds later gets SIGTERM and then SIGKILL, while
// the tool around it may continue: it is writing the report. Only when that exceeds the patience,
// or the user asks again, everything is killed.
//
// Sizes and free space are polled once per second. A program that writes the remaining free space
// within one second can still fill the disk.
#include "capture/supervise.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/pipe.h"
#include "capture/processes.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kPoll{100};
constexpr milliseconds kShortPoll{5};       // where nothing tells that the process has ended
constexpr seconds kBetweenLooks{1};         // at sizes and free space
constexpr milliseconds kGraceOfRest{1500};  // for orphans to end by themselves
constexpr milliseconds kGraceOfTerm{2000};
constexpr milliseconds kGraceOfKill{15'000};  // they end, as soon as they get a processor
constexpr std::size_t kKeptOutput = 8 * kKiB;
constexpr std::size_t kLongestLine = 400;

std::atomic<int> interrupts{0};
std::atomic<int> acknowledged{0};
std::atomic<int> last_signal{0};
std::atomic<bool> is_supervising{false};

constexpr std::array<int, 3> kCountedSignals = {SIGINT, SIGTERM, SIGHUP};

void signal_all(const std::vector<RunningProcess>& processes, int signal) {
  for (const RunningProcess& process : processes) {
    ::kill(process.pid, signal);
  }
}

// Ends this program if it does not do so itself after a signal that no supervised program takes
// up: scrubbing a large log or writing a report knows nothing of signals.
class EndWatch {
 public:
  // From a signal handler, too.
  static void wake() {
    if (is_ready) {
      ::sem_post(&wake_ups);
    }
  }

  static void start() {
    if (is_ready) {
      return;
    }
    ::sem_init(&wake_ups, 0, 0);
    is_over = false;
    is_ready = true;
    // Signals are the main thread's: a system call of this one must not be what they interrupt.
    sigset_t all{};
    sigset_t before{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    watcher = std::thread(watch);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static void stop() {
    if (!is_ready) {
      return;
    }
    is_over = true;
    ::sem_post(&wake_ups);
    watcher.join();
    is_ready = false;
    ::sem_destroy(&wake_ups);
  }

  static void add(std::function<void()> clean_up) {
    const std::scoped_lock lock(guard);
    clean_ups.push_back(std::move(clean_up));
  }
  static void drop() {
    const std::scoped_lock lock(guard);
    clean_ups.pop_back();
  }

 private:
  static void watch() {
    while (::sem_wait(&wake_ups) != 0) {
    }
    const Clock::time_point until = Clock::now() + kTimeToEnd;
    while (Clock::now() < until) {
      if (is_over) {
        return;
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
    signal_all(descendants(), SIGKILL);
    remove_doomed_files();
    const std::scoped_lock lock(guard);
    for (const std::function<void()>& clean_up : clean_ups) {
      clean_up();
    }
    // By the signal itself, as every other command ends.
    ::signal(last_signal, SIG_DFL);
    ::kill(::getpid(), last_signal);
    while (true) {
      ::pause();
    }
  }

  static constexpr milliseconds kTimeToEnd{1500};
  static inline std::atomic<bool> is_ready{false};
  static inline std::atomic<bool> is_over{false};
  static inline sem_t wake_ups{};
  static inline std::thread watcher;
  static inline std::mutex guard;
  static inline std::vector<std::function<void()>> clean_ups;
};

void count_interrupt(int signal) {
  const int reason = errno;
  last_signal = signal;
  interrupts.fetch_add(1);
  if (!is_supervising) {
    EndWatch::wake();
  }
  errno = reason;
}

// Reaps zombies that were handed to us; the leader has been waited for by pid before.
void reap_orphans() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// For comparisons: a limit of centuries in nanoseconds would overflow.
seconds whole_seconds(Clock::duration duration) {
  return std::chrono::duration_cast<seconds>(duration);
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) {
    const std::uint64_t size = fs::file_size(path, failure);
    return failure ? 0 : size;
  }
  std::uint64_t sum = 0;
  fs::recursive_directory_iterator entry(path, failure);
  for (; !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) {
      const std::uint64_t size = entry->file_size(ignored);
      sum += ignored ? 0 : size;
    }
  }
  return sum;
}

// The program's output: all of it to the log, the end of it in memory.
class Output {
 public:
  explicit Output(const fs::path& log)
      : log_(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600)) {
    if (log_ < 0) {
      throw Error(ErrorKind::kFailure,
                  fmt::format("cannot write {}: {}", log.string(), std::strerror(errno)));
    }
  }
  ~Output() { ::close(log_); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  int write_end() const { return pipe_.write_end(); }
  void close_write() { pipe_.close_write(); }

  // Waits for output or the end of the process, at most kPoll; returns whether there was output.
  bool wait_and_take(int process) {
    // A negative descriptor is left out.
    std::array<pollfd, 2> ends = {pollfd{pipe_.is_open() ? pipe_.read_end() : -1, POLLIN, 0},
                                  pollfd{process, POLLIN, 0}};
    const bool is_watched = pipe_.is_open() || process >= 0;
    const milliseconds most = is_watched ? kPoll : kShortPoll;
    ::poll(ends.data(), ends.size(), static_cast<int>(most.count()));
    return pipe_.is_open() && take();
  }

  bool take() {
    return pipe_.take([this](std::string_view text) { keep(text); });
  }

  const std::string& kept() const { return kept_; }
  // What came since the last call.
  std::string take_new() { return std::exchange(new_, {}); }
  bool has_lost() const { return has_lost_; }

 private:
  void keep(std::string_view text) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const ssize_t put = ::write(log_, rest.data(), rest.size());
      if (put < 0 && errno == EINTR) {
        continue;
      }
      if (put <= 0) {
        has_lost_ = true;  // a full disk must not stop the program that is watched
        break;
      }
      rest.remove_prefix(static_cast<std::size_t>(put));
    }
    new_ += text;
    kept_ += text;
    if (kept_.size() > 2 * kKeptOutput) {
      kept_.erase(0, kept_.size() - kKeptOutput);
    }
  }

  Pipe pipe_;
  int log_;
  bool has_lost_ = false;
  std::string kept_;
  std::string new_;
};

// A descriptor that is readable once a process has ended, so that its time is exact. Negative on
// kernels before 5.3, and where a filter forbids it.
class EndOfProcess {
 public:
  explicit EndOfProcess(pid_t pid)
      : descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  ~EndOfProcess() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }
  EndOfProcess(const EndOfProcess&) = delete;
  EndOfProcess& operator=(const EndOfProcess&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// The state of one supervised step.
class Supervision {
 public:
  Supervision(const Step& step, const std::function<void(const StepProgress&)>& on_progress)
      : step_(step), on_progress_(on_progress), output_(step.log) {}

  StepResult run() {
    // Orphaned grandchildren come to this process, so that they can be ended too.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    // Those that came after the last step and that nobody saw are this step's.
    interrupts_before_ = acknowledged.load();
    start_ = Clock::now();
    last_sign_ = start_;
    pid_ = start_process(step_.process, output_.write_end(), output_.write_end());
    // Our copy of the write end has to go, otherwise the pipe would never report its end.
    output_.close_write();
    const EndOfProcess end(pid_);
    while (!has_ended()) {
      if (output_.wait_and_take(end.descriptor())) {
        last_sign_ = Clock::now();
      }
      look_at_files();
      look_at_limits();
      climb_ladder();
      tell_progress();
    }
    result_.duration_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
    // The time is taken before the clean-up, which is not the step's.
    end_the_rest();
    output_.take();
    tell_progress();
    result_.bytes = written_bytes();
    const std::string& kept = output_.kept();
    result_.has_lost_output = output_.has_lost();
    result_.last_lines = kept.substr(kept.size() - std::min(kept.size(), kKeptOutput));
    return result_;
  }

 private:
  static constexpr Clock::time_point kNever{};

  void tell_progress() {
    on_progress_({Clock::now() - start_, result_.bytes,
                  std::string(last_line(output_.kept()).substr(0, kLongestLine)),
                  stopping_since_ != kNever, output_.take_new()});
  }

  // Only the leader's exit counts; end_the_rest() deals with its descendants.
  bool has_ended() {
    int status = 0;
    rusage usage{};
    const pid_t ended = ::wait4(pid_, &status, WNOHANG, &usage);
    if (ended == pid_) {
      result_.exit_code = exit_code_of(status);
      result_.peak_memory_bytes = static_cast<std::uint64_t>(std::max(usage.ru_maxrss, 0L)) * kKiB;
      return true;
    }
    return ended < 0 && errno != EINTR;  // not ours to wait for: no answer will come
  }

  std::uint64_t written_bytes() const {
    std::uint64_t sum = 0;
    for (const fs::path& output : step_.outputs) {
      sum += size_of(output);
    }
    return sum;
  }

  // Output files are polled at intervals, because walking a large folder takes time.
  void look_at_files() {
    if (Clock::now() - last_look_ < kBetweenLooks) {
      return;
    }
    last_look_ = Clock::now();
    const std::uint64_t bytes = written_bytes();
    if (bytes != result_.bytes) {
      last_sign_ = last_look_;
    }
    result_.bytes = bytes;
    least_free_bytes_ = UINT64_MAX;
    for (const fs::path& output : step_.outputs) {
      least_free_bytes_ = std::min(least_free_bytes_, free_bytes(output).value_or(UINT64_MAX));
    }
  }

  // The user's wish comes first, then the limits.
  void look_at_limits() {
    const StepLimits& limits = step_.limits;
    const Clock::time_point now = Clock::now();
    const int asked = interrupts.load() - interrupts_before_;
    if (asked >= 2) {
      abort(StepEnd::kAborted);
    } else if (asked == 1) {
      stop(StepEnd::kInterrupted);
    } else if (step_.is_done != nullptr && step_.is_done->load()) {
      stop(StepEnd::kItself);
    } else if (whole_seconds(now - start_) >= limits.timeout) {
      stop(StepEnd::kTimeout);
    } else if (result_.bytes > limits.most_bytes) {
      stop(StepEnd::kTooLarge);
    } else if (least_free_bytes_ < limits.least_free_bytes) {
      stop(StepEnd::kDiskFull);
    } else if (limits.most_silence.count() > 0 &&
               whole_seconds(now - last_sign_) >= limits.most_silence) {
      stop(StepEnd::kNoProgress);
    }
  }

  void stop(StepEnd reason) {
    if (stopping_since_ != kNever) {
      return;
    }
    stopping_since_ = Clock::now();
    result_.end = reason;
    if (!step_.has_ranks) {
      ::kill(-pid_, SIGINT);
      return;
    }
    for (const RunningProcess& process : descendants()) {
      if (process.pid != pid_ && !is_profiler(process)) {
        ::kill(process.pid, SIGINT);
      }
    }
  }

  void abort(StepEnd reason) {
    stop(reason);
    result_.end = reason;
    signal_all(descendants(), SIGKILL);
  }

  // Escalates once per level; the tool is spared until the patience ends.
  void climb_ladder() {
    if (stopping_since_ == kNever) {
      return;
    }
    const auto waited = Clock::now() - stopping_since_;
    if (whole_seconds(waited) >= step_.limits.patience) {
      signal_all(descendants(), SIGKILL);
    } else if (waited >= step_.limits.until_kill && rung_ < 2) {
      rung_ = 2;
      signal_workload(SIGKILL);
    } else if (waited >= step_.limits.until_term && rung_ < 1) {
      rung_ = 1;
      signal_workload(SIGTERM);
    }
  }

  static void signal_workload(int signal) {
    for (const RunningProcess& process : descendants()) {
      if (!is_profiler(process)) {
        ::kill(process.pid, signal);
      }
    }
  }

  // Orphans get time to end by themselves, then SIGTERM, then SIGKILL.
  void end_the_rest() {
    for (const RunningProcess& process : wait_for_rest(kGraceOfRest, 0)) {
      result_.left_over.push_back(process.text());
    }
    wait_for_rest(kGraceOfTerm, SIGTERM);
    wait_for_rest(kGraceOfKill, SIGKILL);
  }

  // The process list is read entry by entry: a child that moves from its ending parent to us may be
  // seen with neither. The kernel knows.
  static bool has_children() {
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  }

  // Returns the processes still alive after the grace period. Each gets the signal when first seen,
  // including those started while the others end.
  std::vector<RunningProcess> wait_for_rest(milliseconds grace, int signal) {
    const Clock::time_point until = Clock::now() + grace;
    std::set<int> told;
    while (true) {
      reap_orphans();
      std::vector<RunningProcess> rest = descendants();
      if ((rest.empty() && !has_children()) || Clock::now() >= until) {
        return rest;
      }
      for (const RunningProcess& process : rest) {
        if (signal != 0 && told.insert(process.pid).second) {
          ::kill(process.pid, signal);
        }
      }
      output_.take();
      ::usleep(10'000);
    }
  }

  const Step& step_;
  const std::function<void(const StepProgress&)>& on_progress_;
  Output output_;
  StepResult result_;
  pid_t pid_ = -1;
  int interrupts_before_ = 0;
  int rung_ = 0;
  std::uint64_t least_free_bytes_ = UINT64_MAX;
  Clock::time_point start_;
  Clock::time_point last_sign_;
  Clock::time_point last_look_;
  Clock::time_point stopping_since_ = kNever;
};

}  // namespace

const char* step_end_name(StepEnd end) {
  static constexpr std::array kNames = {"itself",      "timeout",     "too_large", "disk_full",
                                        "no_progress", "interrupted", "aborted"};
  static_assert(kNames.size() == static_cast<std::size_t>(StepEnd::kAborted) + 1);
  return kNames[static_cast<std::size_t>(end)];
}

StepResult supervise(const Step& step,
                     const std::function<void(const StepProgress&)>& on_progress) {
  is_supervising = true;
  StepResult result;
  try {
    result = Supervision(step, on_progress).run();
  } catch (...) {
    is_supervising = false;
    throw;
  }
  is_supervising = false;
  if (result.end == StepEnd::kInterrupted || result.end == StepEnd::kAborted) {
    result.stop_signal = last_signal.load();
    InterruptCounter::acknowledge();
  } else if (InterruptCounter::num_new() > 0) {
    EndWatch::wake();  // it came too late for the program
  }
  return result;
}

namespace {

int num_counters = 0;

}  // namespace

InterruptCounter::InterruptCounter() {
  if (num_counters++ == 0) {
    interrupts = 0;
    acknowledged = 0;
  }
  for (const int signal : kCountedSignals) {
    previous_.push_back(::signal(signal, count_interrupt));
    if (previous_.back() == SIG_IGN && signal == SIGHUP) {
      ::signal(signal, SIG_IGN);  // started under nohup: stays deaf
    }
  }
}

InterruptCounter::InterruptCounter(std::function<void()> clean_up) : InterruptCounter() {
  is_watched_ = true;
  EndWatch::add(std::move(clean_up));
  EndWatch::start();
}

InterruptCounter::~InterruptCounter() {
  --num_counters;
  if (is_watched_ && num_counters == 0) {
    EndWatch::stop();
  }
  for (std::size_t i = 0; i < kCountedSignals.size(); ++i) {
    ::signal(kCountedSignals[i], previous_[i]);
  }
  if (is_watched_) {
    EndWatch::drop();
    if (num_counters == 0 && num_new() > 0) {
      ::raise(last_signal);
    }
  }
  if (num_counters == 0) {
    acknowledge();
  }
}

int InterruptCounter::count() {
  return interrupts.load();
}

int InterruptCounter::num_new() {
  return interrupts.load() - acknowledged.load();
}

void InterruptCounter::acknowledge() {
  acknowledged = interrupts.load();
}

}  // namespace gpuwhy
