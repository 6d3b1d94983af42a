// SPDX-License-Identifier: Apache-2.0
//
// The metrics of an analysis: its numbers in base units, with the ratios that need totals.
#include "report/metrics.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <tuple>

#include <fmt/chrono.h>

#include "analysis/latencies.h"
#include "base/median.h"
#include "base/sort_runs.h"

namespace gpuwhy {
namespace {

// Users count from the start of the whole recording.
std::optional<WindowMetrics> window_of(const CaptureInfo& info) {
  if (!info.window) {
    return std::nullopt;
  }
  const CaptureWindow& window = *info.window;
  return WindowMetrics{window.start_ns - window.capture_start_ns,
                       window.end_ns - window.capture_start_ns, window.why};
}

std::optional<std::vector<FileMetrics>> files_of(const CaptureInfo& info) {
  if (info.files.empty()) {
    return std::nullopt;
  }
  std::vector<FileMetrics> files;
  for (const SourceFile& file : info.files) {
    files.push_back({file.path, file.rank, file.devices, file.shift_ns,
                     file.clock == info.files.front().clock, file.clock_source});
  }
  return files;
}

// The time of day of the capture's start; nothing for times that no calendar has.
std::string recorded_of(const Analysis& analysis) {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  std::int64_t utc_ns = 0;
  if (!analysis.capture.utc_ns ||
      __builtin_add_overflow(*analysis.capture.utc_ns, analysis.capture_start_ns, &utc_ns) ||
      utc_ns <= 0) {
    return "";
  }
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(static_cast<std::time_t>(utc_ns / kSecondNs)));
}

std::string file_of(const CaptureInfo& info) {
  const std::string& path = info.files.empty() ? info.path : info.files.front().path;
  return path.substr(path.find_last_of('/') + 1);
}

// In the order of the members of CaptureMetrics.
CaptureMetrics capture_of(const Analysis& analysis) {
  const CaptureInfo& info = analysis.capture;
  return {"",  // a run knows its command
          file_of(info),
          recorded_of(analysis),
          std::string(info.format.name),
          std::string(info.format.tool),
          info.tool_version,
          info.schema_version,
          info.graph_mode,
          info.rank,
          info.world_size,
          analysis.capture_start_ns,
          analysis.capture_ns,
          analysis.kernel_ns,
          analysis.unattributed_ns,
          analysis.opaque_graph_ns,
          analysis.stage_overlap_ns,
          analysis.outside_ns,
          analysis.num_calls,
          analysis.num_numbered_calls,
          analysis.num_captured_launches,
          analysis.stage_source,
          window_of(info),
          files_of(info)};
}

// Lengths in time order, for statistics that need them individually.
std::vector<StepRow> steps_of(const Analysis& analysis) {
  std::vector<std::vector<const StageStep*>> by_stage(analysis.stages.size());
  for (const StageStep& step : analysis.steps) {
    if (!step.is_open && step.stage < by_stage.size()) {
      by_stage[step.stage].push_back(&step);
    }
  }
  std::vector<StepRow> rows;
  for (std::size_t i = 0; i < by_stage.size(); ++i) {
    sort_runs(by_stage[i], [](const StageStep* a, const StageStep* b) {
      return std::tuple(a->start_ns, a->duration_ns) < std::tuple(b->start_ns, b->duration_ns);
    });
    StepRow& row = rows.emplace_back();
    row.stage = analysis.stages[i].stage;
    row.n = static_cast<std::int64_t>(by_stage[i].size());
    std::vector<std::int64_t> gpu_windows;
    std::vector<std::int64_t> gpu_work;
    std::vector<std::int64_t> periods;
    for (const StageStep* step : by_stage[i]) {
      if (row.durations_ns.size() < kMostDurations) {
        row.durations_ns.push_back(step->duration_ns);
      }
      if (step->gpu_window_ns) {
        gpu_windows.push_back(*step->gpu_window_ns);
        gpu_work.push_back(*step->gpu_work_ns);
      }
      if (step->period_ns) {
        periods.push_back(*step->period_ns);
      }
    }
    row.gpu_window_median_ns = lower_median(std::move(gpu_windows));
    row.gpu_work_median_ns = lower_median(std::move(gpu_work));
    row.period_median_ns = lower_median(periods);
    periods.resize(std::min(kMostDurations, periods.size()));
    row.periods_ns = std::move(periods);
  }
  return rows;
}

constexpr std::size_t kMostShapes = 8;

// Launch groups by the row of the kernel table they belong to: kernel, stage, GPU.
using RowGroups = std::map<std::tuple<std::string_view, std::string_view, std::string_view>,
                           std::vector<const LaunchGroup*>>;

RowGroups groups_by_row(const Analysis& analysis) {
  RowGroups rows;
  for (const LaunchGroup& group : analysis.launch_groups) {
    if (group.has_shape) {
      rows[{group.kernel_name, group.stage.text(), group.gpu}].push_back(&group);
    }
  }
  return rows;
}

// One kernel may run in two sizes, a hundred times apart: each has its own mean. Processes are put
// together.
std::vector<ShapeTotal> totals_by_shape(const std::vector<const LaunchGroup*>& groups) {
  std::map<std::string, ShapeTotal> totals;
  for (const LaunchGroup* group : groups) {
    const std::string shape = group->shape.text();
    const auto [place, is_new] =
        totals.try_emplace(shape, ShapeTotal{shape, 0, 0, group->min_ns, 0});
    ShapeTotal& total = place->second;
    total.calls += group->calls;
    total.total_ns += group->total_ns;
    total.min_ns = std::min(total.min_ns, group->min_ns);
    total.max_ns = std::max(total.max_ns, group->max_ns);
  }
  std::vector<ShapeTotal> rows;
  rows.reserve(totals.size());
  for (auto& [shape, total] : totals) {
    rows.push_back(std::move(total));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ShapeTotal& a, const ShapeTotal& b) {
    return a.total_ns > b.total_ns;
  });
  rows.resize(rows.size() < 2 ? 0 : std::min(rows.size(), kMostShapes));
  return rows;
}

// The lists of shapes are cut, num_shapes is not.
KernelMetrics kernel_of(const Analysis& analysis, const RowGroups& groups,
                        const KernelRow& record) {
  KernelMetrics kernel;
  kernel.kernel_name = record.kernel_name;
  kernel.short_name = record.short_name;
  kernel.device = record.device;
  kernel.stage = record.stage;
  kernel.family = record.family;
  kernel.total_ns = record.total_ns;
  kernel.calls = record.calls;
  kernel.kernel_fraction = fraction_of(record.total_ns, analysis.kernel_ns);
  kernel.min_ns = record.min_ns;
  kernel.median_ns = record.median_ns;
  // Totals of nsys stats have no single launches, so no percentile.
  if (!record.histogram.empty()) {
    kernel.p99_ns = record.p99_ns;
  }
  kernel.max_ns = record.max_ns;
  kernel.steady_ns = record.steady_ns;
  kernel.num_shapes = static_cast<std::int64_t>(record.shapes.size());
  for (std::size_t i = 0; i < std::min(kMostShapes, record.shapes.size()); ++i) {
    kernel.shapes.push_back(record.shapes[i].text());
  }
  if (const auto found = groups.find({record.kernel_name, record.stage.text(), record.device});
      found != groups.end()) {
    kernel.by_shape = totals_by_shape(found->second);
  }
  kernel.histogram.assign(record.histogram.begin(), record.histogram.end());
  if (record.counters) {
    kernel.bound = bound_text(analysis, record);
  }
  kernel.covered_ns = record.covered_ns;
  return kernel;
}

RooflineMetrics roofline_of(const KernelCounters& kernel) {
  const RooflineInput& input = kernel.input;
  const Roofline& roof = kernel.roofline;
  return {input.dtype,
          input.flops,
          input.flops_reason,
          input.dram_bytes,
          roof.intensity_flops_per_byte,
          roof.flops_per_s,
          roof.dram_bytes_per_s,
          roof.l2_bytes_per_s,
          roof.l1_bytes_per_s,
          roof.roof_flops_per_s,
          roof.roof_bytes_per_s,
          kernel.roofs.source,
          roof.compute_fraction,
          roof.memory_fraction,
          roof.memory_level,
          input.no_eligible_fraction,
          input.theoretical_occupancy_fraction,
          input.achieved_occupancy_fraction,
          input.waves,
          input.stalls};
}

CounterMetrics counter_of(const Analysis& analysis, const KernelCounters& kernel) {
  CounterMetrics metrics;
  metrics.kernel_name = kernel.kernel_name;
  metrics.short_name = kernel.short_name;
  metrics.device_name = kernel.device_name;
  metrics.stage = kernel.stage;
  // Without a launch shape, grid and block stay empty.
  if (kernel.shape) {
    const auto& [grid, block] = *kernel.shape;
    metrics.grid = {grid[0], grid[1], grid[2]};
    metrics.block = {block[0], block[1], block[2]};
  }
  metrics.match = match_name(kernel.match);
  metrics.match_reason = kernel.match_reason;
  metrics.covered_ns = kernel.covered_ns;
  metrics.covered_fraction = fraction_of(kernel.covered_ns, analysis.kernel_ns);
  if (!kernel.groups.empty()) {
    metrics.matched_kernel = analysis.launch_groups[kernel.groups.front()].kernel_name;
    metrics.confidence = confidence_name(kernel.representativeness.confidence);
  }
  metrics.confidence_reason = kernel.representativeness.reason;
  metrics.slowdown_under_ncu = kernel.representativeness.slowdown;
  metrics.ncu_duration_ns = kernel.input.duration_ns;
  metrics.ncu_sm_clock_hz = kernel.representativeness.ncu_clock_hz;
  metrics.ncu_clock_fraction = kernel.representativeness.clock_fraction;
  if (kernel.roofline.bound != BoundBy::kUnknown) {
    metrics.bound = bound_name(kernel.roofline.bound);
  }
  metrics.bound_reason = kernel.roofline.reason;
  metrics.winnable_ns = kernel.winnable_ns;
  metrics.roofline = roofline_of(kernel);
  return metrics;
}

CountersMetrics counters_of(const Analysis& analysis, const JoinedCounters& joined) {
  CountersMetrics counters{joined.tool_version, joined.clock_control, joined.coverage, {}};
  for (const KernelCounters& kernel : joined.kernels) {
    counters.kernels.push_back(counter_of(analysis, kernel));
  }
  return counters;
}

}  // namespace

std::optional<double> busy_fraction_of(const LedgerRow& row) {
  const Ledger& ledger = row.ledger;
  const std::int64_t busy_ns =
      ledger[Bucket::kCompute] + ledger[Bucket::kComm] + ledger[Bucket::kCopy];
  return row.base_ns() > 0 ? std::optional(fraction_of(busy_ns, row.base_ns())) : std::nullopt;
}

bool has_gpu_work(const Metrics& metrics) {
  return !metrics.devices.empty() || !metrics.kernels.empty();
}

Metrics metrics_of(const Analysis& analysis, const RunFacts& run) {
  Metrics metrics;
  metrics.verdict = verdict(analysis);
  metrics.capture = capture_of(analysis);
  metrics.capture.command = run.command;
  metrics.findings = analysis.findings.found;
  metrics.silent_rules = analysis.findings.silent;
  metrics.environment = run.environment;
  metrics.contract = run.contract;
  metrics.aggregates = latencies_of(analysis);
  metrics.aggregates.program_ns = run.program_ns;
  metrics.devices = analysis.devices;
  for (DeviceRow& device : metrics.devices) {
    if (const LedgerRow* row = busy_row_of(analysis, device.device)) {
      device.busy_stage = row->stage;
    }
  }
  metrics.copies = analysis.copies;
  metrics.kernel_chains = analysis.kernel_chains;
  metrics.stages = analysis.stages;
  metrics.steps = steps_of(analysis);
  metrics.rank_groups = analysis.rank_groups;
  if (!analysis.baseline.empty()) {
    metrics.baseline = analysis.baseline;
    metrics.overhead = analysis.overheads;
  }
  for (const LedgerRow& row : analysis.ledgers) {
    metrics.ledgers.push_back({row.ledger, row.stage, row.device, row.num_instances,
                               busy_fraction_of(row), row.base_ns()});
    for (const IdleRow& cause : row.causes) {
      metrics.idle_causes.push_back(
          {row.stage, row.device, kBucketNames[static_cast<std::size_t>(cause.bucket)],
           kIdleKindNames[static_cast<std::size_t>(cause.label.kind)], cause.label.call,
           cause.label.scope, cause.num_gaps, cause.total_ns, cause.in_call_ns, cause.longest_ns});
    }
  }
  metrics.efficiency = analysis.efficiency;
  metrics.families = analysis.families;
  const RowGroups groups = groups_by_row(analysis);
  for (const KernelRow& record : analysis.kernels) {
    metrics.kernels.push_back(kernel_of(analysis, groups, record));
  }
  metrics.unmatched_names = analysis.unmatched_names;
  if (analysis.operators) {
    metrics.operators = analysis.operators;
    metrics.gemm_rates = analysis.operators->rates.products;
    metrics.collective_rates = analysis.operators->rates.collectives;
  }
  metrics.graph_names = analysis.graph_names;
  metrics.possible_marks = analysis.possible_marks;
  // Programs may name every range differently; the rest is in `gpuwhy table ranges`.
  constexpr std::size_t kMostRanges = 100;
  metrics.ranges.assign(analysis.ranges.begin(),
                        analysis.ranges.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                      kMostRanges, analysis.ranges.size())));
  metrics.host_phases = analysis.host_phases;
  metrics.compositions = analysis.compositions;
  metrics.requests = analysis.requests;
  metrics.structure = analysis.structure;
  if (analysis.counters) {
    metrics.counters = counters_of(analysis, *analysis.counters);
  }
  metrics.data_quality = analysis.diagnostics;
  metrics.tool_messages = analysis.capture.messages;
  return metrics;
}

std::string bound_text(const Analysis& analysis, const KernelRow& record) {
  if (!analysis.counters || !record.counters) {
    return "n/a";
  }
  return bound_name(analysis.counters->kernels[*record.counters].roofline.bound);
}

}  // namespace gpuwhy
