// SPDX-License-Identifier: Apache-2.0
//
// The part of a server's work that is recorded.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/contract.h"

namespace gpuwhy {

// Which part. Without limits: as long as the load lasts.
struct RecordingPeriod {
  std::optional<std::int64_t> num_steps;  // by the engine's own count
  std::optional<std::int64_t> num_seconds;
  std::optional<std::int64_t> after_s;  // opens this long after the load began; empty: before it
  std::string stage;                    // that must be in it: prefill or decode; empty: any
};

// The words of a command line that say the same.
std::vector<std::string> period_words(const RecordingPeriod& wish);

// The body of the POST that opens the window of an engine's profiler. `is_for_nsys`: the engine
// only calls cudaProfilerStart.
std::string window_body(const RecordingPeriod& wish, bool is_for_nsys);

// Asks a server to open or close its window. Returns why that failed; empty: it did not.
// `may_refuse`: any answer will do.
std::string post_to_server(const std::string& url, const std::string& body,
                           std::chrono::seconds most, bool may_refuse = false);

// What is done for a window. Each returns whether it succeeded.
struct WindowCalls {
  std::function<bool()> open;
  std::function<bool()> load;  // called in another thread
  std::function<bool()> close;
};

// Opens the window, sends the load and closes the window, in the order and at the times of `wish`.
// What was opened is closed. False where a call failed, or where the load ended before the window
// could open.
bool record_part(const RecordingPeriod& wish, const WindowCalls& calls);

// Files with their sizes and times.
using FileStates =
    std::map<std::filesystem::path, std::pair<std::uintmax_t, std::filesystem::file_time_type>>;

// The folder into which an engine writes its traces.
class TraceFolder {
 public:
  explicit TraceFolder(std::filesystem::path folder);  // remembers what is there

  // The files that are new or have changed, sorted, once none of them has grown for some seconds;
  // none if there are none in time. An engine does not say when a file is complete.
  std::vector<std::filesystem::path> wait(std::chrono::seconds most,
                                          const std::function<bool()>& is_stopped) const;

 private:
  std::filesystem::path folder_;
  FileStates before_;
};

// The recordings in a folder and below it, sorted.
std::vector<std::filesystem::path> recordings_below(const std::filesystem::path& folder);

// Of the files that SGLang writes apart, those of a stage; all where their names do not tell.
std::vector<std::filesystem::path> files_of_stage(std::vector<std::filesystem::path> files,
                                                  const std::string& stage);

// Whether a recording holds what was asked for: `instances` of its stages, and how long the window
// was open; 0: unknown.
std::vector<Breach> check_window(const std::string& pass, const RecordingPeriod& wish,
                                 const std::map<std::string, std::int64_t>& instances,
                                 std::int64_t open_ns);

}  // namespace gpuwhy
