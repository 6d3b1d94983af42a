// SPDX-License-Identifier: Apache-2.0
//
// Roofline classification of a kernel: its counters relative to the peak rates of its GPU.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gpuwhy {

// Peak rates of a GPU. Unknown ones are absent.
struct GpuRoofs {
  std::string name;
  std::map<std::string, double> flops_per_s;  // by dtype: fp64, fp32, tf32, bf16, fp16, fp8
  std::optional<double> memory_bytes_per_s;
  std::optional<double> boost_clock_hz;  // of the SMs
  std::string source;                    // "device attributes", "conf/hardware/gpus.yaml"
};

// Why warps did not issue: one reason, and its share of all cycles that warps were resident.
struct StallReason {
  std::string name;  // as ncu spells it: "long_scoreboard"
  double fraction = 0;
};

// Counters of one launch. Fractions are relative to the GPU's peak at the clocks of the profiled
// run.
struct RooflineInput {
  std::optional<double> duration_ns;           // under the profiler
  std::optional<double> workload_duration_ns;  // in the workload, where it is known
  std::optional<double> flops;                 // of the dtype that has most
  std::string dtype;                           // of these; "fp16/bf16" if counters do not say
  std::string flops_reason;                    // why there are none
  std::optional<double> dram_bytes;
  std::optional<double> l2_bytes;
  std::optional<double> l1_bytes;
  std::optional<double> compute_fraction;
  std::optional<double> dram_fraction;
  std::optional<double> l2_fraction;
  std::optional<double> l1_fraction;
  std::optional<double> no_eligible_fraction;  // cycles without a warp that could issue
  std::optional<double> theoretical_occupancy_fraction;
  std::optional<double> achieved_occupancy_fraction;
  std::optional<double> waves;      // of blocks over the whole GPU
  std::vector<StallReason> stalls;  // the largest first; empty: not counted
};

enum class BoundBy { kUnknown, kMemory, kCompute, kLatency, kLaunch };
const char* bound_name(BoundBy bound);

// "global memory (long_scoreboard)": what a warp waits for, in words where ncu's name is not plain.
std::string stall_words(const std::string& name);

// Achieved rates, the roofs they are compared with, and the class that follows.
struct Roofline {
  std::optional<double> intensity_flops_per_byte;  // of DRAM
  std::optional<double> flops_per_s;
  std::optional<double> dram_bytes_per_s;
  std::optional<double> l2_bytes_per_s;
  std::optional<double> l1_bytes_per_s;
  std::optional<double> roof_flops_per_s;
  std::optional<double> roof_bytes_per_s;
  std::optional<double>
      compute_fraction;                   // the larger of the profiler's and flops against the roof
  std::optional<double> memory_fraction;  // of the busiest level
  std::string memory_level;               // dram, l2 or l1
  std::optional<double> sol_fraction;     // of the nearest ceiling: 1 - this is what can be won
  BoundBy bound = BoundBy::kUnknown;
  std::string reason;  // a sentence with the figures that decided
};

// Limits between the classes, each with its source.
struct BoundThresholds {
  // ncu's SpeedOfLight rule calls a kernel below this fraction of both ceilings latency bound.
  double roof_fraction = 0.60;
  // More than half of the cycles have no warp to issue from.
  double no_eligible_fraction = 0.50;
  // Registers, shared memory or block size allow less than half of the warps an SM can hold.
  double occupancy_fraction = 0.50;
  // A launch costs the host and the GPU's front end a few microseconds; shorter kernels are
  // dominated by it.
  double launch_ns = 5000;
  double launch_waves = 1;
};

// Never throws: what cannot be computed from the input is absent in the result.
Roofline roofline(const RooflineInput& input, const GpuRoofs& roofs,
                  const BoundThresholds& thresholds = {});

}  // namespace gpuwhy
