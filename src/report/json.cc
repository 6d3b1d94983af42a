// SPDX-License-Identifier: Apache-2.0
//
// metrics.json: the numbers, in base units, with their names. Times are whole nanoseconds. What
// could not be measured is null with its reason beside it.
#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "report/origins.h"
#include "report/report.h"

namespace llmprof {
namespace {

Json ledger_json(const StageLedger& stage) {
  Json buckets = Json::object();
  for (std::size_t i = 0; i < kNumBuckets; ++i) {
    buckets[kBucketNames[i]] = stage.ledger.buckets_ns[i];
  }
  return {{"stage", stage.stage},
          {"device", stage.device},
          {"instances", stage.num_instances},
          {"window_ns", stage.ledger.window_ns},
          {"lead_ns", stage.ledger.lead_ns},
          {"sync_held_ns", stage.ledger.sync_held_ns},
          {"after_launch_ns", stage.ledger.after_launch_ns},
          {"buckets_ns", buckets}};
}

Json stage_json(const StageSummary& stage) {
  return {{"stage", stage.stage},
          {"nested", stage.is_nested},
          {"instances", stage.num_instances},
          {"open", stage.num_open},
          {"host_total_ns", stage.total_ns},
          {"host_min_ns", stage.min_ns},
          {"host_median_ns", stage.median_ns},
          {"host_max_ns", stage.max_ns},
          {"host_first_ns", stage.first_ns},
          {"host_steady_mean_ns", number_or_null(stage.steady_mean_ns)},
          {"kernel_ns", stage.kernel_ns},
          {"kernels", stage.num_kernels},
          {"graph_kernels", stage.num_graph_kernels},
          {"tokens", number_or_null(stage.tokens)}};
}

Json overhead_json(const StageOverhead& overhead) {
  return {{"stage", overhead.stage},
          {"baseline_mean_ns", overhead.baseline_mean_ns},
          {"profiled_mean_ns", overhead.profiled_mean_ns},
          {"overhead_fraction", overhead.fraction}};
}

Json kernel_json(const Analysis& analysis, const KernelRecord& kernel) {
  constexpr std::size_t kMostShapes = 8;
  Json shapes = Json::array();
  for (const LaunchShape& shape : kernel.shapes) {
    if (shapes.size() < kMostShapes) {
      shapes.push_back(shape.text());
    }
  }
  Json histogram = Json::array();
  for (const auto& [step, launches] : kernel.histogram) {
    histogram.push_back({step, launches});
  }
  return {{"kernel_name", kernel.kernel_name},
          {"short_name", kernel.short_name},
          {"device", kernel.device},
          {"stage", kernel.stage},
          {"family", kernel.family},
          {"total_ns", kernel.total_ns},
          {"calls", kernel.calls},
          {"mean_ns", fraction_of(kernel.total_ns, std::max<std::int64_t>(kernel.calls, 1))},
          {"kernel_fraction", fraction_of(kernel.total_ns, analysis.kernel_ns)},
          {"min_ns", kernel.min_ns},
          {"median_ns", kernel.median_ns},
          {"p99_ns", kernel.histogram.empty() ? Json(nullptr) : Json(kernel.p99_ns)},
          {"max_ns", kernel.max_ns},
          {"num_shapes", kernel.shapes.size()},
          {"shapes", shapes},
          {"histogram", histogram},
          {"bound", kernel.counters ? Json(bound_text(analysis, kernel)) : Json(nullptr)},
          {"covered_ns", kernel.covered_ns},
          {"covered_fraction", fraction_of(kernel.covered_ns, kernel.total_ns)}};
}

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "info";
    case Severity::kWarning:
      return "warning";
    case Severity::kDataLoss:
      return "data_loss";
  }
  return "";
}

// Lengths of one stage, or why there are none.
Json aggregate_json(const std::vector<StageTimes>& times, const char* stage, const char* reason) {
  const auto row = std::find_if(times.begin(), times.end(),
                                [&](const StageTimes& t) { return t.stage == stage && t.n > 0; });
  if (row == times.end()) {
    return {{"n", 0},
            {"mean_ns", nullptr},
            {"std_ns", nullptr},
            {"p50_ns", nullptr},
            {"p99_ns", nullptr},
            {"reason", reason}};
  }
  return {
      {"n", row->n},           {"mean_ns", row->mean_ns}, {"std_ns", number_or_null(row->std_ns)},
      {"p50_ns", row->p50_ns}, {"p99_ns", row->p99_ns},   {"reason", nullptr}};
}

// What users of a model wait for, without a profiler where that was measured.
Json aggregates_json(const Analysis& analysis) {
  const bool is_baseline = !analysis.baseline.empty();
  const std::vector<StageTimes>& times = is_baseline ? analysis.baseline : analysis.stage_times;
  const auto has = [&](const char* stage) {
    return std::any_of(times.begin(), times.end(),
                       [&](const StageTimes& t) { return t.stage == stage; });
  };
  const char* step = has("decode_step") ? "decode_step" : "decode";
  const auto decode = std::find_if(times.begin(), times.end(),
                                   [&](const StageTimes& t) { return t.stage == step; });
  return {{"source", times.empty() ? Json(nullptr)
                     : is_baseline ? Json("the pass without a profiler")
                                   : Json("the recording")},
          {"ttft", aggregate_json(times, "prefill", "no stage prefill was marked")},
          {"tpot", aggregate_json(times, step, "no decode step was marked")},
          {"decode_tokens_per_s",
           decode == times.end() ? Json(nullptr) : number_or_null(decode->tokens_per_s)}};
}

// Lengths in time order, for statistics that need them one by one. A long recording's first ones
// say as much of its noise as all would.
Json steps_json(const Analysis& analysis) {
  constexpr std::size_t kMostSteps = 4096;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> by_stage(analysis.stages.size());
  for (const StageStep& step : analysis.steps) {
    if (!step.is_open && step.stage < by_stage.size()) {
      by_stage[step.stage].emplace_back(step.start_ns, step.duration_ns);
    }
  }
  Json rows = Json::array();
  for (std::size_t i = 0; i < by_stage.size(); ++i) {
    std::sort(by_stage[i].begin(), by_stage[i].end());
    Json durations = Json::array();
    for (std::size_t k = 0; k < std::min(kMostSteps, by_stage[i].size()); ++k) {
      durations.push_back(by_stage[i][k].second);
    }
    rows.push_back({{"stage", analysis.stages[i].stage},
                    {"n", by_stage[i].size()},
                    {"durations_ns", durations}});
  }
  return rows;
}

}  // namespace

Json stage_times_json(const std::vector<StageTimes>& stages) {
  Json rows = Json::array();
  for (const StageTimes& stage : stages) {
    rows.push_back({{"stage", stage.stage},
                    {"n", stage.n},
                    {"open", stage.num_open},
                    {"total_ns", stage.total_ns},
                    {"mean_ns", stage.mean_ns},
                    {"std_ns", number_or_null(stage.std_ns)},
                    {"p50_ns", stage.p50_ns},
                    {"p99_ns", stage.p99_ns},
                    {"min_ns", stage.min_ns},
                    {"max_ns", stage.max_ns},
                    {"steady_mean_ns", number_or_null(stage.steady_mean_ns)},
                    {"tokens", number_or_null(stage.tokens)},
                    {"tokens_per_s", number_or_null(stage.tokens_per_s)}});
  }
  return rows;
}

Json metrics_json(const Analysis& analysis, const RunFacts& run) {
  Json document = json_document("metrics", 1);
  document["verdict"] = verdict(analysis);
  document["capture"] = {{"format", analysis.capture.format.name},
                         {"tool", analysis.capture.format.tool},
                         {"tool_version", analysis.capture.tool_version},
                         {"schema_version", analysis.capture.schema_version},
                         {"graph_mode", analysis.capture.graph_mode},
                         {"rank", number_or_null(analysis.capture.rank)},
                         {"world_size", number_or_null(analysis.capture.world_size)},
                         {"start_ns", analysis.capture_start_ns},
                         {"duration_ns", analysis.capture_ns},
                         {"kernel_ns", analysis.kernel_ns},
                         {"unattributed_kernel_ns", analysis.unattributed_ns},
                         {"opaque_graph_ns", analysis.opaque_graph_ns},
                         {"stage_overlap_ns", analysis.stage_overlap_ns},
                         {"outside_stages_ns", analysis.outside_ns},
                         {"stage_source", analysis.stage_source}};
  document["findings"] = findings_json(analysis.findings);
  document["silent_rules"] = Json::array();
  for (const SilentRule& rule : analysis.findings.silent) {
    document["silent_rules"].push_back({{"id", rule.id}, {"reason", rule.reason}});
  }
  document["environment"] = run.environment;
  document["contract"] = run.contract;
  document["aggregates"] = aggregates_json(analysis);
  document["devices"] = Json::array();
  for (const DeviceSummary& device : analysis.devices) {
    document["devices"].push_back(
        {{"device", device.device},
         {"name", text_or_null(device.name)},
         {"busy_ns", device.busy_ns},
         {"busy_fraction", fraction_of(device.busy_ns, analysis.capture_ns)},
         {"kernels", device.num_kernels},
         {"copy_ns", device.copy_ns},
         {"pageable_copy_ns", device.pageable_copy_ns}});
  }
  document["stages"] = Json::array();
  for (const StageSummary& stage : analysis.stages) {
    document["stages"].push_back(stage_json(stage));
  }
  document["steps"] = steps_json(analysis);
  document["baseline"] =
      analysis.baseline.empty() ? Json(nullptr) : stage_times_json(analysis.baseline);
  document["overhead"] = analysis.baseline.empty() ? Json(nullptr) : Json::array();
  for (const StageOverhead& overhead : analysis.overheads) {
    document["overhead"].push_back(overhead_json(overhead));
  }
  document["ledgers"] = Json::array();
  for (const StageLedger& ledger : analysis.ledgers) {
    document["ledgers"].push_back(ledger_json(ledger));
  }
  document["efficiency"] =
      analysis.efficiency ? efficiency_json(*analysis.efficiency) : Json(nullptr);
  document["families"] = Json::array();
  for (const FamilyTotal& family : analysis.families) {
    document["families"].push_back(
        {{"family", family.family}, {"total_ns", family.total_ns}, {"calls", family.calls}});
  }
  document["kernels"] = Json::array();
  for (const KernelRecord& kernel : analysis.kernels) {
    document["kernels"].push_back(kernel_json(analysis, kernel));
  }
  document["unmatched_names"] = analysis.unmatched_names;
  document["operators"] = analysis.operators ? operators_json(*analysis.operators) : Json(nullptr);
  // Programs may name every range differently; the rest is in `llmprof ranges`.
  constexpr std::size_t kMostRanges = 100;
  document["ranges"] = Json::array();
  for (const RangeTotal& range : analysis.ranges) {
    if (document["ranges"].size() < kMostRanges) {
      document["ranges"].push_back({{"range", range.range},
                                    {"instances", range.instances},
                                    {"kernels", range.kernels},
                                    {"kernel_ns", range.kernel_ns}});
    }
  }
  document["counters"] = counters_json(analysis);
  document["data_quality"] = Json::array();
  for (const Diagnostic& diagnostic : analysis.diagnostics) {
    document["data_quality"].push_back({{"kind", diagnostic.kind},
                                        {"severity", severity_name(diagnostic.severity)},
                                        {"count", diagnostic.count},
                                        {"sentence", diagnostic.sentence}});
  }
  document["tool_messages"] = analysis.capture.messages;
  document["origins"] = origins_json();
  return document;
}

}  // namespace llmprof
