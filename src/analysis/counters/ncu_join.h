// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/launch_groups.h"
#include "base/units.h"
#include "model/gpu.h"
#include "model/roofline.h"
#include "results/row.h"
#include "trace/counters.h"

namespace gpuwhy {

struct Analysis;

// How a profiled launch was matched to launches of the recording: the first criterion that applies.
enum class MatchKind {
  kUnmatched,  // no launch of that kernel and shape
  kAmbiguous,  // several kernels it may be
  kMangled,    // the same mangled name
  kName,       // the same name, spelt by two tools
  kBareName,   // the same but for return type and parameters
  kFunction,   // the function's name, which only one kernel has
};
const char* match_name(MatchKind kind);

// Whether the measurement of one launch under ncu is valid for those of the recording.
enum class JoinConfidence { kHigh, kMedium, kLow, kWithheld };
const char* confidence_name(JoinConfidence confidence);

// The basis of that judgement.
struct Representativeness {
  JoinConfidence confidence = JoinConfidence::kLow;
  std::optional<double> slowdown;      // ncu's duration by the group's median
  std::optional<double> ncu_clock_hz;  // of the SMs, under ncu
  std::optional<double>
      clock_fraction;  // of the GPU's boost clock, which a workload mostly runs at
  std::string reason;  // a sentence
};

// One profiled launch and the launches it represents.
struct KernelCounters {
  std::string kernel_name;  // as ncu spells it
  std::string short_name;
  RowName stage;  // from the NVTX ranges of the ncu run; without a name: any
  std::string device_name;
  std::optional<LaunchShape> shape;
  MatchKind match = MatchKind::kUnmatched;
  std::string match_reason;         // for kUnmatched and kAmbiguous
  std::vector<std::size_t> groups;  // into Analysis::launch_groups
  std::int64_t covered_ns = 0;      // of these groups; 0 when withheld
  Representativeness representativeness;
  RooflineInput input;
  GpuRoofs roofs;
  Roofline roofline;                  // empty when withheld
  std::optional<double> winnable_ns;  // of covered_ns: at most what the nearest ceiling leaves
};

// GPU time of a stage with counters.
struct StageCoverage {
  std::string stage;
  std::int64_t covered_ns = 0;
  std::int64_t kernel_ns = 0;

  double fraction() const { return fraction_of(covered_ns, kernel_ns); }
};

// All counters, joined to a recording.
struct JoinedCounters {
  std::string tool_version;
  std::string clock_control;
  std::vector<KernelCounters> kernels;  // by covered time
  std::vector<StageCoverage> coverage;  // by stage; the last row is the sum
};

// Joins and judges; fills in Analysis::counters and the references in the kernel table. Each launch
// group is covered by at most one result: the one nearest to its median duration.
void join_counters(const Counters& counters, const std::vector<GpuSpec>& gpus, Analysis& analysis);

}  // namespace gpuwhy
