// SPDX-License-Identifier: Apache-2.0
//
// The passes, layers and parts of a model, as the order of kernels shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/field.h"

namespace gpuwhy {

// All passes with the same layers.
struct PassRow {
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

template <typename F>
void describe(const PassRow*, F&& f) {
  using T = PassRow;
  const auto count = [](std::string_view text) {
    return number("1", "", "kernels", "structure", text);
  };
  const auto median = [](std::string_view of, std::string_view text) {
    return number("ns", of, "kernels", "structure", text);
  };
  f("pass", &T::pass, names_row("forward or backward, numbered where several kinds are"));
  f("passes", &T::num_passes, count("whole passes, of all GPUs"));
  f("cut_passes", &T::num_cut, count("passes begun before the capture, or not ended in it"));
  f("layers", &T::num_layers, count("layers of a pass"));
  f("layer_kernels", &T::layer_kernels, count("kernels of a layer, median"));
  f("is_backward", &T::is_backward, plain("whether it is a backward pass"));
  f("layer_kinds", &T::layer_kinds, maybe("layers by their kernels; null: all are alike"));
  f("kernel_ns", &T::kernel_ns, median("passes", "sum of the kernels of whole passes"));
  f("pass_median_ns", &T::pass_ns,
    median("passes", "from the first kernel to the end of the last, median"));
  f("period_median_ns", &T::period_ns,
    median("passes", "from the first kernel of a pass to that of the next one, median"));
  f("work_median_ns", &T::work_ns, median("passes", "sum of a pass's kernels, median"));
  f("layer_median_ns", &T::layer_ns, median("layers", "sum of a layer's kernels, median"));
  f("signs", &T::signs, plain("why this is a model"));
  f("kind", &T::kind, maybe("what these passes compute: prefill or decode; null: not told"));
  f("kind_reason", &T::kind_reason, maybe("why it is not told; null: it is"));
}

// A kernel's place in a pass.
struct LayerPartRow {
  std::string pass;         // of PassRow
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

template <typename F>
void describe(const LayerPartRow*, F&& f) {
  using T = LayerPartRow;
  f("pass", &T::pass, names_row("the pass it is of", 1));
  f("place", &T::place, names_row("prologue, layer or epilogue, and the position in it from 1", 2));
  f("part", &T::part, plain("part of the model; the kernel's family where it is not certain"));
  f("kernel_name", &T::kernel_name, plain("the kernel that takes most time there"));
  f("short_name", &T::short_name, plain("its short name"));
  f("family", &T::family, plain("its family"));
  f("launches", &T::launches,
    number("1", "", "kernels", "structure.parts", "launches at this position"));
  f("total_ns", &T::total_ns,
    number("ns", "launches", "kernels", "structure.parts", "sum of their durations"));
  f("mean_ns", &T::mean_ns,
    number("ns", "launches", "kernels", "structure.parts", "total_ns / launches"));
  f("median_ns", &T::median_ns,
    number("ns", "launches", "kernels", "structure.parts", "duration of a launch, median"));
  f("pass_fraction", &T::pass_fraction,
    is_part(number("fraction", "launches", "kernels", "structure.parts",
                   "total_ns / kernel_ns of the pass")));
  const auto cost = [](std::string_view unit, std::string_view text) {
    return number(unit, "launches", "model gpus kernels", "structure.cost", text);
  };
  f("weight_bytes", &T::weight_bytes,
    cost("bytes",
         "weights that one launch reads; of experts, those expected with uniform routing"));
  f("kv_bytes", &T::kv_bytes,
    cost("bytes", "keys and values that one launch reads, where batch and context are given"));
  f("flops", &T::flops, cost("flops", "of one launch, where its tokens are known"));
  f("bytes_per_s", &T::bytes_per_s, cost("bytes/s", "weight_bytes or kv_bytes / mean_ns"));
  f("roof_fraction", &T::roof_fraction, cost("fraction", "least time on this GPU / mean_ns"));
  f("above_roof_ns", &T::above_roof_ns,
    cost("ns", "time above the least, of all launches in a pass"));
}

// Time that a slow pass loses in one place.
struct SlowCause {
  std::string part;              // empty: no kernel runs
  std::int64_t first_layer = 0;  // -1: before the first; the number of layers: after the last
  std::int64_t last_layer = 0;
  std::int64_t extra_ns = 0;  // above the median there
};

template <typename F>
void describe(const SlowCause*, F&& f) {
  using T = SlowCause;
  const auto layer = [](std::string_view text) {
    return is_signed(number("1", "", "kernels", "structure.slow_passes", text));
  };
  f("part", &T::part, maybe("the part; null: no kernel runs"));
  f("first_layer", &T::first_layer,
    layer("from 0; -1 is before the first layer, the number of layers after the last"));
  f("last_layer", &T::last_layer, layer("the last layer that loses time so"));
  f("extra_ns", &T::extra_ns,
    number("ns", "", "kernels", "structure.slow_passes", "above the median of that place"));
}

// A pass that takes much longer than others of its kind.
struct SlowPass {
  std::string pass;               // of PassRow
  std::string device;             // "cuda:0"
  std::int64_t number = 0;        // among the passes of its GPU, from 0
  std::int64_t start_ns = 0;      // the end of the pass before it
  std::int64_t duration_ns = 0;   // from there to its own end
  std::int64_t median_ns = 0;     // of all of its kind
  std::vector<SlowCause> causes;  // by time
  std::string why;                // the causes in words
};

template <typename F>
void describe(const SlowPass*, F&& f) {
  using T = SlowPass;
  const auto time = [](std::string_view text) {
    return number("ns", "", "kernels", "structure.slow_passes", text);
  };
  f("pass", &T::pass, names_row("the pass it is of", 1));
  f("device", &T::device, names_row("the GPU", 2));
  f("number", &T::number,
    number("1", "", "kernels", "structure.slow_passes", "among the passes of that GPU, from 0"));
  f("start_ns", &T::start_ns,
    is_signed(time("the end of the pass before it, on the recording's clock")));
  f("duration_ns", &T::duration_ns, time("from there to its own end"));
  f("median_ns", &T::median_ns, time("of all passes of its kind"));
  f("why", &T::why, plain("where it loses the time, in words"));
  f("causes", &T::causes, plain("the same as rows, the largest first"));
}

// A layer that takes longer than others of its kind in most passes.
struct SlowLayer {
  std::string pass;                 // of PassRow
  std::int64_t layer = 0;           // from 0
  std::string block;                // its kind: LayerPartRow::block
  std::int64_t median_ns = 0;       // sum of its kernels
  std::int64_t kind_median_ns = 0;  // the same of all layers of its kind
  std::string part;                 // that makes most of the difference
  std::int64_t part_extra_ns = 0;   // above the median of that part
};

template <typename F>
void describe(const SlowLayer*, F&& f) {
  using T = SlowLayer;
  const auto time = [](std::string_view of, std::string_view text) {
    return number("ns", of, "kernels", "structure.slow_layers", text);
  };
  f("pass", &T::pass, names_row("the pass it is of", 1));
  f("layer", &T::layer, number("1", "", "kernels", "structure.slow_layers", "its number, from 0"));
  f("kind", &T::block, plain("layer; layer A, layer B where kinds differ"));
  f("median_ns", &T::median_ns, time("passes", "sum of its kernels, median over passes"));
  f("kind_median_ns", &T::kind_median_ns, time("layers", "the same of all layers of its kind"));
  f("part", &T::part, maybe("the part that makes most of the difference; null: none alone"));
  f("part_extra_ns", &T::part_extra_ns,
    time("launches", "its median in this layer above its median in all"));
}

// Lengths of passes that serve as steps.
struct RecoveredTimes {
  std::int64_t n = 0;
  std::optional<double> mean_ns;
  std::optional<std::int64_t> p50_ns;
  std::optional<std::int64_t> p99_ns;
  std::string basis;   // which length of the passes it is
  std::string reason;  // why there are none
};

template <typename F>
void describe(const RecoveredTimes*, F&& f) {
  using T = RecoveredTimes;
  f("n", &T::n, number("1", "", "kernels", "structure.recovered", "how many lengths"));
  f("mean_ns", &T::mean_ns, kInherited);
  f("p50_ns", &T::p50_ns, kInherited);
  f("p99_ns", &T::p99_ns, kInherited);
  f("basis", &T::basis, maybe("which length of the passes it is"));
  f("reason", &T::reason, maybe("why there are none"));
}

// Marked prefill and decode steps that run a pass of a known kind.
struct MarkAgreement {
  std::int64_t num_same = 0;  // the step is that pass, and of the same kind
  std::int64_t num_steps = 0;
};

template <typename F>
void describe(const MarkAgreement*, F&& f) {
  using T = MarkAgreement;
  const auto count = [](std::string_view text) {
    return number("1", "", "kernels marks", "structure.recovered", text);
  };
  f("n", &T::num_same, count("of these, steps that are one pass of the same kind"));
  f("of", &T::num_steps, count("marked prefill and decode steps that run a pass of a told kind"));
}

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

template <typename F>
void describe(const RecoveredSteps*, F&& f) {
  using T = RecoveredSteps;
  const auto count = [](std::string_view text) {
    return number("1", "", "kernels", "structure.recovered", text);
  };
  f("prefill_passes", &T::num_prefill, count("passes that compute a prompt, of all GPUs"));
  f("decode_passes", &T::num_decode, count("passes that compute a token of each sequence"));
  f("ttft", &T::ttft,
    number("ns", "n", "kernels", "structure.recovered",
           "from the first kernel of a prefill pass to the end of its last"));
  f("tpot", &T::tpot,
    number("ns", "n", "kernels", "structure.recovered",
           "from the first kernel of a decode pass to that of the next one"));
  f("decode_tokens_per_s", &T::decode_tokens_per_s,
    number("1/s", "", "kernels", "structure.recovered", "the batch given / mean of tpot"));
  f("signs", &T::signs, plain("why passes have these kinds"));
  f("reason", &T::reason, maybe("why no pass has a kind; null: some have"));
  f("agrees_with_marks", &T::agrees_with_marks,
    plain("marked steps against these passes; null: no marked step has one"));
}

struct StructureSummary {
  std::string reason;  // why there are no passes; empty: there are
  std::int64_t num_kernels = 0;
  std::int64_t num_in_passes = 0;
  std::vector<PassRow> passes;
  std::vector<LayerPartRow> parts;  // in the order of a pass
  std::string cost_reason;  // why parts have no cost; empty: they have, or there is no model
  std::vector<SlowPass> slow_passes;        // by kind, the slowest first
  std::vector<SlowLayer> slow_layers;       // by kind of pass, those that lose most first
  std::optional<RecoveredSteps> recovered;  // nullopt: there are no passes

  std::optional<double> covered_fraction() const {
    return num_kernels == 0 ? std::nullopt
                            : std::optional(static_cast<double>(num_in_passes) /
                                            static_cast<double>(num_kernels));
  }
};

template <typename F>
void describe(const StructureSummary*, F&& f) {
  using T = StructureSummary;
  const auto count = [](std::string_view text) {
    return number("1", "", "kernels", "structure", text);
  };
  f("reason", &T::reason, maybe("why nothing was recovered; null: it was"));
  f("kernels", &T::num_kernels, count("kernels of the recording"));
  f("kernels_in_passes", &T::num_in_passes, count("of these, in a pass"));
  f("covered_fraction", &T::covered_fraction,
    is_part(number("fraction", "kernels", "kernels", "structure", "kernels_in_passes / kernels")));
  f("passes", &T::passes, plain("passes through the layers, by kind"));
  f("parts", &T::parts, plain("kernels by their place, in the order of a pass"));
  f("cost_reason", &T::cost_reason,
    maybe("why parts have no cost though a model was given; null: they have, or none was"));
  f("slow_passes", &T::slow_passes, plain("passes that take a tenth longer than the median"));
  f("slow_layers", &T::slow_layers,
    plain("layers that take a tenth longer than the median of their kind"));
  f("recovered", &T::recovered,
    plain("passes as steps, recovered from the order of kernels; null: there are no passes"));
}

}  // namespace gpuwhy
