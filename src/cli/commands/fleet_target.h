// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "fleet/history/clickhouse.h"
#include "fleet/history/history.h"

namespace gpuwhy {

// Where a fleet's history is, as the command line says it.
struct FleetTargetOptions {
  std::string to;  // a folder, or URLs with commas between them
  std::string database = "gpuwhy";
  std::string credentials;
  std::string ca_file;
  std::int64_t timeout_s = 60;
};

void add_fleet_target(Command& command, FleetTargetOptions& target);

bool is_server(const std::string& to);

// `wait_s`: how long a request is repeated. Throws kUsage for addresses that hold credentials,
// kInput for an unsafe file of them.
ServerOptions server_options(const FleetTargetOptions& target, const System& system,
                             std::int64_t wait_s = 15);

// A folder or a server, opened.
struct FleetHistory {
  std::unique_ptr<ClickHouse> server;
  std::unique_ptr<HistorySource> source;
};
FleetHistory open_history(const FleetTargetOptions& target, const System& system);

// The folder in which batches for a target wait: told, or one for each target below the user's own
// state.
std::filesystem::path spool_folder(const std::string& told, const ServerOptions& options,
                                   const System& system);

}  // namespace gpuwhy
