// SPDX-License-Identifier: Apache-2.0
//
// Runs to compare, from bundles, recordings and baselines. A baseline is one plain file with the
// compared part of each run's metrics.json: small enough to be committed, readable without this
// program.
#include "session/reading/compared_runs.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "bundle/layout.h"
#include "capture/stale_runs.h"
#include "report/comparison/run_summary.h"
#include "results/json.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostMetricsBytes = 512 * kMiB;
constexpr const char* kBaselineSchema = "gpuwhy.baseline";

// The runs of a baseline file; none when it is another file.
std::vector<ComparedRun> baseline_runs(const std::string& path) {
  if (!is_baseline(path)) {
    return {};
  }
  const Json file = parse_json(read_file(path, kMostMetricsBytes), path);
  constexpr int kVersion = 1;
  const Json version = file.is_object() ? file.value("schema_version", Json()) : Json();
  if (json_integer(version).value_or(INT64_MAX) > kVersion) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} was written by a newer gpuwhy (schema_version {})", path,
                            to_json_line(version)),
                "use that gpuwhy, or make it again: gpuwhy baseline set NAME BUNDLE...");
  }
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

// The folders in a folder, sorted by name.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::error_code failure;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.is_directory(failure)) {
      folders.push_back(entry.path());
    }
  }
  std::ranges::sort(folders);
  return folders;
}

bool has_metrics(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / layout::kMetrics, ignored);
}

// A side of `run --repeat`, or any folder of bundles.
bool has_bundles(const fs::path& folder) {
  return std::ranges::any_of(folders_in(folder), has_metrics);
}

// A folder that one `run --repeat` wrote: the runs of one side in `a`, or of two in `a` and `b`.
bool is_repeats(const fs::path& folder) {
  const fs::path whole = folder.has_filename() ? folder : folder.parent_path();
  std::error_code ignored;
  return fs::is_directory(folder, ignored) && !has_metrics(folder) &&
         (whole.filename().string().ends_with("-repeats") || has_bundles(folder / "a"));
}

void add_bundles(const std::vector<fs::path>& folders, std::vector<std::string>& opened) {
  for (const fs::path& folder : folders) {
    opened.push_back(folder.string());
  }
}

void open_repeats(const fs::path& folder, std::vector<std::string>& opened) {
  if (has_bundles(folder / "a") && has_bundles(folder / "b")) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has the runs of two sides, a and b", printable(folder.string())),
                fmt::format("name one: {0}/a or {0}/b; both: gpuwhy compare {0}/a {0}/b",
                            printable(folder.string())));
  }
  if (!has_bundles(folder / "a")) {
    const std::vector<fs::path> warm_ups = folders_in(folder / "warmup");
    throw Error(ErrorKind::kContract,
                fmt::format("{} has no run: {}", printable(folder.string()),
                            warm_ups.empty() ? "none was made" : "its warm-up failed"),
                warm_ups.empty() ? "make them again"
                                 : fmt::format("gpuwhy report {} says why",
                                               printable(warm_ups.front().string())));
  }
  add_bundles(folders_in(folder / "a"), opened);
}

// Recordings in a folder are named one by one, or by a glob: it may hold other files too, and the
// same recording in two formats.
[[noreturn]] void refuse_folder(const std::string& path) {
  std::error_code failure;
  std::vector<std::string> endings;
  for (const auto& entry : fs::directory_iterator(path, failure)) {
    const std::string name = entry.path().filename().string();
    for (const char* ending : {".sqlite", ".nsys-rep", ".json.gz", ".json"}) {
      if (entry.is_regular_file(failure) && name.ends_with(ending)) {
        endings.emplace_back(ending);
        break;
      }
    }
  }
  const auto most = std::ranges::max_element(
      endings, {}, [&](const std::string& one) { return std::ranges::count(endings, one); });
  throw Error(ErrorKind::kUsage,
              fmt::format("{} is a folder without bundles{}", printable(path),
                          endings.empty() ? "" : "; its recordings are named one by one"),
              endings.empty() ? "give bundles of gpuwhy run, a folder of them, or recordings"
                              : fmt::format("give {}/*{} in place of {}", printable(path), *most,
                                            printable(path)));
}

[[noreturn]] void refuse_empty(const std::string& path) {
  throw Error(ErrorKind::kContract, fmt::format("{} is empty: it has no run", printable(path)),
              "a run that was cut off leaves such a folder: make it again, or remove the folder");
}

// A folder stands for its runs: bundles, folders of `run --repeat`, or both.
void open_folder(const std::string& path, std::vector<std::string>& opened) {
  std::error_code ignored;
  if (is_repeats(path)) {
    open_repeats(path, opened);
    return;
  }
  if (!fs::is_directory(path, ignored) || has_metrics(path)) {
    opened.push_back(path);
    return;
  }
  const std::vector<fs::path> folders = folders_in(path);
  if (fs::is_empty(path, ignored)) {
    refuse_empty(path);
  }
  if (!has_bundles(path) && std::ranges::none_of(folders, is_repeats)) {
    refuse_folder(path);
  }
  for (const fs::path& folder : folders) {
    if (is_repeats(folder)) {
      open_repeats(folder, opened);
    } else if (fs::is_empty(folder, ignored)) {
      refuse_empty(folder.string());
    } else {
      opened.push_back(folder.string());
    }
  }
}

std::vector<std::string> with_folders_opened(const std::vector<std::string>& paths) {
  std::vector<std::string> opened;
  for (const std::string& path : paths) {
    open_folder(path, opened);
  }
  return opened;
}

// A bundle whose run was cut off, or that was copied in part, has numbers of unknown worth. Folders
// of `analyze --out` have no inputs.yaml and never had a manifest.
void check_whole(const fs::path& bundle) {
  std::error_code ignored;
  const bool is_of_run = fs::is_regular_file(bundle / layout::kInputs, ignored);
  if (is_of_run && (!fs::is_regular_file(bundle / layout::kManifest, ignored) ||
                    fs::exists(bundle / layout::kRunning, ignored))) {
    throw Error(ErrorKind::kContract,
                fmt::format("{} is not a whole bundle: {}", bundle.string(),
                            fs::exists(bundle / layout::kRunning, ignored)
                                ? "its run goes on or was cut off"
                                : "its manifest.json is missing"),
                fmt::format("copy the whole folder, or give {} alone",
                            (bundle / layout::kMetrics).string()));
  }
}

// What decides, and what the runs must have in common.
Json run_json(const RunSummary& run) {
  Json facts = Json::object();
  for (const auto& [fact, value] : run.facts) {
    facts[fact] = text_or_null(value);
  }
  Json metrics = Json::array();
  for (const RunMetric& metric : run.metrics) {
    if (metric.is_gated) {
      metrics.push_back({{"key", metric.key}, {"value", metric.value}, {"unit", metric.unit}});
    }
  }
  return {{"run", run.label}, {"facts", facts}, {"metrics", metrics}};
}

}  // namespace

SharedJson inputs_of_bundle(const fs::path& bundle) {
  std::error_code ignored;
  const fs::path file = bundle / layout::kInputs;
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
      check_whole(path);
      runs.push_back({path, load_metrics({path}, recording, system).json, inputs_of_bundle(path)});
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
    const Results metrics =
        with_context("in " + run.label, [&] { return metrics_from_json(*run.metrics); });
    summaries.push_back(summary_of_run(run.label, metrics, *run.inputs));
    add_budgeted(budgets, *run.metrics, summaries.back());
  }
  return summaries;
}

RunSummary summary_of_metrics(const std::string& label, const Results& metrics) {
  return summary_of_run(label, metrics, Json(nullptr));
}

bool is_baseline(const fs::path& file) {
  return is_own_document(file, kBaselineSchema);
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

std::string baselines_json(const std::vector<NamedBaseline>& baselines) {
  Json document = json_document("baselines", 1);
  document["baselines"] = Json::array();
  for (const NamedBaseline& one : baselines) {
    document["baselines"].push_back({{"name", one.name},
                                     {"runs", one.bad.empty() ? Json(one.num_runs) : Json(nullptr)},
                                     {"file", one.file},
                                     {"error", text_or_null(one.bad)}});
  }
  return to_json_text(document);
}

std::string baseline_runs_json(const std::string& name, const std::vector<RunSummary>& runs) {
  Json document = json_document("baseline_runs", 1);
  document["name"] = name;
  document["runs"] = Json::array();
  for (const RunSummary& run : runs) {
    document["runs"].push_back(run_json(run));
  }
  return to_json_text(document);
}

}  // namespace gpuwhy
