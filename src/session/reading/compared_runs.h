// SPDX-License-Identifier: Apache-2.0
//
// Runs as comparisons read them, for the commands that compare and for the library.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "compare/compare.h"
#include "session/reading/recording.h"

namespace gpuwhy {

// A run as comparisons read it.
struct ComparedRun {
  std::string label;
  SharedJson metrics;
  SharedJson inputs;  // null where there is no bundle
};

// A bundle, a metrics.json, a recording, or what holds several: a file of `gpuwhy baseline`, a
// folder of bundles, a folder of `gpuwhy run --repeat` with one side. Throws kUsage for one with
// two.
std::vector<ComparedRun> load_compared(const std::vector<std::string>& paths, const System& system,
                                       const RecordingOptions& recording = {});
// inputs.yaml of a bundle; null where there is none.
SharedJson inputs_of_bundle(const std::filesystem::path& bundle);
// With the numbers that budgets name.
std::vector<RunSummary> summaries_of(const std::vector<ComparedRun>& runs,
                                     const std::vector<MetricBudget>& budgets = {});
// A run whose metrics are at hand, and that is in no bundle.
RunSummary summary_of_metrics(const std::string& label, const Results& metrics);

// Whether a file is what baseline_json() makes.
bool is_baseline(const std::filesystem::path& file);

// The file of `gpuwhy baseline`.
std::string baseline_json(const std::vector<ComparedRun>& runs);

// A baseline in a folder of them.
struct NamedBaseline {
  std::string name;
  std::size_t num_runs = 0;
  std::string file;
  std::string bad;  // why it cannot be used; empty: it can
};
std::string baselines_json(const std::vector<NamedBaseline>& baselines);
// The facts of each run of a baseline, and the metrics that decide.
std::string baseline_runs_json(const std::string& name, const std::vector<RunSummary>& runs);

}  // namespace gpuwhy
