// SPDX-License-Identifier: Apache-2.0
//
// Merging of rank summaries in any order, with identical results.
//
// Everything kept is a sum, a minimum, a maximum with its rank (ties go to the lowest), a histogram
// or a set. Each of these may be combined in any order and tree. Anything else, such as who waited
// how long, is computed at the end.
//
// The obvious way, reading each file into structs and adding those, spends its time on copying
// kernel names: a name of 300 characters comes again with every rank. So the texts of a file are
// looked up once per file, and rows are added by number.
//
// Attempts: a requeued job restarts all its ranks, and the n-th collective of one attempt is not
// that of another. So only the highest attempt counts, and of earlier ones only the ranks are
// listed.
#include "fleet/merge/merge.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/saturated_sum.h"
#include "base/text.h"
#include "fleet/merge/merge_parts.h"
#include "fleet/summary/columnar_file.h"
#include "fleet/summary/rank_columns.h"
#include "fleet/summary/summary_columns.h"
#include "fleet/summary/summary_file.h"
#include "results/duration_histogram.h"
#include "results/families.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

// Keeps the largest value with its rank; ties go to the lowest rank.
void keep_largest(std::int64_t& value, std::int64_t& rank, std::int64_t new_value,
                  std::int64_t new_rank, bool is_first) {
  if (is_first || std::tuple(-new_value, new_rank) < std::tuple(-value, rank)) {
    value = new_value;
    rank = new_rank;
  }
}

std::size_t index_of(RowIndex& index, const RowKey& key, std::size_t next) {
  return index.emplace(key, next).first->second;
}

// Adds the numbers of a row.
template <typename Row>
void add_numbers(Row& sum, const Row& more) {
  describe(&more, [&](const char* /*key*/, auto member, const Field& /*field*/) {
    if constexpr (std::is_same_v<ValueOf<Row, decltype(member)>, std::int64_t>) {
      add_to(sum.*member, more.*member);
    }
  });
}

// In millionths of the mean compute kernel; means beyond two hours are capped.
std::int64_t relative_mean(std::int64_t mean_ns, const StageCompute& compute) {
  constexpr std::int64_t kMostNs = 7'200'000'000'000;
  const std::int64_t average_ns = std::max<std::int64_t>(compute.total_ns / compute.calls, 1);
  return std::min(mean_ns, kMostNs) * kMillion / average_ns;
}

// Compute time by stage.
std::map<std::uint32_t, StageCompute> compute_of(const std::vector<KernelIds>& kernels,
                                                 const ColumnarFile& file) {
  std::map<std::uint32_t, StageCompute> compute;
  for (const KernelIds& row : kernels) {
    if (file.texts()[row.family] != kCommunication) {
      StageCompute& stage = compute[row.stage];
      add_to(stage.total_ns, row.total_ns);
      add_to(stage.calls, row.calls);
    }
  }
  return compute;
}

}  // namespace

// The merge in progress: texts are numbered, rows are indexed by those numbers.
class FleetMerge::State {
 public:
  std::optional<std::int64_t> add_rank(const ColumnarFile& file);
  void add_fleet(const FleetSummary& fleet);
  FleetSummary finish() const;

 private:
  bool begins(const RankIdentity& identity, std::int64_t checksum);
  void start_attempt(std::int64_t attempt);
  void check_run(const std::string& run_id);
  bool takes_all(const FleetSummary& fleet);
  void add_kernels(const std::vector<KernelIds>& kernels, const BinColumns& bins,
                   const std::vector<std::uint32_t>& numbers,
                   const std::map<std::uint32_t, StageCompute>& compute, std::int64_t rank);
  void add_collectives(const std::vector<CollectiveIds>& collectives, const ColumnarFile& file,
                       const std::vector<std::uint32_t>& numbers, RankRow& row);
  void add_group(const GroupRow& cell, std::int64_t num_ranks);
  void add_part(const FleetPart& part);
  // Adds what one rank, or a merge of several, has of a kernel.
  static void add_kernel(MergedKernel& merged, const Durations& sums, const KernelSpread& spread,
                         bool has_relative);
  static void add_collective(FleetCollective& sum, const FleetCollective& more);
  MergedKernel& kernel_at(std::uint32_t stage, std::uint32_t kernel, std::uint32_t family);
  CollectiveInstance& instance_at(std::uint32_t communicator, std::int64_t sequence);
  void add_texts(CollectiveInstance& instance, std::uint32_t stage, std::uint32_t kernel,
                 std::uint32_t other_kernel);
  FleetKernel kernel_of(const MergedKernel& merged) const;
  FleetCollective collective_of(const CollectiveInstance& instance) const;

  bool has_run_ = false;
  std::string run_id_;
  std::int64_t attempt_ = 0;
  std::map<std::int64_t, RankRow> ranks_;
  std::set<OlderRank> older_;
  TextNumbers texts_;
  RowIndex kernel_index_;
  std::deque<MergedKernel> kernels_;
  RowIndex instance_index_;
  std::deque<CollectiveInstance> instances_;
  std::map<std::pair<std::string, std::string>, FleetGroup> groups_;  // communicator, operation
  std::map<std::tuple<std::string, std::string, std::string>, FleetPart>
      parts_;  // pass, block, part
};

void FleetMerge::State::check_run(const std::string& run_id) {
  if (has_run_ && run_id != run_id_) {
    throw MergeConflict(
        fmt::format("summaries of two runs: '{}' and '{}'", printable(run_id_), printable(run_id)),
        "merge the ranks of one run: gpuwhy merge ITS_DIRECTORY");
  }
  has_run_ = true;
  run_id_ = run_id;
}

void FleetMerge::State::start_attempt(std::int64_t attempt) {
  for (const auto& [rank, row] : ranks_) {
    older_.insert({rank, attempt_});
  }
  ranks_.clear();
  kernels_.clear();
  kernel_index_.clear();
  instances_.clear();
  instance_index_.clear();
  groups_.clear();
  parts_.clear();
  attempt_ = attempt;
}

// Whether this rank is to be added. False if it is of an earlier attempt or already there.
bool FleetMerge::State::begins(const RankIdentity& identity, std::int64_t checksum) {
  check_run(identity.run_id);
  if (identity.attempt < attempt_) {
    older_.insert({identity.rank, identity.attempt});
    return false;
  }
  if (identity.attempt > attempt_) {
    start_attempt(identity.attempt);
  }
  const auto found = ranks_.find(identity.rank);
  if (found != ranks_.end() && found->second.checksum != checksum) {
    throw MergeConflict(fmt::format("rank {} of attempt {} comes twice, with different numbers",
                                    identity.rank, identity.attempt),
                        "leave one of its summaries out; if they are different ranks, analyze "
                        "them again with --rank N");
  }
  return found == ranks_.end();
}

MergedKernel& FleetMerge::State::kernel_at(std::uint32_t stage, std::uint32_t kernel,
                                           std::uint32_t family) {
  const std::size_t index = index_of(
      kernel_index_, {static_cast<std::uint64_t>(stage) << 32 | kernel, family}, kernels_.size());
  if (index == kernels_.size()) {
    MergedKernel& merged = kernels_.emplace_back();
    merged.stage = stage;
    merged.kernel = kernel;
    merged.family = family;
  }
  return kernels_[index];
}

CollectiveInstance& FleetMerge::State::instance_at(std::uint32_t communicator,
                                                   std::int64_t sequence) {
  const std::size_t index = index_of(
      instance_index_, {communicator, static_cast<std::uint64_t>(sequence)}, instances_.size());
  if (index == instances_.size()) {
    CollectiveInstance& instance = instances_.emplace_back();
    instance.communicator = communicator;
    instance.values.sequence = sequence;
  }
  return instances_[index];
}

void FleetMerge::State::add_kernel(MergedKernel& merged, const Durations& sums,
                                   const KernelSpread& spread, bool has_relative) {
  const bool is_first = merged.num_ranks == 0;
  if (is_first) {
    merged.sums = sums;
  } else {
    merged.sums.add(sums);
  }
  keep_largest(merged.slowest_mean_ns, merged.slowest_rank, spread.slowest_mean_ns,
               spread.slowest_rank, is_first);
  if (has_relative) {
    keep_largest(merged.most_relative, merged.most_relative_rank, spread.most_relative,
                 spread.most_relative_rank, merged.relative.empty());
  }
  add_to(merged.num_ranks, spread.num_ranks);
}

// The last rank to arrive is the one that waited least. Ties go to the lower rank, so that the
// order of merging does not matter.
void FleetMerge::State::add_collective(FleetCollective& sum, const FleetCollective& more) {
  if (sum.num_ranks == 0 ||
      std::tie(more.shortest_ns, more.last_rank) < std::tie(sum.shortest_ns, sum.last_rank)) {
    sum.shortest_ns = more.shortest_ns;
    sum.last_rank = more.last_rank;
  }
  sum.longest_ns = std::max(sum.longest_ns, more.longest_ns);
  add_to(sum.total_ns, more.total_ns);
  add_to(sum.num_ranks, more.num_ranks);
}

void FleetMerge::State::add_kernels(const std::vector<KernelIds>& kernels, const BinColumns& bins,
                                    const std::vector<std::uint32_t>& numbers,
                                    const std::map<std::uint32_t, StageCompute>& compute,
                                    std::int64_t rank) {
  const std::uint32_t communication = texts_.of(kCommunication);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const KernelIds& row = kernels[i];
    const std::uint32_t family = numbers[row.family];
    MergedKernel& merged = kernel_at(numbers[row.stage], numbers[row.kernel], family);
    const std::int64_t mean_ns = row.total_ns / std::max<std::int64_t>(row.calls, 1);
    KernelSpread spread{1, mean_ns, rank, 0, rank};
    bool has_relative = false;
    if (family != communication) {
      const StageCompute& stage = compute.at(row.stage);
      has_relative = stage.calls > 0;
      spread.most_relative = has_relative ? relative_mean(mean_ns, stage) : 0;
    }
    add_kernel(merged, row, spread, has_relative);
    if (has_relative) {
      merged.relative.add(bin_of(spread.most_relative), 1);
    }
    for (std::size_t at = bins.begin(i); at < bins.end(i); ++at) {
      merged.durations.add(bins.step(at), bins.count(at));
    }
  }
}

// Of several texts the first and the last by name, so that the order of adding does not matter.
void FleetMerge::State::add_texts(CollectiveInstance& instance, std::uint32_t stage,
                                  std::uint32_t kernel, std::uint32_t other_kernel) {
  if (instance.values.num_ranks == 0) {
    instance.stage = stage;
    instance.kernel = kernel;
    instance.other_kernel = other_kernel;
    return;
  }
  if (stage != instance.stage && texts_[stage] < texts_[instance.stage]) {
    instance.stage = stage;
  }
  if (kernel != instance.kernel && texts_[kernel] < texts_[instance.kernel]) {
    instance.kernel = kernel;
  }
  if (other_kernel != instance.other_kernel &&
      texts_[other_kernel] > texts_[instance.other_kernel]) {
    instance.other_kernel = other_kernel;
  }
}

void FleetMerge::State::add_collectives(const std::vector<CollectiveIds>& collectives,
                                        const ColumnarFile& file,
                                        const std::vector<std::uint32_t>& numbers, RankRow& row) {
  const CollectiveIds* before = nullptr;
  for (const CollectiveIds& one : collectives) {
    // Rows are sorted by communicator, so each one starts a new share.
    if (before == nullptr || one.communicator != before->communicator) {
      row.communicators.push_back({std::string(file.texts()[one.communicator]), 0, {}});
    }
    before = &one;
    CommunicatorShare& share = row.communicators.back();
    add_to(share.total_ns, one.duration_ns);
    if (share.sequences.empty() ||
        share.sequences.back().first + share.sequences.back().count != one.sequence) {
      share.sequences.push_back({one.sequence, 0});
    }
    ++share.sequences.back().count;
    CollectiveInstance& instance = instance_at(numbers[one.communicator], one.sequence);
    const std::uint32_t kernel = numbers[one.kernel];
    add_texts(instance, numbers[one.stage], kernel, kernel);
    FleetCollective more;
    more.num_ranks = 1;
    more.last_rank = row.identity.rank;
    more.shortest_ns = more.longest_ns = more.total_ns = one.duration_ns;
    add_collective(instance.values, more);
  }
}

// Of texts that differ, which only happens if ranks describe a group differently, the first by
// name: the order of adding does not matter.
void FleetMerge::State::add_group(const GroupRow& cell, std::int64_t num_ranks) {
  const auto [entry, is_new] = groups_.try_emplace({cell.communicator, cell.operation});
  FleetGroup& sum = entry->second;
  if (is_new) {
    static_cast<GroupRow&>(sum) = cell;
  } else {
    sum.description = std::min(sum.description, cell.description);
    sum.ranks = std::min(sum.ranks, cell.ranks);
    const std::int64_t size = std::max(sum.size, cell.size);
    add_numbers<GroupRow>(sum, cell);
    sum.size = size;
  }
  add_to(sum.num_ranks, num_ranks);
}

// Sums, and the rank with the most time: of two merges the same as of all their ranks at once.
void FleetMerge::State::add_part(const FleetPart& part) {
  const auto [entry, is_new] = parts_.try_emplace({part.pass, part.block, part.part}, part);
  if (is_new) {
    return;
  }
  FleetPart& sum = entry->second;
  add_numbers<PartRow>(sum, part);
  keep_largest(sum.slowest_ns, sum.slowest_rank, part.slowest_ns, part.slowest_rank, false);
  add_to(sum.num_ranks, part.num_ranks);
}

std::optional<std::int64_t> FleetMerge::State::add_rank(const ColumnarFile& file) {
  RankRow row;
  row.identity = read_identity(file);
  row.checksum = file.checksum();
  // All checks of the file come before anything changes: a damaged one is skipped.
  const std::vector<KernelIds> kernels = read_kernel_ids(file);
  const BinColumns bins(file, "kernel.histogram", "launches", kernels.size());
  auto stages = read_rows<StageSums, RankStage>(file, "stage", kMostRankStages);
  const std::vector<CollectiveIds> collectives = read_collective_ids(file);
  const auto groups = read_rows<GroupRow>(file, "group", kMostRankGroups);
  const auto parts = read_rows<PartRow>(file, "part", kMostRankParts);
  if (!begins(row.identity, row.checksum)) {
    return std::nullopt;
  }
  const std::map<std::uint32_t, StageCompute> compute = compute_of(kernels, file);
  for (RankStage& stage : stages) {
    stage.compute_ns = 0;
    for (const auto& [id, of_stage] : compute) {
      if (file.texts()[id] == stage.stage) {
        stage.compute_ns = of_stage.total_ns;
      }
    }
  }
  row.stages = std::move(stages);
  std::vector<std::uint32_t> numbers;
  numbers.reserve(file.texts().size());
  for (const std::string_view text : file.texts()) {
    numbers.push_back(texts_.of(text));
  }
  add_kernels(kernels, bins, numbers, compute, row.identity.rank);
  add_collectives(collectives, file, numbers, row);
  for (const GroupRow& group : groups) {
    add_group(group, 1);
    // Of sends and receives alone there is nothing to match, but the rank is a member.
    if (std::none_of(row.communicators.begin(), row.communicators.end(),
                     [&](const CommunicatorShare& share) {
                       return share.communicator == group.communicator;
                     })) {
      row.communicators.push_back({group.communicator, 0, {}});
    }
  }
  for (const PartRow& part : parts) {
    add_part({part, 1, part.total_ns, row.identity.rank});
  }
  const std::int64_t rank = row.identity.rank;
  ranks_.emplace(rank, std::move(row));
  return rank;
}

// True if none of its ranks is here, false if all are. If it contains all ranks that are here, they
// are replaced by it.
bool FleetMerge::State::takes_all(const FleetSummary& fleet) {
  std::size_t num_here = 0;
  for (const RankRow& row : fleet.ranks) {
    num_here += begins(row.identity, row.checksum) ? 0 : 1;
  }
  if (num_here == 0) {
    return true;
  }
  if (num_here == fleet.ranks.size()) {
    return false;
  }
  if (num_here == ranks_.size()) {
    const std::int64_t attempt = attempt_;
    std::set<OlderRank> older = older_;
    start_attempt(attempt);
    older_ = std::move(older);
    return true;
  }
  throw MergeConflict("two merged summaries have some ranks in common, but not all",
                      "merge the ranks' own summaries instead: gpuwhy merge THEIR_DIRECTORY");
}

// Adds another merge. A newer attempt replaces everything; an older one is only remembered in
// older_.
void FleetMerge::State::add_fleet(const FleetSummary& fleet) {
  older_.insert(fleet.older.begin(), fleet.older.end());
  if (fleet.ranks.empty()) {
    return;
  }
  const std::int64_t attempt = fleet.ranks[0].identity.attempt;
  if (attempt > attempt_) {
    start_attempt(attempt);
  }
  if (!takes_all(fleet) || attempt < attempt_) {
    // All ranks or none: two merges that share some ranks would count these twice.
    return;
  }
  for (const FleetKernel& kernel : fleet.kernels) {
    MergedKernel& merged =
        kernel_at(texts_.of(kernel.stage), texts_.of(kernel.kernel), texts_.of(kernel.family));
    add_kernel(merged, {kernel.calls, kernel.total_ns, kernel.min_ns, kernel.max_ns, {}}, kernel,
               !kernel.relative.empty());
    merged.durations.add(kernel.histogram);
    merged.relative.add(kernel.relative);
  }
  for (const FleetCollective& collective : fleet.collectives) {
    CollectiveInstance& instance =
        instance_at(texts_.of(collective.communicator), collective.sequence);
    add_texts(instance, texts_.of(collective.stage), texts_.of(collective.kernel),
              texts_.of(collective.other_kernel));
    add_collective(instance.values, collective);
  }
  for (const FleetGroup& group : fleet.groups) {
    add_group(group, group.num_ranks);
  }
  for (const FleetPart& part : fleet.parts) {
    add_part(part);
  }
  for (const RankRow& row : fleet.ranks) {
    ranks_.emplace(row.identity.rank, row);
  }
}

FleetKernel FleetMerge::State::kernel_of(const MergedKernel& merged) const {
  FleetKernel kernel{
      {{texts_[merged.stage], texts_[merged.kernel], texts_[merged.family]}, merged.sums},
      merged,
      merged.relative.as_map()};
  kernel.histogram = merged.durations.as_map();
  return kernel;
}

FleetCollective FleetMerge::State::collective_of(const CollectiveInstance& instance) const {
  FleetCollective collective = instance.values;
  collective.communicator = texts_[instance.communicator];
  collective.stage = texts_[instance.stage];
  collective.kernel = texts_[instance.kernel];
  collective.other_kernel = texts_[instance.other_kernel];
  return collective;
}

// Hash tables have no order: sort, so that the same ranks give the same bytes.
FleetSummary FleetMerge::State::finish() const {
  FleetSummary summary;
  for (const auto& [rank, row] : ranks_) {
    summary.ranks.push_back(row);
  }
  summary.older.assign(older_.begin(), older_.end());
  for (const MergedKernel& merged : kernels_) {
    summary.kernels.push_back(kernel_of(merged));
  }
  std::sort(summary.kernels.begin(), summary.kernels.end(), std::less<KernelName>());
  for (const CollectiveInstance& instance : instances_) {
    summary.collectives.push_back(collective_of(instance));
  }
  std::sort(summary.collectives.begin(), summary.collectives.end(),
            [](const FleetCollective& a, const FleetCollective& b) {
              return std::tie(a.communicator, a.sequence) < std::tie(b.communicator, b.sequence);
            });
  for (const auto& [key, group] : groups_) {
    summary.groups.push_back(group);
  }
  for (const auto& [key, part] : parts_) {
    summary.parts.push_back(part);
  }
  return summary;
}

FleetMerge::FleetMerge() : state_(std::make_unique<State>()) {}
FleetMerge::~FleetMerge() = default;
FleetMerge::FleetMerge(FleetMerge&&) noexcept = default;
FleetMerge& FleetMerge::operator=(FleetMerge&&) noexcept = default;

std::optional<std::int64_t> FleetMerge::add(std::string_view bytes) {
  const ColumnarFile file(bytes);
  if (file.kind() == kRankKind) {
    return state_->add_rank(file);
  }
  if (file.kind() != kFleetKind) {
    throw Error(ErrorKind::kInput, "a summary of a kind that this program does not know",
                "a newer gpuwhy wrote it: merge with that one");
  }
  state_->add_fleet(read_fleet(bytes));
  return std::nullopt;
}

void FleetMerge::add(const FleetSummary& summary) {
  state_->add_fleet(summary);
}

FleetSummary FleetMerge::finish() const {
  return state_->finish();
}

}  // namespace gpuwhy
