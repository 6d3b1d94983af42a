// SPDX-License-Identifier: Apache-2.0
//
// Summary of an analysis in a form that can be added over ranks.
//
// Sums instead of medians and ratios, and integers instead of anything that rounds.
//
// What it gets wrong: if one recording contains several GPUs, the host's stage times cannot be
// separated by GPU, and each gets the length of its ledger's windows instead.
#include "analysis/rank_rows.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

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

// Whether a row is of the rank's GPU; nullptr: of any.
template <typename Row>
bool is_of(const Row& row, const std::string* device) {
  return device == nullptr || row.device == *device;
}

template <typename Row>
std::vector<Row> rows_of(const std::vector<Row>& rows, const std::string* device) {
  std::vector<Row> found;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found),
               [&](const Row& row) { return is_of(row, device); });
  return found;
}

// Sums, minima, maxima and histograms of the kernels on one GPU.
std::vector<KernelSums> kernels_of(const Analysis& analysis, const std::string* device) {
  std::map<KernelName, Durations> sums;
  for (const KernelRow& row : analysis.kernels) {
    if (is_of(row, device)) {
      const Durations more{row.calls,
                           row.total_ns,
                           row.min_ns,
                           row.max_ns,
                           {row.histogram.begin(), row.histogram.end()}};
      const auto [entry, is_new] =
          sums.try_emplace({row.stage.text(), row.kernel_name, row.family}, more);
      if (!is_new) {
        entry->second.add(more);
      }
    }
  }
  std::vector<KernelSums> kernels;
  kernels.reserve(sums.size());
  for (auto& [name, durations] : sums) {
    kernels.push_back({name, std::move(durations)});
  }
  return kernels;
}

void add_ledgers(const Analysis& analysis, const std::string* device, bool is_shared,
                 StageSums& cell) {
  std::int64_t instances = 0;
  for (const LedgerRow& row : analysis.ledgers) {
    if (row.stage.text() != cell.stage || !is_of(row, device)) {
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
void add_efficiency(const Analysis& analysis, std::size_t num_shares, StageSums& cell) {
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

// What both a profiled stage and one that was only timed have.
template <typename Stage>
StageSums host_times(const Stage& stage, std::int64_t instances) {
  StageSums sums;
  sums.stage = stage.stage.text();
  sums.instances = instances;
  sums.total_ns = stage.total_ns;
  sums.min_ns = stage.min_ns;
  sums.max_ns = stage.max_ns;
  sums.tokens = stage.tokens.value_or(0);
  return sums;
}

std::vector<StageSums> stages_of(const Analysis& analysis, const std::string* device,
                                 std::size_t num_shares, const std::vector<KernelSums>& kernels) {
  std::map<std::string, std::int64_t> kernel_ns;
  for (const KernelSums& kernel : kernels) {
    kernel_ns[kernel.stage] = saturated_sum(kernel_ns[kernel.stage], kernel.total_ns);
  }
  std::vector<StageSums> cells;
  for (const StageRow& stage : analysis.stages) {
    StageSums cell = host_times(stage, stage.num_instances);
    cell.kernel_ns =
        stage.is_nested && num_shares == 1 ? stage.kernel_ns : kernel_ns[stage.stage.text()];
    add_ledgers(analysis, device, num_shares > 1, cell);
    add_efficiency(analysis, num_shares, cell);
    cells.push_back(std::move(cell));
  }
  const std::string& outside = kRowWords[static_cast<std::size_t>(RowKind::kOutside)];
  if (const auto found = kernel_ns.find(outside); found != kernel_ns.end()) {
    StageSums cell;
    cell.stage = outside;
    cell.kernel_ns = found->second;
    cells.push_back(std::move(cell));
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
    if (identity.gpu.empty() && is_of(one, device)) {
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
  summary.parts = rows_of(details.parts, device);
  // In a sample the n-th collective of one rank is not the n-th of another, so none can be matched.
  if (!has_missing_calls(analysis)) {
    summary.collectives = rows_of(collectives.launches, device);
    summary.groups = rows_of(collectives.groups, device);
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
    RankSummary summary{identity, {}, {}, {}};
    const std::vector<StageTimes> none;
    for (const StageTimes& stage : analysis.baseline ? *analysis.baseline : none) {
      summary.stages.push_back(host_times(stage, stage.n));
    }
    return {summary};
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
