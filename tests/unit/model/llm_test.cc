// SPDX-License-Identifier: Apache-2.0
//
// The cost model against published parameter counts, a second implementation's integers, brute
// force and identities that hold for every model.
#include "model/llm.h"

#include <cmath>

#include "model/llm_goldens.h"
#include "testing.h"

namespace gpuwhy {
namespace {

class Golden : public testing::TestWithParam<std::string> {
 protected:
  const Json& golden() const { return golden_model(GetParam()); }
  Llm llm() const { return golden_llm(GetParam()); }
};

TEST_P(Golden, ParametersAreThoseOfThePublishedCheckpoint) {
  const LlmParams params = params_of(llm());
  const Json& expected = golden().at("params");
  EXPECT_EQ(params.total, golden().at("total_params"));
  EXPECT_EQ(params.text, expected.at("text"));
  EXPECT_EQ(params.active, expected.at("active"));
  EXPECT_EQ(params.active_matmul, expected.at("active_matmul"));
  const PartCounts& parts = params.parts;
  EXPECT_EQ((parts[LlmPart::kQkv] + parts[LlmPart::kOut]).value(), expected.at("attention"));
  EXPECT_EQ(parts[LlmPart::kEmbedding].value(), expected.at("embedding"));
  EXPECT_EQ(parts[LlmPart::kLmHead].value(), expected.at("lm_head"));
  EXPECT_EQ(parts[LlmPart::kMlp].value(), expected.at("mlp"));
  EXPECT_EQ(parts[LlmPart::kExperts].value(), expected.at("experts"));
  EXPECT_EQ(parts[LlmPart::kShared].value(), expected.at("shared"));
  EXPECT_EQ(parts[LlmPart::kRouter].value(), expected.at("router"));
}

TEST_P(Golden, KvBytesAreExactAndEightBitsHalveOnlyThem) {
  Llm model = llm();
  EXPECT_EQ(kv_bytes_per_token(model), golden().at("kv_bytes_per_token").at("bf16"));
  const LlmCost wide = cost_of(model, decode_work(4096));
  model.kv_width = {1, 1};
  EXPECT_EQ(kv_bytes_per_token(model), golden().at("kv_bytes_per_token").at("fp8"));
  const LlmCost narrow = cost_of(model, decode_work(4096));
  EXPECT_EQ(wide.kv_read_bytes.value(), 2 * narrow.kv_read_bytes.value());
  EXPECT_EQ(wide.weight_bytes.sum(), narrow.weight_bytes.sum());
  EXPECT_EQ(wide.total_flops(), narrow.total_flops());
}

TEST_P(Golden, FlopsAreExact) {
  for (const Json& form : golden().at("flops")) {
    const bool is_absorbed = form.at("mla") == "absorbed";
    for (const Json& row : form.at("totals")) {
      const std::int64_t tokens = row.at(1);
      LlmWork work = row.at(0) == "decode" ? decode_work(tokens) : prefill_work(tokens);
      work.has_all_logits = row.at(0) == "all_logits";
      work.is_mla_absorbed = is_absorbed;
      EXPECT_EQ(cost_of(llm(), work).total_flops(), row.at(2)) << row << " " << form.at("mla");
    }
  }
}

TEST_P(Golden, FlopsOfEveryPartAreExact) {
  for (const Json& form : golden().at("flops")) {
    LlmWork prefill = prefill_work(2048);
    LlmWork decode = decode_work(4096);
    prefill.is_mla_absorbed = decode.is_mla_absorbed = form.at("mla") == "absorbed";
    const PartCounts prefill_flops = cost_of(llm(), prefill).flops;
    const PartCounts decode_flops = cost_of(llm(), decode).flops;
    std::size_t seen = 0;
    for (std::size_t i = 0; i < kNumLlmParts; ++i) {
      const auto part = static_cast<LlmPart>(i);
      if (!form.at("prefill_2048").contains(kLlmPartNames[i])) {
        EXPECT_EQ(prefill_flops[part].value(), 0) << kLlmPartNames[i];
        continue;
      }
      ++seen;
      EXPECT_EQ(prefill_flops[part].value(), form["prefill_2048"][kLlmPartNames[i]])
          << kLlmPartNames[i];
      EXPECT_EQ(decode_flops[part].value(), form["decode_4096"][kLlmPartNames[i]])
          << kLlmPartNames[i];
    }
    EXPECT_EQ(seen, 9U);
  }
}

TEST_P(Golden, DecodeBytesAreExact) {
  for (const Json& row : golden().at("decode_bytes")) {
    const LlmCost cost = cost_of(llm(), decode_work(row.at(1), row.at(0)));
    EXPECT_EQ(cost.weight_bytes.sum(), row.at(2)) << row;
    EXPECT_EQ(cost.kv_read_bytes.value(), row.at(3)) << row;
    EXPECT_EQ(cost.kv_write_bytes.value(), row.at(4)) << row;
  }
}

// Each token's attention is the same whether it comes alone or with its prompt; only the head is
// spared on all but the last.
TEST_P(Golden, PrefillIsTheSumOfItsDecodeSteps) {
  const Llm model = llm();
  for (const bool is_absorbed : {false, true}) {
    constexpr std::int64_t kTokens = 9001;  // past every window and chunk
    std::int64_t sum = 0;
    LlmWork step = decode_work(1);
    step.is_mla_absorbed = is_absorbed;
    for (std::int64_t context = 1; context <= kTokens; ++context) {
      step.cached_tokens = context - 1;
      sum += cost_of(model, step).total_flops();
    }
    LlmWork prefill = prefill_work(kTokens);
    prefill.is_mla_absorbed = is_absorbed;
    const std::int64_t head = cost_of(model, step).flops[LlmPart::kLmHead].value();
    EXPECT_EQ(cost_of(model, prefill).total_flops(), sum - (kTokens - 1) * head);
  }
}

TEST_P(Golden, ManyStepsAreTheSumOfEach) {
  const Llm model = llm();
  LlmCost sum;
  for (std::int64_t context = 301; context < 340; ++context) {
    sum.add(cost_of(model, decode_work(context, 3)));
  }
  const LlmCost whole = cost_of(model, {LlmWork::Kind::kDecode, 3, 39, 300});
  EXPECT_EQ(whole.total_flops(), sum.total_flops());
  EXPECT_EQ(whole.total_bytes(), sum.total_bytes());
  EXPECT_EQ(whole.most_bytes(), sum.most_bytes());
}

TEST_P(Golden, BatchesAddFlopsAndShareWeights) {
  const Llm model = llm();
  const LlmCost one = cost_of(model, decode_work(777));
  const LlmCost many = cost_of(model, decode_work(777, 16));
  EXPECT_EQ(many.total_flops(), 16 * one.total_flops());
  EXPECT_LT(many.weight_bytes.sum(), 16 * one.weight_bytes.sum());
  EXPECT_EQ(many.kv_read_bytes.value(), 16 * one.kv_read_bytes.value());
  EXPECT_LE(many.least_bytes(), many.total_bytes());
  EXPECT_LE(many.total_bytes(), many.most_bytes());
}

TEST_P(Golden, ShardsAddUpToTheModelAndWhatIsReplicated) {
  const Llm model = llm();
  const std::int64_t num_gpus = model.heads % 4 == 0 ? 2 : model.heads;
  if (model.dense_ff % num_gpus != 0 || (model.moe && model.moe->expert_ff % num_gpus != 0) ||
      model.vocab % num_gpus != 0 ||
      (model.kv_heads >= num_gpus && model.kv_heads % num_gpus != 0)) {
    EXPECT_EQ(model.family, "deepseek_v2") << "only DeepSeek-OCR with its ten heads may not divide";
    return;
  }
  const PartCounts whole = cost_of(model, decode_work(2048, 4)).flops;
  const PartCounts part = cost_of(shard_of(model, num_gpus), decode_work(2048, 4)).flops;
  EXPECT_EQ(part[LlmPart::kMlp].value() * num_gpus, whole[LlmPart::kMlp].value());
  EXPECT_EQ(part[LlmPart::kExperts].value() * num_gpus, whole[LlmPart::kExperts].value());
  EXPECT_EQ(part[LlmPart::kOut].value() * num_gpus, whole[LlmPart::kOut].value());
  EXPECT_EQ(part[LlmPart::kLmHead].value() * num_gpus, whole[LlmPart::kLmHead].value());
  EXPECT_EQ(part[LlmPart::kRouter].value(), whole[LlmPart::kRouter].value());
}

TEST_P(Golden, DistinctExpertsGrowFromTopKToAll) {
  const Llm model = llm();
  if (!model.moe) {
    EXPECT_FALSE(golden().contains("unique_experts"));
    return;
  }
  long double previous = 0;
  for (const Json& row : golden().at("unique_experts")) {
    const long double experts =
        expected_experts(model.moe->experts, model.moe->experts_per_token, row.at(0));
    EXPECT_NEAR(static_cast<double>(experts), row.at(1).get<double>(), 5.1e-5);
    EXPECT_GT(experts, previous);
    previous = experts;
  }
  EXPECT_DOUBLE_EQ(
      static_cast<double>(expected_experts(model.moe->experts, model.moe->experts_per_token, 1)),
      static_cast<double>(model.moe->experts_per_token));
  EXPECT_DOUBLE_EQ(static_cast<double>(expected_experts(model.moe->experts,
                                                        model.moe->experts_per_token, 1'000'000)),
                   static_cast<double>(model.moe->experts));
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const Json& model : golden_models()) {
    names.push_back(model.at("name"));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::ValuesIn(golden_names()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name) {
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           }
                           return name;
                         });

TEST(Llm, ThereAreTwentyFourGoldens) {
  EXPECT_EQ(golden_models().size(), 24U);
}

std::int64_t brute_pairs(const LlmLayer& layer, std::int64_t new_tokens, std::int64_t cached) {
  std::int64_t pairs = 0;
  for (std::int64_t query = cached; query < cached + new_tokens; ++query) {
    for (std::int64_t key = 0; key <= query; ++key) {
      const bool is_seen =
          layer.reach == Reach::kFull ||
          (layer.reach == Reach::kWindow && query - key < layer.reach_tokens) ||
          (layer.reach == Reach::kChunk && query / layer.reach_tokens == key / layer.reach_tokens);
      pairs += is_seen ? 1 : 0;
    }
  }
  return pairs;
}

TEST(Llm, PairsAreThoseOneCanCount) {
  for (const Reach reach : {Reach::kFull, Reach::kWindow, Reach::kChunk}) {
    for (const std::int64_t width : {1, 2, 7, 40}) {
      for (const std::int64_t cached : {0, 1, 6, 7, 8, 33, 60}) {
        for (const std::int64_t fresh : {1, 2, 7, 29}) {
          const LlmLayer layer{reach, width, false};
          EXPECT_EQ(attention_pairs(layer, fresh, cached).value(),
                    brute_pairs(layer, fresh, cached));
        }
      }
    }
  }
}

TEST(Llm, BeyondTheWindowAStepCostsTheSame) {
  const Llm mistral = golden_llm("Mistral-7B-v0.1");
  const LlmCost at = cost_of(mistral, decode_work(4096));
  const LlmCost far = cost_of(mistral, decode_work(100'000));
  EXPECT_EQ(at.total_flops(), far.total_flops());
  EXPECT_EQ(at.total_bytes(), far.total_bytes());
  EXPECT_LT(cost_of(mistral, decode_work(4095)).total_flops(), at.total_flops());
}

TEST(Llm, ATiedHeadChangesTheTotalAndNoCost) {
  Json config = golden_model("Llama-3.1-8B").at("config");
  const Llm untied = llm_from_config(config);
  config["tie_word_embeddings"] = true;
  const Llm tied = llm_from_config(config);
  EXPECT_EQ(params_of(untied).total - params_of(tied).total, 128256LL * 4096);
  EXPECT_EQ(params_of(tied).active_matmul, params_of(untied).active_matmul);
  EXPECT_EQ(cost_of(tied, decode_work(500)).total_flops(),
            cost_of(untied, decode_work(500)).total_flops());
  EXPECT_EQ(cost_of(tied, decode_work(500)).total_bytes(),
            cost_of(untied, decode_work(500)).total_bytes());
}

// Counted by others, from DeepSeek-V3's own code.
TEST(Llm, DeepSeekV3AgreesWithAPublicRecount) {
  const Llm v3 = golden_llm("DeepSeek-V3");
  LlmWork prefill = prefill_work(8192);
  EXPECT_EQ(cost_of(v3, prefill).total_flops(), 752'572'532'523'008);
  prefill.has_all_logits = true;
  EXPECT_EQ(cost_of(v3, prefill).total_flops(), 767'753'388'556'288);
  LlmWork eager = prefill_work(8192);
  eager.is_full_square = true;
  EXPECT_EQ(cost_of(v3, eager).total_flops(), 935'408'443'588'608 - (8191LL * 2 * 7168 * 129280));
  EXPECT_EQ(cost_of(v3, decode_work(8193)).total_flops(), 114'190'598'144);
}

// calflops prints 1700.06 GFLOP for this, element-wise work included.
TEST(Llm, Llama2AgreesWithAProfilersCount) {
  LlmWork work = prefill_work(128);
  work.is_full_square = work.has_all_logits = true;
  const auto flops = static_cast<double>(cost_of(golden_llm("Llama-2-7B"), work).total_flops());
  EXPECT_NEAR(flops, 1700.06e9, 0.0001 * 1700.06e9);
}

TEST(Llm, ClassicAndMultiQueryModelsAreCountedToo) {
  const Json gpt2 = {{"model_type", "gpt2"}, {"n_embd", 768},       {"n_layer", 12},
                     {"n_head", 12},         {"vocab_size", 50257}, {"n_positions", 1024}};
  EXPECT_EQ(params_of(llm_from_config(gpt2)).total, 124'439'808);  // torch counts the same
  const Json starcoder = {{"model_type", "gpt_bigcode"},
                          {"n_embd", 6144},
                          {"n_layer", 40},
                          {"n_head", 48},
                          {"n_inner", 24576},
                          {"vocab_size", 49152},
                          {"n_positions", 8192},
                          {"multi_query", true}};
  const Llm llm = llm_from_config(starcoder);
  EXPECT_EQ(params_of(llm).total, 15'517'456'384);
  EXPECT_EQ(kv_bytes_per_token(llm), 40 * 2 * 128 * 2);  // one head of 128
}

TEST(Llm, CachedTokensOfAPrefillAreReadNotRecomputed) {
  const Llm llm = golden_llm("Llama-3.1-8B");
  const LlmCost whole = cost_of(llm, prefill_work(1000));
  LlmCost parts = cost_of(llm, prefill_work(600));
  const LlmCost second = cost_of(llm, prefill_work(400, 1, 600));
  parts.add(second);
  const std::int64_t head = whole.flops[LlmPart::kLmHead].value();
  EXPECT_EQ(parts.total_flops(), whole.total_flops() + head);
  EXPECT_EQ(second.kv_read_bytes.value(), 600 * 131072);
  EXPECT_EQ(second.kv_write_bytes.value(), 400 * 131072);
}

TEST(Llm, SizesThatDoNotDivideAreRefused) {
  expect_error([] { shard_of(golden_llm("DeepSeek-OCR"), 3); }, ErrorKind::kUsage,
               HasSubstr("10 attention heads do not divide among 3"), "");
  // Fewer KV heads than GPUs: every GPU keeps one.
  EXPECT_EQ(shard_of(golden_llm("Qwen3-30B-A3B"), 8).kv_heads, 1);
}

TEST(Llm, TokenCountsThatOverflowAreAnError) {
  const Llm llm = golden_llm("Llama-3.1-405B");
  expect_error([&] { cost_of(llm, prefill_work(std::int64_t{1} << 40)); }, ErrorKind::kInput,
               HasSubstr("63 bits"), HasSubstr("too large"));
  expect_error([&] { cost_of(llm, decode_work(INT64_MAX, INT64_MAX)); }, ErrorKind::kInput,
               HasSubstr("63 bits"), HasSubstr("too large"));
  expect_error([&] { cost_of(llm, prefill_work(0)); }, ErrorKind::kUsage, HasSubstr("at least one"),
               "");
}

}  // namespace
}  // namespace gpuwhy
