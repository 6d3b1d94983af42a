// SPDX-License-Identifier: Apache-2.0
//
// Recording of a running server by its own profiler: start and stop over HTTP, then its trace
// files.
//
// The engine decides when a file is complete, and says so nowhere. A file whose size has not
// changed for some seconds is taken to be.
#include "serve/attach.h"

#include <algorithm>
#include <cctype>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "capture/subprocess.h"
#include "net/http.h"
#include "serve/last_statement.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenFileLooks{500};
constexpr std::chrono::seconds kUnchanged{3};  // then a file is complete

bool is_recording_name(const std::string& name) {
  constexpr std::string_view kEndings[] = {".json", ".json.gz", ".nsys-rep", ".sqlite"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// Recordings in a folder and below, with their sizes.
std::map<fs::path, std::uintmax_t> recordings_in(const fs::path& folder) {
  std::map<fs::path, std::uintmax_t> found;
  std::error_code failure;
  fs::recursive_directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && is_recording_name(entry->path().filename().string())) {
      const std::uintmax_t bytes = entry->file_size(ignored);
      found[entry->path()] = ignored ? 0 : bytes;
    }
  }
  return found;
}

// `may_refuse`: any answer will do.
void post(const std::string& url, const std::string& body, std::chrono::seconds most,
          bool may_refuse = false) {
  HttpOptions options;
  options.timeout_s = static_cast<int>(most.count());
  const HttpAnswer answer = HttpClient(options).post(url, {"Content-Type: application/json"}, body);
  if (answer.status / 100 != 2 && !(may_refuse && answer.status != 0)) {
    const std::string why =
        answer.status == 0 ? answer.reason : fmt::format("HTTP status {}", answer.status);
    throw Error(
        ErrorKind::kEnvironment, fmt::format("POST {}: {}", url, printable(why)),
        answer.status == 404 ? "the server was started without its profiler: docs/serving.md" : "");
  }
}

void run_client(const AttachOptions& options) {
  Process process{options.client, options.environment};
  process.timeout = options.most_wait;
  const ProcessResult ended = run_process(process);
  if (!ended.succeeded()) {
    throw Error(ErrorKind::kFailure, fmt::format("the client exited with code {}: {}",
                                                 ended.exit_code, last_statement(ended)));
  }
}

// vLLM counts iterations, SGLang steps, and each ignores the other's word.
std::string body_of(const AttachOptions& options) {
  return options.num_steps
             ? fmt::format(R"({{"num_steps": {0}, "max_iterations": {0}}})", *options.num_steps)
             : options.body;
}

// New files, once none of them has grown for a while.
std::vector<fs::path> wait_for_files(const AttachOptions& options,
                                     const std::map<fs::path, std::uintmax_t>& before,
                                     const std::function<bool()>& is_stopped) {
  const Clock::time_point start = Clock::now();
  Clock::time_point changed = start;
  std::map<fs::path, std::uintmax_t> last;
  while (Clock::now() - start < options.most_wait && !is_stopped()) {
    std::map<fs::path, std::uintmax_t> now = recordings_in(options.traces);
    std::erase_if(now, [&](const auto& file) {
      const auto old = before.find(file.first);
      return old != before.end() && old->second == file.second;
    });
    if (now != last) {
      last = std::move(now);
      changed = Clock::now();
    } else if (!last.empty() && Clock::now() - changed >= kUnchanged) {
      break;
    }
    std::this_thread::sleep_for(kBetweenFileLooks);
  }
  std::vector<fs::path> files;
  files.reserve(last.size());
  for (const auto& [path, bytes] : last) {
    files.push_back(path);
  }
  return files;
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
  const auto before = recordings_in(options.traces);
  post(options.url + options.start_path, body_of(options), options.most_wait);
  // A window that stays open would slow the server down for good.
  std::optional<Error> of_client;
  try {
    if (!options.client.empty()) {
      run_client(options);
    } else {
      const Clock::time_point until = Clock::now() + options.window;
      while (Clock::now() < until && !is_stopped()) {
        std::this_thread::sleep_for(milliseconds(50));
      }
    }
  } catch (const Error& error) {
    of_client = error;
  }
  // SGLang refuses to stop what has stopped after its last step.
  post(options.url + options.stop_path, "{}", options.most_wait, options.num_steps.has_value());
  if (of_client) {
    throw *of_client;
  }
  std::vector<fs::path> files = wait_for_files(options, before, is_stopped);
  if (files.empty()) {
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("the server wrote no trace into {}", printable(options.traces.string())),
        "is it the folder that the server was started with? docs/serving.md");
  }
  return files;
}

}  // namespace llmprof
