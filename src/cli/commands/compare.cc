// SPDX-License-Identifier: Apache-2.0
//
// llmprof compare: two sets of runs, a verdict, and where the difference went.
#include <memory>

#include "base/json.h"
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

int run_compare(const CompareCommandOptions& asked, Context& context) {
  const CompareOptions options = compare_options_of(asked.judge);
  const std::vector<RunSummary> base = summaries_of(load_compared(asked.base, context.system));
  const Comparison comparison =
      compare_runs(base, summaries_of(load_compared(asked.candidate, context.system)), options);
  write_page(comparison, asked.judge, asked.output);
  print_comparison(comparison, asked.judge, asked.output, context);
  return exit_code_of(comparison.verdict);
}

}  // namespace

Command compare_command() {
  auto asked = std::make_shared<CompareCommandOptions>();
  Command command;
  command.name = "compare";
  command.summary = "Hold runs against each other: slower or not, and where the difference went";
  command.options = {
      {"BASE",
       "",
       "Bundles, metrics.json files, recordings or baselines: the side to compare with",
       &asked->base,
       {},
       nullptr,
       true},
      {"--to",
       "CANDIDATE...",
       "The side that may have changed",
       &asked->candidate,
       {},
       nullptr,
       true},
  };
  add_output_options(command, asked->output);
  add_judge_options(command, asked->judge);
  command.examples =
      "  llmprof compare before.sqlite --to after.sqlite\n"
      "  llmprof compare a1 a2 a3 a4 a5 --to b1 b2 b3 b4 b5 --out compare.html\n";
  command.run = [asked](Context& context) { return run_compare(*asked, context); };
  return command;
}

}  // namespace llmprof
