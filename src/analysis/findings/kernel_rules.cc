// SPDX-License-Identifier: Apache-2.0
//
// Rules on kernels: GEMMs in the wrong type, many small kernels, stages far from their roof, and
// counters.
//
// All of them save time in the compute bucket, so they overlap each other and are bounded by it.
#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "analysis/findings/fused_paths.h"
#include "analysis/findings/rule.h"
#include "base/cut_name.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"
#include "model/roofline.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kManyLaunches = 100;
constexpr double kFarFromRoof = 0.5;    // of the speed of light, over the time the GPU worked
constexpr double kLowOccupancy = 0.25;  // of the warps an SM can hold
// Weights of 16 bits reduced to 4: the saving for a memory-bound product.
constexpr double kFewerBytes = 0.75;
// Tensor cores in bf16 against fp32 on CUDA cores: TF32 has half the rate of bf16.
constexpr double kNoTf32Gain = 2.5;

// cuBLAS, CUTLASS and cuDNN name the type in the kernel: sgemm and scudnn are fp32 on CUDA cores,
// s16816gemm and s1688gemm are tensor cores, f32f32_f32f32_f32 is fp32 without tensor cores. The
// templates of cuDNN's older convolutions begin with their type.
enum class OffTensorCores : std::uint8_t { kNot, kFp32, kHalf };

OffTensorCores off_tensor_cores(const KernelRow& kernel) {
  const std::string name = to_lower(kernel.kernel_name);
  if (kernel.family != "gemm") {
    return OffTensorCores::kNot;
  }
  const bool is_half = has_one_of(name, {"__half", "bfloat16", "_fp16_"});
  const bool is_old_convolution = has_one_of(
      name,
      {"convolve_sgemm<", "dgrad_engine<", "wgrad_alg0_engine<", "winograd_nonfused::", "scudnn_"});
  if (is_old_convolution) {
    return is_half ? OffTensorCores::kHalf : OffTensorCores::kFp32;
  }
  return !is_half && has_one_of(name, {"_sgemm", "f32f32_f32f32_f32"}) ? OffTensorCores::kFp32
                                                                       : OffTensorCores::kNot;
}

// Workstation GPUs have all of the rate that GeForce GPUs have when they accumulate in fp16.
bool is_workstation(std::string_view gpu) {
  return has_one_of(gpu, {"Ada Generation", "RTX A", "RTX PRO"});
}

// Tensor cores against fp32 on CUDA cores. From Ampere on it depends on the line of products; GPUs
// for data centers have rows in the table, and of others nothing is claimed.
TensorCores cores_of(const FindingContext& context, const LedgerRow& row) {
  const DeviceRow* device = device_of(context.analysis, row);
  if (device == nullptr) {
    return {};
  }
  if (context.facts.tensor_cores) {
    if (const auto cores = context.facts.tensor_cores(device->name)) {
      return *cores;
    }
  }
  const auto& kernels = context.analysis.kernels;
  const bool is_volta = device->compute_major == 0 &&
                        std::any_of(kernels.begin(), kernels.end(), [](const KernelRow& kernel) {
                          return kernel.kernel_name.starts_with("volta_");
                        });
  if (is_volta) {
    return {8, false, 7};
  }
  if (context.workload.is_amd || device->compute_major < 7) {
    return {};
  }
  if (device->compute_major == 7) {
    return {4, false, 7};
  }
  const bool is_geforce = device->name.find("GeForce") != std::string::npos;
  const double speedup = is_workstation(device->name) ? 4 : is_geforce ? 2 : 0;
  return {speedup, true, static_cast<int>(device->compute_major)};
}

// Keys of the wanted kernels that take most of the time.
template <typename Wanted>
std::vector<std::string> largest_kernels(const FindingContext& context, const LedgerRow& row,
                                         Wanted wanted) {
  constexpr std::size_t kMostKeys = 3;
  std::vector<const KernelRow*> found;
  for (const KernelRow& kernel : context.analysis.kernels) {
    if (is_kernel_in(kernel, row) && wanted(kernel) && time_in_row(kernel, row) > 0) {
      found.push_back(&kernel);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](const KernelRow* a, const KernelRow* b) {
    return time_in_row(*a, row) > time_in_row(*b, row);
  });
  found.resize(std::min(found.size(), kMostKeys));
  std::vector<std::string> keys;
  keys.reserve(found.size());
  for (const KernelRow* kernel : found) {
    keys.push_back(kernel_evidence(*kernel, row));
  }
  return keys;
}

bool has_convolutions(const Analysis& analysis) {
  return std::any_of(analysis.kernels.begin(), analysis.kernels.end(), [](const KernelRow& kernel) {
    return has_one_of(to_lower(kernel.kernel_name), {"conv", "wgrad", "dgrad", "cudnn"});
  });
}

bool is_large(std::int64_t time_ns, const LedgerRow& row) {
  return share_of(time_ns, row) >= kLeastKernelShare;
}

// Families of kernels that a stage had better not run at all.
struct UnwantedFamily {
  FindingId id;
  std::vector<std::string_view> families;
  const char* what;
  const char* next;
};

const std::vector<UnwantedFamily>& family_rules() {
  static const std::vector<UnwantedFamily> kRules = {
      {FindingId::kSampling,
       {"sampling"},
       "sampling tokens",
       "sample in one fused GPU kernel (FlashInfer, or the engine's own), use greedy decoding where it is "
       "good enough, and overlap sampling with the next step"},
      {FindingId::kKvCacheCopy,
       {"kv_cache"},
       "writing and moving the KV cache",
       "write keys and values where attention reads them (paged attention), and avoid cache swaps "
       "and defragmentation in the step"},
  };
  return kRules;
}

// GEMMs on CUDA cores reach this share of their peak or more. One that reaches less can gain more
// than the ratio of the peaks, so a bound takes the least.
constexpr double kLeastFp32Efficiency = 0.6;

void check_tensor_cores(const FindingContext& context) {
  for (const LedgerRow& row : context.scopes) {
    const auto time_of = [&](OffTensorCores kind) {
      const auto is_off = [&](const KernelRow& kernel) { return off_tensor_cores(kernel) == kind; };
      return kernels_where(context, row, is_off).time_ns;
    };
    const std::int64_t fp32_ns = time_of(OffTensorCores::kFp32);
    const std::int64_t half_ns = time_of(OffTensorCores::kHalf);
    const bool is_half = half_ns > fp32_ns;
    const std::int64_t time_ns = std::min(fp32_ns + half_ns, row[Bucket::kCompute]);
    const TensorCores cores = cores_of(context, row);
    // Without a known speedup there is no bound.
    if (!is_large(time_ns, row) || cores.speedup <= 1) {
      continue;
    }
    Finding& finding =
        context.add(FindingId::kGemmOffTensorCores, row, Bucket::kCompute,
                    static_cast<std::int64_t>(static_cast<double>(time_ns) *
                                              (1 - kLeastFp32Efficiency / cores.speedup)));
    finding.confidence = Confidence::kMedium;
    finding.bound = Product{time_ns, "of these kernels", 1 - kLeastFp32Efficiency / cores.speedup,
                            fmt::format("1 - {:g} of the FP32 peak / {:.3g} times the peak",
                                        kLeastFp32Efficiency, cores.speedup)};
    finding.sentence = fmt::format(
        "{} is {} on CUDA cores; the tensor cores of this GPU are {:.0f}x faster (the bound assumes 60 % "
        "of the FP32 peak today)",
        time_in(time_ns, row),
        fmt::format("{} {}", is_half ? "half-precision" : "FP32",
                    has_convolutions(context.analysis) ? "GEMMs and convolutions" : "GEMMs"),
        cores.speedup);
    finding.advice.text =
        is_half
            ? "use layouts and sizes that cuDNN's tensor-core kernels accept: channels_last, channel "
              "counts that are multiples of 8"
        : !cores.has_bf16 ? "run the model in fp16 (PyTorch: autocast(dtype=torch.float16), in "
                            "training with GradScaler): this GPU has neither bf16 nor TF32"
        // GeForce and workstation GPUs of Ampere and later gain nothing from TF32.
        : cores.speedup <= kNoTf32Gain
            ? "run the model in bf16 (PyTorch: model.to(torch.bfloat16) or autocast)"
            : "run the model in bf16 (PyTorch: model.to(torch.bfloat16) or autocast), or allow TF32, "
              "half as fast: torch.backends.cuda.matmul.allow_tf32 = True";
    finding.evidence = largest_kernels(context, row, [&](const KernelRow& kernel) {
      return off_tensor_cores(kernel) == (is_half ? OffTensorCores::kHalf : OffTensorCores::kFp32);
    });
  }
}

// Of the window. More than other rules ask for, because the bound is rough.
constexpr double kLeastFusionShare = 0.05;

// "; 8.10 ms of it is 48 times add bf16, pow f32, mean f32 (with RMSNorm in parts)".
std::string largest_row(const KernelChains& chains, const FusedPath* path) {
  if (chains.num_rows < 2) {
    return "";
  }
  return fmt::format("; {} of it is {} times {}{}", format_duration_ns(chains.row_ns),
                     chains.num_rows, printable_name(chains.row_kernels),
                     path == nullptr ? "" : fmt::format(" (with {} in parts)", path->what));
}

// Whether the compiler of PyTorch made the kernels of the largest row: what it could fuse is fused.
bool is_compiled(const KernelChains& chains) {
  return chains.row_kernels.find("triton_") != std::string::npos &&
         chains.row_kernels.find("_fused_") != std::string::npos;
}

// What fuses all rows, then what fuses the largest alone, with its own bound.
Advice fusion_advice(const FindingContext& context, const KernelChains& chains,
                     const FusedPath* path, const LedgerRow& row) {
  const Workload& workload = context.workload;
  const bool is_known = workload.is_pytorch || !workload.engine.empty();
  if (is_compiled(chains)) {
    return {.text =
                "torch.compile made these kernels: look for graph breaks between them "
                "(TORCH_LOGS=graph_breaks), and for reductions that it could not join"};
  }
  Advice advice;
  advice.text = workload.engine == "vllm" ? "fuse them: run compiled (vLLM without --enforce-eager)"
                : !workload.engine.empty() ? "fuse them: the engine's compiled mode"
                : workload.is_pytorch      ? "fuse them: torch.compile"
                                           : "fuse them into one kernel";
  advice.fix = workload.engine.empty() && workload.is_pytorch ? Fix::kCompile : Fix::kNoFix;
  if (path != nullptr && is_known) {
    const std::int64_t saving_ns =
        std::min(chains.row_ns - chains.row_fused_ns, row[Bucket::kCompute]);
    advice.more =
        fmt::format("; {} alone (at most {} of it): {}", path->what, format_duration_ns(saving_ns),
                    fused_path_advice(*path, workload.engine));
  } else if (is_known) {
    advice.more = fmt::format("; or by hand: fused norm{} and activation kernels",
                              has_family(context.analysis, "rope") ? ", RoPE" : "");
  }
  return advice;
}

// Memory-moving kernels in a row: each reads and writes what the next one reads again. The
// confidence is low because the names do not tell whether neighbours depend on one another.
void check_fusion(const FindingContext& context) {
  for (const LedgerRow& row : context.scopes) {
    const KernelChains chains = chains_in(context.analysis, row);
    const std::int64_t time_ns = std::min(chains.mover_ns, row[Bucket::kCompute]);
    const std::int64_t saving_ns =
        std::min(chains.mover_ns - chains.fused_ns, row[Bucket::kCompute]);
    if (share_of(saving_ns, row) < kLeastFusionShare || chains.num_movers < kManyLaunches) {
      continue;
    }
    Finding& finding = context.add(FindingId::kFusion, row, Bucket::kCompute, saving_ns);
    finding.confidence = Confidence::kLow;
    const FusedPath* path = fused_path_of(chains.row_kernels);
    finding.sentence = fmt::format(
        "{} is {} memory-bound kernels (pointwise, copies, reductions), most of them one after the other, "
        "so that they could be fused{}",
        time_in(time_ns, row), chains.num_movers, largest_row(chains, path));
    finding.bound = Difference{time_ns, "of memory-bound kernels", time_ns - saving_ns,
                               "that remains if each row of them is one kernel"};
    finding.advice = fusion_advice(context, chains, path, row);
    finding.evidence = {chain_evidence(row, &KernelChains::mover_ns),
                        chain_evidence(row, &KernelChains::fused_ns)};
  }
}

void check_families(const FindingContext& context) {
  for (const UnwantedFamily& rule : family_rules()) {
    for (const LedgerRow& row : context.scopes) {
      const auto is_of_rule = [&](const KernelRow& kernel) {
        return std::find(rule.families.begin(), rule.families.end(), kernel.family) !=
               rule.families.end();
      };
      const std::int64_t time_ns = kernels_where(context, row, is_of_rule).time_ns;
      if (!is_large(time_ns, row)) {
        continue;
      }
      Finding& finding = context.add(rule.id, row, Bucket::kCompute, time_ns);
      finding.confidence = Confidence::kLow;
      finding.sentence = fmt::format("{} is spent {}", time_in(time_ns, row), rule.what);
      finding.advice.text = rule.next;
      finding.evidence = {fmt::format("families[family={}].total_ns", rule.families.front())};
    }
  }
}

// The two parts of the model that take most time above what the GPU needs for them, else the family
// of kernels with most time in the stage.
std::string where_to_look(const Analysis& analysis, const RowName& stage) {
  std::map<std::string, std::int64_t> above_ns;
  if (analysis.structure) {
    for (const LayerPartRow& part : analysis.structure->parts) {
      const auto pass =
          std::find_if(analysis.structure->passes.begin(), analysis.structure->passes.end(),
                       [&](const PassRow& one) { return one.pass == part.pass; });
      if (part.above_roof_ns && pass != analysis.structure->passes.end() &&
          (pass->kind == stage.text() || analysis.structure->passes.size() == 1)) {
        above_ns[part.part] += *part.above_roof_ns;
      }
    }
  }
  std::vector<std::pair<std::int64_t, std::string>> parts;
  parts.reserve(above_ns.size());
  for (const auto& [part, time_ns] : above_ns) {
    parts.emplace_back(time_ns, fmt::format("{} ({} above this GPU's limit)", printable_name(part),
                                            format_duration_ns(time_ns)));
  }
  std::sort(parts.rbegin(), parts.rend());
  if (!parts.empty() && parts.front().first > 0) {
    return fmt::format(
        "faster kernels for {}{}; gpuwhy table layers FILE --model NAME lists all parts",
        parts[0].second, parts.size() > 1 ? " and " + parts[1].second : "");
  }
  std::map<std::string, std::int64_t> family_ns;
  std::int64_t all_ns = 0;
  for (const KernelRow& kernel : analysis.kernels) {
    if (kernel.stage == stage) {
      family_ns[kernel.family] += kernel.total_ns;
      all_ns += kernel.total_ns;
    }
  }
  const auto most =
      std::max_element(family_ns.begin(), family_ns.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == family_ns.end() || all_ns == 0
             ? "begin with the kernels that take most time"
             : fmt::format(
                   "begin with the {} kernels ({} of the kernel time): data type, shapes, "
                   "batch",
                   printable_name(most->first),
                   format_fraction(static_cast<double>(most->second) /
                                   static_cast<double>(all_ns)));
}

// A stage whose kernels take more than twice the time that its FLOPs and bytes need. Other rules
// deal with time without kernels.
void check_roofs(const FindingContext& context) {
  const Analysis& analysis = context.analysis;
  if (!analysis.efficiency || analysis.efficiency->gpu.empty()) {
    const std::string reason = analysis.efficiency ? analysis.efficiency->reason
                                                   : "needs a model: gpuwhy analyze --model NAME";
    context.silent(FindingId::kDecodeOffMemoryRoof, reason);
    context.silent(FindingId::kPrefillOffComputeRoof, reason);
    return;
  }
  for (const StageEfficiency& stage : analysis.efficiency->stages) {
    const double busy_fraction = stage.sol.busy_fraction.value_or(1);
    if (busy_fraction >= kFarFromRoof || !stage.bound_ns || !stage.busy_ns) {
      continue;
    }
    for (const LedgerRow& row : context.scopes) {
      if (row.stage != stage.stage) {
        continue;
      }
      const auto bound_ns = static_cast<std::int64_t>(*stage.bound_ns);
      const std::int64_t saving_ns = row[Bucket::kCompute] - bound_ns;
      if (!is_large(saving_ns, row)) {
        continue;
      }
      const bool is_memory = stage.side == "memory";
      Finding& finding = context.add(
          is_memory ? FindingId::kDecodeOffMemoryRoof : FindingId::kPrefillOffComputeRoof, row,
          Bucket::kCompute, saving_ns);
      finding.confidence = Confidence::kMedium;
      finding.bound = Difference{row[Bucket::kCompute], "of kernels", bound_ns,
                                 "that the model needs on this GPU at least"};
      finding.sentence = fmt::format(
          "while busy in {1}, {0} reaches {2} of its {3} roof: the kernels themselves are slow, not only "
          "the gaps between them",
          row.device, printable_name(stage.stage.text()), format_fraction(busy_fraction),
          is_memory ? "memory" : "compute");
      finding.advice.text = where_to_look(analysis, stage.stage);
      finding.evidence = {
          evidence("efficiency.stages", stage, &StageEfficiency::sol, &TwoClocks::busy_fraction),
          evidence("efficiency.stages", stage, &StageEfficiency::bound_ns)};
    }
  }
}

// Counters of kernels that take a large part of the time.
void check_counters(const FindingContext& context) {
  const Analysis& analysis = context.analysis;
  if (!analysis.counters) {
    for (const FindingId id :
         {FindingId::kLowOccupancy, FindingId::kAttentionOffRoof, FindingId::kGemvMemoryBound}) {
      context.silent(id, "needs an ncu capture: gpuwhy run on a GPU, or gpuwhy analyze --ncu FILE");
    }
    return;
  }
  std::map<const LedgerRow*, std::int64_t> gemv_ns;
  // Launch groups are by time: the first of a kernel is what most of its row is.
  std::map<std::tuple<std::string_view, RowName, std::string_view>, const CounterRow*> measured;
  for (const LaunchGroup& group : analysis.launch_groups) {
    if (group.counters) {
      measured.try_emplace({group.kernel_name, group.stage, group.gpu},
                           &analysis.counters->kernels[*group.counters]);
    }
  }
  for (const KernelRow& record : analysis.kernels) {
    const auto found = measured.find({record.kernel_name, record.stage, record.device});
    if (found == measured.end()) {
      continue;
    }
    const CounterRow& counters = *found->second;
    const auto row =
        std::find_if(context.scopes.begin(), context.scopes.end(),
                     [&](const LedgerRow& scope) { return is_kernel_in(record, scope); });
    if (row == context.scopes.end()) {
      continue;
    }
    // The roof of a latency-bound matrix-vector product is still bytes, not FLOPs.
    const bool is_memory_side = counters.roofline.memory_fraction.value_or(0) >
                                counters.roofline.compute_fraction.value_or(0);
    constexpr double kNearMemoryRoof = 0.4;  // below, fewer bytes do not help
    if ((record.family == "gemv" && is_memory_side &&
         counters.roofline.memory_fraction.value_or(0) >= kNearMemoryRoof) ||
        (record.family == "gemm" && counters.bound == bound_name(BoundBy::kMemory))) {
      gemv_ns[&*row] += record.covered_ns;
    }
    const auto winnable = static_cast<std::int64_t>(counters.winnable_ns.value_or(0));
    const std::int64_t saving_ns =
        std::min({winnable, record.covered_ns, (*row)[Bucket::kCompute]});
    const bool is_attention = record.family == "attention";
    const double occupancy = counters.roofline.achieved_occupancy_fraction.value_or(1);
    const bool is_starved =
        counters.bound == bound_name(BoundBy::kLatency) && occupancy < kLowOccupancy;
    if (!is_large(saving_ns, *row) || (!is_attention && !is_starved)) {
      continue;
    }
    Finding& finding =
        context.add(is_starved ? FindingId::kLowOccupancy : FindingId::kAttentionOffRoof, *row,
                    Bucket::kCompute, saving_ns);
    finding.confidence = counters.confidence == "high"     ? Confidence::kHigh
                         : counters.confidence == "medium" ? Confidence::kMedium
                                                           : Confidence::kLow;
    finding.bound = Difference{record.covered_ns, "of this kernel", record.covered_ns - saving_ns,
                               "at its roof, by its counters"};
    finding.sentence =
        fmt::format("{} {}: {}", printable_name(record.short_name),
                    is_starved ? fmt::format("has an occupancy of {}", format_fraction(occupancy))
                               : std::string("is far from its roof"),
                    counters.bound_reason);
    finding.advice.text =
        is_starved
            ? "launch more blocks (larger batch, split-K), or use fewer registers and less shared "
              "memory per block"
            : "another attention kernel: FlashAttention 3 on Hopper, FlashInfer or "
              "flash-decoding (split KV) for long contexts";
    finding.evidence = {evidence("kernels", record, &KernelRow::covered_ns)};
  }
  // Memory-bound products are reported once per scope, not per kernel.
  for (const auto& [row, covered_ns] : gemv_ns) {
    const std::int64_t time_ns = std::min(covered_ns, (*row)[Bucket::kCompute]);
    if (!is_large(time_ns, *row)) {
      continue;
    }
    Finding& finding =
        context.add(FindingId::kGemvMemoryBound, *row, Bucket::kCompute,
                    static_cast<std::int64_t>(static_cast<double>(time_ns) * kFewerBytes));
    finding.confidence = Confidence::kLow;
    finding.bound =
        Product{time_ns, "of these kernels", kFewerBytes, "weights in 4 bits instead of 16"};
    finding.sentence = fmt::format(
        "{} is memory-bound GEMM or GEMV: fewer bytes make it faster, more FLOP/s do not",
        time_in(time_ns, *row));
    finding.advice.text =
        "serve more sequences at once, or store weights in 8 or 4 bits (FP8, AWQ, GPTQ)";
    finding.evidence = {path_of<Results>(&Results::counters, &CountersRow::coverage),
                        "families[family=gemv].total_ns"};
  }
}

constexpr Rule kOnKernels[] = {check_tensor_cores, check_fusion, check_families, check_roofs,
                               check_counters};

}  // namespace

const std::span<const Rule> kKernelRules = kOnKernels;

}  // namespace gpuwhy
