// SPDX-License-Identifier: Apache-2.0
//
// The analysis as a list of passes. Each reads the trace and what came before, and adds its part.
#include "analysis/analysis.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/attribution.h"
#include "analysis/kernels.h"
#include "analysis/ledger.h"
#include "analysis/ranges.h"
#include "analysis/stages.h"
#include "analysis/timeline.h"

namespace llmprof {
namespace {

// The recording's extent: from the first event of any kind to the last. Ranges that never ended do
// not stretch it.
struct Extent {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;

  template <typename Table>
  void cover(const Table& table) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      start_ns = std::min(start_ns, table.start_ns[row]);
      if (table.end_ns[row] != kOpenEnd) {
        end_ns = std::max(end_ns, table.end_ns[row]);
      }
    }
  }
};

Extent extent_of(const Trace& trace) {
  Extent extent;
  extent.cover(trace.kernels);
  extent.cover(trace.copies);
  extent.cover(trace.graphs);
  extent.cover(trace.api_calls);
  if (extent.end_ns < extent.start_ns) {
    extent.cover(trace.ranges);  // no CUDA at all: the ranges are what there is
  }
  return extent.end_ns < extent.start_ns ? Extent{0, 0} : extent;
}

std::int64_t lower_median(std::vector<std::int64_t> values) {
  if (values.empty()) {
    return 0;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<StageSummary> summarise_stages(const Stages& stages) {
  std::vector<StageSummary> summaries(stages.names.size());
  std::vector<std::vector<std::int64_t>> durations(stages.names.size());
  std::vector<std::int64_t> first_start(stages.names.size(), INT64_MAX);
  for (std::size_t i = 0; i < stages.names.size(); ++i) {
    summaries[i].stage = stages.names[i];
    summaries[i].is_nested = stages.is_nested[i];
  }
  for (const StageInstance& instance : stages.instances) {
    StageSummary& summary = summaries[instance.stage];
    ++summary.num_instances;
    if (instance.tokens) {
      summary.tokens = summary.tokens.value_or(0) + *instance.tokens;
    }
    if (instance.is_open) {
      ++summary.num_open;
    } else {
      const std::int64_t duration = instance.end_ns - instance.start_ns;
      durations[instance.stage].push_back(duration);
      if (instance.start_ns < first_start[instance.stage]) {
        first_start[instance.stage] = instance.start_ns;
        summary.first_ns = duration;
      }
    }
  }
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    for (const std::int64_t duration : durations[i]) {
      summaries[i].total_ns += duration;
      summaries[i].max_ns = std::max(summaries[i].max_ns, duration);
    }
    if (durations[i].size() > 1) {
      summaries[i].steady_mean_ns = (summaries[i].total_ns - summaries[i].first_ns) /
                                    static_cast<std::int64_t>(durations[i].size() - 1);
    }
    if (!durations[i].empty()) {
      summaries[i].min_ns = *std::min_element(durations[i].begin(), durations[i].end());
      summaries[i].median_ns = lower_median(std::move(durations[i]));
    }
  }
  return summaries;
}

std::vector<StageStep> steps_of(const Stages& stages) {
  std::vector<StageStep> steps;
  steps.reserve(stages.instances.size());
  for (const StageInstance& instance : stages.instances) {
    const bool is_step = stages.names[instance.stage] == "decode_step" || stages.are_steps;
    steps.push_back({instance.stage, instance.start_ns, instance.end_ns - instance.start_ns,
                     instance.is_open, is_step, instance.tokens, instance.sequences});
  }
  return steps;
}

// Kernels and opaque graphs of each stage; nested stages count theirs again, inside.
template <typename Table>
void add_kernel_time(const Stages& stages, const Origins& origins, const Table& table,
                     std::vector<StageSummary>& summaries) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    bool is_graph = true;
    if constexpr (requires { table.is_graph_node; }) {
      is_graph = table.is_graph_node[row] != 0;
    }
    for (const std::uint32_t instance : {origins.instance[row], origins.nested[row]}) {
      if (instance != kNone) {
        StageSummary& summary = summaries[stages.instances[instance].stage];
        summary.kernel_ns += table.end_ns[row] - table.start_ns[row];
        ++summary.num_kernels;
        summary.num_graph_kernels += is_graph ? 1 : 0;
      }
    }
  }
}

// By StringId: kernels whose family is one of these.
template <std::size_t N>
std::vector<bool> names_in(const Trace& trace, const Rules& rules,
                           const std::array<std::string_view, N>& families) {
  std::vector<bool> is_in(trace.strings.size());
  std::vector<bool> is_kernel(trace.strings.size());
  for (const StringId name : trace.kernels.name) {
    is_kernel[static_cast<std::size_t>(name)] = true;
  }
  for (std::size_t id = 0; id < is_kernel.size(); ++id) {
    is_in[id] =
        is_kernel[id] &&
        std::find(families.begin(), families.end(),
                  family_of(rules, trace.strings[static_cast<StringId>(id)])) != families.end();
  }
  return is_in;
}

// Only a model's steps run these; loading weights runs copies and fills.
constexpr std::array<std::string_view, 4> kModelFamilies = {"gemm", "gemv", "attention", "moe"};
constexpr std::array<std::string_view, 1> kCommunicationFamilies = {kCommunication};

void add_orphans(const Origins& origins, std::size_t num_kernels, Diagnostics& diagnostics) {
  const auto orphans = std::count(origins.call.begin(), origins.call.end(), kNone);
  if (orphans > 0) {
    diagnostics.push_back(
        {"orphan_kernel", Severity::kWarning, orphans,
         fmt::format("{} of {} kernels have no recorded launch: they began before "
                     "the capture, or their process was not traced",
                     orphans, num_kernels)});
  }
}

}  // namespace

Analysis analyze(const Trace& trace, const Rules& rules, PassTimer* timer, Timeline* timeline,
                 const TimelineOptions* picture) {
  const PassTimer::Scope whole(timer, "analyze");
  Analysis analysis;
  analysis.capture = trace.capture;
  analysis.diagnostics = trace.diagnostics;
  const Extent extent = extent_of(trace);
  analysis.capture_start_ns = extent.start_ns;
  analysis.capture_ns = extent.end_ns - extent.start_ns;

  // Where are prefill and decode?
  const Stages stages = find_stages(trace, rules, extent.start_ns, extent.end_ns);
  analysis.stage_source = stages.source;
  analysis.stages = summarise_stages(stages);
  analysis.stage_times = time_stages(stages);
  analysis.steps = steps_of(stages);

  // Which stage launched each kernel?
  const Attribution attribution = [&] {
    const PassTimer::Scope pass(timer, "attribute");
    return attribute(trace, stages);
  }();
  add_orphans(attribution.kernels, trace.kernels.size(), analysis.diagnostics);
  add_kernel_time(stages, attribution.kernels, trace.kernels, analysis.stages);
  add_kernel_time(stages, attribution.graphs, trace.graphs, analysis.stages);

  // Which kernels cost what? From here on: the times of the stages and `outside` sum to kernel_ns.
  {
    const PassTimer::Scope pass(timer, "kernels");
    summarise_kernels(trace, rules, stages, attribution, analysis);
  }

  // Which launches are alike?
  {
    const PassTimer::Scope pass(timer, "launch groups");
    analysis.launch_groups = group_launches(trace, rules, stages, attribution);
  }

  // What did each NVTX range launch?
  {
    const PassTimer::Scope pass(timer, "ranges");
    analysis.ranges = summarise_ranges(trace, attribution);
  }

  // Which operators of the framework launched the kernels?
  {
    const PassTimer::Scope pass(timer, "operators");
    analysis.operators = summarise_operators(trace, stages, attribution, analysis.kernel_ns);
  }

  // What a picture of it needs; the gaps come with the ledger.
  std::optional<TimelineMaker> maker;
  if (timeline != nullptr) {
    const PassTimer::Scope pass(timer, "timeline");
    maker.emplace(trace, rules, stages, attribution, extent.start_ns, extent.end_ns,
                  picture == nullptr ? TimelineOptions{} : *picture);
  }

  // Where did each nanosecond go? From here on: the buckets of every ledger sum to its window.
  LedgerResult ledgers = [&] {
    const PassTimer::Scope pass(timer, "ledger");
    return make_ledgers(trace, stages, attribution, names_in(trace, rules, kCommunicationFamilies),
                        extent.start_ns, extent.end_ns, names_in(trace, rules, kModelFamilies),
                        maker ? maker->gap_sink() : GapSink());
  }();
  if (maker) {
    const PassTimer::Scope pass(timer, "timeline");
    *timeline = maker->finish();
  }
  analysis.ledgers = std::move(ledgers.stages);
  analysis.ledgers.insert(analysis.ledgers.end(), ledgers.phases.begin(), ledgers.phases.end());
  analysis.ledgers.insert(analysis.ledgers.end(), ledgers.capture.begin(), ledgers.capture.end());
  analysis.ledger_history = std::move(ledgers.history);
  analysis.stage_overlap_ns = ledgers.overlap_ns;
  analysis.outside_ns = ledgers.outside_ns;

  std::vector<std::int64_t> num_kernels(trace.devices.size());
  for (const std::uint16_t device : trace.kernels.device) {
    ++num_kernels[device];
  }
  for (std::size_t i = 0; i < trace.devices.size(); ++i) {
    const DeviceInfo& device = trace.devices[i];
    analysis.devices.push_back({fmt::format("cuda:{}", device.ordinal), device.name,
                                ledgers.busy_ns[i], num_kernels[i], device.num_sms,
                                static_cast<std::int64_t>(device.memory_bytes),
                                static_cast<std::int64_t>(device.memory_bytes_per_s), 0, 0});
  }
  for (std::size_t row = 0; row < trace.copies.size(); ++row) {
    DeviceSummary& device = analysis.devices[trace.copies.device[row]];
    const std::int64_t time_ns = trace.copies.end_ns[row] - trace.copies.start_ns[row];
    const CopyKind kind = trace.copies.kind[row];
    device.copy_ns += time_ns;
    const bool is_pageable =
        kind == CopyKind::kPageableToDevice || kind == CopyKind::kDeviceToPageable;
    device.pageable_copy_ns += is_pageable ? time_ns : 0;
  }
  std::sort(analysis.devices.begin(), analysis.devices.end(),
            [](const DeviceSummary& a, const DeviceSummary& b) { return a.device < b.device; });
  return analysis;
}

}  // namespace llmprof
