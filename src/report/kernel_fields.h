// SPDX-License-Identifier: Apache-2.0
//
// Field descriptions of kernels: see metric_fields.h.
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

}  // namespace gpuwhy
