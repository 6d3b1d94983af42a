// SPDX-License-Identifier: Apache-2.0
//
// The metrics of an analysis: its numbers in base units, with the ratios that need totals.
#include "report/metrics.h"

#include <algorithm>
#include <ctime>
#include <tuple>

#include <fmt/chrono.h>

#include "analysis/latencies.h"
#include "base/median.h"
#include "base/sort_runs.h"
#include "base/units.h"

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
  metrics.kernels = analysis.kernels;
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
  metrics.counters = analysis.counters;
  metrics.data_quality = analysis.diagnostics;
  metrics.tool_messages = analysis.capture.messages;
  return metrics;
}

}  // namespace gpuwhy
