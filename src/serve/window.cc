// SPDX-License-Identifier: Apache-2.0
//
// Windows of recording on a server under load: opened, closed, and checked for what is in them.
//
// Engines count their own steps: vLLM (max_iterations) and SGLang (num_steps) by the words of the
// POST, each ignoring the other's. Read in vLLM 0.32 (entrypoints/serve/profile/api_router.py,
// profiler/wrapper.py) and SGLang of 2026-08 (managers/io_struct.py, utils/profile_utils.py).
#include "serve/window.h"

#include <algorithm>
#include <exception>
#include <future>
#include <thread>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "net/http.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBetweenFileLooks{500};
constexpr std::chrono::seconds kUnchanged{3};  // then a file is complete

// Stages of which each instance is a step of the engine.
constexpr std::string_view kStepStages[] = {"prefill", "decode", "mixed", "verify", "step"};

bool is_recording_name(const std::string& name) {
  constexpr std::string_view kEndings[] = {".json", ".json.gz", ".nsys-rep", ".sqlite"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

// Recordings in a folder and below, with their sizes and times.
FileStates recordings_in(const fs::path& folder) {
  FileStates found;
  std::error_code failure;
  fs::recursive_directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && is_recording_name(entry->path().filename().string())) {
      const std::uintmax_t bytes = entry->file_size(ignored);
      found[entry->path()] = {ignored ? 0 : bytes, entry->last_write_time(ignored)};
    }
  }
  return found;
}

std::vector<fs::path> names_of(const FileStates& files) {
  std::vector<fs::path> names;
  names.reserve(files.size());
  for (const auto& [path, state] : files) {
    names.push_back(path);
  }
  return names;
}

// "-TP-0-DECODE.trace.json.gz", or "-decode" in newer versions.
bool is_of_stage(const fs::path& file, std::string_view stage) {
  const std::string name = file.filename().string();
  const auto has = [&](std::string_view word) {
    return name.find(fmt::format("-{}.", word)) != std::string::npos;
  };
  return has(stage) || has(role_of(row_name(stage)) == StageRole::kPrefill ? "EXTEND" : "DECODE");
}

}  // namespace

std::vector<std::string> period_words(const RecordingPeriod& wish) {
  std::vector<std::string> words;
  const auto add = [&](const char* option, const std::optional<std::int64_t>& number) {
    if (number) {
      words.insert(words.end(), {option, fmt::format("{}", *number)});
    }
  };
  add("--steps", wish.num_steps);
  add("--seconds", wish.num_seconds);
  add("--after", wish.after_s);
  if (!wish.stage.empty()) {
    words.insert(words.end(), {"--stage", wish.stage});
  }
  return words;
}

std::string window_body(const RecordingPeriod& wish, bool is_for_nsys) {
  if (!wish.num_steps) {
    return "{}";
  }
  std::string more;
  if (is_for_nsys) {
    more = R"(, "activities": ["CUDA_PROFILER"])";
  } else if (!wish.stage.empty()) {
    // SGLang counts the steps of each stage by itself, and writes a file for each.
    more = fmt::format(R"(, "profile_by_stage": true, "profile_stages": ["{}"])", wish.stage);
  }
  return fmt::format(R"({{"num_steps": {0}, "max_iterations": {0}{1}}})", *wish.num_steps, more);
}

std::string post_to_server(const std::string& url, const std::string& body,
                           std::chrono::seconds most, bool may_refuse) {
  HttpOptions options;
  options.timeout_s = static_cast<int>(most.count());
  const HttpAnswer answer = HttpClient(options).post(url, {"Content-Type: application/json"}, body);
  if (answer.status / 100 == 2 || (may_refuse && answer.status != 0)) {
    return "";
  }
  return fmt::format(
      "POST {}: {}", url,
      printable(answer.status == 0 ? answer.reason : fmt::format("HTTP status {}", answer.status)));
}

bool record_part(const RecordingPeriod& wish, const WindowCalls& calls) {
  bool is_open = false;
  if (!wish.after_s) {
    is_open = calls.open();
    if (!is_open) {
      return false;
    }
  }
  std::future<bool> load = std::async(std::launch::async, calls.load);
  const auto outlasts = [&](std::int64_t seconds) {
    return load.wait_for(std::chrono::seconds(seconds)) == std::future_status::timeout;
  };
  bool is_well = true;
  if (!is_open) {
    is_open = outlasts(*wish.after_s) && calls.open();
    is_well = is_open;
  }
  if (is_open && wish.num_seconds) {
    outlasts(*wish.num_seconds);
    is_well = calls.close();
    is_open = false;
  }
  std::exception_ptr problem;
  try {
    is_well = load.get() && is_well;
  } catch (...) {
    problem = std::current_exception();
  }
  is_well = (!is_open || calls.close()) && is_well;
  if (problem) {
    std::rethrow_exception(problem);
  }
  return is_well;
}

TraceFolder::TraceFolder(fs::path folder)
    : folder_(std::move(folder)), before_(recordings_in(folder_)) {}

std::vector<fs::path> TraceFolder::wait(std::chrono::seconds most,
                                        const std::function<bool()>& is_stopped) const {
  const Clock::time_point start = Clock::now();
  Clock::time_point changed = start;
  FileStates last;
  while (Clock::now() - start < most && !is_stopped()) {
    FileStates now = recordings_in(folder_);
    std::erase_if(now, [&](const auto& file) {
      const auto old = before_.find(file.first);
      return old != before_.end() && old->second == file.second;
    });
    if (now != last) {
      last = std::move(now);
      changed = Clock::now();
    } else if (!last.empty() && Clock::now() - changed >= kUnchanged) {
      break;
    }
    std::this_thread::sleep_for(kBetweenFileLooks);
  }
  return names_of(last);
}

std::vector<fs::path> recordings_below(const fs::path& folder) {
  return names_of(recordings_in(folder));
}

std::vector<fs::path> files_of_stage(std::vector<fs::path> files, const std::string& stage) {
  std::vector<fs::path> wanted;
  std::copy_if(files.begin(), files.end(), std::back_inserter(wanted),
               [&](const fs::path& file) { return !stage.empty() && is_of_stage(file, stage); });
  return wanted.empty() ? files : wanted;
}

std::vector<Breach> check_window(const std::string& pass, const RecordingPeriod& wish,
                                 const std::map<std::string, std::int64_t>& instances,
                                 std::int64_t open_ns) {
  const auto count = [&](std::string_view stage) {
    const auto found = instances.find(std::string(stage));
    return found == instances.end() ? std::int64_t{0} : found->second;
  };
  std::vector<Breach> breaches;
  std::int64_t found = 0;
  for (const std::string_view stage : kStepStages) {
    found += wish.stage.empty() || wish.stage == stage ? count(stage) : 0;
  }
  const std::string of_stage = wish.stage.empty() ? "" : fmt::format(" of {}", wish.stage);
  const std::int64_t wanted = wish.num_steps.value_or(wish.stage.empty() ? 0 : 1);
  // An engine may close the window within its last step.
  if (found < std::max<std::int64_t>(wanted - 1, std::min<std::int64_t>(wanted, 1))) {
    breaches.push_back(
        {Reason::kWindowShort, pass,
         fmt::format("{}{} {} asked for, and {} {} in the recording", count_of(wanted, "step"),
                     of_stage, wanted == 1 ? "was" : "were", found, found == 1 ? "is" : "are"),
         wish.stage.empty() ? "send more requests, or mark the steps (docs/serving.md)"
                            : "a load that has more of them, or --after SECONDS",
         ""});
  }
  // A profiler takes its time to stop, so a window may be longer, not shorter.
  if (wish.num_seconds && open_ns > 0 && open_ns < *wish.num_seconds * kNsPerS) {
    breaches.push_back({Reason::kWindowShort, pass,
                        fmt::format("{} s were asked for, and the load ended after {}",
                                    *wish.num_seconds, format_duration_ns(open_ns)),
                        "send more requests", ""});
  }
  return breaches;
}

}  // namespace gpuwhy
