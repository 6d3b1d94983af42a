// SPDX-License-Identifier: Apache-2.0
//
// Driver of a server under load.
//
// The server is supervised by this thread, with its limits and its end; a second thread waits until
// it answers and then sends the load. Whichever ends first ends the other: a dead server ends its
// client, a finished client stops the server. When the parent of this process dies, so does all of
// this, so that no server survives a killed run.
#include "serve/drive.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <simdjson.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json_fwd.h"
#include "capture/nsys_leftovers.h"
#include "capture/processes.h"
#include "net/http.h"
#include "serve/last_statement.h"

namespace gpuwhy {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenQuestions{200};
constexpr std::chrono::minutes kMostForProfiler{10};  // it writes its report when it is stopped
constexpr int kQuestionTimeout = 5;
constexpr milliseconds kUntilDeathIsSeen{1500};

std::int64_t time_of_day() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Output of ranks, searched for the words of an nsys that did not start its program. srun lets the
// other ranks wait for that one; mpirun ends them, which looks like a server that died.
class RankOutput {
 public:
  void add(std::string_view text) {
    for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
      line_ += text.substr(0, end);
      has_lost_rank_ = has_lost_rank_ || is_line_of_agent_failure(line_);
      line_.clear();
      text.remove_prefix(end + 1);
    }
    if (line_.size() < kLongestLine) {
      line_ += text;
    }
  }

  bool has_lost_rank() const { return has_lost_rank_; }  // from any thread

 private:
  static constexpr std::size_t kLongestLine = 1000;
  std::string line_;
  std::atomic<bool> has_lost_rank_{false};
};

// The second thread: everything that is done to the server.
class Conductor {
 public:
  Conductor(const DriveScript& script, const std::atomic<bool>& is_server_gone,
            const RankOutput& rank_output)
      : script_(script), is_server_gone_(is_server_gone), rank_output_(rank_output) {}

  // True when all of the script was carried out.
  bool run() { return wait_until_ready() && run_client("warm-up", script_.warmup) && record(); }

  DriveResult result;

 private:
  bool fail(Reason reason, std::string sentence) {
    // Where the server is gone, that is the reason for all that follows.
    const std::lock_guard<std::mutex> lock(mutex_);  // a client fails while a window closes
    if (!result.failure && !is_server_gone_.load()) {
      result.failure = reason;
      result.sentence = std::move(sentence);
    }
    return false;
  }

  bool wait_until_ready() {
    const Clock::time_point start = Clock::now();
    HttpOptions brief;
    brief.timeout_s = kQuestionTimeout;
    HttpClient client(brief);
    std::string last = "no answer";
    while (!script_.ready_url.empty() && !is_server_gone_.load()) {
      const HttpAnswer answer = client.get(script_.ready_url);
      if (answer.status == 200) {
        break;
      }
      if (rank_output_.has_lost_rank()) {
        return fail(Reason::kServerDied, kRankNotStarted);
      }
      last = answer.status == 0 ? answer.reason : fmt::format("HTTP status {}", answer.status);
      if (Clock::now() - start >= std::chrono::seconds(script_.start_timeout_s)) {
        return fail(Reason::kServerNotReady,
                    fmt::format("{} did not answer with 200 within {} s: {}", script_.ready_url,
                                script_.start_timeout_s, last));
      }
      std::this_thread::sleep_for(kBetweenQuestions);
    }
    result.ready_after_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
    return !is_server_gone_.load();
  }

  // A client fails because its server died: its end is seen a moment later.
  void wait_for_death() const {
    const Clock::time_point until = Clock::now() + kUntilDeathIsSeen;
    while (!is_server_gone_.load() && Clock::now() < until) {
      std::this_thread::sleep_for(milliseconds(20));
    }
  }

  ProcessResult run_command(const std::vector<std::string>& argv, std::chrono::seconds most) {
    Process process{argv, script_.client_environment};
    process.timeout = most;
    ProcessResult ended = run_process(process);
    const std::lock_guard<std::mutex> lock(mutex_);  // a profiler is called during the load
    log_ += ended.out + ended.err;
    if (!script_.client_log.empty()) {
      write_file(script_.client_log, log_);
    }
    return ended;
  }

  bool run_client(const char* what, const std::vector<std::string>& argv) {
    if (argv.empty()) {
      return true;
    }
    const ProcessResult ended = run_command(argv, std::chrono::seconds(script_.client_timeout_s));
    if (ended.timed_out) {
      return fail(Reason::kClientFailed,
                  fmt::format("the {} did not end within {} s", what, script_.client_timeout_s));
    }
    if (!ended.succeeded()) {
      wait_for_death();
      return fail(Reason::kClientFailed, fmt::format("the {} exited with code {}: {}", what,
                                                     ended.exit_code, last_statement(ended)));
    }
    return !is_server_gone_.load();
  }

  bool call_profiler(const std::vector<std::string>& argv) {
    if (argv.empty()) {
      return true;
    }
    const ProcessResult ended = run_command(argv, kMostForProfiler);
    return ended.succeeded() ||
           fail(Reason::kWindowFailed, fmt::format("{} failed with code {}: {}", argv.at(1),
                                                   ended.exit_code, last_statement(ended)));
  }

  bool call_server(const std::string& url, const std::string& body, bool may_refuse) {
    // An engine answers when its trace is written, which takes minutes.
    const std::string failure =
        url.empty() ? "" : post_to_server(url, body, kMostForProfiler, may_refuse);
    return failure.empty() || fail(Reason::kWindowFailed, failure);
  }

  bool open_window() {
    if (!call_profiler(script_.start_command) ||
        !call_server(script_.start_url, window_body(script_.window, script_.traces.empty()),
                     false)) {
      return false;
    }
    result.start_ns = time_of_day();
    return true;
  }

  bool close_window() {
    result.end_ns = time_of_day();
    // SGLang refuses to stop what has stopped after its last step.
    const bool is_closed =
        call_server(script_.stop_url, "{}", script_.window.num_steps.has_value());
    return call_profiler(script_.stop_command) && is_closed;
  }

  // The window is closed after a failed client, too: what was recorded may say why.
  bool record() {
    std::optional<TraceFolder> folder;
    if (!script_.traces.empty()) {
      folder.emplace(script_.traces);
    }
    const bool is_recorded =
        record_part(script_.window, {[&] { return open_window(); },
                                     [&] { return run_client("client", script_.client); },
                                     [&] { return close_window(); }});
    if (!is_recorded && result.start_ns == 0) {
      return fail(Reason::kWindowFailed, fmt::format("the load ended before the window opened, {} "
                                                     "s after its start",
                                                     script_.window.after_s.value_or(0)));
    }
    if (is_recorded && folder &&
        folder->wait(kMostForProfiler, [&] { return is_server_gone_.load(); }).empty()) {
      return fail(Reason::kReportMissing,
                  fmt::format("the server wrote no trace into {}", script_.traces));
    }
    return is_recorded;
  }

  const DriveScript& script_;
  const std::atomic<bool>& is_server_gone_;
  const RankOutput& rank_output_;
  std::mutex mutex_;  // of log and failure
  std::string log_;
};

std::string event_line(const DriveResult& result) {
  std::vector<JsonField> fields = {
      {"event", std::string("end")},
      {"failure", std::string(result.failure ? code_of(*result.failure) : "")},
      {"sentence", result.sentence},
      {"ready_after_ns", result.ready_after_ns},
      {"window_start_ns", result.start_ns},
      {"window_end_ns", result.end_ns},
      {"server_exit_code", std::int64_t{result.server_exit_code}}};
  return json_object_line(fields) + "\n";
}

}  // namespace

std::map<std::string, std::string> client_environment(
    const std::map<std::string, std::string>& environment, const std::vector<std::string>& unset) {
  std::map<std::string, std::string> changed = environment;
  for (const std::string& name : unset) {
    const auto before = environment.find(kClientVariable + name);
    if (before != environment.end()) {
      changed[name] = before->second;
    } else {
      changed.erase(name);
    }
  }
  std::erase_if(changed,
                [](const auto& variable) { return variable.first.starts_with(kClientVariable); });
  return changed;
}

DriveResult drive(const DriveScript& script,
                  const std::function<void(std::string_view)>& on_output) {
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
  const InterruptCounter interrupts;
  if (::getppid() != parent) {
    ::raise(SIGTERM);  // it died before it could be asked to tell
  }
  std::atomic<bool> is_server_gone{false};
  std::atomic<bool> is_done{false};
  RankOutput rank_output;
  Conductor conductor(script, is_server_gone, rank_output);
  std::string problem;
  std::thread second([&] {
    try {
      conductor.run();
    } catch (const std::exception& error) {
      problem = error.what();
    }
    is_done = true;
  });
  Step step;
  step.process = script.server;
  step.has_ranks = script.has_ranks;
  step.log = "/dev/null";  // on_output has it
  step.limits.timeout = std::chrono::hours(24 * 365);
  step.is_done = &is_done;
  StepResult ended;
  std::exception_ptr failure;
  try {
    ended = supervise(step, [&](const StepProgress& progress) {
      if (!progress.output.empty()) {
        on_output(progress.output);
      }
      if (script.has_ranks) {
        rank_output.add(progress.output);
      }
    });
  } catch (...) {
    failure = std::current_exception();
  }
  const bool has_died = !is_done.load();
  is_server_gone = true;
  // supervise() has ended everything, unless it failed: nobody waits for a client then.
  while (failure && !is_done) {
    for (const RunningProcess& process : descendants()) {
      ::kill(process.pid, SIGKILL);
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
  second.join();
  if (failure) {
    std::rethrow_exception(failure);
  }
  DriveResult result = conductor.result;
  result.server_exit_code = ended.exit_code;
  if (ended.end == StepEnd::kInterrupted || ended.end == StepEnd::kAborted) {
    result.failure = Reason::kInterrupted;
    result.sentence = "the run was stopped";
  } else if (!problem.empty()) {
    result.failure = Reason::kPassFailed;
    result.sentence = problem;
  } else if (has_died) {
    result.failure = Reason::kServerDied;
    const bool is_of_rank = result.start_ns == 0 && rank_output.has_lost_rank();
    result.sentence =
        is_of_rank ? kRankNotStarted
                   : fmt::format("the server exited with code {}{}", ended.exit_code,
                                 result.start_ns == 0 ? " before it was ready" : " under load");
  }
  if (!script.events.empty()) {
    write_file(script.events, event_line(result));
  }
  return result;
}

std::optional<DriveResult> read_drive_result(const std::filesystem::path& events) {
  simdjson::dom::parser parser;
  simdjson::dom::element line;
  if (parser.load(events.string()).get(line) != simdjson::SUCCESS || !line.is_object()) {
    return std::nullopt;
  }
  DriveResult result;
  std::string_view code;
  std::string_view sentence;
  std::int64_t exit_code = -1;
  const bool is_whole = line["failure"].get(code) == simdjson::SUCCESS &&
                        line["sentence"].get(sentence) == simdjson::SUCCESS &&
                        line["ready_after_ns"].get(result.ready_after_ns) == simdjson::SUCCESS &&
                        line["window_start_ns"].get(result.start_ns) == simdjson::SUCCESS &&
                        line["window_end_ns"].get(result.end_ns) == simdjson::SUCCESS &&
                        line["server_exit_code"].get(exit_code) == simdjson::SUCCESS;
  if (!is_whole) {
    return std::nullopt;
  }
  result.sentence = sentence;
  result.server_exit_code = static_cast<int>(exit_code);
  for (const ReasonInfo& info : all_reasons()) {
    if (code == info.code) {
      result.failure = info.reason;
    }
  }
  return result;
}

}  // namespace gpuwhy
