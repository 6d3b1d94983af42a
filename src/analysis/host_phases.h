// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpuwhy {

struct RangeTotal;

// A part of a step on the host that an engine marks: scheduling, forward, sampling, ...
struct HostPhase {
  std::string phase;
  std::string engine;
  std::int64_t count = 0;
  std::int64_t host_ns = 0;    // of those that ended
  std::int64_t kernels = 0;    // launched inside
  std::int64_t kernel_ns = 0;  // their durations
};

// The phases among the ranges of a recording, by host time. `engine` is the one whose steps were
// found: some phases are plain words, which mean something only beside its steps.
std::vector<HostPhase> find_host_phases(const std::vector<RangeTotal>& ranges,
                                        const std::string& engine);

}  // namespace gpuwhy
