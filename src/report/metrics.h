// SPDX-License-Identifier: Apache-2.0
//
// All results of a run: metrics.json as structs.
//
// All other outputs are derived from this struct, so none can show a figure that the file does not
// have. Keys, units and meanings of the members are in report/metric_fields.h. A null in JSON is a
// std::optional or an empty text. Members added later are std::optional, because older files lack
// them.
#pragma once

#include <algorithm>
#include <array>
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
#include "base/units.h"
#include "report/worth.h"
#include "results/copy.h"
#include "results/device.h"
#include "results/latency.h"
#include "results/operator.h"
#include "results/range.h"
#include "results/rank_group.h"
#include "results/run_facts.h"

namespace gpuwhy {

// The part of the recording that was analyzed.
struct WindowMetrics {
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  std::string why;
};

// One of the files of a job that were analyzed together.
struct FileMetrics {
  std::string file;
  std::optional<std::int64_t> rank;
  std::vector<std::string> devices;
  std::int64_t shift_ns = 0;
  bool is_aligned = true;
  std::string clock;
};

// The recording as a whole.
struct CaptureMetrics {
  std::string command;   // that gpuwhy run ran, without secrets; empty: it is not known
  std::string file;      // without its folders
  std::string recorded;  // "2026-11-02 14:03:05 UTC"; empty: the recording does not say
  std::string format;
  std::string tool;  // older files do not name it
  std::string tool_version;
  std::string schema_version;
  std::string graph_mode;
  std::optional<std::int64_t> rank;
  std::optional<std::int64_t> world_size;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t kernel_ns = 0;
  std::int64_t unattributed_kernel_ns = 0;
  std::int64_t opaque_graph_ns = 0;
  std::int64_t stage_overlap_ns = 0;
  std::int64_t outside_stages_ns = 0;
  std::int64_t num_calls = 0;
  std::int64_t num_numbered_calls = 0;
  std::int64_t num_captured_launches = 0;
  std::string stage_source;
  std::optional<WindowMetrics> window;
  std::optional<std::vector<FileMetrics>> files;
};

// Lengths of a stage's instances.
struct StepRow {
  RowName stage;
  std::int64_t n = 0;
  std::vector<std::int64_t> durations_ns;  // in time order, the first kMostDurations
  std::optional<std::int64_t> gpu_window_median_ns;
  std::optional<std::int64_t> gpu_work_median_ns;
  std::optional<std::int64_t> period_median_ns;
  std::optional<std::vector<std::int64_t>> periods_ns;  // in time order, the first kMostDurations
};

// Launches of a kernel with one grid and block.
struct ShapeTotal {
  std::string shape;
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;

  double mean_ns() const { return fraction_of(total_ns, std::max<std::int64_t>(calls, 1)); }
};

// A row of the kernel table.
struct KernelMetrics {
  std::string kernel_name;
  std::string short_name;
  std::string device;
  RowName stage;
  std::string family;
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  double kernel_fraction = 0;
  std::int64_t min_ns = 0;
  std::int64_t median_ns = 0;
  std::optional<std::int64_t> p99_ns;
  std::int64_t max_ns = 0;
  std::int64_t num_shapes = 0;
  std::vector<std::string> shapes;
  std::optional<std::int64_t> steady_ns;
  std::vector<ShapeTotal> by_shape;  // of several; the largest total first
  std::vector<std::pair<std::int64_t, std::int64_t>> histogram;
  std::string bound;
  std::int64_t covered_ns = 0;

  double mean_ns() const { return fraction_of(total_ns, std::max<std::int64_t>(calls, 1)); }
  double covered_fraction() const { return fraction_of(covered_ns, total_ns); }
};

// Roofline of one profiled launch.
struct RooflineMetrics {
  std::string dtype;
  std::optional<double> flops;
  std::string flops_reason;
  std::optional<double> dram_bytes;
  std::optional<double> intensity_flops_per_byte;
  std::optional<double> flops_per_s;
  std::optional<double> dram_bytes_per_s;
  std::optional<double> l2_bytes_per_s;
  std::optional<double> l1_bytes_per_s;
  std::optional<double> roof_flops_per_s;
  std::optional<double> roof_bytes_per_s;
  std::string roof_source;
  std::optional<double> compute_fraction;
  std::optional<double> memory_fraction;
  std::string memory_level;
  std::optional<double> no_eligible_fraction;
  std::optional<double> theoretical_occupancy_fraction;
  std::optional<double> achieved_occupancy_fraction;
  std::optional<double> waves;
  std::vector<StallReason> stalls;
};

// A launch that ncu profiled.
struct CounterMetrics {
  std::string kernel_name;
  std::string short_name;
  std::string device_name;
  RowName stage;
  std::optional<std::array<std::int64_t, 3>> grid;
  std::optional<std::array<std::int64_t, 3>> block;
  std::string match;
  std::string match_reason;
  std::string matched_kernel;
  std::int64_t covered_ns = 0;
  double covered_fraction = 0;
  std::string confidence;
  std::string confidence_reason;
  std::optional<double> slowdown_under_ncu;
  std::optional<double> ncu_duration_ns;
  std::optional<double> ncu_sm_clock_hz;
  std::optional<double> ncu_clock_fraction;
  std::string bound;
  std::string bound_reason;
  std::optional<double> winnable_ns;
  RooflineMetrics roofline;
};

// All counters.
struct CountersMetrics {
  std::string tool_version;
  std::string clock_control;
  std::vector<StageCoverage> coverage;
  std::vector<CounterMetrics> kernels;
};

// The whole file.
struct Metrics {
  Verdict verdict;
  CaptureMetrics capture;
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
  std::vector<KernelMetrics> kernels;
  std::vector<std::string> unmatched_names;
  std::optional<Operators> operators;
  std::vector<GemmRate> gemm_rates;
  std::vector<CollectiveRate> collective_rates;
  std::optional<GraphNames> graph_names;
  std::vector<RangeTotal> ranges;
  std::vector<HostPhase> host_phases;
  std::vector<PossibleMark> possible_marks;
  std::optional<CountersMetrics> counters;
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

inline constexpr std::size_t kMostDurations = 4096;  // of a stage: they tell the noise of all

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

// The bottleneck of a kernel's row, e.g. "memory"; "n/a" if no counters cover it.
std::string bound_text(const Analysis& analysis, const KernelRow& record);

}  // namespace gpuwhy
