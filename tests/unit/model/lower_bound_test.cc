// SPDX-License-Identifier: Apache-2.0
//
// Bounds against a second implementation's, and bandwidth use against speeds that others measured
// and published: a byte count that is off shows as a bandwidth no GPU has.
#include "model/lower_bound.h"

#include <cmath>

#include "config/presets.h"
#include "model/llm_goldens.h"
#include "testing.h"

namespace gpuwhy {
namespace {

using testing::Test;

GpuSpec gpu(const std::string& name) {
  static const std::vector<GpuSpec> kTable = gpu_table(embedded_yaml("hardware/gpus.yaml"));
  return find_gpu(kTable, name).gpu.value();
}

struct KnownBound {
  const char* model;
  const char* gpu;
  double prefill_ms;   // 2048 tokens
  double decode_ms;    // context 4096
  double decode64_ms;  // a batch of 64
};

TEST(Bound, AgreesWithASecondImplementation) {
  constexpr KnownBound kBounds[] = {
      {"Llama-3.1-8B", "A100-SXM4-80GB", 95.1551, 7.6247, 24.217},
      {"Llama-3.1-8B", "H100-SXM5-80GB", 30.0065, 4.6376, 14.7297},
      {"Llama-3.1-8B", "H200-SXM", 30.0065, 3.2389, 10.2872},
      {"Llama-3.1-8B", "RTX-4090", 179.7119, 15.4235, 48.9866},
      {"Llama-3.1-8B", "B200", 13.1948, 2.0264, 6.4359},
      {"Llama-3.1-70B", "A100-SXM4-80GB", 916.275, 68.8321, 110.3126},
      {"Llama-3.1-70B", "H100-SXM5-80GB", 288.9406, 41.8661, 67.0961},
      {"Llama-3.1-70B", "H200-SXM", 288.9406, 29.2393, 46.8599},
      {"Llama-3.1-70B", "RTX-4090", 1730.4952, 139.2347, 223.1423},
      {"Llama-3.1-70B", "B200", 127.0568, 18.2928, 29.3167},
      {"Qwen2.5-7B", "A100-SXM4-80GB", 88.3683, 7.0506, 14.3098},
      {"Qwen2.5-7B", "H100-SXM5-80GB", 27.8663, 4.2884, 8.7037},
      {"Qwen2.5-7B", "H200-SXM", 27.8663, 2.995, 6.0787},
      {"Qwen2.5-7B", "RTX-4090", 166.894, 14.2621, 28.9462},
      {"Qwen2.5-7B", "B200", 12.2537, 1.8738, 3.803},
      {"Mixtral-8x7B", "A100-SXM4-80GB", 169.172, 12.7684, 62.5366},
      {"Mixtral-8x7B", "H100-SXM5-80GB", 53.3471, 7.7662, 38.037},
      {"Mixtral-8x7B", "H200-SXM", 53.3471, 5.4239, 26.565},
      {"Mixtral-8x7B", "RTX-4090", 319.5015, 25.8281, 126.5001},
      {"Mixtral-8x7B", "B200", 23.4585, 3.3933, 16.6198},
      {"DeepSeek-OCR", "A100-SXM4-80GB", 5.7786, 0.6866, 10.613},
      {"DeepSeek-OCR", "H100-SXM5-80GB", 1.8223, 0.4176, 6.4552},
      {"DeepSeek-OCR", "H200-SXM", 1.8223, 0.2917, 4.5083},
      {"DeepSeek-OCR", "RTX-4090", 10.9137, 1.3889, 21.4681},
      {"DeepSeek-OCR", "B200", 0.8013, 0.1825, 2.8205},
  };
  for (const KnownBound& known : kBounds) {
    const Llm llm = golden_llm(known.model);
    const auto bound = [&](const LlmWork& work) {
      return bound_of(llm, cost_of(llm, work), gpu(known.gpu));
    };
    const auto near = [&](double seconds, double expected_ms) {
      // Four digits, and the last one printed.
      EXPECT_NEAR(seconds * 1e3, expected_ms, 5e-5 * expected_ms + 5.1e-5)
          << known.model << " on " << known.gpu;
    };
    near(bound(prefill_work(2048)).seconds(), known.prefill_ms);
    near(bound(decode_work(4096)).seconds(), known.decode_ms);
    near(bound(decode_work(4096, 64)).seconds(), known.decode64_ms);
    EXPECT_TRUE(bound(prefill_work(2048)).is_compute_bound());
    EXPECT_FALSE(bound(decode_work(4096, 64)).is_compute_bound());
  }
}

TEST(Bound, PartByPartIsTighterAndNeverLooser) {
  for (const Json& model : golden_models()) {
    const Llm llm = llm_from_config(model.at("config"));
    for (const LlmWork& work : {prefill_work(700), decode_work(3000, 32), decode_work(10)}) {
      const CostBound bound = bound_of(llm, cost_of(llm, work), gpu("H100-SXM5-80GB"));
      EXPECT_GE(bound.per_part_s.value(), bound.seconds() * (1 - 1e-12)) << model.at("name");
      EXPECT_LE(bound.per_part_s.value(), *bound.compute_s + bound.memory_s) << model.at("name");
    }
  }
}

TEST(Bound, TheCrossoverBatchIsThatOfTheGpu) {
  const Llm llm = golden_llm("Llama-3.1-8B");
  EXPECT_NEAR(crossover_batch(llm, gpu("A100-SXM4-80GB")).value(), 153, 0.5);
  EXPECT_NEAR(crossover_batch(llm, gpu("H100-SXM5-80GB")).value(), 295, 0.5);
  EXPECT_NEAR(crossover_batch(llm, gpu("H200-SXM")).value(), 206, 0.5);
  EXPECT_NEAR(crossover_batch(llm, gpu("RTX-4090")).value(), 164, 0.5);
  EXPECT_NEAR(crossover_batch(llm, gpu("H20")).value(), 37, 0.5);
}

TEST(Bound, Fp8LayersAndBf16AttentionHaveTheirOwnPeaks) {
  Json config = golden_model("Llama-3.1-8B").at("config");
  config["quantization_config"] = {{"quant_method", "fp8"}};
  const Llm llm = llm_from_config(config);
  const LlmCost cost = cost_of(llm, prefill_work(2048));
  const double attention = static_cast<double>(
      (cost.flops[LlmPart::kScores] + cost.flops[LlmPart::kValues] + cost.flops[LlmPart::kLmHead])
          .value());
  const double linear = static_cast<double>(cost.total_flops()) - attention;
  const CostBound bound = bound_of(llm, cost, gpu("H100-SXM5-80GB"));
  EXPECT_DOUBLE_EQ(bound.compute_s.value(), linear / 1978.9e12 + attention / 989.4e12);
}

TEST(Bound, AMissingPeakIsSaidNotGuessed) {
  const Llm llm = golden_llm("Llama-3.1-8B");
  const CostBound bound = bound_of(llm, cost_of(llm, decode_work(100)), gpu("T4"));
  EXPECT_FALSE(bound.compute_s);
  EXPECT_GT(bound.memory_s, 0);
  EXPECT_EQ(bound.reason, "T4 has no dense peak for bf16");
}

StoredWidth bits(double width) {
  constexpr std::int64_t kElements = 1 << 20;
  return {kElements, std::llround(width / 8 * kElements)};
}

void set_linear(const StoredWidth& width, Llm& llm) {
  for (const LlmPart part :
       {LlmPart::kQkv, LlmPart::kOut, LlmPart::kMlp, LlmPart::kExperts, LlmPart::kShared}) {
    llm.width(part) = width;
  }
}

// How the published files are quantised.
void set_format(const std::string& format, Llm& llm) {
  if (format == "int8") {  // gpt-fast: every linear layer, the router and the head
    set_linear({1, 1}, llm);
    llm.width(LlmPart::kRouter) = llm.width(LlmPart::kLmHead) = {1, 1};
    return;
  }
  if (format == "bf16") {
    return;
  }
  llm.width(LlmPart::kNorms) = llm.width(LlmPart::kRouter) = {1, 4};  // GGUF keeps these in F32
  const StoredWidth q8 = width_of("Q8_0").value();
  if (format == "q8_0" || format == "mxfp4") {
    set_linear(q8, llm);
    llm.width(LlmPart::kLmHead) = llm.width(LlmPart::kEmbedding) = q8;
    if (format == "mxfp4") {
      llm.width(LlmPart::kExperts) = width_of("MXFP4").value();
    }
    return;
  }
  llm.width(LlmPart::kLmHead) = width_of("Q6_K").value();
  set_linear(width_of("Q4_0").value(), llm);
  if (format == "q4_k_m") {  // Q6_K for values and down-projections of half the layers
    const double heads = static_cast<double>(llm.heads);
    const double kv = static_cast<double>(llm.kv_heads);
    constexpr double kMixed = (4.5 + 6.5625) / 2;
    llm.width(LlmPart::kQkv) = bits(((heads + kv) * 4.5 + kv * kMixed) / (heads + 2 * kv));
    llm.width(LlmPart::kMlp) = bits((2 * 4.5 + kMixed) / 3);
  }
}

struct PublishedSpeed {
  const char* source;
  const char* model;
  const char* format;
  std::int64_t context;
  std::int64_t batch;
  std::int64_t num_gpus;
  double steps_per_s;
  double gb_per_s;  // of the GPU
  double mbu;
};

class Published : public testing::TestWithParam<PublishedSpeed> {};

TEST_P(Published, BandwidthUseIsWithinAPercent) {
  const PublishedSpeed& speed = GetParam();
  Llm llm = golden_llm(speed.model);
  set_format(speed.format, llm);
  const LlmCost cost =
      cost_of(shard_of(llm, speed.num_gpus), decode_work(speed.context, speed.batch));
  const double mbu =
      static_cast<double>(cost.total_bytes()) * speed.steps_per_s / (speed.gb_per_s * 1e9);
  EXPECT_NEAR(mbu / speed.mbu, 1, 0.01) << speed.source << " " << speed.model;
}

// gpt-fast: its README, on an A100 with 2039 GB/s. spark: llama.cpp's bench of a DGX Spark, 32
// tokens after a context. vllm: its published benchmark on H200, 32 tokens in and 128 out. Contexts
// are the means over the tokens made.
constexpr PublishedSpeed kPublished[] = {
    {"gpt-fast", "Llama-2-7B", "bf16", 105, 1, 1, 104.90, 2039, 0.6827},
    {"gpt-fast", "Llama-2-7B", "int8", 105, 1, 1, 155.58, 2039, 0.5084},
    {"gpt-fast", "Llama-3.1-8B", "bf16", 105, 1, 1, 93.89, 2039, 0.6918},
    {"gpt-fast", "Llama-3.1-8B", "int8", 105, 1, 1, 137.64, 2039, 0.5076},
    {"gpt-fast", "Llama-3.1-70B", "int8", 105, 1, 1, 18.04, 2039, 0.6152},
    {"gpt-fast", "Mixtral-8x7B", "int8", 105, 1, 1, 97.92, 2039, 0.6130},
    {"spark", "gpt-oss-20b", "mxfp4", 16, 1, 1, 83.43, 273, 0.7862},
    {"spark", "gpt-oss-20b", "mxfp4", 4112, 1, 1, 79.22, 273, 0.7766},
    {"spark", "gpt-oss-20b", "mxfp4", 8208, 1, 1, 75.22, 273, 0.7651},
    {"spark", "gpt-oss-20b", "mxfp4", 16400, 1, 1, 70.36, 273, 0.7675},
    {"spark", "gpt-oss-20b", "mxfp4", 32784, 1, 1, 61.65, 273, 0.7634},
    {"spark", "gpt-oss-120b", "mxfp4", 16, 1, 1, 58.72, 273, 0.7724},
    {"spark", "gpt-oss-120b", "mxfp4", 8208, 1, 1, 52.87, 273, 0.7548},
    {"spark", "gpt-oss-120b", "mxfp4", 32784, 1, 1, 42.76, 273, 0.7523},
    {"spark", "Qwen3-30B-A3B", "q8_0", 16, 1, 1, 61.06, 273, 0.7317},
    {"spark", "Qwen3-30B-A3B", "q8_0", 4112, 1, 1, 54.77, 273, 0.7371},
    {"spark", "Qwen3-30B-A3B", "q8_0", 8208, 1, 1, 48.02, 273, 0.7171},
    {"spark", "Qwen3-30B-A3B", "q8_0", 16400, 1, 1, 40.23, 273, 0.7194},
    {"spark", "Qwen3-30B-A3B", "q8_0", 32784, 1, 1, 30.21, 273, 0.7185},
    {"spark", "Qwen2.5-7B", "q8_0", 16, 1, 1, 29.43, 273, 0.8101},
    {"spark", "Qwen2.5-7B", "q8_0", 8208, 1, 1, 27.38, 273, 0.8008},
    {"spark", "Qwen2.5-7B", "q8_0", 32784, 1, 1, 22.51, 273, 0.7745},
    {"spark", "gpt-oss-20b", "mxfp4", 528, 1, 1, 80.201, 273, 0.7603},
    {"spark", "gpt-oss-20b", "mxfp4", 528, 2, 1, 54.889, 273, 0.7469},
    {"spark", "gpt-oss-20b", "mxfp4", 528, 4, 1, 39.024, 273, 0.7962},
    {"spark", "gpt-oss-20b", "mxfp4", 528, 8, 1, 33.970, 273, 1.0077},
    {"spark", "gpt-oss-20b", "mxfp4", 528, 16, 1, 27.280, 273, 1.0510},
    {"spark", "gpt-oss-20b", "mxfp4", 528, 32, 1, 21.291, 273, 0.9229},
    {"vllm", "Llama-3.1-8B", "bf16", 96, 8, 1, 153.584, 4800, 0.4835},
    {"vllm", "Llama-3.1-70B", "bf16", 96, 8, 4, 61.612, 4800, 0.4469},
    {"vllm", "Mixtral-8x7B", "bf16", 96, 8, 2, 66.756, 4800, 0.5856},
    {"HF eager", "DeepSeek-OCR", "bf16", 850, 1, 1, 90.501, 1792, 0.0606},
    {"llama.cpp", "Llama-3.1-8B", "q4_0", 256, 1, 1, 156.56, 936, 0.7346},
    {"llama.cpp", "Qwen3-8B", "q4_k_m", 1024, 1, 1, 221.70, 1792, 0.5915},
};

INSTANTIATE_TEST_SUITE_P(Speeds, Published, testing::ValuesIn(kPublished));

TEST(Bound, AllExpertsOfAMixtureWouldBeMoreThanTheMemoryGives) {
  Llm llm = golden_llm("Mixtral-8x7B");
  set_format("int8", llm);
  llm.moe->experts_per_token = llm.moe->experts;
  const LlmCost cost = cost_of(llm, decode_work(105));
  EXPECT_GT(static_cast<double>(cost.total_bytes()) * 97.92 / 2039e9, 2.2);
}

// Where the expectation exceeds what the memory can give, the range must reach below it.
TEST(Bound, TheRangeOfExpertsExplainsAnMbuAboveOne) {
  Llm llm = golden_llm("gpt-oss-20b");
  set_format("mxfp4", llm);
  const LlmCost cost = cost_of(llm, decode_work(528, 16));
  EXPECT_GT(static_cast<double>(cost.total_bytes()) * 27.28 / 273e9, 1);
  EXPECT_LT(static_cast<double>(cost.least_bytes()) * 27.28 / 273e9, 1);
}

}  // namespace
}  // namespace gpuwhy
