// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/kernels/launch_tally.h"
#include "analysis/names/kernel_families.h"
#include "results/kernel.h"
#include "trace/trace.h"

namespace gpuwhy {

// Equal launches: one kernel, one grid and block, one stage, one GPU, one process. A counter
// measurement of one of them may represent all.
struct LaunchGroup : LaunchSums {
  std::string kernel_name;   // demangled, whole
  std::string mangled_name;  // empty if the recording has none
  std::string family;
  RowName stage;
  std::uint16_t device = 0;   // into Trace::devices
  std::string gpu;            // label of that device: "cuda:0"
  std::uint16_t process = 0;  // into Trace::processes
  LaunchShape shape;
  bool has_shape = true;                  // false: a summary that puts all shapes together
  std::int64_t median_ns = 0;             // to an eighth of an octave, never outside min..max
  std::int64_t first_ns = 0;              // when the earliest of them began
  std::optional<std::int64_t> steady_ns;  // of total_ns: in the steady phase, if there is one
  std::optional<std::size_t> counters;    // into CountersRow::kernels: what was measured of it
};

// All kernels of a recording in groups, by total time, then by name, stage, device, process, shape.
std::vector<LaunchGroup> group_launches(const Trace& trace, const KernelFamilies& families,
                                        const Stages& stages, const LaunchTallies& tallies);

}  // namespace gpuwhy
