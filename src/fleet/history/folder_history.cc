// SPDX-License-Identifier: Apache-2.0
//
// History queries on a folder of summaries, without a server.
//
// Each file is read once to find out which run and rank it belongs to, and the relevant ones again
// to be summed, so memory grows with runs and distinct kernels, not with ranks. A duplicate rank
// counts once, by the same rule as on a server: the last attempt of its run, then the most recently
// changed file.
//
// Reading 100,000 summaries per query takes minutes; that is what a server is for.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "fleet/history/history.h"
#include "fleet/history/history_rows.h"
#include "fleet/history/summary_folder.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// What is remembered of a file; its contents are read again when needed.
struct RankFile {
  fs::path path;
  RankIdentity identity;
  std::uint64_t content = 0;
  std::uint64_t version = 0;
  std::uint64_t kernel_rows = 0;
  std::uint64_t stage_rows = 0;
  std::uint64_t part_rows = 0;
};

class FolderHistory : public HistorySource {
 public:
  explicit FolderHistory(const fs::path& folder) {
    for (const fs::path& path : summaries_in(folder)) {
      try {
        keep(path, load_summary(path));
      } catch (const Error& error) {
        note(fmt::format("{}: {}", path.string(), error.what()));
      }
    }
    drop_earlier_attempts();
  }

  std::vector<KnownRun> runs(const RunFilter& filter) override;
  std::vector<WideKernelSums> kernel_sums(std::span<const KnownRun> runs) override;
  std::vector<WideStageSums> stage_sums(std::span<const KnownRun> runs) override;
  std::vector<WidePartSums> part_sums(std::span<const KnownRun> runs) override;
  std::vector<RankStageTimes> rank_stages(const KnownRun& run) override;
  std::map<std::int64_t, RankSite> places(const KnownRun& run,
                                          const std::set<std::int64_t>& ranks) override;
  std::map<std::uint64_t, std::string> names(const std::set<std::uint64_t>& keys) override;
  CountedFiles counted() const;

 private:
  using Ranks = std::map<std::int64_t, RankFile>;

  void keep(const fs::path& path, const StoredSummary& stored);
  void drop_earlier_attempts();
  std::uint64_t named(const std::string& text);

  template <typename Visit>
  void visit_summaries(const KnownRun& run, Visit&& visit) {
    const auto found = runs_.find(run.run_key);
    if (found != runs_.end()) {
      for (const auto& [rank, file] : found->second) {
        visit(load_summary(file.path).summary);
      }
    }
  }

  // The sums of rows of all ranks of these runs.
  template <typename Wide, typename Rows, typename Widen>
  std::vector<Wide> summed(std::span<const KnownRun> runs, Rows rows, const Widen& widen) {
    SumTable<Wide> table;
    for (const KnownRun& run : runs) {
      visit_summaries(run, [&](const RankSummary& summary) {
        for (const auto& row : summary.*rows) {
          table.add(widen(run, row));
        }
      });
    }
    return table.rows();
  }

  std::map<std::uint64_t, Ranks> runs_;
  std::map<std::uint64_t, std::string> names_;
  std::map<std::string, std::uint64_t> keys_;
};

std::uint64_t FolderHistory::named(const std::string& text) {
  const auto [found, is_new] = keys_.try_emplace(text, 0);
  if (is_new) {
    found->second = key_of(text);
    names_[found->second] = text;
  }
  return found->second;
}

void FolderHistory::keep(const fs::path& path, const StoredSummary& stored) {
  const RankIdentity& identity = stored.summary.identity;
  RankFile file{path,
                identity,
                stored.content,
                version_of(stored),
                stored.summary.kernels.size(),
                stored.summary.stages.size(),
                stored.summary.parts.size()};
  RankFile& kept = runs_[key_of(identity.run_id)].try_emplace(identity.rank, file).first->second;
  if (kept.content != file.content && kept.identity.attempt == identity.attempt) {
    note(
        fmt::format("run {}: rank {} has two different summaries, and the later one counts: {} and "
                    "{}",
                    identity.run_id, identity.rank, kept.path.string(), path.string()));
  }
  if (std::pair(kept.version, kept.content) < std::pair(file.version, file.content)) {
    kept = std::move(file);
  }
}

// Ranks of two attempts did not run together.
void FolderHistory::drop_earlier_attempts() {
  for (auto& [key, ranks] : runs_) {
    std::int64_t last = 0;
    for (const auto& [rank, file] : ranks) {
      last = std::max(last, file.identity.attempt);
    }
    std::erase_if(ranks, [&](const auto& entry) { return entry.second.identity.attempt < last; });
  }
}

std::vector<KnownRun> FolderHistory::runs(const RunFilter& filter) {
  std::vector<KnownRun> all;
  // Properties on which ranks differ are resolved as on a server: the first in text order.
  for (const auto& [key, ranks] : runs_) {
    const RankIdentity& first = ranks.begin()->second.identity;
    KnownRun run{.run_key = key,
                 .attempt = first.attempt,
                 .run_id = first.run_id,
                 .model = first.model,
                 .gpu = first.gpu,
                 .engine = first.engine,
                 .engine_version = first.engine_version,
                 .labels = first.labels,
                 .started_unix_s = first.started_unix_s};
    for (const auto& [rank, file] : ranks) {
      const RankIdentity& identity = file.identity;
      ++run.ranks;
      run.num_ranks = std::max(run.num_ranks, identity.num_ranks);
      run.model = std::min(run.model, identity.model);
      run.gpu = std::min(run.gpu, identity.gpu);
      run.engine = std::min(run.engine, identity.engine);
      run.engine_version = std::min(run.engine_version, identity.engine_version);
      run.labels = std::min(run.labels, identity.labels);
      run.started_unix_s = std::min(run.started_unix_s, identity.started_unix_s);
      run.kernel_rows += file.kernel_rows;
      run.stage_rows += file.stage_rows;
      run.part_rows += file.part_rows;
      run.fingerprint += file.content;
    }
    run.day = day_of(run.started_unix_s);
    run.is_sealed = run.is_complete();
    const bool is_asked = filter.run_keys.empty() || filter.run_keys.contains(key);
    if (is_asked && run.day >= filter.since_day) {
      all.push_back(std::move(run));
    }
  }
  sort_runs(all);
  return all;
}

// Sums of all ranks of all these runs, as the server's query returns them.
std::vector<WideKernelSums> FolderHistory::kernel_sums(std::span<const KnownRun> runs) {
  return summed<WideKernelSums>(runs, &RankSummary::kernels,
                                [&](const KnownRun& /*run*/, const KernelSums& row) {
                                  WideKernelSums sums;
                                  sums.stage_key = named(row.stage);
                                  sums.kernel_key = named(row.kernel);
                                  sums.family_key = named(row.family);
                                  sums.calls.add(row.calls);
                                  sums.total_ns.add(row.total_ns);
                                  sums.min_ns = row.min_ns;
                                  sums.max_ns = row.max_ns;
                                  sums.histogram = row.histogram;
                                  return sums;
                                });
}

std::vector<WideStageSums> FolderHistory::stage_sums(std::span<const KnownRun> runs) {
  return summed<WideStageSums>(runs, &RankSummary::stages,
                               [&](const KnownRun& run, const StageSums& row) {
                                 WideStageSums sums{run.run_key, named(row.stage)};
                                 for (const auto& column : kStageSums) {
                                   (sums.*column.sum).add(row.*column.of_rank);
                                 }
                                 return sums;
                               });
}

// By the keys of their names, as a server sorts them.
std::vector<WidePartSums> FolderHistory::part_sums(std::span<const KnownRun> runs) {
  return summed<WidePartSums>(
      runs, &RankSummary::parts, [&](const KnownRun& /*run*/, const PartRow& row) {
        WidePartSums sums{named(row.pass), named(row.block), named(row.part)};
        sums.ranks.add(1);
        for (const auto& column : kPartSums) {
          (sums.*column.sum).add(row.*column.of_rank);
        }
        return sums;
      });
}

std::vector<RankStageTimes> FolderHistory::rank_stages(const KnownRun& run) {
  std::vector<RankStageTimes> rows;
  visit_summaries(run, [&](const RankSummary& summary) {
    for (const StageSums& cell : summary.stages) {
      rows.push_back({summary.identity.rank, named(cell.stage), cell.instances, cell.total_ns,
                      cell.kernel_ns, cell.window_ns,
                      cell.buckets_ns[static_cast<std::size_t>(Bucket::kCompute)]});
    }
  });
  std::sort(rows.begin(), rows.end(), [](const RankStageTimes& a, const RankStageTimes& b) {
    return std::pair(a.stage_key, a.rank) < std::pair(b.stage_key, b.rank);
  });
  return rows;
}

std::map<std::int64_t, RankSite> FolderHistory::places(const KnownRun& run,
                                                       const std::set<std::int64_t>& ranks) {
  std::map<std::int64_t, RankSite> places;
  const Ranks& all = runs_[run.run_key];
  for (const std::int64_t rank : ranks) {
    const auto found = all.find(rank);
    if (found != all.end()) {
      places[rank] = {found->second.identity.node, found->second.identity.gpu};
    }
  }
  return places;
}

std::map<std::uint64_t, std::string> FolderHistory::names(const std::set<std::uint64_t>& keys) {
  std::map<std::uint64_t, std::string> found;
  for (const std::uint64_t key : keys) {
    const auto name = names_.find(key);
    if (name != names_.end()) {
      found[key] = name->second;
    }
  }
  return found;
}

CountedFiles FolderHistory::counted() const {
  CountedFiles files;
  files.notes = notes();
  for (const auto& [key, ranks] : runs_) {
    CountedRun& run = files.runs.emplace_back();
    run.run_key = key;
    run.run_id = ranks.begin()->second.identity.run_id;
    run.files.reserve(ranks.size());
    for (const auto& [rank, file] : ranks) {
      run.files.push_back(file.path);
    }
  }
  return files;
}

}  // namespace

CountedFiles files_that_count(const fs::path& folder) {
  return FolderHistory(folder).counted();
}

std::unique_ptr<HistorySource> folder_history(const fs::path& folder) {
  return std::make_unique<FolderHistory>(folder);
}

}  // namespace gpuwhy
