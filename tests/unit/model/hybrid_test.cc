// SPDX-License-Identifier: Apache-2.0
//
// Costs of models whose layers are not all alike: states, picked and compressed tokens, windows.
//
// Figures are worked out by hand from the published config.json, next to where they are expected.

#include "base/json.h"
#include "config/presets.h"
#include "model/llm.h"
#include "testing.h"

namespace gpuwhy {
namespace {

Json preset_config(const std::string& name) {
  return embedded_yaml("model/llm/" + name + ".yaml").at("config");
}

Llm preset(const std::string& name) {
  return llm_from_config(preset_config(name));
}

struct Published {
  const char* name;
  double total_b;   // 10^9 weights, as its authors state them
  double active_b;  // without the table that tokens are looked up in
};

class PublishedSizes : public testing::TestWithParam<Published> {};

// Authors round, count tables in or out, and add vision towers or layers that predict further
// tokens: 3 % of all weights, 8 % of the active ones.
TEST_P(PublishedSizes, AreCounted) {
  const LlmParams params = params_of(preset(GetParam().name));
  EXPECT_NEAR(static_cast<double>(params.text) / 1e9, GetParam().total_b,
              0.03 * GetParam().total_b);
  EXPECT_NEAR(static_cast<double>(params.active_matmul) / 1e9, GetParam().active_b,
              0.08 * GetParam().active_b);
}

INSTANTIATE_TEST_SUITE_P(
    Models, PublishedSizes,
    testing::Values(Published{"qwen3_next_80b_a3b", 80, 3.3}, Published{"qwen3_5_35b_a3b", 35, 3},
                    Published{"qwen3_5_397b_a17b", 397, 17}, Published{"kimi_k2", 1030, 32},
                    Published{"kimi_linear_48b_a3b", 48, 3}, Published{"deepseek_v3_2", 671, 37},
                    Published{"deepseek_v4_flash", 284, 13}, Published{"deepseek_v4_pro", 1600, 49},
                    Published{"glm_5", 744, 40}, Published{"glm_4_6", 355, 32},
                    Published{"glm_4_5_air", 106, 12}, Published{"minimax_m2_5", 230, 10},
                    Published{"mimo_v2_flash", 309, 15},
                    Published{"nemotron_3_nano_30b_a3b", 31.6, 3.2},
                    Published{"nemotron_3_super_120b_a12b", 120, 12},
                    Published{"nemotron_h_8b", 8.1, 7.6}, Published{"nemotron_h_56b", 56, 55},
                    Published{"granite_4_h_small", 32, 9}),
    [](const auto& model) { return std::string(model.param.name); });

// 16 key heads and 32 value heads of 128, hidden 2048: queries and keys are 2048 wide, values 4096.
TEST(HybridCost, OfAGatedDeltaNetByHand) {
  const Llm llm = preset("qwen3_next_80b_a3b");
  const std::int64_t in = 2048 * (2 * 2048 + 2 * 4096 + 2 * 32);
  const std::int64_t attention = 2048 * (2 * 4096 + 2 * 512);  // queries come with a gate
  const LlmCost cost = cost_of(llm, decode_work(4096));
  EXPECT_EQ(cost.flops[LlmPart::kQkv].value(), 2 * (36 * in + 12 * attention));
  EXPECT_EQ(cost.flops[LlmPart::kOut].value(), 2 * 48 * (4096 * 2048));
  // A convolution of 4 taps over 8192 channels, and three visits to 32 matrices of 128 x 128.
  EXPECT_EQ(cost.flops[LlmPart::kState].value(), 2 * 36 * (8192 * 4 + 3 * 32 * 128 * 128));
  EXPECT_EQ(cost.flops[LlmPart::kScores].value(), 2 * 12 * 4096LL * 4096);
  // Keys and values of 12 layers; 36 states in bf16, with 3 columns for the convolution.
  EXPECT_EQ(kv_bytes_per_token(llm), 12 * 2 * 2 * 256 * 2);
  const std::int64_t state = 36 * 2 * (32 * 128 * 128 + 8192 * 3);
  EXPECT_EQ(cost.state_read_bytes.value(), state);
  EXPECT_EQ(cost.state_write_bytes.value(), state);
  EXPECT_EQ(sequence_bytes(llm, 100'000).state.value(), state);
  EXPECT_EQ(sequence_bytes(llm, 100'000).kv.value(), 100'000LL * 24'576);
}

// Its files hold 81,324,862,720 weights with the layer that predicts a second token.
TEST(HybridCost, WithTheLayerThatPredictsFurtherItIsWhatTheFilesHold) {
  const LlmParams params = params_of(preset("qwen3_next_80b_a3b"));
  EXPECT_EQ(params.total + params.mtp, 81'324'862'720);
}

// 128 heads of 64 in 8 groups, state 128, hidden 4096: 8192 channels and 2 x 1024 for B and C.
TEST(HybridCost, OfMambaByHand) {
  const Llm llm = preset("nemotron_h_8b");
  const LlmCost cost = cost_of(llm, decode_work(1000, 2));
  EXPECT_EQ(cost.flops[LlmPart::kState].value(), 2 * 2 * 24 * (10'240 * 4 + 2 * 128 * 64 * 128LL));
  EXPECT_EQ(cost.flops[LlmPart::kMlp].value(), 2 * 2 * 24 * (2 * 4096 * 21'504LL));
  EXPECT_EQ(cost.flops[LlmPart::kValues].value(), 2 * 2 * 4 * 1000 * 4096LL);
  EXPECT_EQ(cost.state_read_bytes.value(), 2 * 24 * 2 * (128 * 64 * 128LL + 10'240 * 3));
  EXPECT_EQ(kv_bytes_per_token(llm), 4 * 2 * 8 * 128 * 2);
}

// Jamba 1: 28 of 32 layers are Mamba 1, every other has 16 experts. Published as 52 B, 12 B active.
// MiniMax-01: 70 of 80 layers are lightning attention. Published as 456 B, 45.9 B active.
TEST(HybridCost, OfOlderStatesIsOfThePublishedSize) {
  const LlmParams jamba = params_of(llm_from_config({{"model_type", "jamba"},
                                                     {"hidden_size", 4096},
                                                     {"num_hidden_layers", 32},
                                                     {"num_attention_heads", 32},
                                                     {"num_key_value_heads", 8},
                                                     {"intermediate_size", 14336},
                                                     {"attn_layer_period", 8},
                                                     {"attn_layer_offset", 4},
                                                     {"expert_layer_period", 2},
                                                     {"expert_layer_offset", 1},
                                                     {"num_experts", 16},
                                                     {"num_experts_per_tok", 2},
                                                     {"mamba_d_state", 16},
                                                     {"mamba_d_conv", 4},
                                                     {"mamba_dt_rank", 256},
                                                     {"vocab_size", 65536}}));
  EXPECT_EQ(jamba.total, 51'570'323'328);
  EXPECT_NEAR(static_cast<double>(jamba.active) / 1e9, 12, 0.2);
  Json types = Json::array();
  for (int i = 0; i < 80; ++i) {
    types.push_back(i % 8 == 7 ? 1 : 0);
  }
  const LlmParams minimax = params_of(llm_from_config({{"model_type", "minimax"},
                                                       {"hidden_size", 6144},
                                                       {"num_hidden_layers", 80},
                                                       {"num_attention_heads", 64},
                                                       {"num_key_value_heads", 8},
                                                       {"head_dim", 128},
                                                       {"intermediate_size", 9216},
                                                       {"num_local_experts", 32},
                                                       {"num_experts_per_tok", 2},
                                                       {"attn_type_list", types},
                                                       {"vocab_size", 200064}}));
  EXPECT_NEAR(static_cast<double>(minimax.total) / 1e9, 456, 1);
  EXPECT_NEAR(static_cast<double>(minimax.active_matmul) / 1e9, 45.9, 1.5);
}

// The state is kept in fp32 where the configuration says so.
TEST(HybridCost, AStateHasAWidthOfItsOwn) {
  const Llm llm = preset("qwen3_5_35b_a3b");
  EXPECT_EQ(sequence_bytes(llm, 1).state.value(), 30 * (32 * 128 * 128 * 4 + 8192 * 3 * 2));
}

// 61 layers; queries of 1536 to 64 heads of 128; at 4096 tokens a query attends to 2048.
TEST(HybridCost, OfPickedTokensByHand) {
  const Llm llm = preset("deepseek_v3_2");
  const LlmCost cost = cost_of(llm, decode_work(4096));
  EXPECT_EQ(cost.flops[LlmPart::kScores].value(), 2 * 61 * 2048LL * 128 * 192);
  const std::int64_t weights = 1536 * 64 * 128 + 7168 * 128 + 7168 * 64;
  EXPECT_EQ(cost.flops[LlmPart::kIndexer].value(), 2 * 61 * (weights + 4096LL * 64 * 128));
  EXPECT_EQ(params_of(llm).parts[LlmPart::kIndexer].value(), 61 * weights);
  // 576 values in bf16 of 2048 tokens; keys of the indexer, 132 bytes of all 4096.
  EXPECT_EQ(cost.kv_read_bytes.value(), 61 * (2048LL * 576 * 2 + 4096 * 132));
  EXPECT_EQ(kv_bytes_per_token(llm), 61 * (576 * 2 + 132));
  EXPECT_EQ(cost_of(llm, decode_work(1000)).flops[LlmPart::kScores].value(),
            2 * 61 * 1000LL * 128 * 192);
}

TEST(HybridCost, AnIndexerMayServeSeveralLayers) {
  Json config = preset_config("glm_5");
  Json types = Json::array();
  for (int i = 0; i < 78; ++i) {
    types.push_back(i % 4 == 0 ? "full" : "shared");
  }
  config["indexer_types"] = types;
  const std::int64_t all = params_of(preset("glm_5")).parts[LlmPart::kIndexer].value();
  EXPECT_EQ(params_of(llm_from_config(config)).parts[LlmPart::kIndexer].value(), all / 78 * 20);
}

// A window of 128; one entry for 4 tokens, of which 512 are picked, or for 128, of which all are.
TEST(HybridCost, OfCompressedEntriesByHand) {
  const Llm llm = preset("deepseek_v4_flash");
  EXPECT_EQ(attention_pairs(llm.layers[0], 1, 4095).value(), 128);
  EXPECT_EQ(attention_pairs(llm.layers[2], 1, 4095).value(), 128 + 512);
  EXPECT_EQ(attention_pairs(llm.layers[3], 1, 4095).value(), 128 + 32);
  EXPECT_EQ(attention_pairs(llm.layers[2], 1, 399).value(), 128 + 100);
  // 21 layers of the one, 20 of the other; an entry is 512 wide, an indexer's key 132 bytes.
  const SequenceBytes bytes = sequence_bytes(llm, 4096);
  EXPECT_EQ(bytes.kv.value(), 2 * 512 * (43 * 128 + 21 * 1024 + 20 * 32) + 21 * 1024 * 132);
}

TEST(HybridCost, EntriesAddUpAsCountedOneByOne) {
  LlmLayer layer;
  layer.reach = Reach::kWindow;
  layer.reach_tokens = 8;
  for (const std::int64_t ratio : {1, 4, 5}) {
    for (const std::int64_t picked : {0, 1, 3, 100}) {
      layer.compressed_by = ratio;
      layer.picked_entries = picked;
      std::int64_t pairs = 0;
      for (std::int64_t p = 1; p <= 60; ++p) {
        const std::int64_t entries = p / ratio;
        pairs += std::min<std::int64_t>(p, 8) + (picked == 0 ? entries : std::min(entries, picked));
        EXPECT_EQ(attention_pairs(layer, p, 0).value(), pairs)
            << ratio << " " << picked << " " << p;
      }
    }
  }
}

// 39 layers have a window and 8 KV heads, 9 have none and 4; keys are 192 wide, values 128.
TEST(HybridCost, LayersWithAWindowMayHaveHeadsOfTheirOwn) {
  const Llm llm = preset("mimo_v2_flash");
  EXPECT_EQ(kv_bytes_per_token(llm), 2 * (39 * 8 + 9 * 4) * (192 + 128));
  EXPECT_EQ(sequence_bytes(llm, 1000).kv.value(),
            2 * (39 * 8 * 128 + 9 * 4 * 1000LL) * (192 + 128));
  const LlmCost cost = cost_of(llm, decode_work(1000));
  EXPECT_EQ(cost.flops[LlmPart::kScores].value(), 2 * 64 * 192 * (39 * 128 + 9 * 1000LL));
}

// Reading a prompt at once computes what reading it token by token does, but the head only once.
TEST(HybridCost, APromptIsTheSumOfItsTokens) {
  for (const char* name :
       {"qwen3_next_80b_a3b", "kimi_linear_48b_a3b", "deepseek_v3_2", "deepseek_v4_flash",
        "mimo_v2_flash", "nemotron_3_nano_30b_a3b", "granite_4_h_small", "minimax_m2_5"}) {
    const Llm llm = preset(name);
    constexpr std::int64_t kTokens = 300;
    PartCounts sum;
    for (std::int64_t context = 1; context <= kTokens; ++context) {
      const LlmCost step = cost_of(llm, decode_work(context));
      for (std::size_t i = 0; i < kNumLlmParts; ++i) {
        sum.counts[i] += step.flops.counts[i];
      }
    }
    const LlmCost prompt = cost_of(llm, prefill_work(kTokens));
    for (std::size_t i = 0; i < kNumLlmParts; ++i) {
      const std::int64_t times = i == static_cast<std::size_t>(LlmPart::kLmHead) ? kTokens : 1;
      EXPECT_EQ(prompt.flops.counts[i].value() * times, sum.counts[i].value())
          << name << " " << kLlmPartNames[i];
    }
  }
}

// The sums of one request tell as much as its numbers do.
TEST(HybridCost, AStepOfOneRequestCostsWhatItsWorkDoes) {
  for (const char* name : {"qwen3_next_80b_a3b", "deepseek_v3_2", "deepseek_v4_flash"}) {
    const Llm llm = preset(name);
    StepCounts counts;
    counts.context = {0, 0, 0, 0, 0};
    counts.generation = {1, 1, 5000, 1, 5000};
    const LlmCost step = cost_of(llm, counts);
    const LlmCost work = cost_of(llm, decode_work(5000));
    EXPECT_EQ(step.total_flops(), work.total_flops()) << name;
    EXPECT_EQ(step.state_read_bytes.value(), work.state_read_bytes.value()) << name;
  }
}

TEST(HybridCost, TensorParallelismDividesStates) {
  const Llm llm = preset("qwen3_next_80b_a3b");
  const Llm shard = shard_of(llm, 4);
  EXPECT_EQ(sequence_bytes(shard, 1).state.value() * 4, sequence_bytes(llm, 1).state.value());
  expect_error([&] { shard_of(llm, 64); }, ErrorKind::kUsage, HasSubstr("do not divide"), "");
}

// Parts that a plain transformer lacks, in the words of files that are not known.
class Refused : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Refused, HasNoCostAndSaysWhy) {
  Json config = preset_config("llama_3_1_8b");
  config["model_type"] = "brand_new";
  config.merge_patch(parse_json(GetParam().first, "patch"));
  const Llm llm = llm_from_config(config);
  EXPECT_THAT(llm.no_cost_reason, AllOf(HasSubstr(GetParam().second), HasSubstr("no cost model")));
  const auto wanted = HasSubstr(GetParam().second);
  const auto hint = testing::A<const std::string&>();
  expect_error([&] { params_of(llm); }, ErrorKind::kInput, wanted, hint);
  expect_error([&] { cost_of(llm, decode_work(1)); }, ErrorKind::kInput, wanted, hint);
  expect_error([&] { kv_bytes_per_token(llm); }, ErrorKind::kInput, wanted, hint);
  expect_error([&] { shard_of(llm, 1); }, ErrorKind::kInput, wanted, hint);
}

INSTANTIATE_TEST_SUITE_P(
    Keys, Refused,
    testing::Values(
        std::pair(R"({"linear_num_value_heads": 32, "linear_num_key_heads": 16})",
                  "brand_new: linear attention (linear_num_value_heads, linear_num_key_heads)"),
        std::pair(R"({"num_experts": 512, "num_experts_per_tok": 10})",
                  "a mixture of experts (num_experts, num_experts_per_tok)"),
        std::pair(R"({"mamba_d_state": 128})", "a state-space layer (mamba_d_state)"),
        std::pair(R"({"index_topk": 2048})", "sparse attention (index_topk)"),
        std::pair(R"({"sparse_attention_config": {"sparse_topk_blocks": 16}})",
                  "sparse attention (sparse_attention_config)"),
        std::pair(R"({"kv_lora_rank": 512})", "latent attention (kv_lora_rank)"),
        std::pair(R"({"compress_ratios": [4, 128]})", "compressed attention (compress_ratios)"),
        std::pair(R"({"hidden_size_per_layer_input": 256})", "inputs of each layer"),
        std::pair(R"({"model_type": "kimi_linear", "attn_res_block_size": 12})",
                  "attn_res_block_size"),
        std::pair(R"({"model_type": "llama", "num_hidden_layers": 1,
                      "layer_types": ["linear_attention"]})",
                  "llama: linear attention"),
        std::pair(R"({"model_type": "qwen3_next", "layer_types": ["telepathy"]})", "telepathy")));

TEST(RefusedModels, SwitchedOffPartsAreNone) {
  Json config = preset_config("llama_3_1_8b");
  config["model_type"] = "brand_new";
  config.merge_patch(parse_json(
      R"({"num_experts": 0, "use_moe": false, "q_lora_rank": null, "moe_layers": []})", "patch"));
  EXPECT_THAT(llm_from_config(config).no_cost_reason, IsEmpty());
  EXPECT_EQ(params_of(llm_from_config(config)).total, 8'030'261'248);
}

}  // namespace
}  // namespace gpuwhy
