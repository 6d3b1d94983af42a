// SPDX-License-Identifier: Apache-2.0
//
// llmprof gate: compare with a baseline, with budgets or with both, for continuous integration. The
// same verdict as compare gives, and a test of the gate itself on the user's own runs.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/commands/budgets.h"
#include "cli/commands/comparison_inputs.h"
#include "report/comparison.h"
#include "report/comparison_parts.h"

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
std::string baseline_path(const GateCommandOptions& options) {
  std::error_code ignored;
  // The name comes first: the folder of a worktree may be called as the baseline is.
  const bool is_path = std::filesystem::exists(options.baseline, ignored);
  if (is_path && options.baseline.find('/') != std::string::npos) {
    return options.baseline;
  }
  const std::filesystem::path file = baseline_file(options.directory, options.baseline);
  if (!std::filesystem::exists(file, ignored)) {
    if (is_path) {
      return options.baseline;
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("there is no baseline '{}' in {}", printable(options.baseline),
                            options.directory),
                "llmprof baseline list shows them, llmprof baseline set makes one");
  }
  return file.string();
}

// "time per token (p50): 9.98 ms to 10.4 ms, median 10.1 ms (spread 4.2 %)", a line per metric.
std::string spreads_text(const SelfTest& test) {
  std::string text;
  for (const MetricSpread& row : test.spreads) {
    MetricChange metric;
    metric.unit = row.unit;
    const auto value = [&](double number) { return shown({number, metric_unit(metric), ""}); };
    text += fmt::format("  {}: {} to {}, median {}{}\n", printable(metric_label(row.key)),
                        value(row.low), value(row.high), value(row.median),
                        row.median > 0 ? fmt::format(" (spread {:.1f} % of it)",
                                                     (row.high - row.low) / row.median * 100)
                                       : "");
  }
  return text;
}

int run_self_test(const GateCommandOptions& options, const CompareOptions& compare_options,
                  Context& context) {
  std::vector<RunSummary> runs =
      summaries_of(load_compared(options.runs, context.system, options.judge.recording),
                   compare_options.budgets);
  if (!options.baseline.empty()) {
    std::vector<RunSummary> more = summaries_of(
        load_compared({baseline_path(options)}, context.system, options.judge.recording),
        compare_options.budgets);
    runs.insert(runs.end(), more.begin(), more.end());
  }
  if (runs.size() < 2) {
    throw Error(ErrorKind::kUsage,
                "--self-test deals runs of one build out to two sides: give more");
  }
  const SelfTest test = self_test(runs, compare_options);
  const auto share = [&](std::int64_t count) {
    return static_cast<double>(count) * 100 / static_cast<double>(test.deals);
  };
  if (options.output.json || options.output.format == "json") {
    context.console.out(self_test_json(test, runs.size()));
  } else if (!test.can_alarm) {
    // Shares of verdicts that cannot be an alarm would look like a gate that works.
    context.console.out(fmt::format(
        "{} runs: too few to test the gate{}; how far they are apart:\n{}", runs.size(),
        test.least_runs > 0 ? fmt::format(", which needs at least {}", test.least_runs) : "",
        spreads_text(test)));
  } else {
    context.console.out(fmt::format(
        "{} runs, dealt {} times to two sides of {}: {:.2f} % false alarms, {:.2f} % pass, "
        "{:.2f} % inconclusive\n{}",
        runs.size(), test.deals, test.runs_a_side, share(test.alarms), share(test.passes),
        share(test.inconclusive), spreads_text(test)));
  }
  return test.can_alarm && share(test.alarms) <= compare_options.alpha * 100 ? kExitOk
                                                                             : kExitInconclusive;
}

// Without a baseline a budget must limit the value itself.
void require_limits(const std::vector<MetricBudget>& budgets) {
  const char* const hint =
      "give --baseline NAME|BUNDLE (llmprof baseline set NAME BUNDLE... makes one), or --budget FILE "
      "with at_most and at_least only";
  if (budgets.empty()) {
    throw Error(ErrorKind::kUsage, "gate: nothing to judge the runs by", hint);
  }
  for (const MetricBudget& budget : budgets) {
    if (budget.change_fraction) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("the budget limits the change of {}, which needs a baseline",
                              printable(budget.key)),
                  hint);
    }
  }
}

// A budget that nothing can exceed would pass for ever.
void check_budgets(const std::vector<MetricBudget>& budgets, const std::vector<RunSummary>& base,
                   const std::vector<RunSummary>& candidate) {
  const auto has = [](const std::vector<RunSummary>& runs, const std::string& key) {
    return std::ranges::any_of(runs, [&](const RunSummary& run) {
      return std::ranges::any_of(run.metrics,
                                 [&](const RunMetric& metric) { return metric.key == key; });
    });
  };
  for (const MetricBudget& budget : budgets) {
    if (!has(base, budget.key) && !has(candidate, budget.key)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("the budget limits {}, which no run has", printable(budget.key)),
                  fmt::format("llmprof explain BUNDLE {} says why it is n/a; take it out of the "
                              "budget, or mark the program (docs/marking.md)",
                              printable(budget.key)));
    }
  }
}

int run_gate(const GateCommandOptions& options, Context& context) {
  CompareOptions compare_options = compare_options_of(options.judge);
  if (!options.budgets.empty()) {
    compare_options.budgets = read_budgets(options.budgets);
  }
  if (options.self_test) {
    return run_self_test(options, compare_options, context);
  }
  const auto load = [&](const std::vector<std::string>& runs) {
    return summaries_of(load_compared(runs, context.system, options.judge.recording),
                        compare_options.budgets);
  };
  const bool has_base = !options.baseline.empty();
  if (!has_base) {
    require_limits(compare_options.budgets);
  }
  const std::vector<RunSummary> base =
      has_base ? load({baseline_path(options)}) : std::vector<RunSummary>();
  const std::vector<RunSummary> candidate = load(options.runs);
  check_budgets(compare_options.budgets, base, candidate);
  const Comparison comparison = has_base ? compare_runs(base, candidate, compare_options)
                                         : judge_limits(candidate, compare_options);
  write_page(comparison, options.judge, options.output);
  if (options.ci == "github") {
    context.console.out(github_comparison(comparison));
  } else if (!options.ci.empty()) {
    context.console.out(options.ci == "bencher" ? bencher_comparison(comparison)
                                                : google_benchmark_comparison(comparison));
  } else {
    print_comparison(comparison, options.judge, options.output, context);
  }
  if (!options.ci.empty()) {
    context.console.err(
        fmt::format("{}: {}\n", verdict_name(comparison.verdict), printable(comparison.sentence)));
  }
  return exit_code_of(comparison);
}

}  // namespace

Command gate_command() {
  auto options = std::make_shared<GateCommandOptions>();
  Command command;
  command.name = "gate";
  command.summary =
      "Fail on performance regressions: exit 0 pass, 3 regression, 4 too few runs, 6 not comparable, "
      "7 a run failed";
  command.options = {
      required({"BUNDLE", "", "The runs to judge; also a folder of them, as run --repeat writes",
                &options->runs}),
      {"--baseline", "NAME|BUNDLE", "What to compare them with (default: limits of --budget alone)",
       &options->baseline},
      {"--directory", "DIR", "Where baselines are", &options->directory},
      {"--budget", "FILE", "Limits of metrics, as YAML", &options->budgets},
      {"--self-test", "", "Split the runs into two sides at random and count false alarms",
       &options->self_test},
      ci_option(options->ci),
  };
  add_output_options(command, options->output);
  add_judge_options(command, options->judge);
  command.examples =
      "  llmprof gate llmprof-runs/* --baseline main --budget budgets.yaml --out gate.html\n"
      "  llmprof gate llmprof-runs/20261116-120000-repeats --budget limits.yaml\n"
      "  llmprof gate llmprof-runs/* --self-test\n";
  command.run = [options](Context& context) { return run_gate(*options, context); };
  return command;
}

}  // namespace llmprof
