// SPDX-License-Identifier: Apache-2.0
//
// llmprof compare: two sets of runs, a verdict, and where the difference went.
#include <memory>

#include "cli/command.h"
#include "cli/commands/comparison_inputs.h"
#include "report/comparison.h"

namespace llmprof {
namespace {

struct CompareCommandOptions {
  std::vector<std::string> base;
  std::vector<std::string> candidate;
  ComparisonOutput output;
  JudgeOptions judge;
};

int run_compare(const CompareCommandOptions& options, Context& context) {
  const CompareOptions compare_options = compare_options_of(options.judge);
  const RecordingOptions& reading = options.judge.recording;
  const std::vector<RunSummary> base =
      summaries_of(load_compared(options.base, context.system, reading));
  const Comparison comparison =
      compare_runs(base, summaries_of(load_compared(options.candidate, context.system, reading)),
                   compare_options);
  write_page(comparison, options.judge, options.output);
  print_comparison(comparison, options.judge, options.output, context);
  return exit_code_of(comparison.verdict);
}

}  // namespace

Command compare_command() {
  auto options = std::make_shared<CompareCommandOptions>();
  Command command;
  command.name = "compare";
  command.summary = "Compare two sets of runs and say where the difference comes from";
  command.options = {
      required({"BASE", "",
                "Bundles, metrics.json files, recordings or baselines: the side to compare with",
                &options->base}),
      required({"--to", "CANDIDATE...", "The side that may have changed", &options->candidate}),
  };
  add_output_options(command, options->output);
  add_judge_options(command, options->judge);
  command.examples =
      "  llmprof compare before.sqlite --to after.sqlite\n"
      "  llmprof compare a1 a2 a3 a4 a5 --to b1 b2 b3 b4 b5 --out compare.html\n";
  command.run = [options](Context& context) { return run_compare(*options, context); };
  return command;
}

}  // namespace llmprof
