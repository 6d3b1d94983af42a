// SPDX-License-Identifier: Apache-2.0
//
// A run that is one rank of many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bundle/artifacts.h"
#include "capture/launcher.h"
#include "capture/machine.h"
#include "fleet/summary/labels.h"
#include "results/rank_summary.h"
#include "session/record/run_options.h"

namespace gpuwhy {

struct Profile;

struct Config;

// ranks.capture: "all", or numbers and "every:N". Throws kUsage.
bool is_captured(const std::vector<std::string>& wish, std::int64_t rank);

// The passes of this rank. All ranks start the program equally often, because ranks of a job wait
// for each other, but only some under a profiler. Notes say what was changed.
void choose_rank_passes(const LaunchedRank& rank, RunOptions& options,
                        std::vector<std::string>& notes);

// Creates its bundle in <directory>/<run id>/. Throws kUsage if this rank and attempt already has
// one.
Artifacts create_rank_bundle(const std::filesystem::path& directory, const LaunchedRank& rank);

// What is known of a run before it begins: engine and version by its command line, labels by
// GPUWHY_LABELS, the scheduler and CI. Throws kUsage for malformed labels.
RankIdentity described_run(const std::vector<std::string>& argv, const System& system);

// Labels that the environment tells: cluster and job of Slurm, the commit of a CI system, and those
// of GPUWHY_LABELS, which win. Throws kUsage.
Labels environment_labels(const System& system);

// How a run ended.
struct RunEnding {
  int exit_code = 0;    // of the program
  std::string failure;  // why there is no recording; empty: nothing failed but the program
  std::int64_t started_unix_s = 0;
};

// For a run with or without ranks, from what described_run() knows.
RankIdentity identity_of(const RankIdentity& described, const std::optional<LaunchedRank>& rank,
                         const Artifacts& artifacts, const MachineFacts& machine,
                         const Config& config, const RunEnding& ending);

// Summaries by file name: summary.gpuwhy, or one per GPU (summary-000003.gpuwhy).
std::vector<std::pair<std::string, std::string>> summary_files(const Profile& profile,
                                                               const RankIdentity& identity);

}  // namespace gpuwhy
