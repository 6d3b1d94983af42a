// SPDX-License-Identifier: Apache-2.0
//
// Field descriptions of capture, findings, stages and ledgers: see metric_fields.h.
#pragma once

#include "report/metrics.h"
#include "results/field.h"

namespace gpuwhy {

inline constexpr const char* kFindingIds[] = {"no_gpu_activity",
                                              "graph_opaque",
                                              "data_loss",
                                              "impossible_rows",
                                              "graph_capture",
                                              "calls_missing",
                                              "few_kernels",
                                              "largest_part",
                                              "graph_idle",
                                              "unrecorded_work",
                                              "unfused_attention",
                                              "flash_attention_2",
                                              "layout_conversion",
                                              "empty_sms",
                                              "launch_bound",
                                              "host_work",
                                              "allocation",
                                              "blocked_call",
                                              "first_use",
                                              "idle_at_start",
                                              "host_sync",
                                              "exposed_comm",
                                              "exposed_copy",
                                              "queue_wait",
                                              "started_late",
                                              "rank_skew",
                                              "gemm_off_tensor_cores",
                                              "fusion",
                                              "sampling",
                                              "kv_cache_copy",
                                              "decode_off_memory_roof",
                                              "prefill_off_compute_roof",
                                              "low_occupancy",
                                              "attention_off_roof",
                                              "gemv_memory_bound",
                                              "profiler_overhead",
                                              "first_range_stretch",
                                              "other_family",
                                              "other_gpu_users",
                                              "clocks_not_locked"};
inline constexpr const char* kConfidences[] = {"high", "medium", "low"};

template <typename F>
void describe(const WindowMetrics*, F&& f) {
  using T = WindowMetrics;
  f("from_ns", &T::from_ns,
    is_signed(number("ns", "", "calls kernels copies graphs", "capture.window",
                     "its start, after the start of the whole recording")));
  f("to_ns", &T::to_ns,
    number("ns", "", "calls kernels copies graphs", "capture.window",
           "its end, after the start of the whole recording"));
  f("why", &T::why, plain("how it was chosen"));
}

template <typename F>
void describe(const FileMetrics*, F&& f) {
  using T = FileMetrics;
  f("file", &T::file, names_row("its name, or its path where names are alike"));
  f("rank", &T::rank,
    number("1", "", "", "capture.files", "of its name, or as the recording says"));
  f("devices", &T::devices, plain("its GPUs; renumbered where two files use the same number"));
  f("shift_ns", &T::shift_ns,
    is_signed(number("ns", "", "", "capture.files",
                     "added to its times, to have them on the clock of the first file")));
  f("is_aligned", &T::is_aligned, plain("whether its times can be compared with the first file's"));
  f("clock", &T::clock, plain("how its clock was aligned"));
}

template <typename F>
void describe(const CaptureMetrics*, F&& f) {
  using T = CaptureMetrics;
  f("command", &T::command,
    maybe("the command line that gpuwhy run ran, without secrets; null for a recording"));
  f("file", &T::file, plain("the recording's name, without its folders; of several, the first"));
  f("recorded", &T::recorded,
    plain("when the first recorded call or GPU work was, in UTC, where the recording says"));
  f("format", &T::format, plain("the format of the recording"));
  f("tool", &T::tool, plain("the tool that recorded"));
  f("tool_version", &T::tool_version, plain("its version"));
  f("schema_version", &T::schema_version, plain("the version of the recording's own schema"));
  f("graph_mode", &T::graph_mode, plain("whether CUDA graphs were recorded by node or whole"));
  f("rank", &T::rank, number("1", "", "", "capture.rank", "as the recording says"));
  f("world_size", &T::world_size, number("1", "", "", "capture.rank", "as the recording says"));
  f("start_ns", &T::start_ns,
    is_signed(number("ns", "", "calls kernels copies graphs", "capture.start",
                     "the first recorded call or GPU work, on the recording's clock")));
  f("duration_ns", &T::duration_ns,
    number("ns", "", "calls kernels copies graphs", "capture.duration",
           "from the first recorded call or GPU work to the end of the last"));
  f("kernel_ns", &T::kernel_ns,
    number("ns", "", "kernels graphs", "capture.kernel_time",
           "sum of the durations of kernels and of graphs recorded as a whole"));
  f("unattributed_kernel_ns", &T::unattributed_kernel_ns,
    number("ns", "", "kernels graphs calls marks", "capture.unattributed",
           "of the kernel time: launched in no stage, or with a launch that was not recorded"));
  f("opaque_graph_ns", &T::opaque_graph_ns,
    number("ns", "", "graphs", "capture.opaque",
           "sum of the durations of graphs recorded as a whole"));
  f("stage_overlap_ns", &T::stage_overlap_ns,
    number("ns", "", "marks kernels copies graphs", "capture.overlap",
           "stage windows, nested ones left out, minus their union"));
  f("calls", &T::num_calls, number("1", "", "calls", "capture.calls", "API calls"));
  f("numbered_calls", &T::num_numbered_calls,
    number("1", "", "calls", "capture.calls",
           "how many there were by their correlation numbers, also those not recorded"));
  f("captured_launches", &T::num_captured_launches,
    number("1", "", "calls", "capture.calls", "launches captured into a graph instead of run"));
  f("outside_stages_ns", &T::outside_stages_ns,
    number("ns", "", "marks kernels copies graphs", "capture.outside",
           "of the duration: in no stage's window"));
  f("stage_source", &T::stage_source, plain("which marks name the stages"));
  f("window", &T::window, plain("the part of the recording that was analyzed; null: all of it"));
  f("files", &T::files, plain("the files of a job, in the order of ranks; null: one file"));
}

template <typename F>
void describe(const Finding*, F&& f) {
  using T = Finding;
  f("id", &T::id, one_of(plain("a stable name of the rule"), kFindingIds));
  f("stage", &T::stage, plain("the stage it is about"));
  f("device", &T::device, maybe("the GPU it is about"));
  f("blocker", &T::is_blocker, plain("the recording must be fixed before other figures mean much"));
  f("saving_ns", &T::saving_ns,
    number("ns", "", "", "findings.saving",
           "what fixing it saves at most; the keys under evidence hold it"));
  f("window_ns", &T::window_ns,
    number("ns", "", "", "findings.window", "the window it is a part of"));
  f("saving_fraction", &T::saving_fraction,
    is_part(number("fraction", "", "", "findings.saving", "saving_ns / window_ns")));
  f("bucket", &T::bucket, maybe("the bucket of the ledger in which that time lies"));
  f("overlaps", &T::overlaps, plain("a finding above saves time of the same bucket"));
  f("bound", &T::bound, maybe("how saving_ns comes about, with numbers"));
  f("confidence", &T::confidence, one_of(plain("how sure the saving is"), kConfidences));
  f("sentence", &T::sentence, plain("what was found"));
  f("next", &T::next, plain("what to do"));
  f("evidence", &T::evidence, items(plain("keys of this file it rests on"), 1));
}

template <typename F>
void describe(const SilentRule*, F&& f) {
  f("id", &SilentRule::id, plain("a rule that could not be checked"));
  f("reason", &SilentRule::reason, plain("why not"));
}

template <typename F>
void describe(const StageRow*, F&& f) {
  using T = StageRow;
  const auto length = [](std::string_view text) {
    return number("ns", "instances", "marks", "stages.length", text);
  };
  const auto launched = [](std::string_view unit, std::string_view count, std::string_view text) {
    return number(unit, count, "kernels graphs calls marks", "stages.kernel_time", text);
  };
  f("stage", &T::stage, names_row("the stage"));
  f("nested", &T::is_nested, plain("whether it lies inside another"));
  f("instances", &T::num_instances,
    number("1", "", "marks", "stages.instances", "marks of that stage"));
  f("open", &T::num_open,
    number("1", "instances", "marks", "stages.instances", "marks without an end"));
  f("host_total_ns", &T::total_ns, length("sum of the marks' lengths"));
  f("host_min_ns", &T::min_ns, length("the shortest"));
  f("host_median_ns", &T::median_ns, length("the median"));
  f("host_max_ns", &T::max_ns, length("the longest"));
  f("host_first_ns", &T::first_ns, length("the first in time"));
  f("host_steady_mean_ns", &T::steady_mean_ns, length("the mean of all but the first"));
  f("kernel_ns", &T::kernel_ns,
    launched("ns", "kernels",
             "sum of the kernels whose launching call began inside a mark, on the same thread or "
             "process"));
  f("kernels", &T::num_kernels, launched("1", "", "those kernels"));
  f("graph_kernels", &T::num_graph_kernels,
    launched("1", "", "of those kernels, nodes of a CUDA graph"));
  f("tokens", &T::tokens,
    number("1", "instances", "marks", "stages.tokens", "sum of what the marks carried"));
}

template <typename F>
void describe(const StepRow*, F&& f) {
  using T = StepRow;
  f("stage", &T::stage, plain("the stage"));
  f("n", &T::n, number("1", "", "marks", "steps", "closed marks of that stage"));
  f("durations_ns", &T::durations_ns,
    items(number("ns", "n", "marks", "steps", "length of a mark, in time order, the first 4096"), 0,
          kMostDurations));
  const auto on_gpu = [](std::string_view text) {
    return number("ns", "n", "marks calls kernels copies graphs", "steps.gpu", text);
  };
  f("gpu_window_median_ns", &T::gpu_window_median_ns,
    on_gpu("from the first kernel of a step to the end of its last GPU work, median"));
  f("gpu_work_median_ns", &T::gpu_work_median_ns,
    on_gpu("time in which own work of a step runs, on the busiest GPU of its group, median"));
  f("period_median_ns", &T::period_median_ns,
    on_gpu("from the first kernel of a step to that of the next, median"));
  f("periods_ns", &T::periods_ns,
    items(on_gpu("those periods, in time order, the first 4096"), 0, kMostDurations));
}

template <typename F>
void describe(const StageTimes*, F&& f) {
  using T = StageTimes;
  const auto length = [](std::string_view text) {
    return number("ns", "n", "baseline", "baseline.length", text);
  };
  f("stage", &T::stage, names_row("the stage"));
  f("n", &T::n, number("1", "", "baseline", "baseline.length", "marks with an end"));
  f("open", &T::num_open, number("1", "n", "baseline", "baseline.length", "marks without an end"));
  f("total_ns", &T::total_ns, length("sum of the marks' lengths without a profiler"));
  f("mean_ns", &T::mean_ns, length("their mean"));
  f("std_ns", &T::std_ns, length("their standard deviation, of the sample"));
  f("p50_ns", &T::p50_ns, length("the shortest that half of them do not exceed"));
  f("p99_ns", &T::p99_ns, length("the shortest that 99 % of them do not exceed"));
  f("min_ns", &T::min_ns, length("the shortest"));
  f("max_ns", &T::max_ns, length("the longest"));
  f("steady_mean_ns", &T::steady_mean_ns, length("the mean of all but the first"));
  f("tokens", &T::tokens,
    number("1", "n", "baseline", "baseline.tokens", "sum of what the marks carried"));
  f("tokens_per_s", &T::tokens_per_s,
    number("1/s", "n", "baseline", "baseline.tokens",
           "tokens over the length of the marks that carried some"));
}

template <typename F>
void describe(const StageOverhead*, F&& f) {
  using T = StageOverhead;
  const Field mean =
      number("ns", "", "baseline marks", "overhead",
             "mean length of a stage, its first left out where both passes have several");
  f("stage", &T::stage, names_row("the stage"));
  f("baseline_mean_ns", &T::baseline_mean_ns, mean);
  f("profiled_mean_ns", &T::profiled_mean_ns, mean);
  const Field added = is_signed(number("fraction", "", "baseline marks", "overhead",
                                       "profiled_mean_ns / baseline_mean_ns - 1, and its interval "
                                       "of 95 %; null where it cannot be measured"));
  f("overhead_fraction", &T::fraction, added);
  f("low_fraction", &T::low_fraction, added);
  f("high_fraction", &T::high_fraction, added);
  f("reason", &T::reason, maybe("why it cannot be measured"));
}

template <typename F>
void describe(const LedgerMetrics*, F&& f) {
  using T = LedgerMetrics;
  const auto part = [](std::string_view formula, std::string_view text) {
    return number("ns", "instances", "marks calls kernels copies graphs", formula, text);
  };
  f("stage", &T::stage, names_row("the stage, or capture, startup, steady or ending"));
  f("device", &T::device, names_row("the GPU", 2));
  f("instances", &T::num_instances, number("1", "", "marks", "ledgers.window", "windows"));
  f("window_ns", &T::window_ns,
    number(
        "ns", "instances", "marks kernels copies graphs", "ledgers.window",
        "sum of windows: of a step, to the start of the next; else from a mark's start to its end "
        "or that of its last GPU work"));
  f("busy_fraction", &T::busy_fraction,
    number("fraction", "instances", "marks kernels copies graphs", "ledgers.busy",
           "compute, comm and copy over base_ns: the busy share of the first line of a report"));
  f("base_ns", &T::base_ns,
    number("ns", "instances", "marks kernels copies graphs", "ledgers.busy",
           "window_ns without unrecorded time before the first work; without a mark also without "
           "tail"));
  f("lead_ns", &T::lead_ns,
    part("ledgers.lead", "idle time before a window's first work, as far as it is the host's"));
  f("host_wait_ns", &T::host_wait_ns,
    part("ledgers.host_wait",
         "the thread that launches most of the GPU's work waited for the GPU"));
  f("buckets_ns", &T::buckets_ns,
    part("ledgers.bucket",
         "each nanosecond of the windows is in one bucket, the first that applies"));
}

template <typename F>
void describe(const IdleCauseMetrics*, F&& f) {
  using T = IdleCauseMetrics;
  const auto in_gaps = [](std::string_view text) {
    return number("ns", "gaps", "marks calls kernels copies graphs", "idle_causes", text);
  };
  f("stage", &T::stage, names_row("the stage, or capture, startup, steady or ending"));
  f("device", &T::device, names_row("the GPU", 2));
  f("bucket", &T::bucket, names_row("of the ledger: sync, launch_late or unrecorded", 3));
  f("kind", &T::kind,
    names_row("waiting, launching, host_work, first_use, allocating or blocked", 4));
  f("call", &T::call, names_row("the API call with half of the time or more; may be empty", 5));
  f("scope", &T::scope,
    names_row("the operator or range around it, its numbers as N; may be empty", 6));
  f("gaps", &T::num_gaps,
    number("1", "", "marks calls kernels copies graphs", "idle_causes", "gaps"));
  f("total_ns", &T::total_ns, in_gaps("sum of their lengths"));
  f("in_call_ns", &T::in_call_ns,
    in_gaps("of it, inside that call; without a call, inside the scope"));
  f("longest_ns", &T::longest_ns, in_gaps("the longest"));
}

}  // namespace gpuwhy
