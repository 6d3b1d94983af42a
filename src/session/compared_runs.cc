// SPDX-License-Identifier: Apache-2.0
//
// Runs to compare, from bundles, recordings and baselines. A baseline is one plain file with the
// compared part of each run's metrics.json: small enough to be committed, readable without this
// program.
#include "session/compared_runs.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "report/run_summary.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostMetricsBytes = 512 * kMiB;
constexpr const char* kBaselineSchema = "llmprof.baseline";

// The runs of a baseline file; none when it is another file.
std::vector<ComparedRun> baseline_runs(const std::string& path) {
  if (!is_own_document(path, kBaselineSchema)) {
    return {};
  }
  const Json file = parse_json(read_file(path, kMostMetricsBytes), path);
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

// The bundles in a folder, sorted by name; none if the folder is a bundle itself, or has none.
std::vector<std::string> bundles_in(const fs::path& folder) {
  std::error_code failure;
  std::vector<std::string> bundles;
  bool has_metrics = false;
  if (fs::is_directory(folder, failure) && !fs::exists(folder / "metrics.json", failure)) {
    for (const auto& entry : fs::directory_iterator(folder, failure)) {
      if (entry.is_directory(failure)) {
        bundles.push_back(entry.path().string());
        has_metrics = has_metrics || fs::exists(entry.path() / "metrics.json", failure);
      }
    }
  }
  std::sort(bundles.begin(), bundles.end());
  return has_metrics ? bundles : std::vector<std::string>();
}

// A folder of `run --repeat` stands for its runs: one side in `a`, or two in `a` and `b`.
std::vector<std::string> with_folders_opened(const std::vector<std::string>& paths) {
  std::vector<std::string> opened;
  for (const std::string& path : paths) {
    std::vector<std::string> runs = bundles_in(path);
    if (const std::vector<std::string> side = bundles_in(fs::path(path) / "a"); !side.empty()) {
      if (!bundles_in(fs::path(path) / "b").empty()) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("{} has the runs of two sides, a and b", printable(path)),
                    fmt::format("name one: {0}/a or {0}/b; both: llmprof compare {0}/a {0}/b",
                                printable(path)));
      }
      runs = side;
    }
    if (runs.empty()) {
      opened.push_back(path);
    } else {
      opened.insert(opened.end(), runs.begin(), runs.end());
    }
  }
  return opened;
}

}  // namespace

SharedJson inputs_of_bundle(const fs::path& bundle) {
  std::error_code ignored;
  const fs::path file = bundle / "inputs.yaml";
  return std::make_shared<Json>(fs::is_regular_file(file, ignored)
                                    ? parse_yaml(read_file(file), file.string())
                                    : Json(nullptr));
}

std::vector<ComparedRun> load_compared(const std::vector<std::string>& paths, const System& system,
                                       const RecordingOptions& recording) {
  std::vector<ComparedRun> runs;
  for (const std::string& path : with_folders_opened(paths)) {
    std::vector<ComparedRun> of_baseline = baseline_runs(path);
    if (of_baseline.empty()) {
      runs.push_back({path, load_metrics(path, recording, system).json, inputs_of_bundle(path)});
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

RunSummary summary_of_metrics(const std::string& label, const Metrics& metrics) {
  return summary_of_run(label, metrics, Json(nullptr));
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
