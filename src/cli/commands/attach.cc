// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy attach: records a window of a server that runs already, by the engine's own profiler, and
// analyzes what it wrote.
#include "serve/attach.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "capture/subprocess.h"
#include "capture/supervise.h"
#include "capture/workload.h"
#include "cli/command.h"
#include "session/reading/model_target.h"
#include "session/reading/recording.h"
#include "session/record/server_setup.h"

namespace gpuwhy {
namespace {

struct AttachCommandOptions {
  AttachOptions attach;
  std::string traces;
  std::string client;
  std::string requests;
  std::string service_limits;
  std::string out = "gpuwhy-attach";
};

// What a client's command names the file of its requests by.
constexpr std::string_view kRequestsPlace = "{requests}";

// The client's words with {url} and {requests} filled in. A client that writes its requests needs a
// file: beside the report if none is named.
std::vector<std::string> client_words(AttachCommandOptions& options) {
  const std::vector<std::string> words = split_command(options.client);
  const bool names_requests = std::ranges::any_of(words, [](const std::string& word) {
    return word.find(kRequestsPlace) != std::string::npos;
  });
  if (names_requests && options.requests.empty()) {
    std::filesystem::create_directories(options.out);
    options.requests = (std::filesystem::path(options.out) / layout::kRequests).string();
  }
  return filled(words, {{"url", options.attach.url}, {"requests", options.requests}});
}

// The files are ranks of one job, and `analyze` reads them as such.
int analyze_files(const std::vector<std::filesystem::path>& files,
                  const AttachCommandOptions& options, Context& context) {
  Process process{own_command("analyze"), context.system.environment};
  for (const std::filesystem::path& file : files) {
    process.argv.push_back(file.string());
  }
  process.argv.insert(process.argv.end(), {"--out", options.out});
  if (!options.requests.empty()) {
    process.argv.insert(process.argv.end(), {"--requests", options.requests});
  }
  if (!options.service_limits.empty()) {
    process.argv.insert(process.argv.end(), {"--slo", options.service_limits});
  }
  // A history compares versions of an engine; the server knows its own best.
  if (const std::string version = server_version(options.attach.url); !version.empty()) {
    process.argv.insert(process.argv.end(), {"--label", "engine_version=" + version});
  }
  process.timeout = std::chrono::hours(2);
  const ProcessResult ended = run_process(process);
  context.console.out(ended.out);
  context.console.err(ended.err);
  return ended.exit_code < 0 ? kExitFailure : ended.exit_code;
}

// Whether the recording holds what was asked for.
int check_files(const AttachCommandOptions& options, Context& context) {
  std::map<std::string, std::int64_t> instances;
  for (const StageRow& stage : load_metrics({options.out}, {}, context.system).metrics.stages) {
    instances[stage.stage.text()] = stage.num_instances;
  }
  int code = kExitOk;
  for (const Breach& breach : check_window("attach", options.attach.wish, instances, 0)) {
    context.console.err(
        fmt::format("{}: {}\n  next: {}\n", code_of(breach.reason), breach.sentence, breach.next));
    code = info_of(breach.reason).exit_code;
  }
  return code;
}

int run_attach(AttachCommandOptions options, Context& context) {
  AttachOptions& attach = options.attach;
  while (attach.url.ends_with('/')) {
    attach.url.pop_back();
  }
  attach.traces = options.traces;
  attach.environment = context.system.environment;
  if (!options.client.empty()) {
    attach.client = build_work_argv(context.system, {}, client_words(options));
  }
  if (attach.client.empty()) {
    attach.window = std::chrono::seconds(attach.wish.num_seconds.value_or(attach.window.count()));
    attach.wish.num_seconds.reset();
  }
  std::vector<std::filesystem::path> files;
  bool is_interrupted = false;
  {
    const InterruptCounter interrupts;
    files = record_window(attach, [] { return InterruptCounter::count() > 0; });
    is_interrupted = InterruptCounter::count() > 0;
  }
  for (const std::filesystem::path& file : files) {
    context.console.err(fmt::format("recorded {}\n", printable(file.string())));
  }
  if (is_interrupted) {
    return kExitInterrupted;
  }
  const int code = analyze_files(files, options, context);
  return code == kExitOk ? check_files(options, context) : code;
}

}  // namespace

Command attach_command() {
  auto options = std::make_shared<AttachCommandOptions>();
  AttachOptions& attach = options->attach;
  Command command =
      command_of("attach", "Record a running server by its engine's profiler, and analyze it",
                 options, run_attach);
  command.options = {
      required({"URL", "", "Address of the server, as http://127.0.0.1:8000", &attach.url}),
      required(
          {"--traces", "DIR", "Folder into which the engine writes its traces", &options->traces}),
      {"--client", "COMMAND",
       "Send this load, and record as long as it runs (default: record 10 s of what comes); {url} and "
       "{requests} are filled in",
       &options->client},
      {"--requests", "FILE", "Join requests to steps: the client's record of them",
       &options->requests},
      {"--slo", "LIMITS", "Goodput: requests within these, as ttft=500ms,itl=50ms",
       &options->service_limits},
      {"--start", "PATH", "Path to POST to when the window opens", &attach.start_path},
      {"--stop", "PATH", "Path to POST to when it closes", &attach.stop_path},
      {"--body", "JSON", "Body of the first POST (default: as the other options say)",
       &attach.body},
      {"-o,--out", "DIR", "Folder for the report", &options->out},
  };
  command.add(period_options(attach.wish));
  command.examples =
      "  gpuwhy attach http://127.0.0.1:8000 --traces /tmp/vllm-traces --seconds 5\n"
      "  gpuwhy attach http://127.0.0.1:8000 --traces /tmp/vllm-traces --client 'gpuwhy load {url} -o {requests}'\n"
      "  gpuwhy attach http://127.0.0.1:30000 --traces /tmp/sglang --steps 20\n";
  return command;
}

}  // namespace gpuwhy
