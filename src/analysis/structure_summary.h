// SPDX-License-Identifier: Apache-2.0
//
// The passes, layers and parts of a model as a report shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/kernel_families.h"
#include "analysis/structure.h"
#include "trace/trace.h"

namespace gpuwhy {

// All passes with the same layers.
struct PassSummary {
  std::string pass;             // "forward", "backward"; with a number where there are several
  std::int64_t num_passes = 0;  // whole ones
  std::int64_t num_cut = 0;     // begun before the capture, or not ended in it
  std::int64_t num_layers = 0;
  std::int64_t layer_kernels = 0;  // median
  bool is_backward = false;
  std::string layer_kinds;              // "12 of 17 kernels, 12 of 18"; empty: all are alike
  std::int64_t kernel_ns = 0;           // of whole passes
  std::optional<std::int64_t> pass_ns;  // from its first kernel to the end of its last, median
  // From its first kernel to that of the next pass on its GPU, median; nullopt: none follows.
  std::optional<std::int64_t> period_ns;
  std::optional<std::int64_t> work_ns;   // its kernels, median
  std::optional<std::int64_t> layer_ns;  // kernels of one layer, median
  std::string signs;                     // why this is a model
  std::string kind;                      // "prefill", "decode"; empty: not told
  std::string kind_reason;               // why it is not
};

// A kernel's place in a pass.
struct PartSummary {
  std::string pass;         // of PassSummary
  std::string place;        // "prologue 2", "layer 7", "layer B 7" where kinds of layers differ
  std::string part;         // "qkv", "attention"; the family where it is not known
  std::string kernel_name;  // the one with the most time
  std::string short_name;
  std::string family;  // of that kernel
  std::int64_t launches = 0;
  std::int64_t total_ns = 0;
  std::int64_t median_ns = 0;  // of a launch
  double pass_fraction = 0;    // of the kernel time of these passes
  // With a model; nullopt where the part's weights are not known.
  std::optional<std::int64_t> weight_bytes;   // read by one launch; of experts expected
  std::optional<std::int64_t> kv_bytes;       // keys and values, where batch and context are known
  std::optional<std::int64_t> flops;          // of one launch, where its tokens are known
  std::optional<double> bytes_per_s;          // of these / mean
  std::optional<double> roof_fraction;        // the least time it could take / mean
  std::optional<std::int64_t> above_roof_ns;  // time above that, of all launches of a pass

  // The place without its position: "prologue", "layer", "layer B", "epilogue".
  std::string_view block() const { return std::string_view(place).substr(0, place.rfind(' ')); }
  double mean_ns() const {
    return static_cast<double>(total_ns) / static_cast<double>(launches > 0 ? launches : 1);
  }
  std::optional<std::int64_t> read_bytes() const { return weight_bytes ? weight_bytes : kv_bytes; }
};

// Time that a slow pass loses in one place.
struct SlowCause {
  std::string part;              // empty: no kernel runs
  std::int64_t first_layer = 0;  // -1: before the first; the number of layers: after the last
  std::int64_t last_layer = 0;
  std::int64_t extra_ns = 0;  // above the median there
};

// A pass that takes much longer than others of its kind.
struct SlowPass {
  std::string pass;               // of PassSummary
  std::string device;             // "cuda:0"
  std::int64_t number = 0;        // among the passes of its GPU, from 0
  std::int64_t start_ns = 0;      // the end of the pass before it
  std::int64_t duration_ns = 0;   // from there to its own end
  std::int64_t median_ns = 0;     // of all of its kind
  std::vector<SlowCause> causes;  // by time
  std::string why;                // the causes in words
};

// A layer that takes longer than others of its kind in most passes.
struct SlowLayer {
  std::string pass;                 // of PassSummary
  std::int64_t layer = 0;           // from 0
  std::string block;                // its kind: PartSummary::block
  std::int64_t median_ns = 0;       // sum of its kernels
  std::int64_t kind_median_ns = 0;  // the same of all layers of its kind
  std::string part;                 // that makes most of the difference
  std::int64_t part_extra_ns = 0;   // above the median of that part
};

// Lengths of passes that serve as steps.
struct RecoveredTimes {
  std::int64_t n = 0;
  std::optional<double> mean_ns;
  std::optional<std::int64_t> p50_ns;
  std::optional<std::int64_t> p99_ns;
  std::string basis;   // which length of the passes it is
  std::string reason;  // why there are none
};

// Marked prefill and decode steps that run a pass of a known kind.
struct MarkAgreement {
  std::int64_t num_same = 0;  // the step is that pass, and of the same kind
  std::int64_t num_steps = 0;
};

// Passes as steps, where the work of their kernels tells prefill from decode.
struct RecoveredSteps {
  std::int64_t num_prefill = 0;  // passes, of all GPUs
  std::int64_t num_decode = 0;
  RecoveredTimes ttft;
  RecoveredTimes tpot;
  std::optional<double> decode_tokens_per_s;       // nullopt: no batch was given, or no tpot
  std::vector<std::string> signs;                  // why passes have these kinds, in words
  std::string reason;                              // why they have none
  std::optional<MarkAgreement> agrees_with_marks;  // nullopt: no marked step has such a pass
};

struct StructureSummary {
  std::string reason;  // why there are no passes; empty: there are
  std::int64_t num_kernels = 0;
  std::int64_t num_in_passes = 0;
  std::vector<PassSummary> passes;
  std::vector<PartSummary> parts;  // in the order of a pass
  std::string cost_reason;         // why parts have no cost; empty: they have, or there is no model
  std::vector<SlowPass> slow_passes;        // by kind, the slowest first
  std::vector<SlowLayer> slow_layers;       // by kind of pass, those that lose most first
  std::optional<RecoveredSteps> recovered;  // nullopt: there are no passes

  std::optional<double> covered_fraction() const {
    return num_kernels == 0 ? std::nullopt
                            : std::optional(static_cast<double>(num_in_passes) /
                                            static_cast<double>(num_kernels));
  }
};

// `parts` learns the part of each kernel: an index into StructureSummary::parts,
// kNone outside of passes and for stray kernels.
StructureSummary summarise_structure(const Trace& trace, const KernelFamilies& families,
                                     const Structure& structure, std::vector<std::uint32_t>& parts);
StructureSummary summarise_structure(const Trace& trace, const KernelFamilies& families,
                                     const Structure& structure);

}  // namespace gpuwhy
