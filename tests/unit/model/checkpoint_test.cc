// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints' directories against configurations, and files that lie.
#include "model/checkpoint.h"

#include "model/gguf.h"
#include "model/llm_goldens.h"
#include "model/made_checkpoint.h"
#include "model/safetensors.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// The keys llama.cpp writes for a model whose config.json is `config`.
GgufWriter made_metadata(const Json& config, const std::string& arch) {
  GgufWriter writer;
  writer.text("general.architecture", arch);
  const auto copy = [&](const char* from, const char* to) {
    if (config.contains(from) && !config[from].is_null()) {
      writer.number(arch + "." + to, config[from].get<std::uint32_t>());
    }
  };
  copy("hidden_size", "embedding_length");
  copy("num_hidden_layers", "block_count");
  copy("intermediate_size", "feed_forward_length");
  copy("num_attention_heads", "attention.head_count");
  copy("num_key_value_heads", "attention.head_count_kv");
  copy("head_dim", "attention.key_length");
  copy("sliding_window", "attention.sliding_window");
  copy("num_local_experts", "expert_count");
  copy("n_routed_experts", "expert_count");
  copy("num_experts_per_tok", "expert_used_count");
  copy("moe_intermediate_size", "expert_feed_forward_length");
  copy("n_shared_experts", "expert_shared_count");
  copy("first_k_dense_replace", "leading_dense_block_count");
  copy("kv_lora_rank", "attention.kv_lora_rank");
  copy("qk_rope_head_dim", "rope.dimension_count");
  if (config.contains("kv_lora_rank")) {  // as files of today have them
    writer.number(arch + ".attention.key_length", 576);
    writer.number(arch + ".attention.value_length", 512);
    writer.number(arch + ".attention.key_length_mla", 192);
    writer.number(arch + ".attention.value_length_mla", 128);
  }
  writer.texts("tokenizer.ggml.tokens", 60);
  return writer;
}

struct MadeModel {
  const char* name;
  const char* architecture;
};

class MadeCheckpoint : public testing::TestWithParam<MadeModel> {
 protected:
  const Json& config() const { return golden_model(GetParam().name).at("config"); }
  std::int64_t total() const { return golden_model(GetParam().name).at("total_params"); }
};

TEST_P(MadeCheckpoint, AGgufGivesTheParametersAndCostsOfItsConfig) {
  GgufWriter writer = made_metadata(config(), GetParam().architecture);
  for (const MadeTensor& tensor : made_tensors(config())) {
    writer.tensor(tensor, GgufWriter::kBf16);
  }
  const TemporaryDirectory folder;
  const Llm llm = load_llm(folder.add("model.gguf", writer.bytes()));
  const Llm expected = llm_from_config(config());
  EXPECT_EQ(params_of(llm).total, total());
  EXPECT_THAT(llm.notes, IsEmpty());
  EXPECT_EQ(llm.is_tied, expected.is_tied);
  for (const LlmWork& work : {prefill_work(9000), decode_work(5000), decode_work(700, 8)}) {
    EXPECT_EQ(cost_of(llm, work).total_flops(), cost_of(expected, work).total_flops());
    EXPECT_EQ(cost_of(llm, work).total_bytes(), cost_of(expected, work).total_bytes());
  }
}

TEST_P(MadeCheckpoint, SafetensorsGiveThem) {
  const TemporaryDirectory folder;
  folder.add("config.json", config().dump());
  folder.add("model.safetensors", made_safetensors(made_tensors(config())));
  for (const auto& path : {folder.path(), folder.path() / "model.safetensors"}) {
    const Llm llm = load_llm(path);
    EXPECT_EQ(params_of(llm).total, total());
    EXPECT_THAT(llm.notes, IsEmpty());
    EXPECT_EQ(cost_of(llm, decode_work(4096, 8)).total_bytes(),
              cost_of(llm_from_config(config()), decode_work(4096, 8)).total_bytes());
  }
}

TEST_P(MadeCheckpoint, ShardsGiveThemAndAMissingOneIsSeen) {
  const TemporaryDirectory folder;
  folder.add("config.json", config().dump());
  const std::vector<MadeTensor> tensors = made_tensors(config());
  const auto middle = tensors.begin() + static_cast<std::ptrdiff_t>(tensors.size() / 2);
  folder.add("a.safetensors", made_safetensors({tensors.begin(), middle}));
  folder.add("b.safetensors", made_safetensors({middle, tensors.end()}));
  Json index = {{"weight_map", Json::object()}};
  for (auto tensor = tensors.begin(); tensor != tensors.end(); ++tensor) {
    index["weight_map"][tensor->hf_name] = tensor < middle ? "a.safetensors" : "b.safetensors";
  }
  folder.add("model.safetensors.index.json", index.dump());
  const Llm llm = load_llm(folder.path());
  EXPECT_EQ(params_of(llm).total, total());
  EXPECT_THAT(llm.notes, IsEmpty());
  EXPECT_THAT(load_llm(folder.path() / "a.safetensors").notes,
              ElementsAre(HasSubstr("a shard is missing")));
}

INSTANTIATE_TEST_SUITE_P(
    Models, MadeCheckpoint,
    testing::Values(MadeModel{"Llama-3.1-8B", "llama"}, MadeModel{"Mistral-7B-v0.1", "llama"},
                    MadeModel{"Mixtral-8x7B", "llama"}, MadeModel{"Qwen2.5-7B", "qwen2"},
                    MadeModel{"Qwen3-8B", "qwen3"}, MadeModel{"Gemma-2-9B", "gemma2"},
                    MadeModel{"DeepSeek-V2-Lite", "deepseek2"},
                    MadeModel{"gpt-oss-20b", "gpt-oss"}));

// llama.cpp prints 8.5008, 4.8944 and 16.0005 bits a weight for its files of this model.
TEST(Gguf, BitsAWeightAreThoseLlamaCppPrints) {
  const Json config = golden_model("Llama-3.1-8B").at("config");
  const auto bits = [&](auto type_of) {
    GgufWriter writer = made_metadata(config, "llama");
    int layer = -1;
    for (const MadeTensor& tensor : made_tensors(config)) {
      layer += tensor.gguf_name.ends_with(".attn_norm.weight") ? 1 : 0;
      writer.tensor(tensor, tensor.shape.size() == 1 ? GgufWriter::kF32 : type_of(tensor, layer));
    }
    const TemporaryDirectory folder;
    double bytes = 0;
    for (const TensorRecord& tensor : read_gguf(folder.add("m.gguf", writer.bytes())).tensors) {
      bytes += static_cast<double>(tensor.bytes);
    }
    return 8 * bytes / 8'030'261'248.0;
  };
  EXPECT_NEAR(bits([](const MadeTensor&, int) { return GgufWriter::kQ8; }), 8.5008, 5e-5);
  EXPECT_NEAR(bits([](const MadeTensor&, int) { return GgufWriter::kBf16; }), 16.0005, 5e-5);
  // Q4_K_M: Q6_K for the head, and for values and down-projections of half of the layers.
  const auto q4_k_m = [](const MadeTensor& tensor, int layer) {
    const bool is_wide_layer = layer < 4 || layer >= 28 || (layer - 4) % 3 == 2;
    const bool is_wide = tensor.gguf_name == "output.weight" ||
                         (is_wide_layer && (tensor.gguf_name.ends_with("attn_v.weight") ||
                                            tensor.gguf_name.ends_with("ffn_down.weight")));
    return is_wide ? GgufWriter::kQ6K : GgufWriter::kQ4K;
  };
  EXPECT_NEAR(bits(q4_k_m), 4.8944, 5e-5);
}

TEST(Gguf, WindowsOfAPatternAreRead) {
  const Json config = golden_model("gpt-oss-20b").at("config");
  GgufWriter writer = made_metadata(config, "gpt-oss");
  std::vector<bool> pattern(24);
  pattern[3] = true;
  writer.flags("gpt-oss.attention.sliding_window_pattern", pattern);
  writer.number("gpt-oss.vocab_size", 201088);
  const TemporaryDirectory folder;
  const Llm llm = load_llm(folder.add("m.gguf", writer.bytes()));
  EXPECT_EQ(llm.layers[3].reach, Reach::kWindow);
  EXPECT_EQ(llm.layers[2].reach, Reach::kFull);
}

TEST(Gguf, CutOffAnywhereItIsOneError) {
  const Json config = {{"hidden_size", 64},        {"num_hidden_layers", 2},
                       {"num_attention_heads", 2}, {"intermediate_size", 128},
                       {"vocab_size", 256},        {"model_type", "llama"}};
  GgufWriter writer = made_metadata(config, "llama");
  for (const MadeTensor& tensor : made_tensors(config)) {
    writer.tensor(tensor, GgufWriter::kBf16);
  }
  const std::string whole = writer.bytes();
  const TemporaryDirectory folder;
  EXPECT_EQ(load_llm(folder.add("whole.gguf", whole)).hidden, 64);
  for (std::size_t length = 0; length < whole.size(); length += 1 + length / 37) {
    const auto path = folder.add("cut.gguf", whole.substr(0, length));
    expect_error([&] { load_llm(path); }, ErrorKind::kInput,
                 AnyOf(HasSubstr("cut off"), HasSubstr("not a GGUF")), "");
  }
  // Any single byte may be wrong: an error or another model, never a crash.
  int errors = 0;
  for (std::size_t at = 0; at < whole.size(); at += at < 400 ? 1 : 97) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    try {
      const Llm llm = load_llm(folder.add("damaged.gguf", damaged));
      params_of(llm);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput) << error.what();
      ++errors;
    }
  }
  EXPECT_GT(errors, 100);
}

std::string gguf_front(std::uint64_t num_tensors, std::uint64_t num_pairs,
                       std::uint64_t version = 3) {
  GgufWriter writer;
  writer.put(0x46554747, 4);
  writer.put(version, 4);
  writer.put(num_tensors, 8);
  writer.put(num_pairs, 8);
  return writer.bytes().substr(24);
}

TEST(Gguf, CountsThatNoModelHasAreRefused) {
  const TemporaryDirectory folder;
  const auto refuses = [&](const std::string& bytes, const char* why) {
    const auto path = folder.add("x.gguf", bytes);
    expect_error([&] { read_gguf(path); }, ErrorKind::kInput, HasSubstr(why), "");
  };
  refuses(gguf_front(UINT64_MAX, 0), "claims 18446744073709551615 tensors");
  refuses(gguf_front(0, std::uint64_t{1} << 63), "keys");
  refuses(gguf_front(0, 0, 9), "GGUF version 9");
  refuses("GGUF", "not a GGUF");
  refuses(std::string(100, '\0'), "not a GGUF");
  GgufWriter name;
  name.put(std::uint64_t{1} << 62, 8);
  refuses(gguf_front(0, 1) + name.bytes().substr(24), "characters of a name");
  GgufWriter list;
  list.put(1, 8);
  list.put('k', 1);
  list.put(9, 4);
  list.put(4, 4);
  list.put(UINT64_MAX / 4, 8);
  refuses(gguf_front(0, 1) + list.bytes().substr(24), "items of a list");
  GgufWriter nested;
  nested.put(1, 8);
  nested.put('k', 1);
  nested.put(9, 4);
  nested.put(9, 4);
  nested.put(1, 8);
  refuses(gguf_front(0, 1) + nested.bytes().substr(24), "unknown type 9");
  GgufWriter huge;
  huge.tensor({"t", "", {std::uint64_t{1} << 63}}, 0);
  refuses(huge.bytes(), "rows of a tensor");
  GgufWriter product;
  product.tensor({"t", "", {std::uint64_t{1} << 40, std::uint64_t{1} << 40}}, 0);
  const auto path = folder.add("p.gguf", product.bytes());
  expect_error([&] { read_gguf(path); }, ErrorKind::kInput, HasSubstr("63 bits"),
               HasSubstr("too large"));
}

TEST(Safetensors, WhatDoesNotFitIsRefused) {
  const TemporaryDirectory folder;
  const auto refuses = [&](const std::string& header, const char* why) {
    GgufWriter length;
    length.put(header.size(), 8);
    const auto path = folder.add("x.safetensors", length.bytes().substr(24) + header);
    expect_error([&] { read_safetensors(path); }, ErrorKind::kInput, HasSubstr(why),
                 testing::A<const std::string&>());
  };
  refuses(R"({"t": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 9]}})", "do not fit");
  refuses(R"({"t": {"dtype": "BF16", "shape": [2], "data_offsets": [8, 4]}})", "do not fit");
  refuses(R"({"t": {"dtype": "BF16", "shape": [-2], "data_offsets": [0, 4]}})",
          "not a whole number");
  refuses(R"({"t": {"dtype": "BF16", "shape": [9223372036854775808], "data_offsets": [0, 4]}})",
          "not a whole number");
  refuses(R"({"t": {"dtype": "BF16", "shape": [4611686018427387904, 4], "data_offsets": [0, 4]}})",
          "63 bits");
  refuses(R"({"t": {"dtype": "WHAT", "shape": [2], "data_offsets": [0, 4]}})", "not known");
  refuses(R"({"t": {"dtype": "BF16"}})", "lacks its");
  refuses(R"({"t": 7})", "lacks its");
  refuses("[1, 2]", "not a mapping");
  refuses("{\"t\": ", "not valid JSON");
  refuses(std::string(200, '['), "nested deeper");
  refuses("", "not a safetensors");
  for (const std::uint64_t claimed : {std::uint64_t{1} << 63, UINT64_MAX, std::uint64_t{1} << 30}) {
    GgufWriter length;
    length.put(claimed, 8);
    const auto path = folder.add("y.safetensors", length.bytes().substr(24) + "{}");
    expect_error([&] { read_safetensors(path); }, ErrorKind::kInput, HasSubstr("cut off"), "");
  }
}

// A search through all keys at each key would take minutes here.
TEST(Checkpoint, ManyKeysAreReadOrRefusedInTime) {
  std::vector<MadeTensor> tensors;
  for (int i = 0; i < 150'000; ++i) {
    tensors.push_back({"", "model.layers.0.mlp.experts." + std::to_string(i), {1}});
  }
  const TemporaryDirectory folder;
  std::string header = "{";
  for (const MadeTensor& tensor : tensors) {
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.hf_name +
              R"(":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]})";
  }
  header += "}";
  GgufWriter length;
  length.put(header.size(), 8);
  EXPECT_EQ(
      read_safetensors(folder.add("m.safetensors", length.bytes().substr(24) + header)).size(),
      150'000U);
  std::string config = "{";
  for (int i = 0; i < 400'000; ++i) {
    config += "\"k" + std::to_string(i) + "\":1,";
  }
  const auto path = folder.add("config.json", config + "\"hidden_size\":1}");
  expect_error([&] { load_llm(path); }, ErrorKind::kInput, HasSubstr("more keys"), "");
}

TEST(Safetensors, AnIndexMayNotLeadElsewhere) {
  const TemporaryDirectory folder;
  folder.add("config.json", golden_model("Llama-3.1-8B").at("config").dump());
  const auto index =
      folder.add("model.safetensors.index.json", R"({"weight_map": {"t": "../../etc/passwd"}})");
  expect_error([&] { load_llm(folder.path()); }, ErrorKind::kInput, HasSubstr("not beside it"), "");
  expect_error([&] { read_safetensors_index(folder.add("i.json", "[]")); }, ErrorKind::kInput,
               HasSubstr("no weight_map"), "");
}

TEST(Checkpoint, SaysWhatIsMissing) {
  const TemporaryDirectory folder;
  expect_error([&] { load_llm(folder.path()); }, ErrorKind::kInput, HasSubstr("has no config.json"),
               HasSubstr("directory of a Hugging Face checkpoint"));
  const auto alone = folder.add("model.safetensors", made_safetensors({}));
  expect_error([&] { load_llm(alone); }, ErrorKind::kInput,
               HasSubstr("does not say how the model is built"),
               HasSubstr("config.json beside it"));
  expect_error([&] { load_llm(folder.path() / "nowhere.json"); }, ErrorKind::kInput,
               HasSubstr("nowhere.json"), "");
  std::string deep;
  for (int i = 0; i < 5000; ++i) {
    deep += R"({"text_config":)";
  }
  const auto nested = folder.add("config.json", deep);
  expect_error([&] { load_llm(nested); }, ErrorKind::kInput, HasSubstr("nested deeper"), "");
}

TEST(Checkpoint, LayersThatPredictFurtherTokensAreLeftOut) {
  Json config = golden_model("Llama-3.1-8B").at("config");
  config["num_hidden_layers"] = 33;
  const TemporaryDirectory folder;
  folder.add("model.safetensors", made_safetensors(made_tensors(config)));
  config["num_hidden_layers"] = 32;
  folder.add("config.json", config.dump());
  const Llm llm = load_llm(folder.path());
  EXPECT_EQ(params_of(llm).total, 8'030'261'248);
  EXPECT_THAT(llm.notes, ElementsAre(HasSubstr("layers beyond the model's 32")));
}

}  // namespace
}  // namespace gpuwhy
