// SPDX-License-Identifier: Apache-2.0
//
// llmprof gate: compare with a baseline, for continuous integration. The same verdict as compare
// gives, budgets besides, and a test of the gate itself on the user's own runs.
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands/budgets.h"
#include "cli/commands/comparison_inputs.h"
#include "report/comparison.h"

namespace llmprof {
namespace {

struct GateCommandOptions {
  std::vector<std::string> runs;
  std::string baseline;
  std::string directory = kBaselineDirectory;
  std::string budgets;
  ComparisonOutput output;
  std::string ci;
  bool self_test = false;
  JudgeOptions judge;
};

// A name of `llmprof baseline`, or whatever compare takes.
std::string baseline_path(const GateCommandOptions& asked) {
  std::error_code ignored;
  if (asked.baseline.empty()) {
    throw Error(ErrorKind::kUsage, "gate: --baseline NAME|BUNDLE is needed",
                "llmprof baseline set NAME BUNDLE... makes one");
  }
  if (std::filesystem::exists(asked.baseline, ignored)) {
    return asked.baseline;
  }
  const std::filesystem::path file = baseline_file(asked.directory, asked.baseline);
  if (!std::filesystem::exists(file, ignored)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("there is no baseline '{}' in {}", printable(asked.baseline), asked.directory),
        "llmprof baseline list shows them, llmprof baseline set makes one");
  }
  return file.string();
}

int run_self_test(const GateCommandOptions& asked, const CompareOptions& options,
                  Context& context) {
  std::vector<RunSummary> runs =
      summaries_of(load_compared(asked.runs, context.system), options.budgets);
  if (!asked.baseline.empty()) {
    std::vector<RunSummary> more =
        summaries_of(load_compared({baseline_path(asked)}, context.system), options.budgets);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  if (runs.size() < 2) {
    throw Error(ErrorKind::kUsage,
                "--self-test deals runs of one build out to two sides: give more");
  }
  const SelfTest test = self_test(runs, options);
  const auto share = [&](std::int64_t count) {
    return static_cast<double>(count) * 100 / static_cast<double>(test.deals);
  };
  if (asked.output.format == "json") {
    Json json = json_document("gate_self_test", 1);
    json["runs"] = runs.size();
    json["runs_a_side"] = test.runs_a_side;
    json["deals"] = test.deals;
    json["alarms"] = test.alarms;
    json["passes"] = test.passes;
    json["inconclusive"] = test.inconclusive;
    json["can_alarm"] = test.can_alarm;
    context.console.out(to_json_text(json));
  } else {
    context.console.out(fmt::format(
        "{} runs, dealt {} times to two sides of {}: {:.2f} % false alarms, {:.2f} % pass, "
        "{:.2f} % inconclusive\n",
        runs.size(), test.deals, test.runs_a_side, share(test.alarms), share(test.passes),
        share(test.inconclusive)));
    if (!test.can_alarm) {
      context.console.out(
          "so few runs a side can give no alarm, true or false: this says nothing of the gate\n");
    }
  }
  return test.can_alarm && share(test.alarms) <= options.alpha * 100 ? kExitOk : kExitInconclusive;
}

int run_gate(const GateCommandOptions& asked, Context& context) {
  CompareOptions options = compare_options_of(asked.judge);
  if (!asked.budgets.empty()) {
    options.budgets = read_budgets(asked.budgets);
  }
  if (asked.self_test) {
    return run_self_test(asked, options, context);
  }
  const std::vector<RunSummary> base =
      summaries_of(load_compared({baseline_path(asked)}, context.system), options.budgets);
  const Comparison comparison = compare_runs(
      base, summaries_of(load_compared(asked.runs, context.system), options.budgets), options);
  write_page(comparison, asked.judge, asked.output);
  if (asked.ci == "github") {
    context.console.out(github_comparison(comparison));
  } else if (!asked.ci.empty()) {
    context.console.out(to_json_text(asked.ci == "bencher"
                                         ? bencher_comparison(comparison)
                                         : google_benchmark_comparison(comparison)));
  } else {
    print_comparison(comparison, asked.judge, asked.output, context);
  }
  if (!asked.ci.empty()) {
    context.console.err(
        fmt::format("{}: {}\n", verdict_name(comparison.verdict), printable(comparison.sentence)));
  }
  return exit_code_of(comparison.verdict);
}

}  // namespace

Command gate_command() {
  auto asked = std::make_shared<GateCommandOptions>();
  Command command;
  command.name = "gate";
  command.summary = "Hold runs against a baseline: exit 0 pass, 3 regress, 4 not known";
  command.options = {
      {"BUNDLE", "", "The runs to judge", &asked->runs, {}, nullptr, true},
      {"--baseline", "NAME|BUNDLE", "What to hold them against", &asked->baseline},
      {"--directory", "DIR", std::string("Where baselines are (") + kBaselineDirectory + ")",
       &asked->directory},
      {"--budget", "FILE", "Limits of metrics, as YAML", &asked->budgets},
      {"--self-test", "", "Deal the runs out to two sides and count the false alarms",
       &asked->self_test},
      {"--ci",
       "FORM",
       "For continuous integration: github (step summary), bencher or gbench (JSON)",
       &asked->ci,
       {"github", "bencher", "gbench"}},
  };
  add_output_options(command, asked->output);
  add_judge_options(command, asked->judge);
  command.examples =
      "  llmprof gate llmprof-runs/* --baseline main --budget budgets.yaml --out gate.html\n"
      "  llmprof gate llmprof-runs/* --self-test\n";
  command.run = [asked](Context& context) { return run_gate(*asked, context); };
  return command;
}

}  // namespace llmprof
