// SPDX-License-Identifier: Apache-2.0
//
// The cost of a step from sums over its requests: against hand arithmetic, and against requests
// counted one by one.
#include <algorithm>
#include <random>

#include "model/llm_goldens.h"
#include "testing.h"

namespace gpuwhy {
namespace {

struct Request {
  std::int64_t queries;
  std::int64_t cached;
};

PhaseCounts phase_of(const std::vector<Request>& requests) {
  PhaseCounts phase{static_cast<std::int64_t>(requests.size()), 0, 0, 0, 0};
  for (const auto& [queries, cached] : requests) {
    const std::int64_t keys = cached + queries;
    *phase.queries += queries;
    *phase.keys += keys;
    *phase.queries_squared += queries * queries;
    *phase.queries_times_keys += queries * keys;
  }
  return phase;
}

const PhaseCounts kNoRequests = {0, 0, 0, 0, 0};

// A real step of vLLM: 9 requests read 8155 tokens of their prompts, 37 make a token each.
const StepCounts kMixed = {{9, 8155, 8430, 7475785, 7671310}, {37, 37, 34489, 37, 34489}};
// Another: 32 requests make a token each, at 1721 tokens of context on average.
const StepCounts kDecode = {kNoRequests, {32, 32, 55086, 32, 55086}};

// Llama-3.1-8B: hidden 4096, 32 layers, 32 heads of 128, 8 of keys and values, ff 14336, 128256
// words.
//   weights of a layer    qkv 4096 x 6144 = 25165824, o 4096 x 4096 = 16777216,
//                         mlp 3 x 4096 x 14336 = 176160768
//   pairs of a layer      context 7671310 - (7475785 - 8155) / 2 = 3937495, generation 34489
//   logits                9 + 37
//   keys and values read  context 8430 - 8155 = 275 tokens, generation 34489; 4096 bytes each
TEST(StepCost, AMixedStepByHand) {
  const LlmCost cost = cost_of(golden_llm("Llama-3.1-8B"), kMixed);
  const std::int64_t tokens = 8155 + 37;
  const std::int64_t pairs = 3937495 + 34489;
  EXPECT_EQ(cost.flops[LlmPart::kQkv].value(), 2 * tokens * 32 * 25165824);
  EXPECT_EQ(cost.flops[LlmPart::kOut].value(), 2 * tokens * 32 * 16777216);
  EXPECT_EQ(cost.flops[LlmPart::kMlp].value(), 2 * tokens * 32 * 176160768);
  EXPECT_EQ(cost.flops[LlmPart::kScores].value(), 2 * pairs * 32 * 4096);
  EXPECT_EQ(cost.flops[LlmPart::kValues].value(), 2 * pairs * 32 * 4096);
  EXPECT_EQ(cost.flops[LlmPart::kLmHead].value(), 2 * (9 + 37) * 4096LL * 128256);
  EXPECT_EQ(cost.kv_read_bytes.value(), (275 + 34489) * 32LL * 4096);
  EXPECT_EQ(cost.kv_write_bytes.value(), tokens * 32 * 4096);
  EXPECT_EQ(cost.weight_bytes[LlmPart::kQkv].value(), 2LL * 32 * 25165824) << "once a step";
  EXPECT_TRUE(is_exact(golden_llm("Llama-3.1-8B"), kMixed));
}

TEST(StepCost, ADecodeStepByHand) {
  const LlmCost cost = cost_of(golden_llm("Llama-3.1-8B"), kDecode);
  EXPECT_EQ(cost.flops[LlmPart::kQkv].value(), 2 * 32 * 32 * 25165824LL);
  EXPECT_EQ(cost.flops[LlmPart::kScores].value(), 2 * 55086 * 32LL * 4096);
  EXPECT_EQ(cost.flops[LlmPart::kLmHead].value(), 2 * 32 * 4096LL * 128256);
  EXPECT_EQ(cost.kv_read_bytes.value(), 55086 * 32LL * 4096);
  EXPECT_EQ(cost.kv_write_bytes.value(), 32 * 32 * 4096);
}

// gpt-oss-20b, which ran that step: 24 layers, 64 heads of 64, 8 of keys and values; every other
// layer attends to 128 tokens. 32 requests see at most 32 x 128 = 4096 of the 55086 there.
TEST(StepCost, AWindowIsCountedAtItsMost) {
  const Llm llm = golden_llm("gpt-oss-20b");
  const LlmCost cost = cost_of(llm, kDecode);
  const std::int64_t pairs = 12 * 55086 + 12 * 4096;
  EXPECT_EQ(cost.flops[LlmPart::kScores].value(), 2 * pairs * 64 * 64);
  EXPECT_EQ(cost.kv_read_bytes.value(), pairs * 2 * 8 * 64 * 2);
  EXPECT_FALSE(is_exact(llm, kDecode));
  // Where all keys together fit the window, or there is one request, sums tell enough.
  EXPECT_TRUE(is_exact(llm, {kNoRequests, phase_of({{1, 60}, {1, 40}})}));
  EXPECT_TRUE(is_exact(llm, {phase_of({{500, 900}}), phase_of({{1, 3000}})}));
}

// Two requests verify three drafts each after 10 and 20 tokens: 11 + 12 + 13 and 21 + 22 + 23
// pairs, six logits, and the weights once.
TEST(StepCost, AVerifyingStepByHand) {
  const Llm llm = golden_llm("Llama-3.1-8B");
  const LlmCost cost = cost_of(llm, {kNoRequests, {2, 6, 13 + 23, 18, 3 * 13 + 3 * 23}});
  EXPECT_EQ(cost.flops[LlmPart::kScores].value(), 2 * (11 + 12 + 13 + 21 + 22 + 23) * 32LL * 4096);
  EXPECT_EQ(cost.flops[LlmPart::kLmHead].value(), 2 * 6 * 4096LL * 128256);
  EXPECT_EQ(cost.kv_read_bytes.value(), (13 + 23) * 32 * 4096);
  EXPECT_EQ(cost.kv_write_bytes.value(), 6 * 32 * 4096);
  EXPECT_EQ(cost.weight_bytes[LlmPart::kQkv].value(), 2LL * 32 * 25165824);
}

class StepCostOf : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { llm = golden_llm(GetParam()); }
  Llm llm;
};

void expect_equal(const LlmCost& a, const LlmCost& b) {
  for (std::size_t i = 0; i < kNumLlmParts; ++i) {
    EXPECT_EQ(a.flops.counts[i].value(), b.flops.counts[i].value()) << kLlmPartNames[i];
    EXPECT_EQ(a.weight_bytes.counts[i].value(), b.weight_bytes.counts[i].value())
        << kLlmPartNames[i];
  }
  EXPECT_EQ(a.kv_read_bytes.value(), b.kv_read_bytes.value());
  EXPECT_EQ(a.kv_write_bytes.value(), b.kv_write_bytes.value());
  EXPECT_EQ(a.least_bytes(), b.least_bytes());
  EXPECT_EQ(a.most_bytes(), b.most_bytes());
}

// What the closed forms of one batch say, the sums say, too: beyond a window equal requests are
// alike. Where the chunk of each starts, sums do not tell.
TEST_P(StepCostOf, EqualRequestsAreThoseOfABatch) {
  const bool has_chunks = std::any_of(llm.layers.begin(), llm.layers.end(), [](const auto& layer) {
    return layer.reach == Reach::kChunk;
  });
  for (const std::int64_t cached : {0, 3, 900, 20'000}) {
    SCOPED_TRACE(cached);
    const StepCounts prompt = {phase_of({{700, cached}}), kNoRequests};
    expect_equal(cost_of(llm, prompt), cost_of(llm, prefill_work(700, 1, cached)));
    LlmWork square = prefill_work(700, 1, cached);
    square.is_full_square = true;
    expect_equal(cost_of(llm, prompt, CostOf::kExecuted), cost_of(llm, square));

    const StepCounts batch = {kNoRequests, phase_of(std::vector<Request>(5, {1, cached}))};
    if (has_chunks && !is_exact(llm, batch)) {
      continue;
    }
    LlmWork step = decode_work(cached + 1, 5);
    expect_equal(cost_of(llm, batch), cost_of(llm, step));
    step.is_mla_absorbed = true;
    expect_equal(cost_of(llm, batch, CostOf::kExecuted), cost_of(llm, step));
  }
}

// FLOPs of any step are those of its requests alone. A window makes them at most more.
TEST_P(StepCostOf, FlopsAreTheSumOverRequests) {
  std::mt19937 random(20261116);
  for (int round = 0; round < 20; ++round) {
    StepCounts step{kNoRequests, kNoRequests};
    std::vector<Request> context(1 + random() % 6);
    std::vector<Request> generation(1 + random() % 6);
    std::int64_t sum = 0;
    for (Request& request : context) {
      request = {1 + static_cast<std::int64_t>(random() % 3000),
                 static_cast<std::int64_t>(random() % 5000)};
      sum += cost_of(llm, prefill_work(request.queries, 1, request.cached)).total_flops();
    }
    for (Request& request : generation) {
      request = {1 + static_cast<std::int64_t>(random() % 4),
                 static_cast<std::int64_t>(random() % 9000)};
      const LlmWork steps = {LlmWork::Kind::kDecode, 1, request.queries, request.cached};
      sum += cost_of(llm, steps).total_flops();
    }
    step.context = phase_of(context);
    step.generation = phase_of(generation);
    if (is_exact(llm, step)) {
      EXPECT_EQ(cost_of(llm, step).total_flops(), sum);
    } else {
      EXPECT_GE(cost_of(llm, step).total_flops(), sum);
    }
  }
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const Json& model : golden_models()) {
    names.push_back(model.at("name"));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, StepCostOf, testing::ValuesIn(golden_names()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           for (char& c : name) {
                             c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           }
                           return name;
                         });

TEST(StepCost, NeedsAllSumsAndSaysWhatIsTooLarge) {
  const Llm llm = golden_llm("Llama-3.1-8B");
  expect_error([&] { cost_of(llm, StepCounts{}); }, ErrorKind::kUsage, HasSubstr("sums"), "");
  const std::int64_t most = 1'000'000'000'000'000;
  expect_error(
      [&] {
        cost_of(llm, {{1, 1'000'000'000, 1'000'000'000'000, most, most}, kNoRequests});
      },
      ErrorKind::kInput, HasSubstr("63 bits"), HasSubstr("too large"));
}

}  // namespace
}  // namespace gpuwhy
