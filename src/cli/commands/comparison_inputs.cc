// SPDX-License-Identifier: Apache-2.0
//
// Runs to compare, from bundles, recordings and baselines. A baseline is one plain file with the
// compared part of each run's metrics.json: small enough to be committed, readable without this
// program.
#include "cli/commands/comparison_inputs.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "cli/recording_options.h"
#include "report/comparison.h"
#include "report/run_summary.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostMetricsBytes = 512 * kMiB;
constexpr const char* kBaselineSchema = "llmprof.baseline";

SharedJson inputs_of(const fs::path& bundle) {
  std::error_code ignored;
  const fs::path file = bundle / "inputs.yaml";
  return std::make_shared<Json>(fs::is_regular_file(file, ignored)
                                    ? parse_yaml(read_file(file), file.string())
                                    : Json(nullptr));
}

// The runs of a baseline file; none when it is another file.
std::vector<ComparedRun> baseline_runs(const std::string& path) {
  std::error_code ignored;
  if (fs::path(path).extension() != ".json" || !fs::is_regular_file(path, ignored)) {
    return {};
  }
  constexpr std::size_t kHead = 200;
  const std::string text = read_file(path, kMostMetricsBytes);
  if (text.substr(0, kHead).find(kBaselineSchema) == std::string::npos) {
    return {};
  }
  const Json file = parse_json(text, path);
  std::vector<ComparedRun> runs;
  const Json rows = file.is_object() ? file.value("runs", Json::array()) : Json::array();
  for (const Json& row : rows) {
    if (row.is_object() && row.contains("metrics")) {
      const Json label = row.value("label", Json());
      runs.push_back({label.is_string() ? label.get<std::string>() : path,
                      std::make_shared<Json>(row.at("metrics")),
                      std::make_shared<Json>(row.value("inputs", Json()))});
    }
  }
  if (runs.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{} is a baseline without runs", path));
  }
  return runs;
}

std::string page_of(const Comparison& comparison, const JudgeOptions& options) {
  constexpr std::size_t kLeastRows = 20;  // there is more room than in a terminal
  return comparison_page(comparison, std::max(options.top.rows, kLeastRows));
}

}  // namespace

std::vector<ComparedRun> load_compared(const std::vector<std::string>& paths, const System& system,
                                       const RecordingOptions& recording) {
  std::vector<ComparedRun> runs;
  for (const std::string& path : paths) {
    std::vector<ComparedRun> of_baseline = baseline_runs(path);
    if (of_baseline.empty()) {
      runs.push_back({path, load_metrics(path, recording, system).json, inputs_of(path)});
    } else {
      std::move(of_baseline.begin(), of_baseline.end(), std::back_inserter(runs));
    }
  }
  return runs;
}

std::vector<RunSummary> summaries_of(const std::vector<ComparedRun>& runs,
                                     const std::vector<MetricBudget>& budgets) {
  std::vector<RunSummary> summaries;
  summaries.reserve(runs.size());
  for (const ComparedRun& run : runs) {
    const Metrics metrics =
        with_context("in " + run.label, [&] { return metrics_from_json(*run.metrics); });
    summaries.push_back(summary_of_run(run.label, metrics, *run.inputs));
    add_budgeted(budgets, *run.metrics, summaries.back());
  }
  return summaries;
}

void add_judge_options(Command& command, JudgeOptions& target) {
  command.add({{"--effect", "PERCENT", "Smallest change that matters", &target.smallest_effect},
               {"--allow", "LIST",
                "Facts that may differ, because they are under test: " +
                    fmt::format("{}", fmt::join(comparable_facts(), ", ")),
                &target.allow},
               {"--top", "N", "Rows per table, or all", &target.top},
               {"--all-metrics", "", "Also metrics that did not change", &target.has_all_metrics}});
  add_part_options(command, target.recording);
  add_mark_options(command, target.recording);
}

CompareOptions compare_options_of(const JudgeOptions& options) {
  CompareOptions compare_options;
  compare_options.smallest_effect = options.smallest_effect;
  const std::vector<std::string> known = comparable_facts();
  for (const std::string_view word : split(options.allow, ',')) {
    const std::string fact(trim(word));
    if (fact.empty()) {
      continue;
    }
    if (std::find(known.begin(), known.end(), fact) == known.end()) {
      throw Error(ErrorKind::kUsage, fmt::format("--allow: there is no fact '{}'", printable(fact)),
                  fmt::format("there are: {}", fmt::join(known, ", ")));
    }
    compare_options.allowed.push_back(fact);
  }
  return compare_options;
}

void add_output_options(Command& command, ComparisonOutput& target) {
  command.add(
      {{"--json", "", "Short for --format json", &target.json},
       one_of({"terminal", "html", "md", "json"},
              {"--format", "FORMAT", "terminal, html (the page, whole), md or json (every number)",
               &target.format}),
       {"-o,--out", "FILE", "Also write the page, one HTML file, there", &target.page}});
}

void write_page(const Comparison& comparison, const JudgeOptions& options,
                const ComparisonOutput& output) {
  if (!output.page.empty()) {
    write_file(output.page, page_of(comparison, options));
  }
}

void print_comparison(const Comparison& comparison, const JudgeOptions& options,
                      const ComparisonOutput& output, Context& context) {
  if (output.json || output.format == "json") {
    context.console.out(comparison_json(comparison));
  } else if (output.format == "html" && output.page.empty()) {
    context.console.out(page_of(comparison, options));
  } else if (output.format == "html") {
    context.console.out(
        fmt::format("{}: {}\n", verdict_name(comparison.verdict), printable(comparison.sentence)));
  } else {
    const Document document =
        comparison_document(comparison, options.top.rows, options.has_all_metrics);
    context.console.out(output.format == "md" ? markdown_text(document)
                                              : terminal_text(document, context.console.form()));
  }
}

int exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return kExitOk;
    case Verdict::kRegress:
      return kExitRegression;
    case Verdict::kInconclusive:
      return kExitInconclusive;
    case Verdict::kInvalid:
      break;
  }
  return kExitNotComparable;
}

fs::path baseline_file(const std::string& directory, const std::string& name) {
  const bool is_plain = !name.empty() && !name.starts_with('.') && !name.starts_with('-') &&
                        name.find('/') == std::string::npos && printable(name) == name;
  if (!is_plain) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is not a valid baseline name", printable(name)),
                "a plain word, as main");
  }
  return fs::path(directory) / (name + ".json");
}

std::string baseline_json(const std::vector<ComparedRun>& runs) {
  Json document = json_document("baseline", 1);
  document["runs"] = Json::array();
  for (const ComparedRun& run : runs) {
    document["runs"].push_back(
        {{"label", run.label}, {"inputs", *run.inputs}, {"metrics", compared_part(*run.metrics)}});
  }
  return to_json_text(document);
}

}  // namespace llmprof
