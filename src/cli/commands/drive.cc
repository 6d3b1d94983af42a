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
#include "cli/window_options.h"

namespace gpuwhy {
namespace {

struct DriveCommandOptions {
  std::string ready;
  std::int64_t start_timeout_s = 600;
  std::int64_t client_timeout_s = 3600;
  std::string warmup;
  std::string client;
  std::string start_command;
  std::string stop_command;
  std::string start_url;
  std::string stop_url;
  std::string traces;
  bool has_ranks = false;
  RecordingPeriod window;
  std::vector<std::string> unset;
  std::string client_log;
  std::string events;
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
  DriveScript script;
  script.server.argv = build_work_argv(system, {}, options.server);
  script.server.environment = system.environment;
  script.ready_url = options.ready;
  script.most_start = std::chrono::seconds(options.start_timeout_s);
  script.most_client = std::chrono::seconds(options.client_timeout_s);
  script.warmup = found_command(system, options.warmup);
  script.client = found_command(system, options.client);
  script.start_command = found_command(system, options.start_command);
  script.stop_command = found_command(system, options.stop_command);
  script.start_url = options.start_url;
  script.stop_url = options.stop_url;
  script.traces = options.traces;
  script.has_ranks = options.has_ranks;
  script.window = options.window;
  script.client_environment = client_environment(system.environment, options.unset);
  std::erase_if(script.server.environment,
                [](const auto& variable) { return variable.first.starts_with(kClientVariable); });
  script.client_log = options.client_log;
  script.events = options.events;
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
  Command command;
  command.name = "drive";
  command.summary = "Start a server, send it load, stop it";
  command.options = {
      required({"--ready", "URL", "Answers 200 when the server takes requests", &options->ready}),
      {"--client", "COMMAND", "Sends the load; the server is stopped when it ends",
       &options->client},
      {"--warmup", "COMMAND", "Runs before the client, outside the recording", &options->warmup},
      {"--start-timeout", "SECONDS", "For the server to be ready", &options->start_timeout_s},
      {"--client-timeout", "SECONDS", "For warm-up and client, each", &options->client_timeout_s},
      {"--start-command", "COMMAND", "Starts the recording, before the client",
       &options->start_command},
      {"--stop-command", "COMMAND", "Stops the recording, after the client",
       &options->stop_command},
      {"--start-url", "URL", "POST to the server when the recording starts", &options->start_url},
      {"--stop-url", "URL", "POST to the server when it stops", &options->stop_url},
      {"--traces", "DIR", "Wait until the server has written its traces there", &options->traces},
      {"--ranks", "", "The server is started by mpirun, with a profiler around each rank",
       &options->has_ranks},
      window_steps_option(options->window),
      window_seconds_option(options->window),
      window_after_option(options->window),
      window_stage_option(options->window),
      {"--unset", "NAME...", "Variables that only the server gets", &options->unset},
      {"--client-log", "FILE", "Where the output of the client goes", &options->client_log},
      {"--events", "FILE", "Where to write how it went, as JSON", &options->events},
  };
  command.examples =
      "  gpuwhy drive --ready http://127.0.0.1:8080/health \\\n"
      "    --client 'gpuwhy load http://127.0.0.1:8080 -o requests.jsonl' -- llama-server -m model.gguf\n";
  command.is_hidden = true;
  command.rest = &options->server;
  command.run = [options](Context& context) { return run_drive(*options, context); };
  return command;
}

}  // namespace gpuwhy
