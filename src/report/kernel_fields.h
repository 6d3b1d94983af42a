// SPDX-License-Identifier: Apache-2.0
//
// Field descriptions of efficiency, kernels, operators and counters: see metric_fields.h.
#pragma once

#include "report/metric_field.h"
#include "report/metrics.h"

namespace gpuwhy {

template <typename F>
void describe(const TwoClocks*, F&& f) {
  f("wall_fraction", &TwoClocks::wall_fraction, kInherited);
  f("busy_fraction", &TwoClocks::busy_fraction, kInherited);
}

template <typename F>
void describe(const StageEfficiency*, F&& f) {
  using T = StageEfficiency;
  const auto of_marks = [](std::string_view count, std::string_view text) {
    return number("1", count, "marks", "efficiency.work", text);
  };
  const auto time = [](std::string_view text) {
    return number("ns", "passes", "marks kernels", "efficiency.time", text);
  };
  const auto cost = [](std::string_view unit, std::string_view formula, std::string_view text) {
    return number(unit, "passes", "model marks", formula, text);
  };
  const auto bound = [](std::string_view text) {
    return number("ns", "passes", "model gpus marks", "efficiency.bound", text);
  };
  const auto ratio = [](std::string_view formula, std::string_view text) {
    return number("fraction", "passes", "model gpus marks kernels", formula, text);
  };
  f("stage", &T::stage, names_row("the stage"));
  f("passes", &T::passes, of_marks("", "prompts or steps"));
  f("tokens", &T::tokens, of_marks("", "tokens computed: read, made or verified"));
  f("mean_context", &T::mean_context,
    of_marks("passes", "tokens a request in decode or verify attends to, its own included"));
  f("wall_ns", &T::wall_ns, time("sum of the stage's windows, mean over GPUs"));
  f("busy_ns", &T::busy_ns, time("of wall_ns: in which a GPU ran work of the stage"));
  f("flops", &T::flops,
    cost("FLOP", "efficiency.flops",
         "2 x multiply-adds of the model's matrix products for that work"));
  f("executed_flops", &T::executed_flops,
    cost("FLOP", "efficiency.flops", "the same as usual kernels execute them"));
  f("bytes", &T::bytes,
    cost("bytes", "efficiency.bytes",
         "weights touched once a pass at stored width, keys and values read and written"));
  f("least_bytes", &T::least_bytes,
    cost("bytes", "efficiency.bytes", "the same if all tokens took the same experts"));
  f("bound_ns", &T::bound_ns, bound("max(flops / peak, bytes / bandwidth) / GPUs"));
  f("pass_ns", &T::pass_ns, time("wall_ns / passes"));
  f("pass_bound_ns", &T::pass_bound_ns, bound("bound_ns / passes"));
  f("mfu", &T::mfu, ratio("efficiency.mfu", "flops / peak / GPUs / time"));
  f("hfu", &T::hfu, ratio("efficiency.hfu", "executed_flops / peak / GPUs / time"));
  f("mbu", &T::mbu, ratio("efficiency.mbu", "bytes / bandwidth / GPUs / time"));
  f("sol", &T::sol, ratio("efficiency.sol", "bound_ns / time"));
  f("side", &T::side, plain("compute or memory, whichever binds"));
  f("verdict", &T::verdict, plain("what limits the stage"));
  f("reason", &T::reason, plain("why ratios are missing"));
}

template <typename F>
void describe(const StepOutlier*, F&& f) {
  using T = StepOutlier;
  const Field time = number("ns", "", "marks", "efficiency.step_fit",
                            "a step far from the line, and what the line says");
  f("step", &T::step, number("1", "", "marks", "efficiency.step_fit", "from 0, in time"));
  f("start_ns", &T::start_ns, is_signed(time));
  f("measured_ns", &T::measured_ns, time);
  f("fitted_ns", &T::fitted_ns, time);
}

template <typename F>
void describe(const StepFit*, F&& f) {
  using T = StepFit;
  const auto fitted = [](std::string_view unit, std::string_view count, std::string_view text) {
    return number(unit, count, "marks", "efficiency.step_fit", text);
  };
  const Field line = fitted(
      "ns", "steps", "least squares: length = fixed + per token made + per token attended to");
  f("steps", &T::num_steps, fitted("1", "", "steps the line is fitted to"));
  f("fixed_ns", &T::fixed_ns, line);
  f("per_token_ns", &T::per_token_ns, line);
  f("per_kv_token_ns", &T::per_kv_token_ns, line);
  f("r_squared", &T::r_squared, fitted("1", "steps", "how much of the spread the line explains"));
  f("num_outliers", &T::num_outliers, fitted("1", "steps", "steps set aside"));
  f("outliers", &T::outliers, plain("the worst of them"));
}

template <typename F>
void describe(const Efficiency*, F&& f) {
  using T = Efficiency;
  f("model", &T::model, plain("the model that was named"));
  f("gpu", &T::gpu, maybe("the row of conf/hardware/gpus.yaml"));
  f("num_gpus", &T::num_gpus,
    number("1", "", "kernels", "efficiency.gpus", "GPUs with kernels, or as --tp says"));
  f("dtype", &T::dtype, plain("the type the linear layers execute in"));
  f("peak_flops_per_s", &T::flops_per_s,
    number("FLOP/s", "", "gpus", "efficiency.peak",
           "dense peak of one GPU in the type the linear layers execute in"));
  f("peak_bytes_per_s", &T::bytes_per_s,
    number("bytes/s", "", "gpus", "efficiency.peak",
           "bandwidth of one GPU: the device's own, or the table's"));
  f("reason", &T::reason, plain("why there are no ratios at all"));
  f("stages", &T::stages, plain("the stages that cost something"));
  f("step_fit", &T::fit, plain("the length of decode steps as a line"));
  f("step_fit_reason", &T::fit_reason, plain("why there is no line"));
  f("errors", &T::errors, plain("ratios above 1, each with the inputs to look at"));
  f("notes", &T::notes, plain("what was assumed"));
}

template <typename F>
void describe(const FamilyTotal*, F&& f) {
  using T = FamilyTotal;
  f("family", &T::family, names_row("the family of kernels"));
  f("total_ns", &T::total_ns,
    number("ns", "calls", "kernels graphs", "families", "sum over its kernels"));
  f("calls", &T::calls, number("1", "", "kernels graphs", "families", "launches of its kernels"));
}

template <typename F>
void describe(const ShapeTotal*, F&& f) {
  using T = ShapeTotal;
  const auto of_shape = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "kernels calls marks", "kernels.shapes", text);
  };
  f("shape", &T::shape, plain("grid and block"));
  f("calls", &T::calls, of_shape("1", "launches"));
  f("total_ns", &T::total_ns, of_shape("ns", "sum of their durations"));
  f("mean_ns", &T::mean_ns, of_shape("ns", "total_ns / calls"));
  f("min_ns", &T::min_ns, of_shape("ns", "the shortest"));
  f("max_ns", &T::max_ns, of_shape("ns", "the longest"));
}

template <typename F>
void describe(const KernelMetrics*, F&& f) {
  using T = KernelMetrics;
  const auto time = [](std::string_view formula, std::string_view text) {
    return number("ns", "calls", "kernels calls marks", formula, text);
  };
  const Field percentile =
      time("kernels.percentile", "from the histogram, at most an eighth too high");
  f("kernel_name", &T::kernel_name, plain("the whole name"));
  f("short_name", &T::short_name, names_row("without what all names share"));
  f("device", &T::device, names_row("the GPU", 3));
  f("stage", &T::stage, names_row("the stage it was launched in", 2));
  f("family", &T::family, plain("the family its name belongs to"));
  f("total_ns", &T::total_ns,
    time("kernels.total", "sum of the durations of its launches in that stage on that device"));
  f("calls", &T::calls, number("1", "", "kernels calls marks", "kernels.total", "launches"));
  f("mean_ns", &T::mean_ns, time("kernels.mean", "total_ns / calls"));
  f("kernel_fraction", &T::kernel_fraction,
    number("fraction", "calls", "kernels", "kernels.share", "total_ns / capture.kernel_ns"));
  f("min_ns", &T::min_ns, time("kernels.extremes", "the shortest"));
  f("median_ns", &T::median_ns, percentile);
  f("p99_ns", &T::p99_ns, percentile);
  f("max_ns", &T::max_ns, time("kernels.extremes", "the longest"));
  f("steady_ns", &T::steady_ns,
    time(
        "kernels.total",
        "of total_ns: launches in the steady phase; null if the recording has marks or no such phase"));
  f("num_shapes", &T::num_shapes,
    number("1", "calls", "kernels", "kernels.shapes", "different grids and blocks"));
  f("shapes", &T::shapes, plain("grids and blocks, the first eight"));
  f("by_shape", &T::by_shape,
    plain("its launches by grid and block where there are several, the first eight by total time"));
  f("histogram", &T::histogram,
    number("1", "calls", "kernels", "kernels.histogram",
           "step of a logarithmic scale, launches in it"));
  f("bound", &T::bound, maybe("what bounds most of it"));
  f("covered_ns", &T::covered_ns,
    number("ns", "calls", "ncu kernels", "counters.covered",
           "of total_ns: launches whose counters were measured"));
  f("covered_fraction", &T::covered_fraction,
    number("fraction", "calls", "ncu kernels", "counters.covered", "covered_ns / total_ns"));
}

template <typename F>
void describe(const OperatorMetrics*, F&& f) {
  using T = OperatorMetrics;
  const auto in_rows = [](std::string_view unit, std::string_view text) {
    return number(unit, "calls", "marks kernels", "operators", text);
  };
  f("name", &T::name, names_row("without ids, sequence numbers and shapes"));
  f("stage", &T::stage, names_row("the stage it launched in", 2));
  f("total_ns", &T::total_ns, in_rows("ns", "its own time, operators inside it left out"));
  f("calls", &T::calls, number("1", "", "marks", "operators", "calls of that operator"));
  f("mean_ns", &T::mean_ns, in_rows("ns", "total_ns / calls"));
  f("share_fraction", &T::share_fraction, in_rows("fraction", "total_ns / operators.whole_ns"));
  f("kernels", &T::num_kernels, in_rows("1", "kernels it launched itself"));
  f("flops", &T::flops, number("FLOP", "calls", "marks", "operators", "from the shapes"));
  f("bytes", &T::bytes, number("bytes", "calls", "marks", "operators", "from the shapes"));
}

template <typename F>
void describe(const LayerTotal*, F&& f) {
  using T = LayerTotal;
  f("layer", &T::layer, names_row("the layer"));
  f("total_ns", &T::total_ns,
    number("ns", "calls", "marks kernels", "operators", "sum over that layer"));
  f("calls", &T::calls,
    number("1", "", "marks kernels", "operators", "calls of operators of that layer"));
}

template <typename F>
void describe(const GemmRate*, F&& f) {
  using T = GemmRate;
  const auto of_calls = [](std::string_view unit, std::string_view sources, std::string_view text) {
    return number(unit, "calls", sources, "gemm_rates", text);
  };
  f("operator", &T::op, names_row("the operator"));
  f("dims", &T::dims, names_row("sizes of what is multiplied, or of query and keys", 2));
  f("dtype", &T::dtype, names_row("type of the first factor, or of the query", 3));
  f("calls", &T::calls,
    number("1", "", "marks kernels", "gemm_rates", "calls that launched kernels"));
  f("total_ns", &T::total_ns, of_calls("ns", "marks kernels", "kernels that it launched itself"));
  f("flops", &T::flops,
    of_calls("FLOP", "marks",
             "2 x m x n x k x batch, of all calls; attention: of the pairs it computes"));
  f("flops_per_s", &T::flops_per_s, of_calls("FLOP/s", "marks kernels", "flops / total_ns"));
  f("peak_fraction", &T::peak_fraction,
    is_part(of_calls("fraction", "marks kernels gpus",
                     "flops_per_s of the GPU's dense peak for that type")));
  f("reason", &T::reason, maybe("why there is no fraction"));
}

template <typename F>
void describe(const CollectiveRate*, F&& f) {
  using T = CollectiveRate;
  const auto of_calls = [](std::string_view unit, std::string_view sources, std::string_view text) {
    return number(unit, "calls", sources, "collective_rates", text);
  };
  const auto rate = [&](std::string_view text) {
    return of_calls("bytes/s", "marks kernels", text);
  };
  f("collective", &T::collective, names_row("as the recording names it"));
  f("group", &T::group, names_row("the group of processes", 2));
  f("dtype", &T::dtype, names_row("the type of its elements", 3));
  f("group_size", &T::group_size,
    is_signed(of_calls("1", "marks", "ranks of the group; 0 where not recorded")));
  f("calls", &T::calls,
    number("1", "", "marks kernels", "collective_rates", "calls that launched kernels"));
  f("size_bytes", &T::size_bytes, of_calls("bytes", "marks", "whole messages, of all calls"));
  f("total_ns", &T::total_ns, of_calls("ns", "marks kernels", "kernels that they launched"));
  f("bytes_per_s", &T::bytes_per_s, rate("algorithm bandwidth: size_bytes / total_ns"));
  f("bus_bytes_per_s", &T::bus_bytes_per_s,
    rate("bus bandwidth: bytes_per_s x the share of a message that a link carries"));
  f("bus_min_bytes_per_s", &T::bus_min_bytes_per_s, rate("bus bandwidth of the slowest call"));
  f("bus_median_bytes_per_s", &T::bus_median_bytes_per_s, rate("of the median call"));
  f("bus_max_bytes_per_s", &T::bus_max_bytes_per_s, rate("of the fastest call"));
  f("reason", &T::reason, maybe("why rates are missing"));
}

template <typename F>
void describe(const GraphNames*, F&& f) {
  using T = GraphNames;
  const auto kernels = [](std::string_view text) {
    return number("1", "", "marks kernels", "graph_names", text);
  };
  f("kernels", &T::num_kernels, kernels("kernels that CUDA graphs launched"));
  f("named", &T::named, kernels("of these, with names: by_nvtx + by_annotations + by_order"));
  f("by_nvtx", &T::by_nvtx, kernels("by the NVTX ranges open when the node was captured"));
  f("by_annotations", &T::by_annotations, kernels("by PyTorch's annotations, by node id"));
  f("by_order", &T::by_order, kernels("by alignment with the launches of a capture trace"));
}

template <typename F>
void describe(const OperatorsMetrics*, F&& f) {
  using T = OperatorsMetrics;
  f("source", &T::source, plain("what names the operators"));
  f("time_of", &T::time_of, plain("whether it is time of kernels or of the host"));
  f("covered_ns", &T::covered_ns,
    number("ns", "", "marks kernels", "operators", "sum of the rows"));
  f("whole_ns", &T::whole_ns,
    number("ns", "", "marks kernels", "operators", "what the rows are a part of"));
  f("rows", &T::rows, plain("operators by stage"));
  f("layers", &T::layers, plain("layers in the order of the model"));
}

template <typename F>
void describe(const RangeTotal*, F&& f) {
  using T = RangeTotal;
  f("range", &T::range, plain("domain:text"));
  f("instances", &T::instances, number("1", "", "marks", "ranges", "push/pop ranges of that name"));
  f("host_ns", &T::host_ns,
    number("ns", "instances", "marks", "ranges", "sum from push to pop, of those that ended"));
  f("host_own_ns", &T::host_own_ns,
    number("ns", "instances", "marks", "ranges",
           "of these, in no range of the same thread and domain inside them"));
  f("longest_ns", &T::longest_ns, number("ns", "instances", "marks", "ranges", "longest instance"));
  f("longest_start_ns", &T::longest_start_ns,
    is_signed(number("ns", "", "marks", "ranges",
                     "its start, from the first work or mark; negative before it")));
  f("kernels", &T::kernels,
    number("1", "instances", "marks calls kernels graphs", "ranges",
           "kernels and opaque CUDA graphs launched inside"));
  f("kernel_ns", &T::kernel_ns,
    number("ns", "kernels", "marks calls kernels graphs", "ranges", "sum of their durations"));
}

template <typename F>
void describe(const HostPhase*, F&& f) {
  using T = HostPhase;
  f("phase", &T::phase, names_row("the range's text"));
  f("engine", &T::engine, plain("whose phase it is"));
  f("count", &T::count, number("1", "", "marks", "host_phases", "ranges of that text"));
  f("host_ns", &T::host_ns,
    number("ns", "count", "marks", "host_phases", "sum from push to pop, of those that ended"));
  f("kernels", &T::kernels,
    number("1", "count", "marks calls kernels graphs", "host_phases",
           "kernels and opaque CUDA graphs launched inside"));
  f("kernel_ns", &T::kernel_ns,
    number("ns", "kernels", "marks calls kernels graphs", "host_phases", "sum of their durations"));
}

template <typename F>
void describe(const PossibleMark*, F&& f) {
  using T = PossibleMark;
  f("option", &T::option, names_row("what to type: the stage, and the ranges that are it"));
  f("instances", &T::instances,
    number("1", "", "marks", "ranges", "push/pop ranges that fit the option"));
  f("kernel_ns", &T::kernel_ns,
    number("ns", "instances", "marks calls kernels", "ranges",
           "sum of the durations of kernels launched inside"));
  f("host_ns", &T::host_ns,
    number("ns", "instances", "marks", "ranges", "sum of the durations of the ranges"));
}

template <typename F>
void describe(const StageCoverage*, F&& f) {
  using T = StageCoverage;
  const Field time = number("ns", "", "ncu kernels", "counters.covered",
                            "kernel time of the stage, and of it with measured counters");
  f("stage", &T::stage, plain("the stage, or total"));
  f("covered_ns", &T::covered_ns, time);
  f("kernel_ns", &T::kernel_ns, time);
  f("fraction", &T::fraction,
    number("fraction", "", "ncu kernels", "counters.covered", "covered_ns / kernel_ns"));
}

template <typename F>
void describe(const StallReason*, F&& f) {
  using T = StallReason;
  f("name", &T::name, plain("what warps waited for, as ncu spells it"));
  f("fraction", &T::fraction,
    number("fraction", "", "ncu", "counters.raw",
           "of the cycles of resident warps; issuing is the rest"));
}

template <typename F>
void describe(const RooflineMetrics*, F&& f) {
  using T = RooflineMetrics;
  const auto of_launch = [](std::string_view unit) {
    return number(unit, "", "ncu gpus", "counters.roofline",
                  "from ncu's metrics of one launch; ceilings from ncu or the table of GPUs");
  };
  f("dtype", &T::dtype, maybe("the type with most work"));
  f("flops", &T::flops, of_launch("FLOP"));
  f("flops_reason", &T::flops_reason, maybe("why FLOPs are not known"));
  f("dram_bytes", &T::dram_bytes, of_launch("bytes"));
  f("intensity_flops_per_byte", &T::intensity_flops_per_byte, of_launch("FLOP/byte"));
  f("flops_per_s", &T::flops_per_s, of_launch("FLOP/s"));
  f("dram_bytes_per_s", &T::dram_bytes_per_s, of_launch("bytes/s"));
  f("l2_bytes_per_s", &T::l2_bytes_per_s, of_launch("bytes/s"));
  f("l1_bytes_per_s", &T::l1_bytes_per_s, of_launch("bytes/s"));
  f("roof_flops_per_s", &T::roof_flops_per_s, of_launch("FLOP/s"));
  f("roof_bytes_per_s", &T::roof_bytes_per_s, of_launch("bytes/s"));
  f("roof_source", &T::roof_source, maybe("where the ceilings are from"));
  f("compute_fraction", &T::compute_fraction, of_launch("fraction"));
  f("memory_fraction", &T::memory_fraction, of_launch("fraction"));
  f("memory_level", &T::memory_level, maybe("the busiest level of memory"));
  f("no_eligible_fraction", &T::no_eligible_fraction, of_launch("fraction"));
  f("theoretical_occupancy_fraction", &T::theoretical_occupancy_fraction, of_launch("fraction"));
  f("achieved_occupancy_fraction", &T::achieved_occupancy_fraction, of_launch("fraction"));
  f("waves", &T::waves, of_launch("1"));
  f("stalls", &T::stalls, plain("why warps did not issue, the largest first"));
}

template <typename F>
void describe(const CounterMetrics*, F&& f) {
  using T = CounterMetrics;
  const auto measured = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "ncu", "counters.raw", text);
  };
  f("kernel_name", &T::kernel_name, plain("as ncu spells it"));
  f("short_name", &T::short_name, plain("without what all names share"));
  f("device_name", &T::device_name, maybe("the GPU, as ncu names it"));
  f("stage", &T::stage, maybe("the stage it was profiled in"));
  f("grid", &T::grid, measured("1", "blocks in each direction"));
  f("block", &T::block, measured("1", "threads in each direction"));
  f("match", &T::match, plain("how its launches were found in the recording"));
  f("match_reason", &T::match_reason, maybe("why none or several were found"));
  f("matched_kernel", &T::matched_kernel, maybe("the kernel of the recording"));
  f("covered_ns", &T::covered_ns,
    number("ns", "", "ncu kernels", "counters.covered",
           "kernel time of the launches this result stands for"));
  f("covered_fraction", &T::covered_fraction,
    number("fraction", "", "ncu kernels", "counters.covered", "covered_ns / capture.kernel_ns"));
  f("confidence", &T::confidence, maybe("how well the profiled launch stands for the others"));
  f("confidence_reason", &T::confidence_reason, maybe("the figures behind it"));
  f("slowdown_under_ncu", &T::slowdown_under_ncu,
    number("1", "", "ncu kernels", "counters.transfer",
           "ncu's duration over the median of the recording's launches"));
  f("ncu_duration_ns", &T::ncu_duration_ns, measured("ns", "as ncu measured it"));
  f("ncu_sm_clock_hz", &T::ncu_sm_clock_hz, measured("1/s", "as ncu measured it"));
  f("ncu_clock_fraction", &T::ncu_clock_fraction,
    number("fraction", "", "ncu gpus", "counters.transfer", "of the GPU's boost clock"));
  f("bound", &T::bound, maybe("memory, compute, latency or launch"));
  f("bound_reason", &T::bound_reason, maybe("the figures behind it"));
  f("winnable_ns", &T::winnable_ns,
    number(
        "ns", "", "ncu kernels gpus", "counters.winnable",
        "covered_ns x (1 - the nearest ceiling's fraction), at most covered_ns - 1 us per launch"));
  f("roofline", &T::roofline, plain("the launch and the ceilings of its GPU"));
}

template <typename F>
void describe(const CountersMetrics*, F&& f) {
  using T = CountersMetrics;
  f("tool_version", &T::tool_version, maybe("the version of ncu"));
  f("clock_control", &T::clock_control, maybe("what ncu was told to do with the clocks"));
  f("coverage", &T::coverage, plain("how much of each stage counters cover"));
  f("kernels", &T::kernels, plain("the profiled launches; null without an ncu capture"));
}

}  // namespace gpuwhy
