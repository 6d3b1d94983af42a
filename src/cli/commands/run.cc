// SPDX-License-Identifier: Apache-2.0
//
// llmprof run: profiles a program and prints where its bundle is, one line on standard output.
#include "cli/commands/run.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/progress.h"
#include "report/sections.h"
#include "session/run_dry.h"

namespace llmprof {
namespace {

// The same run with one more override.
std::string next_command(const RunRequest& asked, const std::string& next_override) {
  std::vector<std::string> argv = {"llmprof", "run"};
  if (!asked.file.empty()) {
    argv.insert(argv.end(), {"--config", asked.file});
  }
  if (!asked.passes.empty()) {
    argv.insert(argv.end(), {"--passes", asked.passes});
  }
  const std::string key = next_override.substr(0, next_override.find('=') + 1);
  std::copy_if(asked.overrides.begin(), asked.overrides.end(), std::back_inserter(argv),
               [&](const std::string& given) { return !given.starts_with(key); });
  argv.push_back(next_override);
  if (!asked.command.empty()) {
    argv.emplace_back("--");
  }
  argv.insert(argv.end(), asked.command.begin(), asked.command.end());
  return shell_text(argv);
}

void print_breaches(const RunRequest& asked, const std::vector<Breach>& breaches,
                    Console& console) {
  for (const Breach& breach : breaches) {
    console.err(
        fmt::format("{} ({}): {}\n", breach.reason, breach.pass, printable(breach.sentence)));
    if (!breach.next_override.empty()) {
      console.err(fmt::format("  next: {}: {}\n", breach.next,
                              printable(next_command(asked, breach.next_override))));
    } else if (!breach.next.empty()) {
      console.err(fmt::format("  next: {}\n", breach.next));
    }
  }
}

// How it ended, in the words a person needs: what is in the bundle, what is not, what it cost.
void print_end(const RunCommandOptions& asked, const RunOutcome& outcome, Console& console) {
  if (!asked.is_one_of_many) {
    console.err("\n" + terminal_text(run_document(outcome.metrics), console.error_width()));
    console.err(outcome.breaches.empty() ? "" : "\n");
  }
  print_breaches(asked.request, outcome.breaches, console);
}

int print_dry(const RunSetup& setup, Console& console) {
  for (const DryCommand& command : dry_commands(setup)) {
    std::vector<std::string> argv;
    if (!command.environment.empty()) {
      argv.emplace_back("env");
      for (const auto& [name, value] : command.environment) {
        argv.push_back(name + "=" + value);
      }
    }
    argv.insert(argv.end(), command.argv.begin(), command.argv.end());
    console.out(fmt::format("# {}\n{}\n", command.pass, printable(shell_text(argv))));
  }
  for (const Breach& breach : setup.missing) {
    console.out(fmt::format("# {}: {} ({})\n", breach.pass, breach.sentence, breach.reason));
  }
  return setup.missing.empty() ? kExitOk : kExitEnvironment;
}

}  // namespace

RunOutcome run_once(const RunCommandOptions& asked, Context& context) {
  const PreparedRun prepared = prepare_run(asked.request, context.system);
  if (asked.dry_run) {
    RunOutcome outcome;
    outcome.code = print_dry(prepared.setup, context.console);
    return outcome;
  }
  const bool is_quiet = asked.is_one_of_many && asked.progress == "auto";
  ConsoleProgress progress(context.console, is_quiet ? "none" : asked.progress, prepared.num_steps);
  RunOutcome outcome = execute_run(prepared, asked.request, context.system, progress);
  if (asked.progress == "json") {
    context.console.err(to_json_line({{"event", "result"},
                                      {"exit_code", outcome.code},
                                      {"bundle", outcome.bundle.string()},
                                      {"contract", outcome.contract}}) +
                        "\n");
  } else {
    print_end(asked, outcome, context.console);
  }
  if (asked.propagate_exit && outcome.workload_exit_code > 0) {
    outcome.code = outcome.workload_exit_code;
  }
  return outcome;
}

namespace {

int run_run(const RunCommandOptions& asked, Context& context) {
  if (!asked.repeat.empty() || !asked.against.empty()) {
    return run_repeats(asked, context);
  }
  const RunOutcome outcome = run_once(asked, context);
  if (!outcome.bundle.empty()) {
    context.console.out(outcome.bundle.string() + "\n");
  }
  return outcome.code;
}

}  // namespace

Command run_command() {
  auto asked = std::make_shared<RunCommandOptions>();
  Command command;
  command.name = "run";
  command.summary = "Run a program bare, under nsys and under ncu: a bundle of what it did";
  command.options = {
      {"--passes", "LIST", "Of baseline,operators,nsys,ncu; all unless told otherwise",
       &asked->request.passes},
      {"--dry-run", "", "Check everything, print the commands, start nothing", &asked->dry_run},
      {"--plan", "RECORDING", "Plan ncu from this recording or bundle", &asked->request.plan},
      {"--progress",
       "HOW",
       "On standard error: auto, plain, json or none",
       &asked->progress,
       {"auto", "plain", "json", "none"}},
      {"--propagate-exit", "", "Exit with the program's own code if it is not 0",
       &asked->propagate_exit},
      {"--repeat", "N", "So many runs, after one that is not counted (5 with --against)",
       &asked->repeat},
      {"--against", "CONFIG|OVERRIDE",
       "Runs with this laid over the configuration, interleaved A B B A, and compared; may be "
       "repeated",
       &asked->against},
      config_option(asked->request.file),
      override_option(asked->request.overrides),
  };
  command.examples =
      "  llmprof run -- python generate.py\n"
      "  llmprof run model.target=llama_100m\n"
      "  llmprof run --passes baseline,nsys run.mode=light -- ./llama-cli -m model.gguf\n"
      "  llmprof run --repeat 9 --against workload.environment.OMP_NUM_THREADS=8 -- python "
      "generate.py\n";
  command.rest = &asked->request.command;
  command.run = [asked](Context& context) { return run_run(*asked, context); };
  return command;
}

}  // namespace llmprof
