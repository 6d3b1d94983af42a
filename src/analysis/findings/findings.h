// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/row.h"

namespace gpuwhy {

struct Analysis;
struct LedgerRow;

// Something worth fixing, with its maximum saving.
struct Finding {
  std::string id;      // stable: scripts rely on it
  RowName stage;       // a part of the recording, or all of it, where no stage is marked
  std::string device;  // "cuda:0"; empty if no GPU is meant
  // True if the recording itself must be fixed before other figures are meaningful. These come
  // first.
  bool is_blocker = false;
  std::int64_t saving_ns = 0;  // of window_ns, at most
  std::int64_t once_ns = 0;    // perhaps spent once: no saving, but it counts in the order
  std::int64_t window_ns = 0;  // of the stage on that device
  std::string bucket;          // of the ledger: where the saved time is; may be empty
  // True if a finding above saves time in the same bucket of the same stage and device. The savings
  // of all others sum to at most the window.
  bool overlaps = false;
  std::string bound;  // how saving_ns comes about, with numbers; empty: it saves none
  // What two findings may have in common: `torch.compile`. The second one then refers to the first.
  std::string fix;
  std::string confidence;  // high, medium or low
  std::string sentence;
  std::string next;                   // what to do
  std::vector<std::string> evidence;  // keys of metrics.json

  // How many times as fast the stage would be, where that is a bound: a saving of nearly the whole
  // is none, and one of less than a percent says nothing.
  std::optional<double> speedup() const {
    const double saved = saving_fraction().value_or(0);
    return saved < 0.01 || saved > 0.95 ? std::nullopt : std::optional(1 / (1 - saved));
  }

  std::optional<double> saving_fraction() const {
    return window_ns == 0
               ? std::nullopt
               : std::optional(static_cast<double>(saving_ns) / static_cast<double>(window_ns));
  }
};

// A rule that could not be checked, and why.
struct SilentRule {
  std::string id;
  std::string reason;
};

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
  std::optional<bool> has_gpu = {};             // the machine of the run
  std::optional<std::int64_t> num_other_gpu_users = {};  // processes on the GPUs when the run began
  std::optional<bool> keeps_clocks = {};        // persistence mode, without which locks are lost
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

// How advice begins that a finding above has already given; the id of that finding follows.
inline constexpr std::string_view kAlsoFixed = "also fixed by ";

// Limits beyond which opaque graphs or profiler overhead invalidate the other figures.
inline constexpr double kMostOpaque = 0.5;     // of GPU time in graphs without names
inline constexpr double kMostOverhead = 0.25;  // of a profiler, beyond which its times are its own

// A stage in a sentence: "decode", "the steps", "the steady phase", "the recording".
std::string stage_words(const LedgerRow& row);

}  // namespace gpuwhy
