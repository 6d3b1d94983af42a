// SPDX-License-Identifier: Apache-2.0
//
// llmprof baseline: runs to compare with, by name. Plain files in a folder that a user may commit.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands/comparison_inputs.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

struct BaselineCommandOptions {
  std::string name;
  std::vector<std::string> runs;
  std::string directory = kBaselineDirectory;
};

int run_set(const BaselineCommandOptions& asked, Context& context) {
  const fs::path file = baseline_file(asked.directory, asked.name);
  const std::vector<ComparedRun> runs = load_compared(asked.runs, context.system);
  const std::vector<RunSummary> summaries = summaries_of(runs);
  // A baseline that is not of one kind would make every gate invalid.
  for (const FactDifference& fact : check_comparable(summaries, summaries, {})) {
    if (fact.breaks) {
      throw Error(ErrorKind::kContract,
                  fmt::format("these runs are no baseline: {}: {} ({})", fact.fact, fact.sentence,
                              printable(fact.base)));
    }
  }
  std::error_code failure;
  fs::create_directories(file.parent_path(), failure);
  if (failure) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot make {}: {}", file.parent_path().string(), failure.message()));
  }
  write_file(file, to_json_text(baseline_json(runs)));
  context.console.out(fmt::format("{}: {} runs\n", file.string(), runs.size()));
  const std::int64_t least = least_repeats(CompareOptions().alpha / 2);
  if (static_cast<std::int64_t>(runs.size()) < least) {
    context.console.err(fmt::format(
        "note: a gate on two metrics needs {} runs a side to give an alarm at all\n", least));
  }
  return kExitOk;
}

int run_list(const BaselineCommandOptions& asked, Context& context) {
  Table table{{"name", "runs", "file"}, {}};
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(asked.directory, failure)) {
    if (entry.path().extension() == ".json") {
      const auto runs = load_compared({entry.path().string()}, context.system);
      table.rows.push_back({printable(entry.path().stem().string()), fmt::format("{}", runs.size()),
                            printable(entry.path().string())});
    }
  }
  std::sort(table.rows.begin(), table.rows.end());
  context.console.out(table.rows.empty()
                          ? fmt::format("no baselines in {}: llmprof baseline set NAME BUNDLE...\n",
                                        printable(asked.directory))
                          : table_text(table, context.console.width()));
  return kExitOk;
}

int run_show(const BaselineCommandOptions& asked, Context& context) {
  const fs::path file = baseline_file(asked.directory, asked.name);
  for (const RunSummary& run : summaries_of(load_compared({file.string()}, context.system))) {
    context.console.out(fmt::format("{}\n", printable(run.label)));
    for (const auto& [fact, value] : run.facts) {
      if (!value.empty()) {
        context.console.out(fmt::format("  {:<14} {}\n", fact, printable(value)));
      }
    }
    for (const RunMetric& metric : run.metrics) {
      if (metric.is_gated) {
        context.console.out(
            fmt::format("  {} = {:.0f} {}\n", printable(metric.key), metric.value, metric.unit));
      }
    }
  }
  return kExitOk;
}

Command subcommand(const char* name, const char* summary,
                   const std::shared_ptr<BaselineCommandOptions>& asked,
                   int (*run)(const BaselineCommandOptions&, Context&)) {
  Command command;
  command.name = name;
  command.summary = summary;
  command.run = [asked, run](Context& context) { return run(*asked, context); };
  return command;
}

}  // namespace

Command baseline_command() {
  auto asked = std::make_shared<BaselineCommandOptions>();
  const Option name = {"NAME", "", "Its name", &asked->name, {}, nullptr, true};
  const Option directory = {"--directory", "DIR",
                            std::string("Where baselines are (") + kBaselineDirectory + ")",
                            &asked->directory};
  Command set = subcommand("set", "Keep runs under a name", asked, run_set);
  set.options = {name,
                 {"BUNDLE",
                  "",
                  "Its runs: bundles, metrics.json files or recordings",
                  &asked->runs,
                  {},
                  nullptr,
                  true},
                 directory};
  Command list = subcommand("list", "The names", asked, run_list);
  list.options = {directory};
  Command show =
      subcommand("show", "What a baseline ran on, and what it measured", asked, run_show);
  show.options = {name, directory};
  Command command;
  command.name = "baseline";
  command.summary = "Runs to compare with, kept by name in plain files";
  command.subcommands = {set, list, show};
  return command;
}

}  // namespace llmprof
