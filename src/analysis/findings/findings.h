// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/finding.h"

namespace gpuwhy {

struct Analysis;
struct LedgerRow;

// Findings, and rules that could not be checked.
struct Findings {
  // Blockers first, then by saving and how sure it is, id, stage, device.
  std::vector<Finding> found;
  std::vector<SilentRule> silent;
};

// Capabilities of a GPU's tensor cores.
struct TensorCores {
  double speedup = 0;     // how many times as fast as fp32 on CUDA cores: 312 / 19.5
  bool has_bf16 = false;  // and TF32, which came with it
  int compute_major = 0;  // of the compute capability; 0: not known
};

// What the rules know besides the analysis.
struct FindingFacts {
  // Capabilities by device name; nullopt if unknown. Called only when needed: reading the table of
  // GPUs takes longer than a small analysis.
  std::function<std::optional<TensorCores>(const std::string& device_name)> tensor_cores = {};
  // Bandwidth of a GPU's NVLink in one direction, in the same way.
  std::function<std::optional<double>(const std::string& device_name)> link_bytes_per_s = {};
  std::optional<bool> has_gpu = {};                      // the machine of the run
  std::optional<std::int64_t> num_other_gpu_users = {};  // processes on the GPUs when the run began
  std::optional<bool> keeps_clocks = {};  // persistence mode, without which locks are lost
};

// Whether most launches were captured into graphs instead of run, and whether most API calls are
// missing: then idle time has no meaning.
bool is_capture_of_graphs(const Analysis& analysis);
bool has_missing_calls(const Analysis& analysis);

// What a saving counts for in the order of findings, where its confidence is not high.
inline constexpr double kMediumWeight = 0.4;
inline constexpr double kLowWeight = 0.3;

// Applies every rule to an analysis.
Findings find_findings(const Analysis& analysis, const FindingFacts& facts);

// What this recording shows, or why it shows nothing. Its findings are known.
Verdict verdict_of(const Analysis& analysis);

// Limits beyond which opaque graphs or profiler overhead invalidate the other figures.
inline constexpr double kMostOpaque = 0.5;     // of GPU time in graphs without names
inline constexpr double kMostOverhead = 0.25;  // of a profiler, beyond which its times are its own

// A stage in a sentence: "decode", "the steps", "the steady phase", "the recording".
std::string stage_words(const LedgerRow& row);

}  // namespace gpuwhy
