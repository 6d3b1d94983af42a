// SPDX-License-Identifier: Apache-2.0
//
// Generated recordings of layered models.
#include "analysis/model_trace.h"

#include <string_view>

#include "trace_builder.h"

namespace gpuwhy {
namespace {

struct Named {
  std::string name;
  std::int64_t time_ns;
};

// Kernels of one layer of a kind.
std::vector<Named> layer_of(const ModelTraceOptions& options, int kind) {
  std::vector<Named> kernels;
  const auto add = [&](std::string_view name, std::int64_t time_ns) {
    kernels.push_back({std::string(name), time_ns});
  };
  add("fused_add_rms_norm_kernel<bf16>", 4'000);
  add("gemm_qkv", 25'000);
  for (int i = 0; i < options.num_plain_kernels; ++i) {
    add("elementwise_kernel_" + std::string(1, static_cast<char>('a' + i)), 3'000);
  }
  add("rotary_embedding_kernel<bf16>", 5'000);
  add("reshape_and_cache_flash_kernel", 4'000);
  if (options.is_fused_attention) {
    add(kind == 0 ? "flash_fwd_sliding_kernel" : "flash_fwd_full_kernel", 40'000 + 9'000 * kind);
  } else {
    add("gemm_scores", 12'000);
    add("softmax_warp_forward", 9'000);
    add("gemm_values", 12'000);
  }
  if (kind > 0) {
    add("reduce_segments_" + std::string(1, static_cast<char>('a' + kind)), 6'000);
  }
  add("gemm_o", 17'000);
  add("fused_add_rms_norm_kernel<bf16>", 4'000);
  if (options.has_experts) {
    add("gemm_router", 8'000);
    add("moe_topk_softmax_kernel", 5'000);
    add("gemm_experts_up", 140'000);
    add("gemm_experts_down", 160'000);
    add("moe_sum_kernel", 5'000);
  } else {
    add("gemm_gate_up", 67'000);
    add("act_and_mul_silu_kernel", 9'000);
    add("gemm_down", 41'000);
  }
  return kernels;
}

std::vector<Named> backward_layer() {
  return {{"gemm_down_grad", 80'000},     {"act_and_mul_silu_backward_kernel", 12'000},
          {"gemm_gate_up_grad", 130'000}, {"rms_norm_backward_kernel", 9'000},
          {"gemm_o_grad", 34'000},        {"flash_bwd_dq_dk_dv_kernel", 90'000},
          {"gemm_qkv_grad", 50'000}};
}

constexpr int kPromptTokens = 1024;
constexpr int kPromptFactor = 8;  // by which a prompt takes longer

std::vector<Named> prologue() {
  return {{"prepare_inputs_kernel", 3'000}, {"vectorized_gather_kernel", 5'000}};
}

std::vector<Named> epilogue() {
  return {{"fused_add_rms_norm_kernel<bf16>", 4'000},
          {"gemm_lm_head", 390'000},
          {"argmax_kernel", 20'000}};
}

}  // namespace

ModelTrace make_model_trace(const ModelTraceOptions& options, std::mt19937& random,
                            const std::optional<Planted>& planted) {
  TraceBuilder builder;
  ModelTrace made;
  std::uniform_real_distribution<double> chance(0, 1);
  std::uniform_int_distribution<std::int64_t> jitter(0, 400);
  std::uniform_int_distribution<int> tile(1, 9);
  const std::uint16_t process = builder.add_process();
  for (int d = 0; d < options.num_devices; ++d) {
    const std::uint16_t device = builder.add_device();
    const std::uint32_t stream = builder.add_stream(process, device);
    const std::uint32_t side = builder.add_stream(process, device);
    std::int64_t now_ns = 1'000'000;
    const auto grid_of = [&](const std::string& name, bool is_prompt) -> std::uint32_t {
      const int num_tokens = is_prompt ? kPromptTokens : options.num_sequences;
      const int num_tiles = is_prompt ? kPromptTokens / 64 : options.tile_grid;
      const bool is_product = name.starts_with("gem");
      const bool is_attention = name.find("flash") != std::string::npos;
      LaunchShape shape{{is_product ? 132 : num_tokens, 1, 1}, {128, 1, 1}};
      if (is_attention) {
        shape.grid[0] = num_tiles;
        shape.grid[1] = 8;
      }
      return builder.add_shape(shape);
    };
    const auto run = [&](const Named& kernel, int pass, std::optional<int> layer,
                         std::int64_t extra_ns = 0, bool is_side = false) {
      std::string name = kernel.name;
      if (options.has_autotuned_names && name.starts_with("gemm")) {
        name += "_tile" + std::to_string(16 * tile(random));
      }
      if (!options.product_name.empty() && name.starts_with("gemm")) {
        name = options.product_name;
      }
      const bool is_prompt = options.prefill_every > 0 && pass % options.prefill_every == 0;
      const std::string& attention =
          is_prompt ? options.prefill_attention : options.decode_attention;
      if (!attention.empty() && name.starts_with("flash_fwd")) {
        name = attention;
      }
      const std::int64_t time_ns =
          kernel.time_ns * (is_prompt ? kPromptFactor : 1) + jitter(random) + extra_ns;
      KernelExtras extras;
      if (options.num_sequences > 0) {
        extras.shape = grid_of(name, is_prompt);
      }
      builder.kernel(is_side ? side : stream, now_ns, now_ns + time_ns, name, TraceBuilder::kNoCall,
                     extras);
      made.layers.push_back(layer);
      made.passes.push_back(pass);
      now_ns += time_ns + 700;
      if (chance(random) < options.stray_share) {
        builder.kernel(stream, now_ns, now_ns + 2'000, "memset_stray_kernel");
        made.layers.push_back(std::nullopt);
        made.passes.push_back(pass);
        now_ns += 2'700;
      }
    };
    for (int pass = 0; pass < options.num_passes; ++pass) {
      for (const Named& kernel : prologue()) {
        run(kernel, pass, -1);
      }
      for (int layer = 0; layer < options.num_layers; ++layer) {
        std::vector<Named> kernels = layer_of(options, layer % options.num_kinds);
        if (layer == 0 && options.is_first_norm_other) {
          kernels.front().name = "rms_norm_kernel<bf16>";
        }
        for (std::size_t i = 0; i < kernels.size(); ++i) {
          const bool is_longer = planted && (planted->pass == pass || planted->pass < 0) &&
                                 planted->layer == layer &&
                                 planted->position == static_cast<int>(i);
          run(kernels[i], pass, layer, is_longer ? planted->extra_ns : 0);
          if (options.has_communication &&
              (kernels[i].name == "gemm_o" || i + 1 == kernels.size())) {
            run({"ncclDevKernel_AllReduce_Sum_bf16", 15'000}, pass, layer, 0, true);
          }
        }
      }
      for (const Named& kernel : epilogue()) {
        run(kernel, pass, options.num_layers);
      }
      for (int layer = 0; options.has_backward && layer < options.num_layers; ++layer) {
        for (const Named& kernel : backward_layer()) {
          run(kernel, pass, std::nullopt);
        }
      }
      now_ns += 30'000;
    }
  }
  if (options.has_shuffled_rows) {
    builder.shuffle(random);
  }
  made.trace = builder.finish();
  return made;
}

ModelTraceOptions random_model(std::mt19937& random) {
  const auto up_to = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  ModelTraceOptions options;
  options.num_layers = up_to(4, 40);
  options.num_passes = up_to(1, 6);
  options.num_kinds = up_to(1, 2);
  options.num_devices = up_to(1, 2);
  options.is_fused_attention = up_to(0, 1) == 1;
  options.has_experts = up_to(0, 3) == 0;
  options.has_communication = up_to(0, 1) == 1;
  options.is_first_norm_other = up_to(0, 1) == 1;
  options.has_autotuned_names = up_to(0, 1) == 1;
  options.num_plain_kernels = up_to(0, 6);
  options.stray_share = up_to(0, 2) == 0 ? 0.01 : 0;
  return options;
}

}  // namespace gpuwhy
