// SPDX-License-Identifier: Apache-2.0
//
// A server under load: start, wait until it answers, warm up, record, stop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/reason.h"
#include "capture/supervise.h"
#include "serve/window.h"

namespace gpuwhy {

// What is done to a server, in this order. Empty: that part is left out.
struct DriveScript {
  Process server;          // alone or under a profiler
  bool has_ranks = false;  // it is a launcher, and each rank is under a profiler
  std::string ready_url;   // answers 200 when the server can take requests
  std::int64_t start_timeout_s = 600;
  std::vector<std::string> warmup;  // a command, before anything is recorded
  RecordingPeriod window;           // which part of the client's load is recorded
  // Start recording: a command of the profiler, then a POST to the server.
  std::vector<std::string> start_command;
  std::string start_url;
  std::vector<std::string> client;  // a command
  std::string stop_url;
  std::vector<std::string> stop_command;
  std::string traces;  // a folder where the engine itself writes; empty: only the profiler does
  std::map<std::string, std::string> client_environment;  // of all commands but the server
  std::int64_t client_timeout_s = 3600;
  std::string client_log;  // a file: what warm-up and client print
  std::string events;      // a file: what happened when: a line of JSON each
};

// Begins the sentence about a server that lost a rank: nsys gave up on its agent.
inline constexpr const char* kRankNotStarted = "nsys did not start the program of a rank";

// Before the name of a variable: its value for the client, where the server's differs.
inline constexpr const char* kClientVariable = "GPUWHY_CLIENT_";

// The environment of a client: without the variables `unset`, which only the server gets, or with
// the values that kClientVariable gives them.
std::map<std::string, std::string> client_environment(
    const std::map<std::string, std::string>& environment, const std::vector<std::string>& unset);

// How it went.
struct DriveResult {
  std::optional<Reason> failure;
  std::string sentence;  // about the failure
  std::int64_t ready_after_ns = 0;
  std::int64_t start_ns = 0;  // of the recorded window, time of day; 0: it never began
  std::int64_t end_ns = 0;
  int server_exit_code = -1;
};

// Carries the script out. The server, the client and all their children have ended when this
// returns. Ends early, with kInterrupted, on SIGINT, SIGTERM, SIGHUP and when the parent dies.
// `on_output` receives what the server prints. Throws kEnvironment if the server cannot be started.
DriveResult drive(const DriveScript& script,
                  const std::function<void(std::string_view)>& on_output);

// The result that drive() left in `events`; nullopt: it was killed before it could.
std::optional<DriveResult> read_drive_result(const std::filesystem::path& events);

}  // namespace gpuwhy
