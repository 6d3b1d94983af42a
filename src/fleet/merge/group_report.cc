// SPDX-License-Identifier: Apache-2.0
//
// Groups of ranks: how each shares the model, with the evidence, and its late rank.
//
// The program's own description of a group decides, where it is one that frameworks are known to
// write. Otherwise the kind follows from which operations run where in the model:
//
//   all-reduce in each forward layer                          tensor parallel
//   reduce-scatter and all-gather in each forward layer       tensor parallel, by sequence
//   all-gather in each forward layer, reduce-scatter outside  data parallel, sharded (FSDP, ZeRO-3)
//   only in backward layers or after them, none in forward    data parallel
//   only sends and receives, between the layers               pipeline
//   all-to-all in each forward layer of a model with experts  expert parallel
//
// A forward layer is decisive: gradients are never reduced there. What fits no line has no kind. An
// all-to-all without experts may be of a sequence that is split by heads, sends and receives inside
// layers are of a ring, and an all-reduce once per step may be of gradients or of a norm.
//
// What it gets wrong: one group that two kinds of parallelism share, as that of data and expert
// parallel ranks, gets the kind of its most telling operation. The description says both.
#include "fleet/merge/group_report.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/saturated_sum.h"
#include "base/units.h"
#include "fleet/merge/collective_report.h"

namespace gpuwhy {
namespace {

// Descriptions that Megatron-Core gives, and names of the dimensions of PyTorch's device meshes
// ("mesh_tp").
constexpr std::pair<std::string_view, ParallelKind> kDescriptions[] = {
    {"TENSOR_MODEL_PARALLEL_GROUP", ParallelKind::kTensor},
    {"EXPERT_TENSOR_PARALLEL_GROUP", ParallelKind::kTensor},
    {"PIPELINE_MODEL_PARALLEL_GROUP", ParallelKind::kPipeline},
    {"DATA_PARALLEL_GROUP", ParallelKind::kData},
    {"DATA_PARALLEL_GROUP_WITH_CP", ParallelKind::kData},
    {"EXPERT_DATA_PARALLEL_GROUP", ParallelKind::kData},
    {"EXPERT_MODEL_PARALLEL_GROUP", ParallelKind::kExpert},
    {"CONTEXT_PARALLEL_GROUP", ParallelKind::kContext},
    {"mesh_tp", ParallelKind::kTensor},
    {"mesh_pp", ParallelKind::kPipeline},
    {"mesh_dp", ParallelKind::kData},
    {"mesh_dp_shard", ParallelKind::kData},
    {"mesh_dp_replicate", ParallelKind::kData},
    {"mesh_dp_shard_cp", ParallelKind::kData},
    {"mesh_fsdp", ParallelKind::kData},
    {"mesh_ep", ParallelKind::kExpert},
    {"mesh_cp", ParallelKind::kContext},
};

// Of the layers, that have a call: nearly all, or few.
constexpr double kNearlyAll = 0.9;
constexpr double kFew = 0.25;

// The operations of one group.
class Operations {
 public:
  void add(const FleetGroup& row) { rows_[row.operation] = &row; }

  const FleetGroup& any() const { return *rows_.begin()->second; }
  bool has(std::string_view operation) const { return rows_.contains(operation); }
  const FleetGroup& at(std::string_view operation) const { return *rows_.find(operation)->second; }

  bool are_only(std::initializer_list<std::string_view> allowed) const {
    return std::all_of(rows_.begin(), rows_.end(), [&](const auto& row) {
      return std::find(allowed.begin(), allowed.end(), row.first) != allowed.end();
    });
  }
  bool has_layers() const { return any().forward_layers > 0; }
  bool has_backward() const { return any().backward_layers > 0; }
  // Whether nearly all forward layers have this operation.
  bool is_in_layers(std::string_view operation) const {
    return has(operation) && share_with(at(operation)) >= kNearlyAll;
  }
  bool is_in_no_layer() const {
    return std::all_of(rows_.begin(), rows_.end(),
                       [](const auto& row) { return row.second->forward_calls == 0; });
  }
  bool are_in_few_layers() const {
    return std::all_of(rows_.begin(), rows_.end(),
                       [](const auto& row) { return share_with(*row.second) <= kFew; });
  }
  std::int64_t sum_of(std::int64_t GroupRow::*member) const {
    std::int64_t sum = 0;
    for (const auto& [operation, row] : rows_) {
      add_to(sum, row->*member);
    }
    return sum;
  }

  // "all-reduce 2.0 per forward layer".
  std::string per_layer(std::string_view operation) const {
    const FleetGroup& row = at(operation);
    return fmt::format("{} {:.1f} times per forward layer", spoken(operation),
                       static_cast<double>(row.forward_calls) /
                           static_cast<double>(std::max<std::int64_t>(row.forward_layers, 1)));
  }
  // "all-reduce 640 times, broadcast 8 times".
  std::string list() const {
    std::vector<std::string> words;
    for (const auto& [operation, row] : rows_) {
      words.push_back(fmt::format("{} {}", spoken(operation), count_of(row->calls, "time")));
    }
    return fmt::format("{}", fmt::join(words, ", "));
  }

 private:
  static double share_with(const FleetGroup& row) {
    return static_cast<double>(row.forward_layers_with) /
           static_cast<double>(std::max<std::int64_t>(row.forward_layers, 1));
  }
  static std::string spoken(std::string_view operation) {
    std::string text(operation);
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
  }

  std::map<std::string_view, const FleetGroup*> rows_;
};

struct KindAndReason {
  ParallelKind kind = ParallelKind::kUnknown;
  std::string reason;
};

KindAndReason kind_of(const Operations& operations, bool has_experts) {
  const std::string& description = operations.any().description;
  for (const auto& [known, kind] : kDescriptions) {
    if (description == known) {
      return {kind, fmt::format("the program calls it {}", description)};
    }
  }
  if (!operations.has_layers()) {
    return {ParallelKind::kUnknown,
            fmt::format("{}; the model's layers were not recognized", operations.list())};
  }
  const auto in_layers = [&](const char* operation) { return operations.is_in_layers(operation); };
  if (in_layers("all_to_all") && has_experts) {
    return {ParallelKind::kExpert,
            operations.per_layer("all_to_all") + ", in a model with experts"};
  }
  if (in_layers("all_reduce")) {
    return {ParallelKind::kTensor, operations.per_layer("all_reduce")};
  }
  if (in_layers("reduce_scatter") && in_layers("all_gather")) {
    return {ParallelKind::kTensor, fmt::format("{}, {}", operations.per_layer("reduce_scatter"),
                                               operations.per_layer("all_gather"))};
  }
  if (in_layers("all_gather") && operations.has_backward() && operations.has("reduce_scatter") &&
      operations.at("reduce_scatter").forward_calls == 0) {
    return {ParallelKind::kData, operations.per_layer("all_gather") +
                                     ", reduce-scatter in none: parameters are sharded"};
  }
  if (operations.are_only({"send", "recv"})) {
    if (operations.are_in_few_layers()) {
      return {ParallelKind::kPipeline, operations.list() + ", between the layers"};
    }
    return {ParallelKind::kUnknown,
            operations.list() + ", inside layers: a ring, or a pipeline that overlaps"};
  }
  const bool are_gradients =
      operations.has("reduce_scatter") ||
      (operations.has("all_reduce") && operations.sum_of(&GroupRow::backward_calls) > 0);
  if (operations.has_backward() && operations.is_in_no_layer() && are_gradients) {
    return {ParallelKind::kData, operations.list() + ", in no forward layer"};
  }
  return {ParallelKind::kUnknown, operations.list() + ": more than one kind of group does that"};
}

// Matched collectives of one group.
struct Matched {
  GroupCollectives time;
  struct Late {
    std::int64_t num_last = 0;
    std::int64_t caused_ns = 0;
  };
  std::map<std::int64_t, Late> late;  // by rank
};

std::map<std::string_view, Matched> match_by_group(const FleetSummary& fleet) {
  std::map<std::string_view, Matched> found;
  for (const FleetCollective& one : fleet.collectives) {
    Matched& matched = found[one.communicator];
    if (const auto waiting_ns = add_collective(one, matched.time)) {
      Matched::Late& late = matched.late[one.last_rank];
      ++late.num_last;
      add_to(late.caused_ns, *waiting_ns);
    }
  }
  return found;
}

void add_late_rank(const Matched& matched, JobGroup& group) {
  group.collectives = matched.time;
  if (matched.late.empty()) {
    return;
  }
  const auto worst = std::max_element(
      matched.late.begin(), matched.late.end(),
      [](const auto& a, const auto& b) { return a.second.caused_ns < b.second.caused_ns; });
  group.late_rank = worst->first;
  group.num_last = worst->second.num_last;
  group.lost_ns = worst->second.caused_ns / std::max<std::int64_t>(group.num_present - 1, 1);
}

}  // namespace

std::vector<JobGroup> find_groups(const FleetSummary& fleet) {
  std::map<std::string_view, Operations> by_communicator;
  for (const FleetGroup& row : fleet.groups) {
    by_communicator[row.communicator].add(row);
  }
  const bool has_experts =
      std::any_of(fleet.parts.begin(), fleet.parts.end(),
                  [](const FleetPart& part) { return part.part == "experts"; });
  std::map<std::string_view, std::vector<std::int64_t>> members;  // that are among the files
  for (const RankRow& row : fleet.ranks) {
    for (const CommunicatorShare& share : row.communicators) {
      members[share.communicator].push_back(row.identity.rank);
    }
  }
  const std::map<std::string_view, Matched> matched = match_by_group(fleet);
  std::vector<JobGroup> groups;
  for (const auto& [communicator, operations] : by_communicator) {
    JobGroup& group = groups.emplace_back();
    group.communicator = communicator;
    group.ranks = operations.any().ranks;
    group.size = operations.any().size;
    KindAndReason kind = kind_of(operations, has_experts);
    group.kind = kind.kind;
    group.evidence = std::move(kind.reason);
    group.num_calls = operations.sum_of(&GroupRow::calls);
    const std::vector<std::int64_t>& present = members[communicator];
    group.num_present = static_cast<std::int64_t>(present.size());
    if (group.ranks.empty() && present.size() > 1) {
      group.ranks = ranks_text(present);  // NCCL's communicators have an id, but no list
    }
    if (const auto found = matched.find(communicator); found != matched.end()) {
      add_late_rank(found->second, group);
    }
  }
  std::sort(groups.begin(), groups.end(), [](const JobGroup& a, const JobGroup& b) {
    const auto key = [](const JobGroup& group) {
      return std::tuple(group.kind == ParallelKind::kUnknown, group.kind, -group.lost_ns,
                        std::string_view(group.communicator));
    };
    return key(a) < key(b);
  });
  return groups;
}

}  // namespace gpuwhy
