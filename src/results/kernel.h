// SPDX-License-Identifier: Apache-2.0
//
// Kernels: one row for each on a GPU in a stage, by grid and block, and by family.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "results/field.h"

namespace gpuwhy {

// Launches, added up.
struct LaunchSums {
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;

  double mean_ns() const { return fraction_of(total_ns, std::max<std::int64_t>(calls, 1)); }
  void add(const LaunchSums& other) {
    min_ns = calls == 0 ? other.min_ns : std::min(min_ns, other.min_ns);
    max_ns = std::max(max_ns, other.max_ns);
    calls += other.calls;
    total_ns += other.total_ns;
  }
};

// Launches of a kernel with one grid and block.
struct ShapeRow : LaunchSums {
  std::string shape;
};

template <typename F>
void describe(const ShapeRow*, F&& f) {
  using T = ShapeRow;
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

inline constexpr std::size_t kMostShapes = 8;  // that a row of the kernel table lists

// One row of the kernel table: a kernel on a device in a stage.
struct KernelRow : LaunchSums {
  std::string kernel_name;  // whole
  std::string short_name;   // no other kernel of the table has it
  std::string device;       // "cuda:0"
  RowName stage;
  std::string family;
  double kernel_fraction = 0;  // of all kernel time
  std::int64_t median_ns = 0;
  std::optional<std::int64_t> p99_ns;     // nullopt: a summary, which has no single launches
  std::optional<std::int64_t> steady_ns;  // of total_ns: in the steady phase, if there is one
  std::int64_t num_shapes = 0;            // grids and blocks it was launched with
  std::vector<std::string> shapes;        // the first kMostShapes of them
  std::vector<ShapeRow> by_shape;         // of several; the largest total first
  // Durations in logarithmic bins, eight per octave: bin, launches. Sums over ranks are exact.
  std::vector<NumberPair> histogram;
  std::string bound;            // what bounds most of it; empty: no counters cover it
  std::int64_t covered_ns = 0;  // of total_ns: launches whose counters were measured

  double covered_fraction() const { return fraction_of(covered_ns, total_ns); }
};

template <typename F>
void describe(const KernelRow*, F&& f) {
  using T = KernelRow;
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

// Time of all kernels of one family.
struct FamilyRow {
  std::string family;
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
};

template <typename F>
void describe(const FamilyRow*, F&& f) {
  using T = FamilyRow;
  f("family", &T::family, names_row("the family of kernels"));
  f("total_ns", &T::total_ns,
    number("ns", "calls", "kernels graphs", "families", "sum over its kernels"));
  f("calls", &T::calls, number("1", "", "kernels graphs", "families", "launches of its kernels"));
}

}  // namespace gpuwhy
