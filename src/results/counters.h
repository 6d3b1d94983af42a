// SPDX-License-Identifier: Apache-2.0
//
// What a kernel profiler measured, joined to the launches of a recording.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "results/field.h"

namespace gpuwhy {

// GPU time of a stage with counters.
struct StageCoverage {
  std::string stage;
  std::int64_t covered_ns = 0;
  std::int64_t kernel_ns = 0;

  double fraction() const { return fraction_of(covered_ns, kernel_ns); }
};

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

// Why warps did not issue: one reason, and its share of all cycles that warps were resident.
struct StallReason {
  std::string name;  // as ncu spells it: "long_scoreboard"
  double fraction = 0;
};

template <typename F>
void describe(const StallReason*, F&& f) {
  using T = StallReason;
  f("name", &T::name, plain("what warps waited for, as ncu spells it"));
  f("fraction", &T::fraction,
    number("fraction", "", "ncu", "counters.raw",
           "of the cycles of resident warps; issuing is the rest"));
}

// One profiled launch: its work, the rates it achieved, and the roofs they are compared with.
// Fractions are relative to the GPU's peak at the clocks of the profiled run.
struct RooflineRow {
  std::string dtype;            // that has most FLOPs; "fp16/bf16" if counters do not say
  std::optional<double> flops;  // of it
  std::string flops_reason;     // why there are none
  std::optional<double> dram_bytes;
  std::optional<double> intensity_flops_per_byte;  // of DRAM
  std::optional<double> flops_per_s;
  std::optional<double> dram_bytes_per_s;
  std::optional<double> l2_bytes_per_s;
  std::optional<double> l1_bytes_per_s;
  std::optional<double> roof_flops_per_s;
  std::optional<double> roof_bytes_per_s;
  std::string roof_source;                     // "device attributes", "conf/hardware/gpus.yaml"
  std::optional<double> compute_fraction;      // the larger of ncu's and flops against the roof
  std::optional<double> memory_fraction;       // of the busiest level
  std::string memory_level;                    // dram, l2 or l1
  std::optional<double> no_eligible_fraction;  // cycles without a warp that could issue
  std::optional<double> theoretical_occupancy_fraction;
  std::optional<double> achieved_occupancy_fraction;
  std::optional<double> waves;      // of blocks over the whole GPU
  std::vector<StallReason> stalls;  // the largest first; empty: not counted

  // Of the nearest ceiling: 1 - this is what can be won.
  std::optional<double> sol_fraction() const { return std::max(compute_fraction, memory_fraction); }
};

template <typename F>
void describe(const RooflineRow*, F&& f) {
  using T = RooflineRow;
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

// A launch that ncu profiled, and the launches it represents.
struct CounterRow {
  std::string kernel_name;  // as ncu spells it
  std::string short_name;   // the recording's, where it is found there
  std::string device_name;
  RowName stage;  // from the NVTX ranges of the ncu run; without a name: any
  std::optional<std::array<std::int64_t, 3>> grid;
  std::optional<std::array<std::int64_t, 3>> block;
  // The first criterion that applies: "mangled name", "name" (spelt by two tools), "bare name" (but
  // for return type and parameters), "function name" (which only one kernel has), "ambiguous"
  // (several kernels it may be) or "none".
  std::string match;
  std::string match_reason;  // why none or several
  std::string matched_kernel;
  std::int64_t covered_ns = 0;  // of the launches it represents; 0 when withheld
  double covered_fraction = 0;  // of all kernel time
  // Whether the measurement of one launch under ncu is valid for those of the recording: high,
  // medium, low or withheld; empty: it represents none.
  std::string confidence;
  std::string confidence_reason;             // a sentence
  std::optional<double> slowdown_under_ncu;  // ncu's duration by the median of the launches
  std::optional<double> ncu_duration_ns;
  std::optional<double> ncu_sm_clock_hz;
  std::optional<double> ncu_clock_fraction;  // of the boost clock, at which workloads mostly run
  std::string bound;                         // empty: not known
  std::string bound_reason;                  // a sentence with the figures that decided
  std::optional<double> winnable_ns;  // of covered_ns: at most what the nearest ceiling leaves
  RooflineRow roofline;               // its rates are empty when withheld
};

template <typename F>
void describe(const CounterRow*, F&& f) {
  using T = CounterRow;
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

// All counters, joined to a recording.
struct CountersRow {
  std::string tool_version;
  std::string clock_control;
  std::vector<StageCoverage> coverage;  // by stage; the last row is the sum
  std::vector<CounterRow> kernels;      // by covered time
};

template <typename F>
void describe(const CountersRow*, F&& f) {
  using T = CountersRow;
  f("tool_version", &T::tool_version, maybe("the version of ncu"));
  f("clock_control", &T::clock_control, maybe("what ncu was told to do with the clocks"));
  f("coverage", &T::coverage, plain("how much of each stage counters cover"));
  f("kernels", &T::kernels, plain("the profiled launches; null without an ncu capture"));
}

}  // namespace gpuwhy
