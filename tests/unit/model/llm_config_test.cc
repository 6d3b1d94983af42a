// SPDX-License-Identifier: Apache-2.0
//
// What a config.json may look like, and what it must not.

#include "base/json.h"
#include "model/llm_goldens.h"
#include "testing.h"

namespace gpuwhy {
namespace {

Json llama() {
  return golden_model("Llama-3.1-8B").at("config");
}

Json with(Json config, const std::string& key, const Json& value) {
  config[key] = value;
  return config;
}

TEST(LlmConfig, KeysOfOlderModelsMeanTheSame) {
  const Json old = {{"model_type", "llama"}, {"n_embd", 4096},     {"n_layer", 32},
                    {"n_head", 32},          {"num_kv_heads", 8},  {"intermediate_size", 14336},
                    {"vocab_size", 128256},  {"dtype", "bfloat16"}};
  EXPECT_EQ(params_of(llm_from_config(old)).total, 8'030'261'248);
}

TEST(LlmConfig, TheRootDecidesWhetherTheHeadIsTied) {
  Json nested = llama();
  nested["tie_word_embeddings"] = false;
  Json config = {{"model_type", "x"}, {"text_config", nested}, {"tie_word_embeddings", true}};
  EXPECT_TRUE(llm_from_config(config).is_tied);
  config.erase("tie_word_embeddings");
  EXPECT_FALSE(llm_from_config(config).is_tied);
}

TEST(LlmConfig, AnUnknownTypeIsCountedAndSaysSo) {
  const Llm llm = llm_from_config(with(llama(), "model_type", "brand_new"));
  EXPECT_EQ(params_of(llm).total, 8'030'261'248);
  EXPECT_THAT(llm.notes, ElementsAre(HasSubstr("'brand_new' is not known")));
}

TEST(LlmConfig, LayerTypesBeatTheFamilysRule) {
  Json config = golden_model("gpt-oss-20b").at("config");
  Json types = Json::array();
  for (int i = 0; i < 24; ++i) {
    types.push_back(i < 6 ? "sliding_attention" : "full_attention");
  }
  config["layer_types"] = types;
  const Llm llm = llm_from_config(config);
  EXPECT_EQ(llm.layers[5].reach, Reach::kWindow);
  EXPECT_EQ(llm.layers[6].reach, Reach::kFull);
  config["layer_types"].erase(0);
  expect_error([&] { llm_from_config(config); }, ErrorKind::kInput,
               HasSubstr("23 entries for 24 layers"), "");
}

TEST(LlmConfig, WhatAFileLeavesOutItsClassHas) {
  Json mistral = golden_model("Mistral-7B-v0.1").at("config");
  mistral.erase("sliding_window");
  EXPECT_EQ(llm_from_config(mistral).layers[0].reach_tokens, 4096);
  mistral["sliding_window"] = nullptr;  // said to be none, as later versions do
  EXPECT_EQ(llm_from_config(mistral).layers[0].reach, Reach::kFull);
  Json qwen = golden_model("Qwen3-8B").at("config");
  qwen.erase("head_dim");
  EXPECT_EQ(params_of(llm_from_config(qwen)).total, 8'190'735'360);
  const Json gemma = {{"model_type", "gemma3_text"},
                      {"hidden_size", 2560},
                      {"num_hidden_layers", 34},
                      {"intermediate_size", 10240},
                      {"sliding_window", 1024}};  // all that Gemma 3 4B writes of it
  EXPECT_EQ(params_of(llm_from_config(gemma)).total, 3'880'263'168);
}

TEST(LlmConfig, WindowsOfQwenAreOffUnlessAskedFor) {
  Json config = golden_model("Qwen2.5-7B").at("config");
  EXPECT_EQ(llm_from_config(config).layers[27].reach, Reach::kFull);
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 20;
  const Llm llm = llm_from_config(config);
  EXPECT_EQ(llm.layers[19].reach, Reach::kFull);
  EXPECT_EQ(llm.layers[20].reach, Reach::kWindow);
}

TEST(LlmConfig, WidthsComeFromTheQuantization) {
  const auto mlp_bits = [](const Json& quantization) {
    const Llm llm = llm_from_config(with(llama(), "quantization_config", quantization));
    EXPECT_EQ(llm.width(LlmPart::kLmHead).bits(), 16);  // stays wide
    EXPECT_EQ(llm.width(LlmPart::kNorms).bits(), 16);
    return llm.width(LlmPart::kMlp).bits();
  };
  EXPECT_DOUBLE_EQ(mlp_bits({{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}}), 4.15625);
  EXPECT_DOUBLE_EQ(mlp_bits({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 64}}), 4.3125);
  EXPECT_DOUBLE_EQ(mlp_bits({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", 32}}), 4.625);
  EXPECT_DOUBLE_EQ(mlp_bits({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", -1}}), 4);
  EXPECT_DOUBLE_EQ(mlp_bits({{"quant_method", "fp8"}}), 8);
  EXPECT_NEAR(mlp_bits({{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}}), 8.00195,
              5e-6);
  EXPECT_DOUBLE_EQ(mlp_bits({{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}}), 4.5);
  EXPECT_DOUBLE_EQ(mlp_bits({{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}), 4.5);
}

TEST(LlmConfig, WhatIsStoredNarrowMayBeMultipliedWide) {
  const auto dtype_of = [](const Json& quantization) {
    return llm_from_config(with(llama(), "quantization_config", quantization)).matmul_dtype;
  };
  EXPECT_EQ(dtype_of({{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}}), "bf16");
  EXPECT_EQ(dtype_of({{"quant_method", "fp8"}}), "fp8");
  EXPECT_EQ(dtype_of({{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}}), "fp4");
  const Llm llm =
      llm_from_config(with(llama(), "quantization_config", {{"quant_method", "never heard of"}}));
  EXPECT_THAT(llm.notes, ElementsAre(HasSubstr("'never heard of' is not known")));
}

TEST(LlmConfig, Mxfp4IsForExpertsAlone) {
  Json config = golden_model("gpt-oss-20b").at("config");
  config["quantization_config"] = {{"quant_method", "mxfp4"}};
  const Llm llm = llm_from_config(config);
  EXPECT_DOUBLE_EQ(llm.width(LlmPart::kExperts).bits(), 4.25);
  EXPECT_DOUBLE_EQ(llm.width(LlmPart::kQkv).bits(), 16);
  EXPECT_EQ(llm.matmul_dtype, "bf16");
}

TEST(LlmConfig, AnEightBitKvCacheIsRead) {
  const Json scheme = {{"quant_method", "fp8"}, {"kv_cache_scheme", {{"num_bits", 8}}}};
  const Llm llm = llm_from_config(with(llama(), "quantization_config", scheme));
  EXPECT_EQ(kv_bytes_per_token(llm), 65536);
}

// AWQ files of Llama-3.1-8B hold 5,727,854,592 bytes of tensors.
TEST(LlmConfig, AnAwqCheckpointHasItsPublishedSize) {
  const Json awq = {{"quant_method", "awq"}, {"bits", 4}, {"group_size", 128}};
  const Llm llm = llm_from_config(with(llama(), "quantization_config", awq));
  const LlmParams params = params_of(llm);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < kNumLlmParts; ++i) {
    bytes += llm.widths[i].bytes_of(params.parts.counts[i].value());
  }
  EXPECT_EQ(bytes, 5'727'854'592);
}

class Hostile : public testing::TestWithParam<std::pair<const char*, const char*>> {};

// A JSON merge patch on a good file, and the word that its one error must contain.
TEST_P(Hostile, IsOneClearError) {
  Json config = llama();
  config.merge_patch(parse_json(GetParam().first, "patch"));
  expect_error([&] { llm_from_config(config); }, ErrorKind::kInput, HasSubstr(GetParam().second),
               testing::A<const std::string&>());
}

INSTANTIATE_TEST_SUITE_P(
    Configs, Hostile,
    testing::Values(
        std::pair(R"({"hidden_size": null})", "hidden_size is missing"),
        std::pair(R"({"vocab_size": null})", "vocab_size is missing"),
        std::pair(R"({"num_hidden_layers": null})", "num_hidden_layers is missing"),
        std::pair(R"({"hidden_size": -4096})", "hidden_size is -4096"),
        std::pair(R"({"hidden_size": 0})", "hidden_size is 0"),
        std::pair(R"({"hidden_size": 9223372036854775808})", "hidden_size is 9223372036854775808"),
        std::pair(R"({"hidden_size": 18446744073709551615})", "hidden_size is"),
        std::pair(R"({"hidden_size": 1e300})", "hidden_size is"),
        std::pair(R"({"hidden_size": 4096.5})", "hidden_size is 4096.5"),
        std::pair(R"({"hidden_size": "4096"})", "hidden_size is \"4096\""),
        std::pair(R"({"hidden_size": [4096]})", "hidden_size is"),
        std::pair(R"({"num_attention_heads": 0})", "num_attention_heads is 0"),
        std::pair(R"({"num_key_value_heads": 64})", "64 KV heads"),
        std::pair(R"({"num_hidden_layers": 2000000000})", "num_hidden_layers is 2000000000"),
        std::pair(R"({"model_type": 7})", "model_type is 7"),
        std::pair(R"({"torch_dtype": {}})", "torch_dtype is {}"),
        std::pair(R"({"layer_types": "all"})", "layer_types is"),
        std::pair(R"({"quantization_config": {"quant_method": "awq", "bits": -4}})", "bits is -4"),
        std::pair(R"({"quantization_config": [1]})", "quantization_config is [1]"),
        std::pair(R"({"model_type": "mixtral", "num_local_experts": 2,
                      "num_experts_per_tok": 5})",
                  "5 experts of 2"),
        std::pair(R"({"model_type": "deepseek_v2", "kv_lora_rank": 512, "v_head_dim": 0})",
                  "v_head_dim is 0"),
        std::pair(R"({"model_type": "deepseek_v2", "moe_layer_freq": 0, "n_routed_experts": 8,
                      "num_experts_per_tok": 2})",
                  "moe_layer_freq is 0"),
        std::pair(R"({"text_config": {"text_config": {}}})", "hidden_size is missing"),
        std::pair(R"({"model_type": "qwen2_5_vl", "vision_config": {"depth": 2}})",
                  "fullatt_block_indexes")));

TEST(LlmConfig, SizesThatMultiplyBeyond63BitsAreAnError) {
  Json config = llama();
  for (const char* key : {"hidden_size", "intermediate_size", "vocab_size", "num_attention_heads",
                          "num_key_value_heads", "head_dim"}) {
    config[key] = 2147483648;
  }
  expect_error([&] { params_of(llm_from_config(config)); }, ErrorKind::kInput, HasSubstr("63 bits"),
               HasSubstr("far too large"));
}

TEST(LlmConfig, NotAMappingIsAnError) {
  for (const Json& config : {Json(nullptr), Json(7), Json::array({1}), Json("text")}) {
    expect_error([&] { llm_from_config(config); }, ErrorKind::kInput, HasSubstr("not a mapping"),
                 IsEmpty());
  }
}

}  // namespace
}  // namespace gpuwhy
