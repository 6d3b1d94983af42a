// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy drive: starts a server, waits until it answers, sends it load, stops it. `gpuwhy run
// --server` runs each of its passes through this command.
#include "serve/drive.h"

#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "capture/workload.h"
#include "cli/command.h"

namespace gpuwhy {
namespace {

struct DriveCommandOptions {
  DriveScript script;
  // As one line each.
  std::string warmup;
  std::string client;
  std::string start_command;
  std::string stop_command;
  std::vector<std::string> unset;
  std::vector<std::string> server;
};

// The command with its program found on PATH.
std::vector<std::string> found_command(const System& system, const std::string& text) {
  const std::vector<std::string> words = split_command(text);
  return words.empty() ? words : build_work_argv(system, {}, words);
}

int run_drive(const DriveCommandOptions& options, Context& context) {
  if (options.server.empty()) {
    throw Error(ErrorKind::kUsage, "drive: needs a server after --",
                "gpuwhy drive --ready URL --client COMMAND -- SERVER [ARGUMENT...]");
  }
  const System& system = context.system;
  DriveScript script = options.script;
  script.server.argv = build_work_argv(system, {}, options.server);
  script.server.environment = system.environment;
  script.warmup = found_command(system, options.warmup);
  script.client = found_command(system, options.client);
  script.start_command = found_command(system, options.start_command);
  script.stop_command = found_command(system, options.stop_command);
  script.client_environment = client_environment(system.environment, options.unset);
  std::erase_if(script.server.environment,
                [](const auto& variable) { return variable.first.starts_with(kClientVariable); });
  const DriveResult result =
      drive(script, [&](std::string_view text) { context.console.out(std::string(text)); });
  if (result.failure) {
    context.console.err(
        fmt::format("gpuwhy: {}: {}\n", code_of(*result.failure), printable(result.sentence)));
    return info_of(*result.failure).exit_code;
  }
  return kExitOk;
}

}  // namespace

Command drive_command() {
  auto options = std::make_shared<DriveCommandOptions>();
  DriveScript& script = options->script;
  Command command =
      command_of("drive", "Start a server, send it load, stop it", options, run_drive);
  command.options = {
      required({"--ready", "URL", "Answers 200 when the server takes requests", &script.ready_url}),
      {"--client", "COMMAND", "Sends the load; the server is stopped when it ends",
       &options->client},
      {"--warmup", "COMMAND", "Runs before the client, outside the recording", &options->warmup},
      {"--start-timeout", "SECONDS", "For the server to be ready", &script.start_timeout_s},
      {"--client-timeout", "SECONDS", "For warm-up and client, each", &script.client_timeout_s},
      {"--start-command", "COMMAND", "Starts the recording, before the client",
       &options->start_command},
      {"--stop-command", "COMMAND", "Stops the recording, after the client",
       &options->stop_command},
      {"--start-url", "URL", "POST to the server when the recording starts", &script.start_url},
      {"--stop-url", "URL", "POST to the server when it stops", &script.stop_url},
      {"--traces", "DIR", "Wait until the server has written its traces there", &script.traces},
      {"--ranks", "", "The server is started by mpirun, with a profiler around each rank",
       &script.has_ranks},
      {"--unset", "NAME...", "Variables that only the server gets", &options->unset},
      {"--client-log", "FILE", "Where the output of the client goes", &script.client_log},
      {"--events", "FILE", "Where to write how it went, as JSON", &script.events},
  };
  command.add(period_options(script.window));
  command.examples =
      "  gpuwhy drive --ready http://127.0.0.1:8080/health \\\n"
      "    --client 'gpuwhy load http://127.0.0.1:8080 -o requests.jsonl' -- llama-server -m model.gguf\n";
  command.is_hidden = true;
  command.rest = &options->server;
  return command;
}

}  // namespace gpuwhy
