// SPDX-License-Identifier: Apache-2.0
//
// NVTX ranges of a recording, and what they name.
#pragma once

#include <cstdint>
#include <string>

#include "results/field.h"

namespace gpuwhy {

// All push/pop ranges of one name: "domain:text".
struct RangeTotal {
  std::string range;
  std::string text;  // without the domain
  std::int64_t instances = 0;
  std::int64_t host_ns = 0;      // from push to pop, of those that ended
  std::int64_t host_own_ns = 0;  // of these, in no range of the same thread and domain inside them
  std::int64_t longest_ns = 0;   // the longest instance
  std::int64_t longest_start_ns = 0;  // from the first work or mark; negative before
  std::int64_t kernels = 0;    // launched inside, also inside ranges within; an opaque graph is one
  std::int64_t kernel_ns = 0;  // their durations
  std::int64_t captured_ns = 0;  // of these, of CUDA graphs that were captured inside
};

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

// A part of a step on the host that an engine marks: scheduling, forward, sampling, ...
struct HostPhase {
  std::string phase;
  std::string engine;
  std::int64_t count = 0;
  std::int64_t host_ns = 0;    // of those that ended
  std::int64_t kernels = 0;    // launched inside
  std::int64_t kernel_ns = 0;  // their durations
};

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

// Ranges that could name a stage, where no stage is known.
struct PossibleMark {
  std::string option;  // to type, as "--mark decode='benchmark_loop'"
  std::int64_t instances = 0;
  std::int64_t kernel_ns = 0;
  std::int64_t host_ns = 0;
};

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

// How many kernels of CUDA graphs have names, and how they were found.
struct GraphNames {
  std::int64_t num_kernels = 0;
  std::int64_t by_nvtx = 0;
  std::int64_t by_annotations = 0;
  std::int64_t by_order = 0;

  std::int64_t named() const { return by_nvtx + by_annotations + by_order; }
};

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

}  // namespace gpuwhy
