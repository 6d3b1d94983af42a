// SPDX-License-Identifier: Apache-2.0
//
// Roofline classification of a kernel: its counters relative to the peak rates of its GPU.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "results/counters.h"

namespace gpuwhy {

// Peak rates of a GPU. Unknown ones are absent.
struct GpuRoofs {
  std::string name;
  std::map<std::string, double> flops_per_s;  // by dtype: fp64, fp32, tf32, bf16, fp16, fp8
  std::optional<double> memory_bytes_per_s;
  std::optional<double> boost_clock_hz;  // of the SMs
  std::string source;                    // "device attributes", "conf/hardware/gpus.yaml"
};

// Counters of one launch: the part of its row that is measured, and what the rest follows from.
// Fractions are relative to the GPU's peak at the clocks of the profiled run.
struct RooflineInput : RooflineRow {
  std::optional<double> duration_ns;           // under the profiler
  std::optional<double> workload_duration_ns;  // in the workload, where it is known
  std::optional<double> l2_bytes;
  std::optional<double> l1_bytes;
  std::optional<double> sm_fraction;
  std::optional<double> dram_fraction;
  std::optional<double> l2_fraction;
  std::optional<double> l1_fraction;
};

enum class BoundBy { kUnknown, kMemory, kCompute, kLatency, kLaunch };
const char* bound_name(BoundBy bound);

// "global memory (long_scoreboard)": what a warp waits for, in words where ncu's name is not plain.
std::string stall_words(const std::string& name);

// The whole row, and the class that follows from it.
struct Roofline : RooflineRow {
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
