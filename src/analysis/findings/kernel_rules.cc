// SPDX-License-Identifier: Apache-2.0
//
// Rules on kernels: GEMMs in the wrong type, many small kernels, stages far from their roof, and
// counters.
//
// All of them save time in the compute bucket, so they overlap each other and are bounded by it.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analysis/findings/rule.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"

namespace llmprof {
namespace {

constexpr std::int64_t kTinyKernelNs = 20 * kNsPerUs;
constexpr std::int64_t kManyLaunches = 100;
constexpr double kFarFromRoof = 0.5;    // of the speed of light, over the time the GPU worked
constexpr double kLowOccupancy = 0.25;  // of the warps an SM can hold
// Weights of 16 bits reduced to 4: the saving for a memory-bound product.
constexpr double kFewerBytes = 0.75;

// cuBLAS and CUTLASS name the type in the kernel: sgemm is fp32 on CUDA cores, s16816gemm and
// s1688gemm are tensor cores, f32f32_f32f32_f32 is fp32 without tensor cores. cuDNN's
// convolve_sgemm<__half, ...> is not fp32.
bool is_off_tensor_cores(const KernelRecord& kernel) {
  const std::string name = to_lower(kernel.kernel_name);
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  return kernel.family == "gemm" && (has("_sgemm") || has("f32f32_f32f32_f32")) && !has("__half") &&
         !has("bfloat16");
}

// Time of the kernels in a scope selected by `wanted`, at most the stage's compute time.
template <typename Wanted>
std::int64_t kernel_time(const FindingContext& context, const StageLedger& row, Wanted wanted) {
  std::int64_t time_ns = 0;
  for (const KernelRecord& kernel : context.analysis.kernels) {
    time_ns += is_kernel_in(kernel, row) && wanted(kernel) ? kernel.total_ns : 0;
  }
  return std::min(time_ns, row.ledger[Bucket::kCompute]);
}

bool is_large(std::int64_t time_ns, const StageLedger& row) {
  return fraction_of(time_ns, row.ledger.window_ns) >= kLeastKernelShare;
}

// Families of kernels that a stage had better not run at all.
struct UnwantedFamily {
  const char* id;
  std::vector<std::string_view> families;
  const char* what;
  const char* next;
};

const std::vector<UnwantedFamily>& family_rules() {
  static const std::vector<UnwantedFamily> kRules = {
      {"sampling",
       {"sampling"},
       "choosing tokens",
       "sample on the GPU in one fused kernel (FlashInfer, the engine's own), greedy where it will "
       "do, and overlap it with the next step"},
      {"kv_cache_copy",
       {"kv_cache"},
       "writing and moving the KV cache",
       "write keys and values where attention reads them (paged attention), and avoid cache swaps "
       "and defragmentation in the step"},
  };
  return kRules;
}

}  // namespace

void check_tensor_cores(const FindingContext& context) {
  for (const StageLedger& row : context.scopes) {
    const std::int64_t time_ns = kernel_time(context, row, is_off_tensor_cores);
    if (!is_large(time_ns, row)) {
      continue;
    }
    const auto device =
        std::find_if(context.analysis.devices.begin(), context.analysis.devices.end(),
                     [&](const DeviceSummary& d) { return d.device == row.device; });
    const TensorCores cores =
        device == context.analysis.devices.end() || !context.facts.tensor_cores
            ? TensorCores{}
            : context.facts.tensor_cores(device->name).value_or(TensorCores{});
    const bool is_known = cores.speedup > 1;
    // Without a known speedup the whole time is the upper bound.
    const auto remains = is_known ? 1 / cores.speedup : 0;
    Finding& finding =
        context.add("gemm_off_tensor_cores", row, Bucket::kCompute,
                    static_cast<std::int64_t>(static_cast<double>(time_ns) * (1 - remains)));
    finding.confidence = is_known ? "medium" : "low";
    finding.sentence = fmt::format(
        "{} is matrix products in fp32 on CUDA cores{}", time_in(time_ns, row),
        is_known ? fmt::format("; its tensor cores are {:.0f} times as fast", cores.speedup) : "");
    finding.next =
        is_known && !cores.has_bf16
            ? "run the model in fp16 (autocast(dtype=torch.float16), in training with GradScaler): "
              "this GPU has neither bf16 nor TF32"
            : "run the model in bf16 (model.to(torch.bfloat16) or autocast), or allow TF32: "
              "torch.backends.cuda.matmul.allow_tf32 = True";
    finding.evidence = {"families[family=gemm].total_ns"};
  }
}

// Small memory-moving kernels in a row: each reads and writes what the next one reads again. The
// confidence is low because the names do not tell whether neighbours depend on one another.
void check_fusion(const FindingContext& context) {
  static constexpr std::string_view kFusible[] = {
      "elementwise", "activation", "norm", "reduction", "copy", "rope", "softmax"};
  for (const StageLedger& row : context.scopes) {
    std::int64_t launches = 0;
    const std::int64_t time_ns = kernel_time(context, row, [&](const KernelRecord& kernel) {
      const bool is_small =
          kernel.median_ns < kTinyKernelNs &&
          std::find(std::begin(kFusible), std::end(kFusible), kernel.family) != std::end(kFusible);
      launches += is_small ? kernel.calls : 0;
      return is_small;
    });
    if (!is_large(time_ns, row) || launches < kManyLaunches) {
      continue;
    }
    Finding& finding = context.add("fusion", row, Bucket::kCompute, time_ns);
    finding.confidence = "low";
    finding.sentence = fmt::format("{} launches of small memory-moving kernels take {}", launches,
                                   time_in(time_ns, row));
    finding.next = "fuse them: torch.compile, or the engine's fused norm, rope and activation";
    finding.evidence = {"families[family=elementwise].total_ns"};
  }
}

void check_families(const FindingContext& context) {
  for (const UnwantedFamily& rule : family_rules()) {
    for (const StageLedger& row : context.scopes) {
      const std::int64_t time_ns = kernel_time(context, row, [&](const KernelRecord& kernel) {
        return std::find(rule.families.begin(), rule.families.end(), kernel.family) !=
               rule.families.end();
      });
      if (!is_large(time_ns, row)) {
        continue;
      }
      Finding& finding = context.add(rule.id, row, Bucket::kCompute, time_ns);
      finding.confidence = "low";
      finding.sentence = fmt::format("{} goes into {}", time_in(time_ns, row), rule.what);
      finding.next = rule.next;
      finding.evidence = {fmt::format("families[family={}].total_ns", rule.families.front())};
    }
  }
}

// A stage whose kernels take more than twice the time that its FLOPs and bytes need. Other rules
// deal with time without kernels.
void check_roofs(const FindingContext& context) {
  const Analysis& analysis = context.analysis;
  if (!analysis.efficiency || analysis.efficiency->gpu.empty()) {
    const std::string reason = analysis.efficiency ? analysis.efficiency->reason
                                                   : "needs a model: llmprof analyze --model NAME";
    context.silent("decode_off_memory_roof", reason);
    context.silent("prefill_off_compute_roof", reason);
    return;
  }
  for (const StageEfficiency& stage : analysis.efficiency->stages) {
    const double busy_fraction = stage.sol.busy_fraction.value_or(1);
    if (busy_fraction >= kFarFromRoof || !stage.bound_ns || !stage.busy_ns) {
      continue;
    }
    for (const StageLedger& row : context.scopes) {
      if (row.stage != stage.stage) {
        continue;
      }
      const auto bound_ns = static_cast<std::int64_t>(*stage.bound_ns);
      const std::int64_t saving_ns = row.ledger[Bucket::kCompute] - bound_ns;
      if (!is_large(saving_ns, row)) {
        continue;
      }
      const bool is_memory = stage.side == "memory";
      Finding& finding =
          context.add(is_memory ? "decode_off_memory_roof" : "prefill_off_compute_roof", row,
                      Bucket::kCompute, saving_ns);
      finding.confidence = "medium";
      finding.sentence = fmt::format(
          "while {} works in {} it reaches {} of its {} roof: the kernels, not the gaps between "
          "them, are slow",
          row.device, printable(stage.stage), format_fraction(busy_fraction),
          is_memory ? "memory" : "compute");
      finding.next =
          is_memory ? "look at the kernels on top: fused or paged attention, GEMV kernels made "
                      "for small batches, fewer passes over the weights; llmprof run joins "
                      "counters"
                    : "look at the products on top: type, shapes that are no multiples of 64, "
                      "split batches; llmprof run joins counters";
      finding.evidence = {
          fmt::format("efficiency.stages[stage={}].sol.busy_fraction", path_value(stage.stage)),
          fmt::format("efficiency.stages[stage={}].bound_ns", path_value(stage.stage))};
    }
  }
}

// Counters of kernels that take a large part of the time.
void check_counters(const FindingContext& context) {
  const Analysis& analysis = context.analysis;
  if (!analysis.counters) {
    for (const char* id : {"low_occupancy", "attention_off_roof", "gemv_memory_bound"}) {
      context.silent(id,
                     "needs an ncu capture: llmprof run on a GPU, or llmprof analyze --ncu FILE");
    }
    return;
  }
  std::map<const StageLedger*, std::int64_t> gemv_ns;
  for (const KernelRecord& record : analysis.kernels) {
    if (!record.counters) {
      continue;
    }
    const KernelCounters& counters = analysis.counters->kernels[*record.counters];
    const auto row =
        std::find_if(context.scopes.begin(), context.scopes.end(),
                     [&](const StageLedger& scope) { return is_kernel_in(record, scope); });
    if (row == context.scopes.end()) {
      continue;
    }
    const Bound bound = counters.roofline.bound;
    // The roof of a latency-bound matrix-vector product is still bytes, not FLOPs.
    const bool is_memory_side = counters.roofline.memory_fraction.value_or(0) >
                                counters.roofline.compute_fraction.value_or(0);
    if ((record.family == "gemv" && is_memory_side) ||
        (record.family == "gemm" && bound == Bound::kMemory)) {
      gemv_ns[&*row] += record.covered_ns;
    }
    const auto winnable = static_cast<std::int64_t>(counters.winnable_ns.value_or(0));
    const std::int64_t saving_ns =
        std::min({winnable, record.covered_ns, row->ledger[Bucket::kCompute]});
    const bool is_attention = record.family == "attention";
    const double occupancy = counters.input.achieved_occupancy_fraction.value_or(1);
    const bool is_starved = bound == Bound::kLatency && occupancy < kLowOccupancy;
    if (!is_large(saving_ns, *row) || (!is_attention && !is_starved)) {
      continue;
    }
    Finding& finding = context.add(is_starved ? "low_occupancy" : "attention_off_roof", *row,
                                   Bucket::kCompute, saving_ns);
    finding.confidence = confidence_name(counters.representativeness.confidence);
    finding.sentence = fmt::format(
        "{} {}: {}", printable(record.short_name),
        is_starved ? fmt::format("holds {} of the warps an SM can", format_fraction(occupancy))
                   : std::string("is far from its roof"),
        counters.roofline.reason);
    finding.next = is_starved
                       ? "launch more blocks (larger batch, split-K), or use fewer registers "
                         "and less shared memory a block"
                       : "another attention kernel: FlashAttention 3 on Hopper, FlashInfer or "
                         "flash-decoding (split KV) for long contexts";
    finding.evidence = {fmt::format("kernels[short_name={},stage={},device={}].covered_ns",
                                    path_value(record.short_name), path_value(record.stage),
                                    record.device)};
  }
  // Memory-bound products are reported once per scope, not per kernel.
  for (const auto& [row, covered_ns] : gemv_ns) {
    const std::int64_t time_ns = std::min(covered_ns, row->ledger[Bucket::kCompute]);
    if (!is_large(time_ns, *row)) {
      continue;
    }
    Finding& finding =
        context.add("gemv_memory_bound", *row, Bucket::kCompute,
                    static_cast<std::int64_t>(static_cast<double>(time_ns) * kFewerBytes));
    finding.confidence = "low";
    finding.sentence = fmt::format(
        "{} is matrix products whose roof is memory: fewer bytes make them faster, more FLOP/s do "
        "not",
        time_in(time_ns, *row));
    finding.next = "serve more sequences at once, or store weights in 8 or 4 bits (FP8, AWQ, GPTQ)";
    finding.evidence = {"counters.coverage", "families[family=gemv].total_ns"};
  }
}

}  // namespace llmprof
