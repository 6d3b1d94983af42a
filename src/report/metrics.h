// SPDX-License-Identifier: Apache-2.0
//
// All results of a run: metrics.json as structs.
//
// All other outputs are derived from this struct, so none can show a figure that the file does not
// have. Keys, units and meanings of the members are in report/metric_fields.h. A null in JSON is a
// std::optional or an empty text. Members added later are std::optional, because older files lack
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/requests/requests.h"
#include "analysis/timeline.h"
#include "base/json_fwd.h"
#include "report/worth.h"
#include "results/latency.h"
#include "results/run_facts.h"

namespace gpuwhy {

// The whole file.
struct Metrics {
  Verdict verdict;
  CaptureRow capture;
  std::vector<Finding> findings;
  std::vector<SilentRule> silent_rules;
  std::optional<Environment> environment;
  std::optional<std::vector<BreachRow>> contract;
  Latencies aggregates;
  std::vector<DeviceRow> devices;
  std::vector<CopyRow> copies;
  std::vector<KernelChains> kernel_chains;
  std::vector<StageRow> stages;
  std::vector<StepRow> steps;
  std::vector<Composition> compositions;
  std::optional<RequestsSummary> requests;
  std::optional<StructureSummary> structure;
  std::optional<std::vector<RankGroupSummary>> rank_groups;
  std::optional<std::vector<StageTimes>> baseline;
  std::optional<std::vector<StageOverhead>> overhead;
  std::vector<LedgerRow> ledgers;
  std::vector<IdleRow> idle_causes;
  std::optional<Efficiency> efficiency;
  std::vector<FamilyRow> families;
  std::vector<KernelRow> kernels;
  std::vector<std::string> unmatched_names;
  std::optional<Operators> operators;
  std::vector<GemmRate> gemm_rates;
  std::vector<CollectiveRate> collective_rates;
  std::optional<GraphNames> graph_names;
  std::vector<RangeTotal> ranges;
  std::vector<HostPhase> host_phases;
  std::vector<PossibleMark> possible_marks;
  std::optional<CountersRow> counters;
  Diagnostics data_quality;
  std::vector<std::string> tool_messages;
};

// The pass without a profiler.
struct UnprofiledRun {
  std::int64_t wall_ns = 0;
  int exit_code = 0;
  std::size_t num_processes = 0;
  std::uint64_t num_lost_ranges = 0;
  std::string stage_source;  // empty: no stage is marked
};

// Whether GPU work was recorded. A summary of kernels has some and names no GPU.
bool has_gpu_work(const Metrics& metrics);

// Structs first, JSON from them: both forms always agree.
Metrics metrics_of(const Analysis& analysis, const RunFacts& run = {});

// The form of metrics.json. Keys that are only added do not raise it. Form 1 had `origins` too.
inline constexpr int kMetricsVersion = 2;

Json metrics_json(const Metrics& metrics);
Json metrics_json(const Analysis& analysis, const RunFacts& run = {});
std::string metrics_json_text(const Metrics& metrics);

// Throws kInput, naming the key, if a value has another type than its member. Missing keys leave
// their member unchanged; unknown keys are ignored.
Metrics metrics_from_json(const Json& json);

// Gives a metrics.json of an earlier form the one of today.
void make_current(Json& metrics);

// baseline/metrics.json: the stages as in `baseline` of metrics.json.
std::string unprofiled_json(const UnprofiledRun& run, const std::vector<StageTimes>& stages);

// What a capture lacks, as in `contract` of metrics.json and in a manifest.
Json contract_json(const std::vector<BreachRow>& breaches);

// Kernels in a file, where nobody says how many: that of run.top_n_kernels.
inline constexpr std::size_t kKernelRows = 20;

// The files of a report, in the order of writing: metrics.json itself, report.html, report.md,
// stakeholder_summary.md, kernels.md, operators.md.
std::vector<std::string> report_file_names();
// Names and contents. `beside` are other files that the reports link to. A
// timeline of zero length means that there is none. With a price of a GPU-hour they say
// what a saving is worth. report.md and kernels.md have as many kernels.
std::vector<std::pair<std::string, std::string>> report_files(
    const Metrics& metrics, const std::vector<std::string>& beside, const Timeline& timeline,
    PassTimer* timer = nullptr, const std::optional<GpuPrice>& price = {},
    std::size_t kernel_rows = kKernelRows);
// report.html alone, which links to no other file.
std::string report_page(const Metrics& metrics, const Timeline& timeline);

// One line per request with the parts of its time to first token, in file order; and one per late
// token.
std::string requests_csv(const JoinedRequests& joined);
std::string late_tokens_csv(const JoinedRequests& joined);


}  // namespace gpuwhy
