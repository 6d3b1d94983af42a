// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy compare: two recordings or sets of runs, what changed, and where the difference comes
// from.
#include <memory>

#include "base/error.h"
#include "base/exit_code.h"
#include "cli/command.h"
#include "cli/commands/comparison_inputs.h"
#include "report/comparison/comparison.h"

namespace gpuwhy {
namespace {

struct CompareCommandOptions {
  std::vector<std::string> base;
  std::vector<std::string> candidate;
  ComparisonOutput output;
  JudgeOptions judge;
};

struct Sides {
  std::vector<std::string> base;
  std::vector<std::string> candidate;
};

// BASE CANDIDATE, or several of each with --to between them.
Sides sides_of(const CompareCommandOptions& options) {
  if (!options.candidate.empty()) {
    return {options.base, options.candidate};
  }
  if (options.base.size() != 2) {
    throw Error(ErrorKind::kUsage,
                options.base.size() == 1 ? "compare: needs two sides"
                                         : "compare: which of them are the candidate?",
                "gpuwhy compare BASE CANDIDATE, or gpuwhy compare BASE... --to CANDIDATE...");
  }
  return {{options.base[0]}, {options.base[1]}};
}

int compare_sides(const CompareCommandOptions& options, Context& context) {
  const auto [before, after] = sides_of(options);
  const CompareOptions compare_options = compare_options_of(options.judge);
  const RecordingOptions& reading = options.judge.recording;
  const std::vector<RunSummary> base = summaries_of(load_compared(before, context.system, reading));
  const Comparison comparison = compare_runs(
      base, summaries_of(load_compared(after, context.system, reading)), compare_options);
  // The verdict is printed; gpuwhy gate exits with it.
  return finish_comparison(comparison, options.judge, options.output, kExitOk, context, [&] {
    print_comparison(comparison, options.judge, options.output, context);
  });
}

int run_compare(const CompareCommandOptions& options, Context& context) {
  return with_failure_files(options.output, context,
                            [&] { return compare_sides(options, context); });
}

}  // namespace

Command compare_command() {
  auto options = std::make_shared<CompareCommandOptions>();
  Command command;
  command.name = "compare";
  command.summary = "Compare two recordings or sets of runs: what changed, and where";
  command.aliases = {"diff"};
  command.options = {
      required(
          {"BASE", "",
           "Two bundles, metrics.json files, recordings or baselines: before and after; with --to "
           "all of one side",
           &options->base}),
      {"--to", "CANDIDATE...", "The other side, where a side has several runs",
       &options->candidate},
  };
  add_output_options(command, options->output);
  add_judge_options(command, options->judge);
  command.examples =
      "  gpuwhy compare before.sqlite after.sqlite\n"
      "  gpuwhy compare a1 a2 a3 a4 a5 --to b1 b2 b3 b4 b5 --out compare.html\n";
  command.run = [options](Context& context) { return run_compare(*options, context); };
  command.refused = [options](const Error& error, Context& context) {
    write_failure(options->output, error, context);
  };
  return command;
}

}  // namespace gpuwhy
