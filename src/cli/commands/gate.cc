// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy gate: compare with a baseline, with budgets or with both, for continuous integration. The
// same verdict as compare gives, and a test of the gate itself on the user's own runs.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/workload.h"
#include "cli/command.h"
#include "cli/commands/budgets.h"
#include "cli/commands/comparison_inputs.h"
#include "compare/decision.h"
#include "report/comparison/comparison.h"
#include "report/comparison/comparison_parts.h"
#include "session/reading/compared_runs.h"

namespace gpuwhy {
namespace {

struct GateCommandOptions {
  std::vector<std::string> runs;
  std::vector<std::string> baseline;
  std::string directory = kBaselineDirectory;
  std::vector<std::string> budgets;
  ComparisonOutput output;
  bool self_test = false;
  JudgeOptions judge;
};

// A baseline of `gpuwhy baseline` of this name; empty: there is none.
std::string stored_baseline(const GateCommandOptions& options, const std::string& name) {
  std::error_code ignored;
  if (name.find('/') != std::string::npos && std::filesystem::exists(name, ignored)) {
    return "";
  }
  const std::filesystem::path file = baseline_file(options.directory, name);
  if (!std::filesystem::exists(file, ignored)) {
    return "";
  }
  if (!is_baseline(file)) {
    throw Error(ErrorKind::kInput, fmt::format("{} is damaged, or not a baseline", file.string()),
                fmt::format("make it again: gpuwhy baseline set {} BUNDLE...", printable(name)));
  }
  return file.string();
}

// What the user means by --baseline, as paths, and the runs to judge.
struct GateSides {
  std::vector<std::string> base;
  std::vector<std::string> runs;
};

// --baseline takes one name, or bundles up to the next option. A name stands alone, so words after
// it are runs, but only where there are no others: runs on both sides of the option could belong to
// either.
GateSides sides_of(const GateCommandOptions& options) {
  GateSides sides{{}, options.runs};
  for (std::size_t i = 0; i < options.baseline.size(); ++i) {
    const std::string& word = options.baseline[i];
    if (word.empty()) {  // mostly a shell variable that was not set
      throw Error(ErrorKind::kUsage, "gate: --baseline takes no empty value");
    }
    const std::string stored = stored_baseline(options, word);
    if (!stored.empty() && options.baseline.size() > 1) {
      std::vector<std::string> others = options.baseline;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (i == 0 && options.runs.empty()) {
        return {{stored}, others};
      }
      throw Error(ErrorKind::kUsage,
                  fmt::format("gate: on which side is {}? --baseline takes one name, or bundles",
                              printable(others.front())),
                  fmt::format("the runs to judge come first: gpuwhy gate RUN... --baseline {}",
                              printable(word)));
    }
    std::error_code ignored;
    if (stored.empty() && !std::filesystem::exists(word, ignored)) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("there is no baseline '{}' in {}", printable(word), options.directory),
          "gpuwhy baseline list shows them, gpuwhy baseline set makes one");
    }
    sides.base.push_back(stored.empty() ? word : stored);
  }
  if (sides.runs.empty()) {
    throw Error(ErrorKind::kUsage,
                sides.base.size() > 1
                    ? "gate: every bundle is part of the baseline, none is left to "
                      "judge"
                    : "gate: needs BUNDLE",
                "the runs to judge come first: gpuwhy gate RUN... --baseline NAME|BUNDLE...");
  }
  return sides;
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
  const std::string written = !options.output.junit.empty()  ? "--junit"
                              : !options.output.page.empty() ? "--out"
                              : !options.output.ci.empty()   ? "--ci"
                                                             : "";
  if (!written.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--self-test judges no build, so {} has nothing to report", written),
                "leave it out; --self-test --json > self-test.json keeps the numbers");
  }
  if (!options.baseline.empty()) {
    throw Error(ErrorKind::kUsage,
                "--self-test takes runs of one build, and a baseline is of another",
                fmt::format("to test the runs of a baseline: gpuwhy gate {}/NAME.json --self-test",
                            options.directory));
  }
  if (options.runs.empty()) {
    throw Error(ErrorKind::kUsage, "gate: needs BUNDLE", "gpuwhy gate BUNDLE... --self-test");
  }
  const std::vector<RunSummary> runs =
      summaries_of(load_compared(options.runs, context.system, options.judge.recording),
                   compare_options.budgets);
  if (runs.size() < 2) {
    throw Error(ErrorKind::kUsage,
                "--self-test deals runs of one build out to two sides: give more");
  }
  const SelfTest test = self_test(runs, compare_options);
  say_repeated(test.repeated, context.console);
  const auto share = [&](std::int64_t count) {
    return static_cast<double>(count) * 100 /
           static_cast<double>(std::max<std::int64_t>(test.deals, 1));
  };
  // Most verdicts would say nothing: for a pipeline that is a gate with too few runs.
  const bool is_blind = share(test.inconclusive) > 50;
  if (options.output.json || options.output.format == "json") {
    context.console.out(self_test_json(test));
  } else if (!test.can_alarm) {
    // Shares of verdicts that cannot be an alarm would look like a gate that works.
    context.console.out(fmt::format(
        "{}: too few to test the gate{}; how far they are apart:\n{}",
        count_of(test.num_runs, "run"),
        test.least_runs > 0 ? fmt::format(", which needs at least {}", test.least_runs) : "",
        spreads_text(test)));
  } else {
    context.console.out(fmt::format(
        "{} runs, dealt {} times to two sides of {}: {:.2f} % false alarms, {:.2f} % pass, "
        "{:.2f} % inconclusive\n{}{}",
        test.num_runs, test.deals, test.runs_a_side, share(test.alarms), share(test.passes),
        share(test.inconclusive), spreads_text(test),
        is_blind ? fmt::format(
                       "The gate cannot see a change of {:g} % with {} per side like these: make "
                       "more runs, make them steadier, or raise --effect.\n",
                       compare_options.smallest_effect * 100, count_of(test.runs_a_side, "run"))
                 : ""));
  }
  const bool has_few_alarms = share(test.alarms) <= compare_options.alpha * 100;
  return test.can_alarm && has_few_alarms && !is_blind ? kExitOk : kExitInconclusive;
}

// Without a baseline a budget must limit the value itself.
void require_limits(const std::vector<MetricBudget>& budgets) {
  const char* const hint =
      "give --baseline NAME|BUNDLE (gpuwhy baseline set NAME BUNDLE... makes one), or --budget FILE "
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

// A budget that nothing can exceed would pass for ever. Of runs that failed or are empty nothing is
// expected: that is the verdict.
void check_budgets(const std::vector<MetricBudget>& budgets, const std::vector<RunSummary>& base,
                   const std::vector<RunSummary>& candidate) {
  const auto has = [](const std::vector<RunSummary>& runs, const std::string& key) {
    return std::ranges::any_of(
        runs, [&](const RunSummary& run) { return find_metric(run, key) != nullptr; });
  };
  const auto is_absent = [](const RunSummary& run) { return !run.absent.empty(); };
  if (std::ranges::any_of(base, is_absent) || std::ranges::any_of(candidate, is_absent)) {
    return;
  }
  for (const MetricBudget& budget : budgets) {
    if (!has(base, budget.key) && !has(candidate, budget.key)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("the budget limits {}, which no run has", printable(budget.key)),
                  fmt::format("gpuwhy explain {} '{}' names what there is instead",
                              shell_text({candidate.front().label}), printable(budget.key)));
    }
  }
}

// In the form that was asked for; what is not meant for people also gets a line on standard error.
void print_verdict(const Comparison& comparison, const GateCommandOptions& options,
                   Context& context) {
  if (options.output.ci.empty()) {
    print_comparison(comparison, options.judge, options.output, context);
    return;
  }
  context.console.out(options.output.ci == "github"    ? github_comparison(comparison)
                      : options.output.ci == "gitlab"  ? gitlab_comparison(comparison)
                      : options.output.ci == "bencher" ? bencher_comparison(comparison)
                                                       : google_benchmark_comparison(comparison));
  const std::string annotation = options.output.ci == "github" ? github_annotation(comparison) : "";
  context.console.err(annotation.empty() ? verdict_line(comparison) + "\n" : annotation);
}

int judge(const GateCommandOptions& options, Context& context) {
  CompareOptions compare_options = compare_options_of(options.judge);
  compare_options.budgets = read_all_budgets(options.budgets);
  if (options.self_test) {
    return run_self_test(options, compare_options, context);
  }
  const auto load = [&](const std::vector<std::string>& runs) {
    return summaries_of(load_compared(runs, context.system, options.judge.recording),
                        compare_options.budgets);
  };
  const GateSides sides = sides_of(options);
  const bool has_base = !sides.base.empty();
  if (!has_base) {
    require_limits(compare_options.budgets);
  }
  const std::vector<RunSummary> base = has_base ? load(sides.base) : std::vector<RunSummary>();
  const std::vector<RunSummary> candidate = load(sides.runs);
  check_budgets(compare_options.budgets, base, candidate);
  const Comparison comparison = has_base ? compare_runs(base, candidate, compare_options)
                                         : judge_limits(candidate, compare_options);
  return finish_comparison(comparison, options.judge, options.output, exit_code_of(comparison),
                           context, [&] { print_verdict(comparison, options, context); });
}

int run_gate(const GateCommandOptions& options, Context& context) {
  return with_failure_files(options.output, context, [&] { return judge(options, context); });
}

}  // namespace

Command gate_command() {
  auto options = std::make_shared<GateCommandOptions>();
  Command command;
  command.name = "gate";
  command.summary = "Fail on performance regressions, by budgets and a baseline";
  command.options = {
      {"BUNDLE", "", "The runs to judge; also a folder of them, as run --repeat writes",
       &options->runs},
      {"--baseline", "NAME|BUNDLE...",
       "What to compare them with, up to the next option (default: limits of --budget alone)",
       &options->baseline},
      {"--directory", "DIR", "Where baselines are", &options->directory},
      {"--budget", "FILE", "Limits of metrics, as YAML; may be repeated", &options->budgets},
      {"--self-test", "", "Split the runs into two sides at random and count false alarms",
       &options->self_test},
      ci_option(options->output.ci),
      {"--junit", "FILE", "Also write a test report (JUnit XML) there", &options->output.junit},
  };
  const std::size_t num_own = command.options.size();
  add_output_options(command, options->output);
  add_judge_options(command, options->judge);
  share_options(OptionGroup::kComparison, command.options, num_own);
  command.examples =
      "  gpuwhy gate gpuwhy-runs/* --baseline main --budget budgets.yaml --out gate.html\n"
      "  gpuwhy gate b/* --baseline a/* --ci github --junit gate.xml\n"
      "  gpuwhy gate gpuwhy-runs/20261116-120000-repeats --budget limits.yaml\n"
      "  gpuwhy gate gpuwhy-runs/* --self-test\n";
  command.run = [options](Context& context) { return run_gate(*options, context); };
  command.refused = [options](const Error& error, Context& context) {
    write_failure(options->output, error, context);
  };
  return command;
}

}  // namespace gpuwhy
