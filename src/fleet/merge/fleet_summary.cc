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

// The parts of all owners, one after the other, and how many each has as a column.
template <typename Owner, typename Part>
std::vector<Part> flattened(const std::vector<Owner>& owners, std::vector<Part> Owner::*member,
                            const char* column, ColumnarWriter& writer) {
  std::vector<Part> parts;
  std::vector<std::int64_t> sizes;
  for (const Owner& owner : owners) {
    sizes.push_back(static_cast<std::int64_t>((owner.*member).size()));
    parts.insert(parts.end(), (owner.*member).begin(), (owner.*member).end());
  }
  writer.numbers(column, sizes);
  return parts;
}

// The inverse; checks that the numbers add up.
template <typename Owner, typename Part>
void give_out(std::vector<Part> parts, const ColumnarFile& file, const char* column,
              std::vector<Owner>& owners, std::vector<Part> Owner::*member) {
  const std::vector<std::int64_t> sizes = file.numbers(column);
  if (sizes.size() != owners.size()) {
    wrong_length(column);
  }
  auto next = std::make_move_iterator(parts.begin());
  const auto end = std::make_move_iterator(parts.end());
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (sizes[i] > end - next) {
      wrong_length(column);
    }
    (owners[i].*member).assign(next, next + sizes[i]);
    next += sizes[i];
  }
}

void write_shares(const std::vector<RankRow>& ranks, ColumnarWriter& writer) {
  const auto shares = flattened(ranks, &RankRow::communicators, "rank.num_shares", writer);
  write_rows(shares, "share", writer);
  const auto runs = flattened(shares, &CommunicatorShare::sequences, "share.num_runs", writer);
  write_rows(runs, "run", writer);
}

void read_shares(const ColumnarFile& file, std::vector<RankRow>& ranks) {
  auto shares = read_rows<CommunicatorShare>(file, "share", kMostJobRows);
  give_out(read_rows<SequenceRun>(file, "run", SIZE_MAX), file, "share.num_runs", shares,
           &CommunicatorShare::sequences);
  give_out(std::move(shares), file, "rank.num_shares", ranks, &RankRow::communicators);
}

void write_stages(const std::vector<RankRow>& ranks, ColumnarWriter& writer) {
  const auto stages = flattened(ranks, &RankRow::stages, "rank.num_stages", writer);
  write_columns<StageSums>(stages, "stage", writer);
  write_columns<RankStage>(stages, "stage", writer);
  write_lists<StageSums>(stages, "stage", writer);
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
  give_out(read_rows<StageSums, RankStage>(file, "stage", kMostRows), file, "rank.num_stages",
           summary.ranks, &RankRow::stages);
  read_shares(file, summary.ranks);
  summary.older = read_rows<OlderRank>(file, "older", kMostJobRows);
  summary.kernels = read_rows<KernelSums, FleetKernel>(file, "kernel", kMostRows);
  summary.collectives = read_rows<FleetCollective>(file, "collective", kMostJobRows);
  summary.groups = read_rows<GroupRow, FleetGroup>(file, "group", kMostRows);
  summary.parts = read_rows<PartRow, FleetPart>(file, "part", kMostRows);
  return summary;
}

}  // namespace gpuwhy
