// SPDX-License-Identifier: Apache-2.0
//
// Setup of a run that profiles a server under load.
#include "session/record/server_setup.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "bundle/layout.h"
#include "capture/workload.h"
#include "config/reader.h"
#include "results/stage_role.h"
#include "serve/drive.h"
#include "session/reading/recording.h"
#include "session/record/run_passes.h"

namespace gpuwhy {
namespace {

// The number after --port, or in --port=N; nullopt if the command does not say.
std::optional<std::string> port_of(const std::vector<std::string>& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "--port" && i + 1 < command.size()) {
      return command[i + 1];
    }
    if (command[i].starts_with("--port=")) {
      return command[i].substr(7);
    }
  }
  return std::nullopt;
}

// "http://host:port" of an address.
std::string origin_of(const std::string& address) {
  const std::size_t scheme = address.find("://");
  if (scheme == std::string::npos) {
    throw Error(ErrorKind::kUsage, fmt::format("--ready {}: not an address", address),
                "give it as http://127.0.0.1:8000/health");
  }
  return address.substr(0, address.find('/', scheme + 3));
}

// A load that is mostly of a stage, for its window.
std::vector<std::string> load_of_stage(const std::string& stage) {
  const StageRole role = role_of(row_name(stage));
  if (role == StageRole::kPrefill) {
    return {"--streams", "4", "--prompt-tokens", "2048", "--output-tokens", "1"};
  }
  if (role == StageRole::kDecode) {
    return {"--streams", "16", "--prompt-tokens", "16", "--output-tokens", "256"};
  }
  return {};
}

std::optional<ServerAddition> addition_of(const SettingsReader& reader, const std::string& key) {
  if (!reader.has(key)) {
    return std::nullopt;
  }
  return ServerAddition{reader.texts(key + ".arguments"), reader.text_map(key + ".environment")};
}

std::vector<std::string> load_of(std::vector<std::string> more) {
  std::vector<std::string> argv = own_command("load");
  argv.emplace_back("{url}");
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

}  // namespace

ServerSetup server_setup_of(const ServerRequest& request, const Config& config,
                            const std::vector<std::string>& command) {
  const SettingsReader reader(config);
  ServerSetup setup;
  if (!request.ready.empty()) {
    setup.ready_url = request.ready;
    setup.url = origin_of(request.ready);
  } else {
    const auto port = port_of(command);
    const auto usual = reader.optional_text("workload.server.port");
    if (!port && !usual) {
      throw Error(ErrorKind::kUsage, "run: nothing says where the server will answer",
                  "add --ready http://127.0.0.1:PORT/health");
    }
    setup.url = "http://127.0.0.1:" + (port ? *port : *usual);
    setup.ready_url = setup.url + reader.optional_text("workload.server.ready").value_or("/health");
  }
  setup.ready_timeout_s = request.ready_timeout_s;
  setup.limits = service_limits_of(request.service_limits);
  setup.arguments = reader.texts("workload.server.arguments");
  setup.torch = addition_of(reader, "workload.server.torch");
  setup.steps = addition_of(reader, "workload.server.steps");
  setup.first_step = setup.steps ? reader.whole_from("workload.server.steps.first", 0) : 0;
  setup.is_started_for_nsys = reader.flag("workload.server.start_for_nsys");
  setup.window = request.window;
  if (setup.window.num_steps && !setup.steps) {
    throw Error(ErrorKind::kUsage, "--steps: this kind of server does not count its steps",
                "--seconds N records a time; gpuwhy list presets workload shows the kinds");
  }
  if (const auto start = reader.optional_text("workload.server.start")) {
    setup.start_url = setup.url + *start;
  }
  if (const auto stop = reader.optional_text("workload.server.stop")) {
    setup.stop_url = setup.url + *stop;
  }
  setup.client = split_command(request.client);
  setup.warmup = split_command(request.warmup);
  if (setup.client.empty()) {
    std::vector<std::string> words = load_of_stage(setup.window.stage);
    words.insert(words.end(), {"--out", "{requests}"});
    setup.client = load_of(words);
    if (setup.warmup.empty()) {
      setup.warmup = load_of({"--requests", "4", "--output-tokens", "8", "--quiet"});
    }
  }
  return setup;
}

void add_to_server(const ServerSetup& server, bool is_profiled, const std::filesystem::path& traces,
                   PassCommand& command) {
  const std::int64_t steps = server.window.num_steps.value_or(0);
  const std::map<std::string, std::string> places = {
      {"traces", traces.string()},
      {"steps", fmt::format("{}", steps)},
      {"first_step", fmt::format("{}", server.first_step)},
      {"last_step", fmt::format("{}", server.first_step + steps)}};
  const auto add = [&](const std::vector<std::string>& arguments,
                       const std::map<std::string, std::string>& environment) {
    const std::vector<std::string> words = filled(arguments, places);
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    for (const auto& [name, value] : environment) {
      command.environment[name] = filled({value}, places).front();
    }
  };
  if (traces.empty()) {
    add(server.arguments, {});
  } else {
    add(server.torch->arguments, server.torch->environment);
  }
  if (is_profiled && steps > 0) {
    add(server.steps->arguments, server.steps->environment);
  }
}

PassCommand driven(const CommandInputs& inputs, const std::string& folder, PassCommand command,
                   const DrivenPeriod& window) {
  const ServerSetup& server = *inputs.setup.server;
  const std::filesystem::path out = inputs.bundle / folder;
  const std::map<std::string, std::string> places = {
      {"url", server.url}, {"requests", (out / layout::kRequests).string()}};
  std::vector<std::string> argv = own_command("drive");
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) {
      argv.insert(argv.end(), {option, value});
    }
  };
  add("--ready", server.ready_url);
  add("--start-timeout", fmt::format("{}", server.ready_timeout_s));
  add("--warmup", shell_text(filled(server.warmup, places)));
  add("--client", shell_text(filled(server.client, places)));
  add("--start-command", shell_text(window.start));
  add("--stop-command", shell_text(window.stop));
  if (window.has_post) {
    add("--start-url", server.start_url);
    add("--stop-url", server.stop_url);
  }
  add("--traces", window.traces.string());
  if (window.has_ranks) {
    argv.emplace_back("--ranks");
  }
  // The unprofiled pass has the same window: its times are for comparison.
  RecordingPeriod wish = server.window;
  if (!window.has_post) {
    wish = {{}, wish.num_seconds, wish.after_s, ""};
  }
  const std::vector<std::string> period = period_words(wish);
  argv.insert(argv.end(), period.begin(), period.end());
  add("--client-log", (out / layout::kClientLog).string());
  add("--events", (out / layout::kDrive).string());
  // What a pass adds to the environment is the server's alone: the client gets the values of
  // before, as variables, since every user of the machine reads command lines.
  const auto& own = inputs.system.environment;
  std::map<std::string, std::string> kept;
  for (const auto& [name, value] : command.environment) {
    const auto found = own.find(name);
    if (found == own.end() || found->second != value) {
      add("--unset", name);
    }
    if (found != own.end() && found->second != value) {
      kept[kClientVariable + name] = found->second;
    }
  }
  command.environment.merge(kept);
  argv.emplace_back("--");
  argv.insert(argv.end(), command.argv.begin(), command.argv.end());
  command.argv = std::move(argv);
  return command;
}

}  // namespace gpuwhy
