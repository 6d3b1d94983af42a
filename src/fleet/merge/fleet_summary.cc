// SPDX-License-Identifier: Apache-2.0
//
// Serialization of merged summaries.
//
// The container is that of a rank's summary with more rows: one per rank instead of one, and for
// each kernel or collective not only the sums but also the rank that stands out.
#include "fleet/merge/fleet_summary.h"

#include <iterator>

#include <fmt/format.h>

#include "base/error.h"
#include "fleet/summary/columnar_file.h"
#include "fleet/summary/summary_columns.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostRows = 1'000'000;  // of what a rank has few of

// Number of rows of a dependent table that belong to each row of its owner. Checks that they add
// up.
class Parts {
 public:
  Parts(const ColumnarFile& file, const char* column, std::size_t num_owners, std::size_t num_parts)
      : sizes_(file.numbers(column)), column_(column), left_(num_parts) {
    if (sizes_.size() != num_owners) {
      wrong_length(column);
    }
  }

  std::size_t next() {
    const auto size = static_cast<std::uint64_t>(sizes_[at_++]);
    if (size > left_) {
      wrong_length(column_);
    }
    left_ -= size;
    return size;
  }

 private:
  std::vector<std::int64_t> sizes_;
  const char* column_;
  std::size_t left_;
  std::size_t at_ = 0;
};

// Ranks own shares, and shares own runs of sequence numbers: flattened into three tables.
void write_shares(const std::vector<RankRow>& ranks, ColumnarWriter& writer) {
  std::vector<CommunicatorShare> shares;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> runs;
  std::vector<std::int64_t> firsts;
  std::vector<std::int64_t> counts;
  for (const RankRow& row : ranks) {
    sizes.push_back(static_cast<std::int64_t>(row.communicators.size()));
    for (const CommunicatorShare& share : row.communicators) {
      shares.push_back(share);
      runs.push_back(static_cast<std::int64_t>(share.sequences.size()));
      for (const auto& [first, count] : share.sequences) {
        firsts.push_back(first);
        counts.push_back(count);
      }
    }
  }
  writer.numbers("rank.num_shares", sizes);
  write_rows(shares, "share", writer);
  writer.numbers("share.num_runs", runs);
  writer.numbers("run.first", firsts);
  writer.numbers("run.count", counts);
}

void read_shares(const ColumnarFile& file, std::vector<RankRow>& ranks) {
  auto shares = read_rows<CommunicatorShare>(file, "share", kMostJobRows);
  const std::vector<std::int64_t> firsts = file.numbers("run.first");
  const std::vector<std::int64_t> counts = file.numbers("run.count");
  if (firsts.size() != counts.size()) {
    wrong_length("run.count");
  }
  Parts runs(file, "share.num_runs", shares.size(), firsts.size());
  std::size_t at = 0;
  for (CommunicatorShare& share : shares) {
    for (std::size_t left = runs.next(); left > 0; --left, ++at) {
      share.sequences.emplace_back(firsts[at], counts[at]);
    }
  }
  Parts of_ranks(file, "rank.num_shares", ranks.size(), shares.size());
  auto next = shares.begin();
  for (RankRow& row : ranks) {
    const auto size = static_cast<std::ptrdiff_t>(of_ranks.next());
    row.communicators.assign(std::make_move_iterator(next), std::make_move_iterator(next + size));
    next += size;
  }
}

void write_stages(const std::vector<RankRow>& ranks, ColumnarWriter& writer) {
  std::vector<RankStage> stages;
  std::vector<std::int64_t> sizes;
  for (const RankRow& row : ranks) {
    sizes.push_back(static_cast<std::int64_t>(row.stages.size()));
    stages.insert(stages.end(), row.stages.begin(), row.stages.end());
  }
  writer.numbers("rank.num_stages", sizes);
  write_columns<StageSums>(stages, "stage", writer);
  write_columns<RankStage>(stages, "stage", writer);
  write_lists<StageSums>(stages, "stage", writer);
}

void read_stages(const ColumnarFile& file, std::vector<RankRow>& ranks) {
  auto stages = read_rows<StageSums, RankStage>(file, "stage", kMostRows);
  Parts of_ranks(file, "rank.num_stages", ranks.size(), stages.size());
  auto next = stages.begin();
  for (RankRow& row : ranks) {
    const auto size = static_cast<std::ptrdiff_t>(of_ranks.next());
    row.stages.assign(next, next + size);
    next += size;
  }
}

// One run, one attempt, each rank once.
void check_rows(const std::vector<RankRow>& ranks) {
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const RankIdentity& before = ranks[i - 1].identity;
    const RankIdentity& identity = ranks[i].identity;
    if (identity.rank <= before.rank || identity.attempt != before.attempt ||
        identity.run_id != before.run_id) {
      throw Error(ErrorKind::kInput, "damaged summary: its ranks are not those of one run",
                  "make it again with gpuwhy merge DIR --out FILE");
    }
  }
}

}  // namespace

std::string fleet_bytes(const FleetSummary& summary) {
  ColumnarWriter writer;
  std::vector<RankIdentity> identities;
  identities.reserve(summary.ranks.size());
  for (const RankRow& row : summary.ranks) {
    identities.push_back(row.identity);
  }
  write_rows(identities, "rank", writer);
  write_rows(summary.ranks, "rank", writer);
  write_stages(summary.ranks, writer);
  write_shares(summary.ranks, writer);
  write_rows(summary.older, "older", writer);
  write_columns<KernelSums>(summary.kernels, "kernel", writer);
  write_lists<KernelSums>(summary.kernels, "kernel", writer);
  write_rows(summary.kernels, "kernel", writer);
  write_rows(summary.collectives, "collective", writer);
  write_columns<GroupRow>(summary.groups, "group", writer);
  write_rows(summary.groups, "group", writer);
  write_columns<PartRow>(summary.parts, "part", writer);
  write_rows(summary.parts, "part", writer);
  return writer.finish(kFleetKind);
}

FleetSummary read_fleet(std::string_view bytes) {
  const ColumnarFile file(bytes);
  if (file.kind() != kFleetKind) {
    throw Error(ErrorKind::kInput, "not a merged summary",
                "gpuwhy merge DIR --out FILE writes one");
  }
  FleetSummary summary;
  auto identities = read_rows<RankIdentity>(file, "rank", kMostRows);
  summary.ranks.resize(identities.size());
  read_into<RankRow>(file, "rank", summary.ranks);
  for (std::size_t i = 0; i < identities.size(); ++i) {
    summary.ranks[i].identity = std::move(identities[i]);
  }
  check_rows(summary.ranks);
  read_stages(file, summary.ranks);
  read_shares(file, summary.ranks);
  summary.older = read_rows<OlderRank>(file, "older", kMostJobRows);
  summary.kernels = read_rows<KernelSums, FleetKernel>(file, "kernel", kMostRows);
  summary.collectives = read_rows<FleetCollective>(file, "collective", kMostJobRows);
  summary.groups = read_rows<GroupRow, FleetGroup>(file, "group", kMostRows);
  summary.parts = read_rows<PartRow, FleetPart>(file, "part", kMostRows);
  return summary;
}

}  // namespace gpuwhy
