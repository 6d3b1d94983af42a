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

constexpr StepColumnNames kRelatives = {"kernel.relative_size", "kernel.relative_step",
                                        "kernel.relative_ranks"};

constexpr SummaryFields<RankRow, 0, 1> kRowFields = {
    1'000'000, {}, {{{"rank.checksum", &RankRow::checksum}}}};

constexpr SummaryFields<RankStage, 0, 1> kRankStageFields = {
    1'000'000, {}, {{{"stage.compute_ns", &RankStage::compute_ns}}}};

constexpr SummaryFields<CommunicatorShare, 1, 1> kShareFields = {
    10'000'000,
    {{{"share.communicator", &CommunicatorShare::communicator}}},
    {{{"share.total_ns", &CommunicatorShare::total_ns}}}};

constexpr SummaryFields<FleetKernel, 0, 5> kFleetKernelFields = {
    1'000'000,
    {},
    {{{"kernel.num_ranks", &FleetKernel::num_ranks},
      {"kernel.slowest_mean_ns", &FleetKernel::slowest_mean_ns},
      {"kernel.slowest_rank", &FleetKernel::slowest_rank},
      {"kernel.most_relative", &FleetKernel::most_relative},
      {"kernel.most_relative_rank", &FleetKernel::most_relative_rank}}}};

constexpr SummaryFields<FleetCollective, 4, 6> kFleetCollectiveFields = {
    10'000'000,
    {{{"collective.communicator", &FleetCollective::communicator},
      {"collective.stage", &FleetCollective::stage},
      {"collective.kernel", &FleetCollective::kernel},
      {"collective.other_kernel", &FleetCollective::other_kernel}}},
    {{{"collective.sequence", &FleetCollective::sequence},
      {"collective.num_ranks", &FleetCollective::num_ranks},
      {"collective.shortest_ns", &FleetCollective::shortest_ns},
      {"collective.last_rank", &FleetCollective::last_rank},
      {"collective.longest_ns", &FleetCollective::longest_ns},
      {"collective.total_ns", &FleetCollective::total_ns}}}};

constexpr SummaryFields<FleetGroup, 0, 1> kFleetGroupFields = {
    1'000'000, {}, {{{"group.num_ranks", &FleetGroup::num_ranks}}}};

constexpr SummaryFields<FleetPart, 0, 3> kFleetPartFields = {
    1'000'000,
    {},
    {{{"part.num_ranks", &FleetPart::num_ranks},
      {"part.slowest_ns", &FleetPart::slowest_ns},
      {"part.slowest_rank", &FleetPart::slowest_rank}}}};

// The fields of a rank's own file, with as many rows as there are ranks.
template <typename Fields>
Fields of_many(Fields fields) {
  fields.most_rows = 1'000'000;
  return fields;
}

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
  write_columns(shares, kShareFields, writer);
  writer.numbers("share.num_runs", runs);
  writer.numbers("run.first", firsts);
  writer.numbers("run.count", counts);
}

void read_shares(const ColumnarFile& file, std::vector<RankRow>& ranks) {
  auto shares = read_columns<CommunicatorShare>(file, kShareFields);
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
  write_columns(stages, kStageFields, writer);
  write_columns(stages, kRankStageFields, writer);
  write_buckets(stages, writer);
}

void read_stages(const ColumnarFile& file, std::vector<RankRow>& ranks) {
  auto stages = read_columns<RankStage>(file, of_many(kStageFields));
  read_into(file, kRankStageFields, stages);
  read_buckets(file, stages);
  Parts of_ranks(file, "rank.num_stages", ranks.size(), stages.size());
  auto next = stages.begin();
  for (RankRow& row : ranks) {
    const auto size = static_cast<std::ptrdiff_t>(of_ranks.next());
    row.stages.assign(next, next + size);
    next += size;
  }
}

void write_kernels(const std::vector<FleetKernel>& kernels, ColumnarWriter& writer) {
  std::vector<KernelCell> sums;
  std::vector<const std::map<int, std::int64_t>*> durations;
  std::vector<const std::map<int, std::int64_t>*> relatives;
  for (const FleetKernel& kernel : kernels) {
    sums.push_back(kernel.sum);
    durations.push_back(&kernel.sum.histogram);
    relatives.push_back(&kernel.relative);
  }
  write_columns(sums, kKernelFields, writer);
  write_steps(durations, kDurations, writer);
  write_columns(kernels, kFleetKernelFields, writer);
  write_steps(relatives, kRelatives, writer);
}

std::vector<FleetKernel> read_kernels(const ColumnarFile& file) {
  auto sums = read_columns<KernelCell>(file, of_many(kKernelFields));
  std::vector<FleetKernel> kernels(sums.size());
  read_into(file, kFleetKernelFields, kernels);
  const StepColumns durations(file, kDurations, kernels.size());
  const StepColumns relatives(file, kRelatives, kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].sum = std::move(sums[i]);
    kernels[i].sum.histogram = durations.at_row(i);
    kernels[i].relative = relatives.at_row(i);
  }
  return kernels;
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

std::vector<OlderRank> read_older(const ColumnarFile& file) {
  const std::vector<std::int64_t> ranks = file.numbers("older.rank");
  const std::vector<std::int64_t> attempts = file.numbers("older.attempt");
  if (ranks.size() != attempts.size()) {
    wrong_length("older.attempt");
  }
  std::vector<OlderRank> older;
  older.reserve(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    older.push_back({ranks[i], attempts[i]});
  }
  return older;
}

}  // namespace

std::string fleet_bytes(const FleetSummary& summary) {
  ColumnarWriter writer;
  std::vector<RankIdentity> identities;
  identities.reserve(summary.ranks.size());
  for (const RankRow& row : summary.ranks) {
    identities.push_back(row.identity);
  }
  write_columns(identities, kIdentityFields, writer);
  write_columns(summary.ranks, kRowFields, writer);
  write_stages(summary.ranks, writer);
  write_shares(summary.ranks, writer);
  std::vector<std::int64_t> older_ranks;
  std::vector<std::int64_t> older_attempts;
  for (const OlderRank& older : summary.older) {
    older_ranks.push_back(older.rank);
    older_attempts.push_back(older.attempt);
  }
  writer.numbers("older.rank", older_ranks);
  writer.numbers("older.attempt", older_attempts);
  write_kernels(summary.kernels, writer);
  write_columns(summary.collectives, kFleetCollectiveFields, writer);
  write_columns(summary.groups, kGroupFields, writer);
  write_columns(summary.groups, kFleetGroupFields, writer);
  write_columns(summary.parts, kPartFields, writer);
  write_columns(summary.parts, kFleetPartFields, writer);
  return writer.finish(kFleetKind);
}

FleetSummary read_fleet(std::string_view bytes) {
  const ColumnarFile file(bytes);
  if (file.kind() != kFleetKind) {
    throw Error(ErrorKind::kInput, "not a merged summary",
                "gpuwhy merge DIR --out FILE writes one");
  }
  FleetSummary summary;
  auto identities = read_columns<RankIdentity>(file, of_many(kIdentityFields));
  summary.ranks.resize(identities.size());
  read_into(file, kRowFields, summary.ranks);
  for (std::size_t i = 0; i < identities.size(); ++i) {
    summary.ranks[i].identity = std::move(identities[i]);
  }
  check_rows(summary.ranks);
  read_stages(file, summary.ranks);
  read_shares(file, summary.ranks);
  summary.older = read_older(file);
  summary.kernels = read_kernels(file);
  summary.collectives = read_columns<FleetCollective>(file, kFleetCollectiveFields);
  summary.groups = read_columns<FleetGroup>(file, of_many(kGroupFields));
  read_into(file, kFleetGroupFields, summary.groups);
  summary.parts = read_columns<FleetPart>(file, of_many(kPartFields));
  read_into(file, kFleetPartFields, summary.parts);
  return summary;
}

}  // namespace gpuwhy
