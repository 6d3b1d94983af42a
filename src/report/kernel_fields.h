// SPDX-License-Identifier: Apache-2.0
//
// Field descriptions of efficiency, kernels and counters: see metric_fields.h.
#pragma once

#include "report/metrics.h"
#include "results/field.h"

namespace gpuwhy {

template <typename F>
void describe(const FamilyRow*, F&& f) {
  using T = FamilyRow;
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
