// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy run: profiles a program and prints where its bundle is, one line on standard output.
#include "cli/commands/run.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/exit_code.h"
#include "base/json_fwd.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "capture/mark_module.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/recording_options.h"
#include "report/sections/sections.h"

namespace gpuwhy {
namespace {

// The same run with one more override.
std::string next_command(RunRequest request, const std::string& next_override) {
  const std::string key = next_override.substr(0, next_override.find('=') + 1);
  request.out = key == "artifacts.dir=" ? "" : request.out;
  std::erase_if(request.overrides, [&](const auto& given) { return given.starts_with(key); });
  request.overrides.push_back(next_override);
  std::vector<std::string> argv = request_words(request);
  argv.insert(argv.begin(), {"gpuwhy", "run"});
  return shell_text(argv);
}

// Of several runs, what one of them lacks is printed once. The verdict above says `said`.
void print_breaches(const RunRequest& request, const std::vector<Breach>& breaches,
                    const Breach* said, std::set<std::string>* told, Console& console) {
  for (const Breach& breach : breaches) {
    if (told != nullptr && !told->insert(breach.pass + ": " + breach.sentence).second) {
      continue;
    }
    if (&breach != said) {
      console.err(fmt::format("{} ({}): {}\n", code_of(breach.reason), breach.pass,
                              printable(breach.sentence)));
    }
    if (!breach.next_override.empty()) {
      console.err(fmt::format("  next: {}: {}\n", breach.next,
                              printable(next_command(request, breach.next_override))));
    } else if (!breach.next.empty()) {
      console.err(wrapped("  next: " + breach.next, console.error_width(), 8) + "\n");
    }
  }
}

// "Program: 1.50 s unprofiled, 12.1 s under nsys with its start and end, exit code 0, peak memory
// 11.2 MiB".
std::string program_line(const RunOutcome& outcome) {
  std::vector<std::string> parts;
  std::uint64_t peak_bytes = 0;
  int exit_code = outcome.workload_exit_code;
  for (const PassRecord& pass : outcome.passes) {
    if (pass.steps.empty() || (pass.name != "baseline" && pass.name != "nsys")) {
      continue;
    }
    const bool is_baseline = pass.name == "baseline";
    // nsys exports its report in a step of its own, after the program.
    parts.push_back(fmt::format("{} {}", format_duration_ns(pass.steps[0].duration_ns),
                                is_baseline ? "unprofiled" : "under nsys with its start and end"));
    if (is_baseline) {
      peak_bytes = pass.steps[0].peak_memory_bytes;
      exit_code = pass.steps[0].exit_code;
    }
  }
  if (parts.empty()) {
    return "";
  }
  parts.push_back(fmt::format("exit code {}", exit_code));
  if (peak_bytes > 0) {
    parts.push_back("peak memory " + format_bytes(peak_bytes));
  }
  return fmt::format("Program: {}\n", fmt::join(parts, ", "));
}

// The breach that tells of a program that failed; nullptr if it did not.
const Breach* failure_of(const RunOutcome& outcome) {
  const auto breach = std::ranges::find_if(outcome.breaches, [](const Breach& one) {
    return one.is_fatal && one.reason == Reason::kWorkloadFailed;
  });
  return breach == outcome.breaches.end() ? nullptr : &*breach;
}

// A program that failed is reported once: how it ended, its last lines, what to do.
void print_failure(const RunRequest& request, const RunOutcome& outcome, const Breach& breach,
                   Console& console) {
  constexpr std::size_t kShownLines = 20;
  const auto pass = std::ranges::find(outcome.passes, breach.pass, &PassRecord::name);
  const bool has_step = pass != outcome.passes.end() && !pass->steps.empty();
  console.err(wrapped(has_step ? fmt::format("\nThe program exited with code {} in the {} pass.",
                                             pass->steps.back().exit_code, breach.pass)
                               : "\n" + printable(breach.sentence),
                      console.error_width(), 2) +
              "\n");
  if (has_step && !trim(pass->steps.back().last_lines).empty()) {
    const std::string text(trim(pass->steps.back().last_lines));
    const std::vector<std::string_view> lines = split(text, '\n');
    console.err(fmt::format("Last lines of its output ({}):\n",
                            printable((outcome.bundle / breach.pass / layout::kLog).string())));
    for (std::size_t i = lines.size() - std::min(lines.size(), kShownLines); i < lines.size();
         ++i) {
      console.err("  | " + printable(lines[i]) + "\n");
    }
  }
  console.err(fmt::format("next: {}: {}\n", breach.next,
                          printable(next_command(request, breach.next_override))));
}

// How it ended, in the words a person needs: what is in the bundle, what is not, what it cost.
void print_end(const RunCommandOptions& options, const RunOutcome& outcome, Console& console) {
  if (const Breach* failure = failure_of(outcome); failure != nullptr && !options.is_one_of_many) {
    print_failure(options.request, outcome, *failure, console);
    return;
  }
  if (!options.is_one_of_many) {
    console.err("\n" + terminal_text(run_document(outcome.metrics), console.error_form()));
    console.err("\n" + wrapped(program_line(outcome), console.error_width(), 2));
  }
  // Without a recording, the verdict is why.
  const auto why = std::ranges::find_if(outcome.breaches, &Breach::is_fatal);
  const bool is_said = !options.is_one_of_many && why != outcome.breaches.end() &&
                       outcome.metrics.verdict.kind == Verdict::Kind::kNoRecording;
  print_breaches(options.request, outcome.breaches, is_said ? &*why : nullptr, options.told,
                 console);
  if (!options.is_one_of_many) {
    console.err(fmt::format("Report: {}\n", printable((outcome.bundle / layout::kPage).string())));
    std::error_code ignored;
    if (options.request.with.empty() &&
        std::filesystem::is_regular_file(outcome.bundle / layout::kNsysSqlite, ignored)) {
      console.err(
          fmt::format("  trace for ui.perfetto.dev: {}\n",
                      printable(shell_text({"gpuwhy", "export", outcome.bundle.string()}))));
    }
  }
}

int print_dry(const RunSetup& setup, Console& console) {
  const CommandInputs inputs = dry_inputs(setup);
  for (const Pass& pass : setup.passes) {
    for (const PassCommand& command : pass.commands(inputs)) {
      std::vector<std::string> argv;
      if (!command.environment.empty()) {
        argv.emplace_back("env");
        for (const auto& [name, value] : command.environment) {
          argv.push_back(name + "=" + value);
        }
      }
      argv.insert(argv.end(), command.argv.begin(), command.argv.end());
      console.out(fmt::format("# {}\n{}\n", pass.name, printable(shell_text(argv))));
    }
  }
  for (const Breach& breach : setup.missing) {
    console.out(
        fmt::format("# {}: {} ({})\n", breach.pass, breach.sentence, code_of(breach.reason)));
  }
  return setup.missing.empty() ? kExitOk : kExitEnvironment;
}

}  // namespace

std::vector<std::string> request_words(const RunRequest& request) {
  std::vector<std::string> argv;
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) {
      argv.insert(argv.end(), {option, value});
    }
  };
  add("--config", request.file);
  add("--rules", request.rules);
  for (const std::string& mark : request.marks) {
    add("--mark", mark);
  }
  add("--passes", request.passes);
  add("--plan", request.plan);
  add("--with", request.with);
  const ServerRequest& server = request.server;
  add("--server", server.command);
  add("--ready", server.ready);
  add("--client", server.client);
  add("--warmup", server.warmup);
  if (server.ready_timeout_s != ServerRequest().ready_timeout_s) {
    add("--ready-timeout", fmt::format("{}", server.ready_timeout_s));
  }
  add("--slo", server.service_limits);
  const std::vector<std::string> period = period_words(server.window);
  argv.insert(argv.end(), period.begin(), period.end());
  add("--out", request.out);
  argv.insert(argv.end(), request.overrides.begin(), request.overrides.end());
  if (!request.command.empty()) {
    argv.emplace_back("--");
  }
  argv.insert(argv.end(), request.command.begin(), request.command.end());
  return argv;
}

RunOutcome run_once(const RunCommandOptions& given, Context& context) {
  const RunSetup setup = prepare_run(given.request, context.system);
  RunCommandOptions options = given;
  RunRequest stored = given.request;  // the configuration has what its file says
  stored.out.clear();
  stored.file.clear();
  options.request.words = request_words(stored);
  // A launcher shows what all ranks print. One of them is enough, unless something goes wrong.
  const std::optional<LaunchedRank>& rank = setup.rank;
  options.is_one_of_many =
      given.is_one_of_many || (rank && rank->rank != 0 && given.progress == "auto");
  if (options.dry_run) {
    RunOutcome outcome;
    outcome.code = print_dry(setup, context.console);
    return outcome;
  }
  const bool is_quiet = options.is_one_of_many && options.progress == "auto";
  ConsoleProgress progress(context.console, is_quiet ? "none" : options.progress,
                           static_cast<int>(setup.passes.size()));
  RunOutcome outcome = execute_run(setup, options.request, context.system, progress);
  if (options.progress == "json") {
    context.console.err(json_object_line({{"event", "result"},
                                          {"exit_code", outcome.code},
                                          {"bundle", outcome.bundle.string()},
                                          {"contract", outcome.contract}}) +
                        "\n");
  } else {
    print_end(options, outcome, context.console);
  }
  if (options.propagate_exit && outcome.workload_exit_code > 0) {
    outcome.code = outcome.workload_exit_code;
  }
  return outcome;
}

namespace {

int run_command_main(const RunCommandOptions& given, Context& context) {
  const RunCommandOptions options = given.like.empty() ? given : options_like(given, context);
  if (options.num_repeats || !options.against.empty()) {
    return run_repeats(options, context);
  }
  const RunOutcome outcome = run_once(options, context);
  if (!outcome.bundle.empty()) {
    context.console.out(outcome.bundle.string() + "\n");
  }
  return outcome.code;
}

}  // namespace

Command run_command() {
  return run_command_into(std::make_shared<RunCommandOptions>());
}

Command run_command_into(const std::shared_ptr<RunCommandOptions>& options) {
  Command command;
  command.name = "run";
  command.summary = "Profile a program: unprofiled, by Nsight Systems, by Nsight Compute";
  command.options = {
      {"--passes", "LIST",
       "Comma-separated subset of baseline,operators,nsys,torch,ncu (default all but torch: a "
       "server's own profiler)",
       &options->request.passes},
      {"--dry-run", "", "Check everything, print the commands, start nothing", &options->dry_run},
      {"--server", "COMMAND", "Profile a server: start it, send it load, stop it",
       &options->request.server.command},
      {"--ready", "URL", "Answers 200 when the server takes requests (default: as the engine does)",
       &options->request.server.ready},
      {"--client", "COMMAND",
       "Sends the load; {url} and {requests} are filled in (default: gpuwhy load)",
       &options->request.server.client},
      {"--warmup", "COMMAND", "Load before the recording, with the same words",
       &options->request.server.warmup},
      {"--ready-timeout", "SECONDS", "For the server to be ready",
       &options->request.server.ready_timeout_s},
      {"--slo", "LIMITS", "Goodput of a server: requests within these, as ttft=500ms,itl=50ms",
       &options->request.server.service_limits},
      {"--plan", "RECORDING", "Plan ncu from this recording or bundle", &options->request.plan},
      {"-o,--out", "DIR", "Folder of runs: each gets a folder in it (gpuwhy-runs)",
       &options->request.out},
      one_of({"trace"}, {"--with", "WHAT", "Also write: trace (trace.pftrace, for ui.perfetto.dev)",
                         &options->request.with}),
      one_of({"auto", "plain", "json", "none"},
             {"--progress", "HOW", "On standard error: auto, plain, json or none",
              &options->progress}),
      {"--propagate-exit", "", "Exit with the program's own code if it is not 0",
       &options->propagate_exit},
      at_most(1000,
              {"--repeat", "N", "Measured runs, after one warm-up run (default with --against: 5)",
               &options->num_repeats}),
      {"--against", "CONFIG|OVERRIDE",
       "Also run with this configuration, interleaved A B B A, and compare; may be "
       "repeated",
       &options->against},
      {"--like", "BUNDLE",
       "Show the command of this bundle and what differs here, and ask to run it", &options->like},
      {"--yes", "", "With --like: run it without asking", &options->yes},
      {"--mark",
       "MODULE|STAGE=NAME",
       "Mark a program of this library (transformers), or name its ranges; may be repeated",
       &options->request.marks,
       {},
       mark_modules},
      rules_option(options->request.rules),
      config_option(options->request.file),
      override_option(options->request.overrides),
  };
  command.add(period_options(options->request.server.window));
  command.examples =
      "  gpuwhy run -- python generate.py\n"
      "  gpuwhy run --mark transformers -- python generate.py\n"
      "  gpuwhy run model.target=llama_100m\n"
      "  gpuwhy run --passes baseline,nsys run.mode=light -- ./llama-cli -m model.gguf\n"
      "  gpuwhy run --repeat 9 --against workload.environment.OMP_NUM_THREADS=8 -- python "
      "generate.py\n";
  command.examples +=
      "  gpuwhy run --server 'vllm serve Qwen/Qwen3-8B' --client 'gpuwhy load {url} --streams 16 -o "
      "{requests}'\n";
  command.rest = &options->request.command;
  command.run = [options](Context& context) { return run_command_main(*options, context); };
  return command;
}

}  // namespace gpuwhy
