// SPDX-License-Identifier: Apache-2.0
//
// Recording of a running server by its own profiler: start and stop over HTTP, then its trace
// files.
#include "serve/attach.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "capture/supervise.h"
#include "net/http.h"
#include "serve/last_statement.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Throws kFailure if the client fails. A signal ends it, and so does a window that did not open.
void run_client(const AttachOptions& options, const std::atomic<bool>& is_refused) {
  Step step;
  step.process = {options.client, options.environment};
  step.log = "/dev/null";
  step.limits.timeout = options.most_wait;
  step.is_done = &is_refused;
  const StepResult ended = supervise(step, [](const StepProgress&) {});
  if (ended.end == StepEnd::kTimeout) {
    throw Error(ErrorKind::kFailure,
                fmt::format("the client did not end within {} s", options.most_wait.count()));
  }
  if (ended.end == StepEnd::kItself && ended.exit_code != 0) {
    ProcessResult said;
    said.out = ended.last_lines;
    throw Error(ErrorKind::kFailure, fmt::format("the client exited with code {}: {}",
                                                 ended.exit_code, last_statement(said)));
  }
}

void require(const std::string& failure) {
  if (!failure.empty()) {
    throw Error(ErrorKind::kEnvironment, failure,
                failure.ends_with(" 404")
                    ? "the server was started without its profiler: docs/serving.md"
                    : "");
  }
}

}  // namespace

std::string server_version(const std::string& url) {
  constexpr std::string_view kKey = "\"version\"";
  constexpr std::size_t kLongest = 64;
  HttpOptions options;
  options.timeout_s = 5;
  options.limit_bytes = 64 << 10;
  const HttpAnswer answer = HttpClient(options).get(url + "/version");
  const std::size_t key = answer.body.find(kKey);
  if (answer.status != 200 || key == std::string::npos) {
    return "";
  }
  // {"version": "0.10.1"}: the first text after the key. Anything unusual is not a version.
  const std::size_t open = answer.body.find('"', key + kKey.size());
  const std::size_t close = answer.body.find('"', std::min(open, answer.body.size() - 1) + 1);
  if (close == std::string::npos || close - open - 1 > kLongest) {
    return "";
  }
  const std::string version = answer.body.substr(open + 1, close - open - 1);
  const bool is_plain =
      !version.empty() && std::all_of(version.begin(), version.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '.' || c == '+' || c == '-' || c == '_';
      });
  return is_plain ? version : "";
}

std::vector<fs::path> record_window(const AttachOptions& options,
                                    const std::function<bool()>& is_stopped) {
  std::error_code failure;
  if (!fs::is_directory(options.traces, failure)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is not a folder", printable(options.traces.string())),
                "--traces is the folder into which the engine writes its traces");
  }
  const TraceFolder folder(options.traces);
  const std::string body = options.body.empty() ? window_body(options.wish, false) : options.body;
  std::atomic<bool> is_refused{false};
  // A window that stays open would slow the server down for good.
  const bool is_recorded =
      record_part(options.wish,
                  {[&] {
                     const std::string refusal =
                         post_to_server(options.url + options.start_path, body, options.most_wait);
                     is_refused = !refusal.empty();
                     require(refusal);
                     return true;
                   },
                   [&] {
                     if (!options.client.empty()) {
                       run_client(options, is_refused);
                       return true;
                     }
                     const Clock::time_point until = Clock::now() + options.window;
                     while (Clock::now() < until && !is_stopped() && !is_refused) {
                       std::this_thread::sleep_for(std::chrono::milliseconds(50));
                     }
                     return true;
                   },
                   [&] {
                     // SGLang refuses to stop what has stopped after its last step.
                     require(post_to_server(options.url + options.stop_path, "{}",
                                            options.most_wait, options.wish.num_steps.has_value()));
                     return true;
                   }});
  if (!is_recorded && !is_stopped()) {
    throw Error(
        ErrorKind::kContract,
        fmt::format("{}: the load ended before the window opened", code_of(Reason::kWindowFailed)),
        "a smaller --after, or more requests");
  }
  std::vector<fs::path> files =
      files_of_stage(folder.wait(options.most_wait, is_stopped), options.wish.stage);
  if (files.empty() && !is_stopped()) {
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("the server wrote no trace into {}", printable(options.traces.string())),
        "is it the folder that the server was started with? docs/serving.md");
  }
  return files;
}

}  // namespace gpuwhy
