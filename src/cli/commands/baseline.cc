// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy baseline: runs to compare with, by name. Plain files in a folder that a user may commit.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/commands/comparison_inputs.h"
#include "cli/recording_options.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

struct BaselineCommandOptions {
  std::string name;
  std::vector<std::string> runs;
  std::string directory = kBaselineDirectory;
  bool is_json = false;
  RecordingOptions recording;
};

// The runs that were not given before.
std::vector<ComparedRun> without(std::vector<RepeatedRun> repeated,
                                 const std::vector<ComparedRun>& given) {
  std::vector<ComparedRun> runs;
  // From the end: the same path may be there twice, and the first one counts.
  for (auto run = given.rbegin(); run != given.rend(); ++run) {
    const auto found = std::ranges::find(repeated, run->label, &RepeatedRun::label);
    if (found == repeated.end()) {
      runs.insert(runs.begin(), *run);
    } else {
      repeated.erase(found);
    }
  }
  return runs;
}

int run_set(const BaselineCommandOptions& options, Context& context) {
  const fs::path file = baseline_file(options.directory, options.name);
  const std::vector<ComparedRun> given =
      load_compared(options.runs, context.system, options.recording);
  std::vector<RepeatedRun> repeated;
  const std::vector<RunSummary> summaries = distinct_runs(summaries_of(given), repeated);
  const std::vector<ComparedRun> runs = without(repeated, given);
  // A baseline that is not of one kind would make every gate invalid.
  for (const FactDifference& fact : check_comparable(summaries, summaries, {"runs"})) {
    if (fact.breaks) {
      throw Error(ErrorKind::kContract,
                  fmt::format("these runs cannot be a baseline: {}: {} ({})", fact.fact,
                              fact.sentence, printable(fact.base)));
    }
  }
  std::error_code failure;
  fs::create_directories(file.parent_path(), failure);
  if (failure) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot make {}: {}", file.parent_path().string(), failure.message()));
  }
  const auto num_runs = static_cast<std::int64_t>(runs.size());
  const bool is_replaced = fs::exists(file, failure);
  write_file(file, baseline_json(runs));
  context.console.out(fmt::format("{} {}: {}\n", is_replaced ? "replaced" : "wrote", file.string(),
                                  count_of(num_runs, "run")));
  say_repeated(repeated, context.console);
  const std::int64_t least = least_repeats(CompareOptions().alpha / 2);
  if (num_runs < least) {
    context.console.err(fmt::format(
        "note: the gate needs at least {} runs on each side before it can fail a run\n", least));
  }
  return kExitOk;
}

// One bad file does not hide the others.
NamedBaseline baseline_at(const fs::path& file, Context& context) {
  NamedBaseline baseline{file.stem().string(), 0, file.string(), ""};
  try {
    baseline.num_runs = load_compared({file.string()}, context.system).size();
  } catch (const Error& error) {
    baseline.bad = fmt::format("{} cannot be used: {}", file.string(), error.what());
  }
  return baseline;
}

int run_list(const BaselineCommandOptions& options, Context& context) {
  std::vector<fs::path> files;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(options.directory, failure)) {
    if (entry.path().extension() == ".json") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<NamedBaseline> baselines;
  Table table{{"name", "runs", "file"}, {}};
  for (const fs::path& file : files) {
    baselines.push_back(baseline_at(file, context));
    const NamedBaseline& one = baselines.back();
    table.rows.push_back({printable(one.name),
                          one.bad.empty() ? fmt::format("{}", one.num_runs) : "bad",
                          printable(one.file)});
    if (!one.bad.empty()) {
      context.console.err(fmt::format("note: {}\n", printable(one.bad)));
    }
  }
  context.console.out(options.is_json ? baselines_json(baselines)
                      : table.rows.empty()
                          ? fmt::format("no baselines in {}: gpuwhy baseline set NAME BUNDLE...\n",
                                        printable(options.directory))
                          : table_text(table, context.console.width()));
  return kExitOk;
}

std::string run_text(const RunSummary& run) {
  std::string text = fmt::format("{}\n", printable(run.label));
  for (const auto& [fact, value] : run.facts) {
    if (!value.empty()) {
      text += fmt::format("  {:<14} {}\n", fact, printable(value));
    }
  }
  for (const RunMetric& metric : run.metrics) {
    if (metric.is_gated) {
      text += fmt::format("  {} = {:.0f} {}\n", printable(metric.key), metric.value, metric.unit);
    }
  }
  return text;
}

int run_show(const BaselineCommandOptions& options, Context& context) {
  const fs::path file = baseline_file(options.directory, options.name);
  const std::vector<RunSummary> runs = summaries_of(load_compared({file.string()}, context.system));
  if (options.is_json) {
    context.console.out(baseline_runs_json(options.name, runs));
    return kExitOk;
  }
  for (const RunSummary& run : runs) {
    context.console.out(run_text(run));
  }
  return kExitOk;
}

Command subcommand(const char* name, const char* summary,
                   const std::shared_ptr<BaselineCommandOptions>& options,
                   int (*run)(const BaselineCommandOptions&, Context&)) {
  Command command;
  command.name = name;
  command.summary = summary;
  command.run = [options, run](Context& context) { return run(*options, context); };
  return command;
}

}  // namespace

Command baseline_command() {
  auto options = std::make_shared<BaselineCommandOptions>();
  const Option name = required({"NAME", "", "Its name", &options->name});
  const Option directory = {"--directory", "DIR", "Where baselines are", &options->directory};
  Command set = subcommand("set", "Keep runs under a name", options, run_set);
  set.options = {name,
                 required({"BUNDLE", "", "Its runs: bundles, metrics.json files or recordings",
                           &options->runs}),
                 directory};
  add_part_options(set, options->recording);
  add_mark_options(set, options->recording);
  Command list = subcommand("list", "The names", options, run_list);
  list.options = {directory, json_option(options->is_json)};
  Command show =
      subcommand("show", "What a baseline ran on, and what it measured", options, run_show);
  show.options = {name, directory, json_option(options->is_json)};
  Command command;
  command.name = "baseline";
  command.summary = "Keep runs by name in plain files, to compare with";
  command.subcommands = {set, list, show};
  return command;
}

}  // namespace gpuwhy
