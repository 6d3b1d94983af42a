// SPDX-License-Identifier: Apache-2.0
//
// A run of a server: its address, its load, and the commands of its passes.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capture/rank_command.h"
#include "results/requests.h"
#include "serve/window.h"

namespace gpuwhy {

struct Config;
struct CommandInputs;
struct PassCommand;

// A user's wish to profile a server.
struct ServerRequest {
  std::string command;  // one line; empty: the words after --
  std::string ready;    // an address; empty: as the workload's preset says
  std::string client;   // one line; {url} and {requests} are filled in; empty: gpuwhy load
  std::string warmup;   // the same
  std::int64_t ready_timeout_s = 600;
  std::string service_limits;  // of --slo
  RecordingPeriod window;

  bool is_wanted() const { return !command.empty() || !ready.empty() || !client.empty(); }
};

// What a kind of server gets so that it records, or records a number of steps. {traces}, {steps},
// {first_step} and {last_step} are filled in for each pass.
struct ServerAddition {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
};

// The server of a run, and the load it gets.
struct ServerSetup {
  std::string url;  // "http://127.0.0.1:8000"
  std::string ready_url;
  std::int64_t ready_timeout_s = 0;
  std::vector<std::string> arguments;   // to add to its command line
  std::optional<ServerAddition> torch;  // to record by its own profiler; empty: it has none
  std::optional<ServerAddition> steps;  // to record a number of steps; empty: it counts none
  std::int64_t first_step = 0;          // where the engine is told steps before it starts
  std::string start_url;                // to POST to when recording begins; may be empty
  std::string stop_url;
  bool is_started_for_nsys = false;  // it marks its steps only then
  RecordingPeriod window;
  std::optional<RankCommand> ranks;  // where a launcher starts it on several ranks
  std::vector<std::string> warmup;   // {url} and {requests} are filled in for each pass
  std::vector<std::string> client;
  ServiceLimits limits;
};

// `command` is the server's. Throws kUsage if nothing says where the server will answer.
ServerSetup server_setup_of(const ServerRequest& request, const Config& config,
                            const std::vector<std::string>& command);

// How a pass of a server is recorded.
struct DrivenPeriod {
  // A profiler's own commands; empty: it records all the time.
  std::vector<std::string> start;
  std::vector<std::string> stop;
  bool has_post = false;         // the server is told when recording begins and ends
  std::filesystem::path traces;  // where it writes; empty: it does not
  bool has_ranks = false;        // each is under a profiler of its own
};

// The command of a pass, driven: started, loaded and stopped.
PassCommand driven(const CommandInputs& inputs, const std::string& folder, PassCommand command,
                   const DrivenPeriod& window);

// What the preset adds to the server's command line and environment. Without `is_profiled`:
// nothing of steps. `traces` is where its own profiler writes; empty: it does not record.
void add_to_server(const ServerSetup& server, bool is_profiled, const std::filesystem::path& traces,
                   PassCommand& command);

}  // namespace gpuwhy
