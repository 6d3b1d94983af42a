// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "serve/window.h"

namespace gpuwhy {

// A window of recording on a server that runs already, opened and closed over HTTP.
struct AttachOptions {
  std::string url;  // "http://127.0.0.1:8000"
  std::string start_path = "/start_profile";
  std::string stop_path = "/stop_profile";
  std::string body;  // of the POST that starts; empty: as `wish` says
  RecordingPeriod wish;
  std::filesystem::path traces;                    // the folder into which the engine writes
  std::vector<std::string> client;                 // a command; the window lasts as long as it runs
  std::map<std::string, std::string> environment;  // of the client
  std::chrono::seconds window{10};                 // where there is no client
  std::chrono::seconds most_wait{600};             // for client and files, each
};

// Opens the window, closes it, and returns the files that the engine wrote meanwhile, sorted, all
// complete. Also closes it when `is_stopped` says to stop. Throws kEnvironment if the server
// refuses or writes nothing, kFailure if the client fails, kContract if the load ends before the
// window opens.
std::vector<std::filesystem::path> record_window(const AttachOptions& options,
                                                 const std::function<bool()>& is_stopped);

// The version that the server tells at /version, as vLLM does; empty if it tells none.
std::string server_version(const std::string& url);

}  // namespace gpuwhy
