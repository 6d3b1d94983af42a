// SPDX-License-Identifier: Apache-2.0
//
// Rules on which kernels were chosen: attention in parts, kernels of an older GPU generation,
// layouts that must be converted, launches that leave most of the GPU empty.
#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "analysis/findings/rule.h"
#include "analysis/kernels/kernel_chains.h"
#include "analysis/names/gpu_generation.h"
#include "analysis/names/kernel_names.h"
#include "base/cut_name.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kFewAttentions = 4;
constexpr std::int64_t kHopper = 9;
// FlashAttention 3 against 2 on an H100, forward, bf16: 1.5 to 2 times as fast by its authors. A
// bound takes the most.
constexpr double kFlash3Speedup = 2;
constexpr double kLeastEmptyShare = 0.10;        // of the window
constexpr std::int64_t kEmptyKernelNs = 20'000;  // shorter ones are bound by their launch

// FlashAttention 2 is compiled for Ampere. Kernels for Hopper name it.
bool is_flash_2(const KernelRow& kernel) {
  const std::string& name = kernel.kernel_name;
  return kernel.family == "attention" && has_one_of(name, {"flash_fwd_", "flash_bwd_"}) &&
         !has_one_of(name, {"Sm90", "sm90", "Sm100", "mla"});
}

// As the recording says, or the table of GPUs, or the kernels. 0 if not known.
std::int64_t generation(const FindingContext& context, const DeviceRow& device) {
  if (device.compute_major > 0) {
    return device.compute_major;
  }
  if (context.facts.tensor_cores && !device.name.empty()) {
    const auto cores = context.facts.tensor_cores(device.name);
    return cores ? cores->compute_major : 0;
  }
  int latest = 0;
  for (const KernelRow& kernel : context.analysis.kernels) {
    latest = std::max(latest, generation_of_kernel(kernel.kernel_name));
  }
  return latest;
}

// What the batched products reach of the GPU's peak, by their time: those of attention in parts are
// batched. Nullopt where the recording has no sizes.
std::optional<double> batched_peak_fraction(const Analysis& analysis) {
  if (!analysis.operators) {
    return std::nullopt;
  }
  double at_peak_ns = 0;
  double total_ns = 0;
  for (const GemmRate& rate : analysis.gemm_rates) {
    if (rate.peak_fraction && (rate.op == "aten::bmm" || rate.op == "aten::baddbmm")) {
      at_peak_ns += static_cast<double>(rate.total_ns) * *rate.peak_fraction;
      total_ns += static_cast<double>(rate.total_ns);
    }
  }
  return total_ns > 0 ? std::optional(at_peak_ns / total_ns) : std::nullopt;
}

// A fused kernel computes the same products and moves nothing in between. At best it runs them at
// the GPU's peak; where their rate is not known, they keep their time.
void check_unfused_attention(const FindingContext& context) {
  const auto fraction = batched_peak_fraction(context.analysis);
  for (const LedgerRow& row : context.scopes) {
    const KernelChains chains = chains_in(context.analysis, row);
    const std::int64_t moving_ns = chains.attention_ns - chains.product_ns;
    const auto faster_ns = static_cast<std::int64_t>(static_cast<double>(chains.product_ns) *
                                                     (1 - fraction.value_or(1)));
    const std::int64_t saving_ns = std::min(moving_ns + faster_ns, row[Bucket::kCompute]);
    if (chains.num_attentions < kFewAttentions || share_of(saving_ns, row) < kLeastKernelShare) {
      continue;
    }
    Finding& finding = context.add(FindingId::kUnfusedAttention, row, Bucket::kCompute, saving_ns);
    finding.bound =
        Difference{chains.attention_ns, "of attention in parts", chains.attention_ns - saving_ns,
                   fraction ? "for its GEMMs at the GPU's peak" : "for its GEMMs"};
    finding.confidence = Confidence::kHigh;
    finding.sentence = fmt::format(
        "{} is unfused attention (GEMM, softmax, GEMM; {} times); {} of it is softmax and data movement "
        "that a fused kernel avoids{}",
        time_in(chains.attention_ns, row), chains.num_attentions,
        format_duration_ns(std::min(moving_ns, saving_ns)),
        fraction
            ? fmt::format(", and its GEMMs reach {} of the GPU's peak", format_fraction(*fraction))
            : " (a gain of its GEMMs is not counted)");
    finding.advice.text =
        context.workload.is_pytorch
            ? "use the fused path: F.scaled_dot_product_attention; in transformers "
              "attn_implementation=\"sdpa\""
            : "use a fused attention kernel";
    finding.evidence = {chain_evidence(row, &KernelChains::attention_ns)};
  }
}

void check_flash_generation(const FindingContext& context) {
  for (const LedgerRow& row : context.scopes) {
    const DeviceRow* device = device_of(context.analysis, row);
    if (device == nullptr || context.workload.is_amd || generation(context, *device) != kHopper) {
      continue;
    }
    const WantedKernels found = kernels_where(context, row, is_flash_2);
    const auto saving_ns =
        static_cast<std::int64_t>(static_cast<double>(found.time_ns) * (1 - 1 / kFlash3Speedup));
    if (share_of(saving_ns, row) < kLeastKernelShare) {
      continue;
    }
    Finding& finding = context.add(FindingId::kFlashAttention2, row, Bucket::kCompute, saving_ns);
    finding.bound = Difference{found.time_ns, "of FlashAttention 2", found.time_ns - saving_ns,
                               "if FlashAttention 3 is twice as fast"};
    finding.confidence = Confidence::kHigh;
    finding.sentence =
        fmt::format("{} is FlashAttention 2, built for Ampere, on a Hopper GPU ({})",
                    time_in(found.time_ns, row), printable_name(found.largest->short_name));
    finding.advice.text =
        "use FlashAttention 3 (flash_attn_interface; in vLLM it is the default on Hopper) or "
        "cuDNN's attention: 1.5 to 2 times as fast on Hopper";
    finding.evidence = {kernel_evidence(*found.largest, row)};
  }
}

// Convolutions on matrix units compute in NHWC. Around a model in NCHW, the library converts.
void check_layouts(const FindingContext& context) {
  for (const LedgerRow& row : context.scopes) {
    const auto is_conversion = [](const KernelRow& kernel) {
      return converts_layout(kernel.kernel_name);
    };
    const WantedKernels found = kernels_where(context, row, is_conversion);
    if (share_of(found.time_ns, row) < kLeastKernelShare) {
      continue;
    }
    Finding& finding =
        context.add(FindingId::kLayoutConversion, row, Bucket::kCompute, found.time_ns);
    finding.confidence = Confidence::kHigh;
    finding.sentence = fmt::format(
        "{} is conversion between NCHW and NHWC around convolutions ({} launches; most time: {})",
        time_in(found.time_ns, row), found.calls, printable_name(found.largest->short_name));
    finding.advice.text = !context.workload.is_pytorch
                              ? "keep images in NHWC from end to end"
                              : fmt::format(
                                    "keep model and input in NHWC: "
                                    ".to(memory_format=torch.channels_last) on both{}",
                                    context.workload.is_amd
                                        ? ", with PYTORCH_MIOPEN_SUGGEST_NHWC=1 in the environment"
                                        : "");
    finding.evidence = {kernel_evidence(*found.largest, row)};
  }
}

constexpr double kWarpsOfFullSm = 64;

double threads_of(const LaunchShape& shape) {
  return static_cast<double>(shape.block[0]) * shape.block[1] * shape.block[2];
}

// Names that compilers give to the loops of OpenMP.
bool is_openmp(std::string_view kernel_name) {
  return kernel_name.starts_with("nvkernel_") || kernel_name.starts_with("__omp_offloading");
}

// Time of launches with fewer blocks than the GPU has SMs: at best the empty SMs' share of it.
void check_empty_sms(const FindingContext& context) {
  for (const LedgerRow& row : context.scopes) {
    const DeviceRow* device = device_of(context.analysis, row);
    if (device == nullptr || device->num_sms == 0) {
      continue;
    }
    std::int64_t time_ns = 0;
    double empty_ns = 0;
    const LaunchGroup* largest = nullptr;
    for (const LaunchGroup& group : context.analysis.launch_groups) {
      const double blocks =
          static_cast<double>(group.shape.grid[0]) * group.shape.grid[1] * group.shape.grid[2];
      if (!group.has_shape || blocks < 1 || blocks >= static_cast<double>(device->num_sms) ||
          group.family == "communication" || group.median_ns < kEmptyKernelNs ||
          !is_in_row(group.gpu, group.stage, row)) {
        continue;
      }
      const std::int64_t group_ns = time_in_row(group, row);
      time_ns += group_ns;
      // A block of one warp leaves most of its own SM empty too.
      const double num_warps_per_sm = threads_of(group.shape) <= 32 ? kWarpsOfFullSm : 1;
      empty_ns += static_cast<double>(group_ns) *
                  (1 - blocks / num_warps_per_sm / static_cast<double>(device->num_sms));
      largest = largest == nullptr || group.total_ns > largest->total_ns ? &group : largest;
    }
    const std::int64_t saving_ns =
        std::min(static_cast<std::int64_t>(empty_ns), row[Bucket::kCompute]);
    if (share_of(saving_ns, row) < kLeastEmptyShare) {
      continue;
    }
    Finding& finding = context.add(FindingId::kEmptySms, row, Bucket::kCompute, saving_ns);
    const std::int64_t shown_ns = std::min(time_ns, row[Bucket::kCompute]);
    finding.bound =
        Difference{shown_ns, "of these kernels", shown_ns - saving_ns, "if all SMs worked"};
    finding.confidence = Confidence::kMedium;
    finding.sentence = fmt::format(
        "{} is kernels with fewer blocks than the GPU has SMs ({}); most of it: {} with grid and block "
        "{}, {} {} of {}",
        time_in(shown_ns, row), device->num_sms,
        printable_name(short_kernel_names({largest->kernel_name})[0]), largest->shape.text(),
        largest->calls, largest->calls == 1 ? "launch" : "launches",
        format_duration_ns(largest->median_ns));
    finding.advice.text =
        is_openmp(largest->kernel_name)
            ? "launch more teams: target teams distribute parallel for on the outer loops, or a larger "
              "num_teams"
            : "launch more blocks: a larger grid or batch, or split-K";
    finding.evidence = {evidence("devices", *device, &DeviceRow::num_sms)};
  }
}

constexpr Rule kOnChoice[] = {check_unfused_attention, check_flash_generation, check_layouts,
                              check_empty_sms};

}  // namespace

const std::span<const Rule> kChoiceRules = kOnChoice;

}  // namespace gpuwhy
