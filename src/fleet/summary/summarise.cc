// SPDX-License-Identifier: Apache-2.0
//
// Summary of an analysis in a form that can be added over ranks.
//
// Sums instead of medians and ratios, and integers instead of anything that rounds.
//
// What it gets wrong: if one recording contains several GPUs, the host's stage times cannot be
// separated by GPU, and each gets the length of its ledger's windows instead.
#include "fleet/summary/summarise.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/findings/findings.h"
#include "analysis/findings/workload.h"
#include "base/saturated_sum.h"

namespace gpuwhy {
namespace {

std::int64_t whole(double value) {
  return value <= 0 ? 0 : value >= 9e18 ? INT64_MAX : static_cast<std::int64_t>(value);
}

std::vector<std::string> devices_of(const Analysis& analysis) {
  std::vector<std::string> devices;
  for (const DeviceRow& device : analysis.devices) {
    if (device.num_kernels > 0) {
      devices.push_back(device.device);
    }
  }
  return devices;
}

// Sums, minima, maxima and histograms of the kernels on one GPU.
std::vector<KernelCell> kernels_of(const Analysis& analysis, const std::string* device) {
  std::map<std::tuple<std::string, std::string, std::string>, KernelCell> cells;
  for (const KernelRow& record : analysis.kernels) {
    if (device != nullptr && record.device != *device) {
      continue;
    }
    const auto [entry, is_new] =
        cells.try_emplace({record.stage.text(), record.kernel_name, record.family});
    KernelCell& cell = entry->second;
    cell.stage = record.stage.text();
    cell.kernel = record.kernel_name;
    cell.family = record.family;
    cell.min_ns = is_new ? record.min_ns : std::min(cell.min_ns, record.min_ns);
    cell.max_ns = std::max(cell.max_ns, record.max_ns);
    cell.calls = saturated_sum(cell.calls, record.calls);
    cell.total_ns = saturated_sum(cell.total_ns, record.total_ns);
    for (const auto& [step, launches] : record.histogram) {
      cell.histogram[static_cast<int>(step)] += launches;
    }
  }
  std::vector<KernelCell> kernels;
  kernels.reserve(cells.size());
  for (auto& [key, cell] : cells) {
    kernels.push_back(std::move(cell));
  }
  return kernels;
}

void add_ledgers(const Analysis& analysis, const std::string* device, bool is_shared,
                 StageCell& cell) {
  std::int64_t instances = 0;
  for (const LedgerRow& row : analysis.ledgers) {
    if (row.stage.text() != cell.stage || (device != nullptr && row.device != *device)) {
      continue;
    }
    instances += row.num_instances;
    cell.window_ns = saturated_sum(cell.window_ns, row.window_ns);
    for (std::size_t i = 0; i < kNumBuckets; ++i) {
      cell.buckets_ns[i] = saturated_sum(cell.buckets_ns[i], row.buckets_ns[i]);
    }
  }
  if (is_shared) {
    cell.instances = instances;
    cell.total_ns = cell.window_ns;
    cell.min_ns = 0;
    cell.max_ns = 0;
  }
}

// Numerator and denominator of MFU and MBU, shared between the ranks of the recording.
void add_efficiency(const Analysis& analysis, std::size_t num_shares, StageCell& cell) {
  if (!analysis.efficiency) {
    return;
  }
  const Efficiency& efficiency = *analysis.efficiency;
  const auto shares = static_cast<double>(num_shares);
  for (const StageEfficiency& stage : efficiency.stages) {
    if (stage.stage.text() != cell.stage) {
      continue;
    }
    const double gpu_s = static_cast<double>(stage.wall_ns) / 1e9 *
                         static_cast<double>(std::max<std::int64_t>(efficiency.num_gpus, 1));
    if (efficiency.flops_per_s) {
      cell.model_flops = whole(static_cast<double>(stage.flops) / shares);
      cell.peak_flops = whole(*efficiency.flops_per_s * gpu_s / shares);
    }
    if (efficiency.bytes_per_s) {
      cell.model_bytes = whole(static_cast<double>(stage.bytes) / shares);
      cell.peak_bytes = whole(*efficiency.bytes_per_s * gpu_s / shares);
    }
  }
}

std::vector<StageCell> stages_of(const Analysis& analysis, const std::string* device,
                                 std::size_t num_shares, const std::vector<KernelCell>& kernels) {
  std::map<std::string, std::int64_t> kernel_ns;
  for (const KernelCell& kernel : kernels) {
    kernel_ns[kernel.stage] = saturated_sum(kernel_ns[kernel.stage], kernel.total_ns);
  }
  std::vector<StageCell> cells;
  for (const StageRow& stage : analysis.stages) {
    StageCell cell;
    cell.stage = stage.stage.text();
    cell.instances = stage.num_instances;
    cell.total_ns = stage.total_ns;
    cell.min_ns = stage.min_ns;
    cell.max_ns = stage.max_ns;
    cell.tokens = stage.tokens.value_or(0);
    cell.kernel_ns =
        stage.is_nested && num_shares == 1 ? stage.kernel_ns : kernel_ns[stage.stage.text()];
    add_ledgers(analysis, device, num_shares > 1, cell);
    add_efficiency(analysis, num_shares, cell);
    cells.push_back(std::move(cell));
  }
  const std::string& outside = kRowWords[static_cast<std::size_t>(RowKind::kOutside)];
  if (const auto found = kernel_ns.find(outside); found != kernel_ns.end()) {
    StageCell cell;
    cell.stage = outside;
    cell.kernel_ns = found->second;
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<StageCell> bare_stages(const std::vector<StageTimes>& times) {
  std::vector<StageCell> cells;
  for (const StageTimes& stage : times) {
    StageCell cell;
    cell.stage = stage.stage.text();
    cell.instances = stage.n;
    cell.total_ns = stage.total_ns;
    cell.min_ns = stage.min_ns;
    cell.max_ns = stage.max_ns;
    cell.tokens = stage.tokens.value_or(0);
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::vector<CollectiveCall> collectives_of(const Collectives& collectives,
                                           const std::string* device) {
  std::vector<CollectiveCall> calls;
  for (const CollectiveLaunch& launch : collectives.launches) {
    if (device == nullptr || launch.device == *device) {
      calls.push_back({launch.communicator, launch.sequence, launch.stage.text(), launch.kernel,
                       launch.start_ns, launch.duration_ns});
    }
  }
  return calls;
}

std::vector<GroupCell> groups_of(const Collectives& collectives, const std::string* device) {
  std::vector<GroupCell> cells;
  for (const GroupUse& use : collectives.groups) {
    if (device == nullptr || use.device == *device) {
      cells.push_back({use.communicator, use.operation, use.description, use.ranks, use.size,
                       use.calls, use.total_ns, use.forward_layers, use.forward_layers_with,
                       use.forward_calls, use.backward_layers, use.backward_calls});
    }
  }
  return cells;
}

std::vector<PartCell> parts_of(const std::vector<PartUse>& uses, const std::string* device) {
  std::vector<PartCell> cells;
  for (const PartUse& use : uses) {
    if (device == nullptr || use.device == *device) {
      cells.push_back({use.pass, use.block, use.part, use.passes, use.launches, use.total_ns});
    }
  }
  return cells;
}

// The engine, where names in the recording leave no doubt.
std::string engine_of(const Analysis& analysis) {
  const std::string engine = workload_of(analysis).engine;
  return engine.empty() && analysis.engine.starts_with("Megatron") ? "megatron" : engine;
}

// The ranks of GPUs by name, where every file tells its own rank.
std::map<std::string, std::int64_t> told_ranks(const CaptureInfo& capture) {
  std::map<std::string, std::int64_t> ranks;
  std::set<std::int64_t> seen;
  std::size_t most = 1;  // GPUs of a file
  for (const FileRow& file : capture.files) {
    most = std::max(most, file.devices.size());
  }
  const auto per_file = static_cast<std::int64_t>(most);
  for (const FileRow& file : capture.files) {
    if (!file.rank || *file.rank < 0 || *file.rank >= INT64_MAX / per_file - 1 ||
        !seen.insert(*file.rank).second) {
      return {};
    }
    for (std::size_t i = 0; i < file.devices.size(); ++i) {
      ranks[file.devices[i]] = *file.rank * per_file + static_cast<std::int64_t>(i);
    }
  }
  return ranks;
}

// How many ranks the job has, if these are all of them: without a gap from 0 on.
std::int64_t number_of(const std::map<std::string, std::int64_t>& ranks) {
  std::set<std::int64_t> numbers;
  for (const auto& [device, rank] : ranks) {
    numbers.insert(rank);
  }
  const auto num = static_cast<std::int64_t>(numbers.size());
  return !numbers.empty() && *numbers.rbegin() == num - 1 ? num : 0;
}

RankSummary summary_of(const Analysis& analysis, const RankDetails& details,
                       const RankIdentity& identity, const std::string* device,
                       std::size_t num_shares) {
  const Collectives& collectives = details.collectives;
  RankSummary summary;
  summary.identity = identity;
  summary.identity.communicators_by = collectives.communicators_by;
  for (const DeviceRow& one : analysis.devices) {
    if (identity.gpu.empty() && (device == nullptr || one.device == *device)) {
      summary.identity.gpu = one.name;
    }
  }
  if (analysis.efficiency && identity.model.empty()) {
    summary.identity.model = analysis.efficiency->model;
  }
  if (summary.identity.engine.empty()) {
    summary.identity.engine = engine_of(analysis);
  }
  const CaptureInfo& capture = analysis.capture;
  if (summary.identity.started_unix_s == 0 && capture.utc_ns) {
    // An untrusted file may have any number there.
    const std::int64_t start_ns =
        saturated_sum(std::max<std::int64_t>(*capture.utc_ns, 0),
                      std::max<std::int64_t>(analysis.capture.start_ns, 0));
    summary.identity.started_unix_s = start_ns / 1'000'000'000;
  }
  summary.kernels = kernels_of(analysis, device);
  summary.stages = stages_of(analysis, device, num_shares, summary.kernels);
  summary.parts = parts_of(details.parts, device);
  // In a sample the n-th collective of one rank is not the n-th of another, so none can be matched.
  if (!has_missing_calls(analysis)) {
    summary.collectives = collectives_of(collectives, device);
    summary.groups = groups_of(collectives, device);
  }
  return summary;
}

}  // namespace

RankDetails rank_details(const Profile& profile) {
  RankDetails details;
  if (profile.trace) {
    details.collectives =
        find_collectives(*profile.trace, profile.rules, profile.stages, profile.attribution,
                         profile.structure, profile.analysis.capture.start_ns);
  }
  if (!profile.kernel_parts.empty()) {
    details.parts = find_part_uses(*profile.trace, profile.structure, *profile.analysis.structure,
                                   profile.kernel_parts);
  }
  return details;
}

std::vector<RankSummary> summarise_ranks(const Analysis& analysis, const RankDetails& details,
                                         const RankIdentity& given) {
  RankIdentity identity = given;
  if (!analysis.absent.empty()) {
    identity.recorded_by = "bare";
    return {{identity, bare_stages(analysis.baseline.value_or(std::vector<StageTimes>())), {}, {}}};
  }
  if (identity.recorded_by.empty()) {
    identity.recorded_by = analysis.capture.format.tool_id;
  }
  if (identity.num_ranks == 0 && analysis.capture.rank) {
    if (!identity.is_rank_told) {
      identity.rank = std::max<std::int64_t>(*analysis.capture.rank, 0);
    }
    identity.num_ranks = std::max<std::int64_t>(analysis.capture.world_size.value_or(0), 0);
  }
  const std::vector<std::string> devices = devices_of(analysis);
  if (devices.size() < 2) {
    return {summary_of(analysis, details, identity, nullptr, 1)};
  }
  std::vector<RankSummary> summaries;
  const auto num = static_cast<std::int64_t>(devices.size());
  const RankIdentity of_launcher = identity;
  const std::map<std::string, std::int64_t> told = told_ranks(analysis.capture);
  const bool are_all_told =
      std::all_of(devices.begin(), devices.end(),
                  [&](const std::string& device) { return told.contains(device); });
  for (std::int64_t i = 0; i < num; ++i) {
    if (are_all_told) {
      identity.rank = told.at(devices[static_cast<std::size_t>(i)]);
      identity.num_ranks = of_launcher.num_ranks > 0 ? of_launcher.num_ranks : number_of(told);
    } else {
      // A rank that is told without their number may be one of more than these.
      const std::int64_t num_processes = of_launcher.is_rank_told && of_launcher.num_ranks == 0
                                             ? 0
                                             : std::max<std::int64_t>(of_launcher.num_ranks, 1);
      identity.rank = of_launcher.rank % (INT64_MAX / num) * num + i;
      identity.num_ranks = num_processes % (INT64_MAX / num) * num;
    }
    summaries.push_back(summary_of(analysis, details, identity,
                                   &devices[static_cast<std::size_t>(i)], devices.size()));
  }
  return summaries;
}

}  // namespace gpuwhy
