// SPDX-License-Identifier: Apache-2.0
//
// Runs that are one rank of a job.
//
// A rank runs like any other run, with three differences: its bundle is in the run's directory
// under its number, profilers may be limited to some ranks, and ncu is skipped.
//
// ncu replays each kernel until all counters are read. A kernel that waits for other ranks would
// then wait forever, because they do not replay. nsys and the unprofiled pass do not change which
// ranks meet.
#include "session/record/rank_run.h"

#include <fmt/format.h>

#include "analysis/profile.h"
#include "analysis/rank_rows.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "bundle/layout.h"
#include "config/reader.h"
#include "fleet/summary/summary_file.h"
#include "session/reading/recording.h"
#include "session/version.h"
#include "session/writing/engine_version.h"
#include "session/writing/rank_folder.h"

namespace gpuwhy {
namespace {

std::int64_t rank_number(std::string_view text, std::int64_t least) {
  const auto number = parse_whole(text);
  if (!number || *number < least) {
    throw Error(ErrorKind::kUsage,
                fmt::format("ranks.capture: '{}' is not a rank", printable(text)),
                "as ranks.capture=0,7,every:64, or ranks.capture=all");
  }
  return *number;
}

}  // namespace

bool is_captured(const std::vector<std::string>& wish, std::int64_t rank) {
  constexpr std::string_view kEvery = "every:";
  bool is_wanted = false;
  // Every word is parsed even if one has matched already, so that a typing error is found on every
  // rank.
  for (const std::string& part : wish) {
    for (const std::string_view given : split(part, ',')) {
      const std::string_view word = trim(given);
      if (word == "all") {
        is_wanted = true;
      } else if (word.starts_with(kEvery)) {
        is_wanted = rank % rank_number(word.substr(kEvery.size()), 1) == 0 || is_wanted;
      } else {
        is_wanted = rank == rank_number(word, 0) || is_wanted;
      }
    }
  }
  return is_wanted;
}

void choose_rank_passes(const LaunchedRank& rank, RunOptions& options,
                        std::vector<std::string>& notes) {
  if (options.has_ncu) {
    options.has_ncu = false;
    notes.emplace_back(
        "no ncu pass: it replays kernels, and ranks that wait for each other would hang");
  }
  if (is_captured(options.captured_ranks, rank.rank)) {
    return;
  }
  notes.push_back(fmt::format("rank {} is not captured (ranks.capture): it runs bare", rank.rank));
  options.has_companion = options.has_baseline && options.has_nsys;
  options.has_baseline = true;
  options.has_nsys = false;
}

Artifacts create_rank_bundle(const std::filesystem::path& directory, const LaunchedRank& rank) {
  const std::string folder = rank_folder({rank.rank, rank.attempt});
  const auto artifacts = Artifacts::create_named(directory / rank.run_id, folder);
  if (!artifacts) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is there already: run {} has had this rank",
                            (directory / rank.run_id / folder).string(), rank.run_id),
                fmt::format("give each run its own {}", kRunIdVariable));
  }
  return *artifacts;
}

Labels environment_labels(const System& system) {
  Labels labels;
  const std::pair<const char*, const char*> variables[] = {{"SLURM_CLUSTER_NAME", "cluster"},
                                                           {"SLURM_JOB_ID", "job"},
                                                           {"CI_COMMIT_SHA", "git_sha"},
                                                           {"GITHUB_SHA", "git_sha"}};
  for (const auto& [variable, key] : variables) {
    const auto value = system.variable(variable);
    // Only plain words: these variables were not set for gpuwhy.
    if (value && value->find(',') == std::string::npos) {
      try {
        add_labels(fmt::format("{}={}", key, *value), labels);
      } catch (const Error&) {
        continue;
      }
    }
  }
  with_context(fmt::format("in {}", kLabelsVariable),
               [&] { add_labels(system.variable(kLabelsVariable).value_or(""), labels); });
  return labels;
}

RankIdentity described_run(const std::vector<std::string>& argv, const System& system) {
  RankIdentity identity;
  const EngineName engine = engine_of(argv);
  identity.engine = engine.name;
  identity.engine_version = engine.version;
  put_labels(environment_labels(system), identity);
  return identity;
}

RankIdentity identity_of(const RankIdentity& described, const std::optional<LaunchedRank>& rank,
                         const Artifacts& artifacts, const MachineFacts& machine,
                         const Config& config, const RunEnding& ending) {
  RankIdentity identity = described;
  identity.run_id = rank ? rank->run_id : artifacts.run_id();
  identity.rank = rank ? rank->rank : 0;
  identity.num_ranks = rank ? rank->num_ranks : 1;
  identity.attempt = rank ? rank->attempt : 0;
  identity.node = rank && !rank->node.empty() ? rank->node : machine.hostname;
  identity.gpu = machine.gpus.empty() ? "" : machine.gpus[0].name;
  const SettingsReader reader(config);
  for (const char* key : {"model.name", "model.target"}) {
    if (identity.model.empty()) {
      identity.model = reader.optional_text(key).value_or("");
    }
  }
  identity.driver_version = machine.driver_version;
  identity.gpuwhy_version = program_version();
  identity.exit_code = ending.exit_code < 0 ? 255 : ending.exit_code;
  identity.failure = ending.failure;
  identity.started_unix_s = ending.started_unix_s;
  return identity;
}

std::vector<std::pair<std::string, std::string>> summary_files(const Profile& profile,
                                                               const RankIdentity& identity) {
  std::vector<std::pair<std::string, std::string>> files;
  const std::vector<RankSummary> summaries =
      summarise_ranks(profile.analysis, rank_details(profile), identity);
  files.reserve(summaries.size());
  for (const RankSummary& summary : summaries) {
    files.emplace_back(summaries.size() == 1
                           ? layout::kSummary
                           : fmt::format(layout::kSummaryOfRank, summary.identity.rank),
                       summary_bytes(summary));
  }
  return files;
}

}  // namespace gpuwhy
