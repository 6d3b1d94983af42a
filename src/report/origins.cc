// SPDX-License-Identifier: Apache-2.0
//
// Where does a number come from? One row for each kind of number in metrics.json; a test holds the
// table against real files, so that no number is without an answer. Definitions in full, with their
// known errors, are docs/metrics.md's.
#include "report/origins.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace llmprof {
namespace {

constexpr KeyOrigin kOrigins[] = {
    {"schema_version", "1", "", "", "schema", "the version of this file's form"},
    {"capture.rank", "1", "", "", "capture.rank", "as the recording says"},
    {"capture.world_size", "1", "", "", "capture.rank", "as the recording says"},
    {"capture.start_ns", "ns", "", "calls kernels copies graphs", "capture.start",
     "the first recorded call or GPU work, on the recording's clock"},
    {"capture.duration_ns", "ns", "", "calls kernels copies graphs", "capture.duration",
     "from the first recorded call or GPU work to the end of the last"},
    {"capture.kernel_ns", "ns", "", "kernels graphs", "capture.kernel_time",
     "sum of the durations of kernels and of graphs recorded as a whole"},
    {"capture.unattributed_kernel_ns", "ns", "", "kernels graphs calls marks",
     "capture.unattributed",
     "of the kernel time: launched in no stage, or with a launch that was not recorded"},
    {"capture.opaque_graph_ns", "ns", "", "graphs", "capture.opaque",
     "sum of the durations of graphs recorded as a whole"},
    {"capture.stage_overlap_ns", "ns", "", "marks kernels copies graphs", "capture.overlap",
     "stage windows, nested ones left out, minus their union"},
    {"capture.outside_stages_ns", "ns", "", "marks kernels copies graphs", "capture.outside",
     "of the duration: in no stage's window"},
    {"aggregates.ttft.*", "ns", "n", "baseline marks", "aggregates.ttft",
     "the lengths of stage prefill"},
    {"aggregates.tpot.*", "ns", "n", "baseline marks", "aggregates.tpot",
     "the lengths of decode steps"},
    {"aggregates.decode_tokens_per_s", "1/s", "", "baseline marks", "aggregates.rate",
     "tokens that decode marks carried, over the length of those marks"},
    {"environment.*", "1", "", "", "environment", "as the machine told when the run began"},
    {"environment.gpus[].*", "1", "", "", "environment", "as nvidia-smi told when the run began"},
    {"findings[].saving_ns", "ns", "", "", "findings.saving",
     "what fixing it saves at most; the keys under evidence hold it"},
    {"findings[].window_ns", "ns", "", "", "findings.window", "the window it is a part of"},
    {"findings[].saving_fraction", "fraction", "", "", "findings.saving", "saving_ns / window_ns"},
    {"devices[].busy_ns", "ns", "kernels", "kernels copies graphs", "devices.busy",
     "time in which at least one kernel, copy or graph runs; overlaps count once"},
    {"devices[].busy_fraction", "fraction", "kernels", "kernels copies graphs", "devices.busy",
     "busy_ns / capture.duration_ns"},
    {"devices[].kernels", "1", "", "kernels", "devices.kernels", "launches"},
    {"devices[].copy_ns", "ns", "", "copies", "devices.copies", "sum of copies and memsets"},
    {"devices[].pageable_copy_ns", "ns", "", "copies", "devices.copies",
     "of copy_ns: from or to pageable memory of the host"},
    {"stages[].instances", "1", "", "marks", "stages.instances", "marks of that stage"},
    {"stages[].open", "1", "instances", "marks", "stages.instances", "marks without an end"},
    {"stages[].host_total_ns", "ns", "instances", "marks", "stages.length",
     "sum of the marks' lengths"},
    {"stages[].host_min_ns", "ns", "instances", "marks", "stages.length", "the shortest"},
    {"stages[].host_median_ns", "ns", "instances", "marks", "stages.length", "the median"},
    {"stages[].host_max_ns", "ns", "instances", "marks", "stages.length", "the longest"},
    {"stages[].host_first_ns", "ns", "instances", "marks", "stages.length", "the first in time"},
    {"stages[].host_steady_mean_ns", "ns", "instances", "marks", "stages.length",
     "the mean of all but the first"},
    {"stages[].kernel_ns", "ns", "kernels", "kernels graphs calls marks", "stages.kernel_time",
     "sum of the kernels whose launching call began inside a mark, on the same thread or process"},
    {"stages[].kernels", "1", "", "kernels graphs calls marks", "stages.kernel_time",
     "those kernels"},
    {"stages[].graph_kernels", "1", "", "kernels graphs calls marks", "stages.kernel_time",
     "of those kernels, nodes of a CUDA graph"},
    {"stages[].tokens", "1", "instances", "marks", "stages.tokens",
     "sum of what the marks carried"},
    {"steps[].n", "1", "", "marks", "steps", "closed marks of that stage"},
    {"steps[].durations_ns[]", "ns", "n", "marks", "steps",
     "length of a mark, in time order, the first 4096"},
    {"baseline[].n", "1", "", "baseline", "baseline.length", "marks with an end"},
    {"baseline[].open", "1", "n", "baseline", "baseline.length", "marks without an end"},
    {"baseline[].tokens", "1", "n", "baseline", "baseline.tokens", "sum of what the marks carried"},
    {"baseline[].tokens_per_s", "1/s", "n", "baseline", "baseline.tokens",
     "tokens over the length of the marks that carried some"},
    {"baseline[].*", "ns", "n", "baseline", "baseline.length",
     "of the lengths of marks in the pass without a profiler"},
    {"overhead[].overhead_fraction", "fraction", "", "baseline marks", "overhead",
     "profiled_mean_ns / baseline_mean_ns - 1"},
    {"overhead[].*", "ns", "", "baseline marks", "overhead",
     "mean length of a stage, its first left out where both passes have several"},
    {"ledgers[].window_ns", "ns", "instances", "marks kernels copies graphs", "ledgers.window",
     "sum of windows: from a mark's start to its end or that of its last GPU work"},
    {"ledgers[].lead_ns", "ns", "instances", "marks calls kernels copies graphs", "ledgers.lead",
     "of launch_late: from a window's start to its first work"},
    {"ledgers[].sync_held_ns", "ns", "instances", "marks calls kernels copies graphs",
     "ledgers.parts", "of sync: from the start of a gap until the synchronising call returned"},
    {"ledgers[].after_launch_ns", "ns", "instances", "marks calls kernels copies graphs",
     "ledgers.parts", "of launch_late: from the return of the launching call to the end of a gap"},
    {"ledgers[].instances", "1", "", "marks", "ledgers.window", "windows"},
    {"ledgers[].buckets_ns.*", "ns", "instances", "marks calls kernels copies graphs",
     "ledgers.bucket", "each nanosecond of the windows is in one bucket, the first that applies"},
    {"efficiency.num_gpus", "1", "", "kernels", "efficiency.gpus",
     "GPUs with kernels, or as --tp says"},
    {"efficiency.peak_flops_per_s", "FLOP/s", "", "gpus", "efficiency.peak",
     "dense peak of one GPU in the type the linear layers execute in"},
    {"efficiency.peak_bytes_per_s", "bytes/s", "", "gpus", "efficiency.peak",
     "bandwidth of one GPU: the device's own, or the table's"},
    {"efficiency.stages[].passes", "1", "", "marks", "efficiency.work", "prompts or decode steps"},
    {"efficiency.stages[].tokens", "1", "", "marks", "efficiency.work", "tokens read or made"},
    {"efficiency.stages[].mean_context", "1", "passes", "marks", "efficiency.work",
     "tokens a decode step attends to, its own included"},
    {"efficiency.stages[].flops", "FLOP", "passes", "model marks", "efficiency.flops",
     "2 x multiply-adds of the model's matrix products for that work"},
    {"efficiency.stages[].executed_flops", "FLOP", "passes", "model marks", "efficiency.flops",
     "the same as usual kernels execute them"},
    {"efficiency.stages[].bytes", "bytes", "passes", "model marks", "efficiency.bytes",
     "weights touched once a pass at stored width, keys and values read and written"},
    {"efficiency.stages[].least_bytes", "bytes", "passes", "model marks", "efficiency.bytes",
     "the same if all tokens took the same experts"},
    {"efficiency.stages[].wall_ns", "ns", "passes", "marks kernels", "efficiency.time",
     "sum of the stage's windows, mean over GPUs"},
    {"efficiency.stages[].busy_ns", "ns", "passes", "marks kernels", "efficiency.time",
     "of wall_ns: in which a GPU ran work of the stage"},
    {"efficiency.stages[].pass_ns", "ns", "passes", "marks kernels", "efficiency.time",
     "wall_ns / passes"},
    {"efficiency.stages[].bound_ns", "ns", "passes", "model gpus marks", "efficiency.bound",
     "max(flops / peak, bytes / bandwidth) / GPUs"},
    {"efficiency.stages[].pass_bound_ns", "ns", "passes", "model gpus marks", "efficiency.bound",
     "bound_ns / passes"},
    {"efficiency.stages[].mfu.*", "fraction", "passes", "model gpus marks kernels",
     "efficiency.mfu", "flops / peak / GPUs / time"},
    {"efficiency.stages[].hfu.*", "fraction", "passes", "model gpus marks kernels",
     "efficiency.hfu", "executed_flops / peak / GPUs / time"},
    {"efficiency.stages[].mbu.*", "fraction", "passes", "model gpus marks kernels",
     "efficiency.mbu", "bytes / bandwidth / GPUs / time"},
    {"efficiency.stages[].sol.*", "fraction", "passes", "model gpus marks kernels",
     "efficiency.sol", "bound_ns / time"},
    {"efficiency.step_fit.outliers[].step", "1", "", "marks", "efficiency.step_fit",
     "from 0, in time"},
    {"efficiency.step_fit.outliers[].*", "ns", "", "marks", "efficiency.step_fit",
     "a step far from the line, and what the line says"},
    {"efficiency.step_fit.r_squared", "1", "steps", "marks", "efficiency.step_fit",
     "how much of the spread the line explains"},
    {"efficiency.step_fit.steps", "1", "", "marks", "efficiency.step_fit",
     "steps the line is fitted to"},
    {"efficiency.step_fit.num_outliers", "1", "steps", "marks", "efficiency.step_fit",
     "steps set aside"},
    {"efficiency.step_fit.*", "ns", "steps", "marks", "efficiency.step_fit",
     "least squares: length = fixed + per token made + per token attended to"},
    {"families[].total_ns", "ns", "calls", "kernels graphs", "families", "sum over its kernels"},
    {"families[].calls", "1", "", "kernels graphs", "families", "launches of its kernels"},
    {"kernels[].total_ns", "ns", "calls", "kernels calls marks", "kernels.total",
     "sum of the durations of its launches in that stage on that device"},
    {"kernels[].calls", "1", "", "kernels calls marks", "kernels.total", "launches"},
    {"kernels[].mean_ns", "ns", "calls", "kernels calls marks", "kernels.mean", "total_ns / calls"},
    {"kernels[].kernel_fraction", "fraction", "calls", "kernels", "kernels.share",
     "total_ns / capture.kernel_ns"},
    {"kernels[].min_ns", "ns", "calls", "kernels calls marks", "kernels.extremes", "the shortest"},
    {"kernels[].max_ns", "ns", "calls", "kernels calls marks", "kernels.extremes", "the longest"},
    {"kernels[].median_ns", "ns", "calls", "kernels calls marks", "kernels.percentile",
     "from the histogram, at most an eighth too high"},
    {"kernels[].p99_ns", "ns", "calls", "kernels calls marks", "kernels.percentile",
     "from the histogram, at most an eighth too high"},
    {"kernels[].num_shapes", "1", "calls", "kernels", "kernels.shapes",
     "different grids and blocks"},
    {"kernels[].covered_ns", "ns", "calls", "ncu kernels", "counters.covered",
     "of total_ns: launches whose counters were measured"},
    {"kernels[].covered_fraction", "fraction", "calls", "ncu kernels", "counters.covered",
     "covered_ns / total_ns"},
    {"kernels[].histogram[][]", "1", "calls", "kernels", "kernels.histogram",
     "step of a logarithmic scale, launches in it"},
    {"operators.covered_ns", "ns", "", "marks kernels", "operators", "sum of the rows"},
    {"operators.whole_ns", "ns", "", "marks kernels", "operators", "what the rows are a part of"},
    {"operators.rows[].share_fraction", "fraction", "calls", "marks kernels", "operators",
     "total_ns / operators.whole_ns"},
    {"operators.rows[].calls", "1", "", "marks", "operators", "calls of that operator"},
    {"operators.rows[].kernels", "1", "calls", "marks kernels", "operators",
     "kernels it launched itself"},
    {"operators.rows[].flops", "FLOP", "calls", "marks", "operators", "from the shapes"},
    {"operators.rows[].bytes", "bytes", "calls", "marks", "operators", "from the shapes"},
    {"operators.rows[].*", "ns", "calls", "marks kernels", "operators",
     "its own time, operators inside it left out"},
    {"operators.layers[].calls", "1", "", "marks kernels", "operators",
     "calls of operators of that layer"},
    {"operators.layers[].*", "ns", "calls", "marks kernels", "operators", "sum over that layer"},
    {"ranges[].instances", "1", "", "marks", "ranges", "push/pop ranges of that name"},
    {"ranges[].kernels", "1", "instances", "marks calls kernels", "ranges",
     "kernels launched inside"},
    {"ranges[].kernel_ns", "ns", "kernels", "marks calls kernels", "ranges",
     "sum of their durations"},
    {"counters.coverage[].fraction", "fraction", "", "ncu kernels", "counters.covered",
     "covered_ns / kernel_ns"},
    {"counters.coverage[].*", "ns", "", "ncu kernels", "counters.covered",
     "kernel time of the stage, and of it with measured counters"},
    {"counters.kernels[].covered_ns", "ns", "", "ncu kernels", "counters.covered",
     "kernel time of the launches this result stands for"},
    {"counters.kernels[].covered_fraction", "fraction", "", "ncu kernels", "counters.covered",
     "covered_ns / capture.kernel_ns"},
    {"counters.kernels[].winnable_ns", "ns", "", "ncu kernels gpus", "counters.winnable",
     "covered_ns x (1 - the nearest ceiling's fraction)"},
    {"counters.kernels[].ncu_duration_ns", "ns", "", "ncu", "counters.raw", "as ncu measured it"},
    {"counters.kernels[].slowdown_under_ncu", "1", "", "ncu kernels", "counters.transfer",
     "ncu's duration over the median of the recording's launches"},
    {"counters.kernels[].ncu_sm_clock_hz", "1/s", "", "ncu", "counters.raw", "as ncu measured it"},
    {"counters.kernels[].ncu_clock_fraction", "fraction", "", "ncu gpus", "counters.transfer",
     "of the GPU's boost clock"},
    {"counters.kernels[].grid[]", "1", "", "ncu", "counters.raw", "blocks in each direction"},
    {"counters.kernels[].block[]", "1", "", "ncu", "counters.raw", "threads in each direction"},
    {"counters.kernels[].roofline.*", "1", "", "ncu gpus", "counters.roofline",
     "from ncu's metrics of one launch; ceilings from ncu or the table of GPUs"},
    {"data_quality[].count", "1", "", "", "data_quality", "rows it is about"},
};

// A name, "*" for any one, or a whole part behind the last dot.
bool fits(std::string_view pattern, std::string_view key) {
  if (!pattern.ends_with('*')) {
    return pattern == key;
  }
  pattern.remove_suffix(1);
  return key.starts_with(pattern) && key.find('.', pattern.size()) == std::string_view::npos;
}

}  // namespace

const KeyOrigin* origin_of(std::string_view pattern) {
  const auto* found = std::find_if(std::begin(kOrigins), std::end(kOrigins),
                                   [&](const KeyOrigin& row) { return fits(row.keys, pattern); });
  return found == std::end(kOrigins) ? nullptr : found;
}

Json origins_json() {
  Json rows = Json::array();
  for (const KeyOrigin& origin : kOrigins) {
    Json sources = Json::array();
    for (const std::string_view source : split(origin.sources, ' ')) {
      if (!source.empty()) {
        sources.push_back(source);
      }
    }
    rows.push_back({{"keys", origin.keys},
                    {"unit", origin.unit},
                    {"count_key", text_or_null(origin.count)},
                    {"sources", sources},
                    {"formula", origin.formula}});
  }
  return rows;
}

std::string source_text(std::string_view source, const FormatInfo& format) {
  const std::pair<std::string_view, std::string_view> texts[] = {
      {"kernels", format.kernels},
      {"copies", format.copies},
      {"graphs", format.graphs},
      {"calls", format.calls},
      {"marks", format.marks},
      {"baseline", "stage1/ranges.csv"},
      {"ncu", "ncu's reports"},
      {"model", "the model's configuration"},
      {"gpus", "conf/hardware/gpus.yaml"},
  };
  const auto* found = std::find_if(std::begin(texts), std::end(texts),
                                   [&](const auto& row) { return row.first == source; });
  return std::string(found == std::end(texts) ? source : found->second);
}

}  // namespace llmprof
