// SPDX-License-Identifier: Apache-2.0
//
// A run of a server: its address, its load, and the commands of its passes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/requests/request_results.h"

namespace llmprof {

struct Config;
struct CommandInputs;
struct PassCommand;

// A user's wish to profile a server.
struct ServerRequest {
  std::string command;  // one line; empty: the words after --
  std::string ready;    // an address; empty: as the workload's preset says
  std::string client;   // one line; {url} and {requests} are filled in; empty: llmprof load
  std::string warmup;   // the same
  std::int64_t ready_timeout_s = 600;
  std::string service_limits;  // of --slo

  bool is_wanted() const { return !command.empty() || !ready.empty() || !client.empty(); }
};

// The server of a run, and the load it gets.
struct ServerSetup {
  std::string url;  // "http://127.0.0.1:8000"
  std::string ready_url;
  std::int64_t ready_timeout_s = 0;
  std::vector<std::string> arguments;  // to add to its command line
  std::string start_url;               // to POST to when a profiler records; may be empty
  std::string stop_url;
  std::vector<std::string> warmup;  // {url} and {requests} are filled in for each pass
  std::vector<std::string> client;
  ServiceLimits limits;
};

// `command` is the server's. Throws kUsage if nothing says where the server will answer.
ServerSetup server_setup_of(const ServerRequest& request, const Config& config,
                            const std::vector<std::string>& command);

// Files of a pass in its folder.
inline constexpr const char* kRequestsFile = "requests.jsonl";
inline constexpr const char* kDriveFile = "drive.json";
inline constexpr const char* kClientLog = "client.txt";

// The command of a pass, driven: started, loaded and stopped. `start` and `stop` are a profiler's
// own commands; empty: it records all the time.
PassCommand driven(const CommandInputs& inputs, const std::string& folder, PassCommand command,
                   const std::vector<std::string>& start, const std::vector<std::string>& stop);

}  // namespace llmprof
