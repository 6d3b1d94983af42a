// SPDX-License-Identifier: Apache-2.0
#include "analysis/stages/step_markers.h"

#include <algorithm>
#include <map>
#include <string>

#include "analysis/analysis.h"
#include "analysis/idle/host_phases.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// "stage tokens/sequences", with - for what is not told.
std::string read(std::string_view text) {
  const auto marker = read_step_marker("", text);
  if (!marker) {
    return "none";
  }
  const auto number = [](const std::optional<std::int64_t>& value) {
    return value ? std::to_string(*value) : "-";
  };
  return std::string(marker->stage) + " " + number(marker->tokens) + "/" +
         number(marker->sequences);
}

// The table's own examples, in its order.
TEST(StepMarkers, EveryRowReadsItsExamples) {
  const std::map<std::string_view, std::string> wanted = {
      {"execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
       "_generation_37(sq37sk34489sqsq37sqsk34489)",
       "mixed 8192/46"},
      {"execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
       "decode 32/32"},
      {"execute_128_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq128sk65536sqsq512sqsk262144)",
       "verify 128/32"},
      {"execute_context_2(600)_generation_3(3)", "mixed 603/5"},
      {"execute_context_0(0)_generation_8(8)", "decode 8/8"},
      {"execute_context_0(0)_generation_0(0)", "idle 0/0"},
      {"execute_context_1(888_788544)_generation_0(0)", "prefill 888/1"},
      {"capture_32_FULL", "graph_capture -/-"},
      {"capture_8192_PIECEWISE", "graph_capture -/-"},
      {"step[EXTEND bs=4 toks=512]", "prefill 512/4"},
      {"step[EXTEND bs=2 toks=12 c_sq=12 c_sqsq=80 c_sqsk=120 c_sk=20]", "prefill 12/2"},
      {"step[DECODE bs=64]", "decode 64/64"},
      {"step[DECODE bs=64 g_sq=64 g_sqsq=64 g_sqsk=100032 g_sk=100032]", "decode 64/64"},
      {"step[DECODE bs=2 g_sqsq=2 g_sqsk=30 g_sk=30]", "decode 2/2"},
      {"step[MIXED bs=66 c=2 g=64 c_sq=2048 c_sk=2048 c_sqsq=2097152 c_sqsk=2097152 "
       "g_sq=64 g_sk=65600 g_sqsq=64 g_sqsk=65600]",
       "mixed 2112/66"},
      {"step[MIXED bs=1 c=1 g=0 c_sq=3 c_sk=3 c_sqsq=9 c_sqsk=9 "
       "g_sq=0 g_sk=0 g_sqsq=0 g_sqsk=0]",
       "prefill 3/1"},
      {"step[MIXED bs=66]", "mixed -/66"},
      {"step[TARGET_VERIFY bs=64 g_sq=256 g_sqsq=1024 g_sqsk=262400 g_sk=65600]", "verify 256/64"},
      {"step[TARGET_VERIFY bs=2 g_sq=6 g_sqsq=18 g_sqsk=90 g_sk=30]", "verify 6/2"},
      {"step[TARGET_VERIFY bs=64]", "verify -/64"},
      {"step[DRAFT_EXTEND_V2 bs=8]", "draft -/8"},
      {"step[DRAFT_EXTEND_V2 bs=2 c_sq=8 c_sqsq=32 c_sqsk=152 c_sk=38]", "draft 8/2"},
      {"step[DRAFT_LOOP raw_bs=3 bs=4 topk=1]", "draft -/3"},
      {"step[IDLE bs=0]", "idle 0/0"},
      {"step[PREBUILT bs=16]", "idle -/16"},
      {"step[SPLIT_PREFILL bs=3]", "prefill -/3"},
      {"step[DLLM_EXTEND bs=5]", "step -/5"},
      {"capture_32_DECODE", "graph_capture -/-"},
      {"[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs", "decode 32/32"},
      {"[Executor] _forward_step 7: 2 ctx reqs, 4096 ctx tokens, 30 gen reqs", "mixed 4126/32"},
      {"[Executor] _forward_step 12: 0 ctx reqs, 500 gen reqs", "decode 500/500"},
      {"[Executor] _forward_step 1: 4 ctx reqs, 0 gen reqs", "prefill -/4"},
      {"[Executor] _forward_step: 1 ctx reqs, 3 gen reqs", "mixed -/4"},
      {"_forward_step: 0 ctx reqs, 8 gen reqs", "decode 8/8"},
      {"transformers.prefill[bs=3 toks=51 c_sk=51 c_sqsq=867 c_sqsk=867]", "prefill 51/3"},
      {"transformers.prefill[bs=3 toks=51]", "prefill 51/3"},
      {"transformers.decode_step[bs=3 toks=3 g_sk=54 g_sqsq=3 g_sqsk=54]", "decode 3/3"},
      {"transformers.decode_step[bs=3 toks=3]", "decode 3/3"},
      {"transformers.verify[bs=1 toks=4]", "verify 4/1"},
      {"prefill[bs=2 tok=14721 ctx=[7803, 6918]]", "prefill 14721/2"},
      {"prefill[bs=2 tok=14721 ctx=[7803, 6918] sqsq=108745533 sqsk=108745533 sk=14721]",
       "prefill 14721/2"},
      {"prefill[bs=6 tok=17408 ctx=[4096, 4096, 4096]...+3]", "prefill 17408/6"},
      {"decode[bs=117/128 tok=117 d=117]", "decode 117/117"},
      {"decode[bs=32 tok=128 d=32 spec=3 sqsq=512 sqsk=262144 sk=65536]", "verify 128/32"},
      {"decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048 tbo=1]",
       "mixed 384/128"},
      {"Prefill", "prefill -/-"},
      {"Decode", "decode -/-"},
      {"AsyncOverlap", "step -/-"},
      {"AsyncNoOverlap", "step -/-"},
      {"EP-dummy-forward", "idle -/-"},
      {"scheduler.run_batch", "step -/-"},
      {"megatron.core.pipeline_parallel.schedules.forward_backward_pipelining_with_interleaving."
       "warmup",
       "pipeline_warmup -/-"},
      {"megatron.core.pipeline_parallel.schedules.forward_backward_pipelining_with_interleaving."
       "steady",
       "pipeline_steady -/-"},
      {"megatron.core.pipeline_parallel.schedules.forward_backward_pipelining_with_interleaving."
       "cooldown",
       "pipeline_cooldown -/-"},
      {"megatron.core.pipeline_parallel.schedules.forward_backward_pipelining_with_interleaving."
       "misc",
       "pipeline_misc -/-"},
      {"ProfilerStep#6", "step -/-"},
      {"step[prefill=512 decode=2 seqs=0:512,1:1,2:1]", "mixed 514/3"},
      {"step[prefill=0 decode=1 seqs=3:1]", "decode 1/1"},
      {"step[prefill=64 decode=0]", "prefill 64/1"},
  };
  std::size_t num_examples = 0;
  for (const StepGrammar& grammar : step_grammars()) {
    EXPECT_FALSE(grammar.examples[0].empty()) << grammar.pattern;
    EXPECT_FALSE(grammar.source.empty()) << grammar.pattern;
    for (const std::string_view example : grammar.examples) {
      if (example.empty()) {
        continue;
      }
      ++num_examples;
      const auto marker = read_step_marker("", example);
      ASSERT_TRUE(marker) << example;
      EXPECT_EQ(marker->grammar, &grammar) << example << " is read by another row";
      ASSERT_TRUE(wanted.contains(example)) << example << " has no expectation";
      EXPECT_EQ(read(example), wanted.at(example)) << example;
    }
  }
  EXPECT_EQ(num_examples, wanted.size());
}

TEST(StepMarkers, SumsByPhase) {
  const auto mixed = read_step_marker("",
                                      "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
                                      "_generation_37(sq37sk34489sqsq37sqsk34489)");
  EXPECT_EQ(mixed->counts.context, (PhaseCounts{9, 8155, 8430, 7475785, 7671310}));
  EXPECT_EQ(mixed->counts.generation, (PhaseCounts{37, 37, 34489, 37, 34489}));
  const auto extend =
      read_step_marker("", "step[EXTEND bs=2 toks=12 c_sq=12 c_sqsq=80 c_sqsk=120 c_sk=20]");
  EXPECT_EQ(extend->counts.context, (PhaseCounts{2, 12, 20, 80, 120}));
  EXPECT_EQ(extend->counts.generation, (PhaseCounts{0, 0, 0, 0, 0}));
}

// Two requests of 10 and 20 tokens verify three each: they attend to 13 and 23.
TEST(StepMarkers, KeysHoldTheTokensOfTheStep) {
  const auto verify =
      read_step_marker("", "step[TARGET_VERIFY bs=2 g_sq=6 g_sqsq=18 g_sqsk=90 g_sk=30]");
  EXPECT_EQ(verify->counts.generation, (PhaseCounts{2, 6, 13 + 23, 18, 3 * 13 + 3 * 23}));
}

// With one token a request its square and its product are known, too.
TEST(StepMarkers, OneTokenEachTellsTheRest) {
  const auto decode = read_step_marker("", "step[DECODE bs=2 g_sk=30]");
  EXPECT_EQ(decode->counts.generation, (PhaseCounts{2, 2, 30, 2, 30}));
  EXPECT_EQ(read("step[DECODE bs=64 g_sq=128 g_sqsq=256 g_sqsk=262144 g_sk=131072]"),
            "draft 128/64");
  EXPECT_EQ(read("step[DECODE bs=2 g_sqsq=32 g_sk=30]"), "decode -/2") << "not one each";
}

// Sums that no requests have are left out; token counts stay.
TEST(StepMarkers, SumsThatContradictEachOtherAreAbsent) {
  const auto text = [](const char* sums) {
    return std::string("execute_4_context_2(") + sums + ")_generation_0(sq0sk0sqsq0sqsk0)";
  };
  for (const char* sums : {"sq4sk3sqsq10sqsk10",     // attends to less than itself
                           "sq4sk4sqsq3sqsk10",      // a square below its root
                           "sq4sk4sqsq9sqsk12",      // q(q - 1) is even
                           "sq4sk4sqsq10sqsk9",      // k below q
                           "sq1sk4sqsq10sqsk10"}) {  // a request without a token
    const auto marker = read_step_marker("", text(sums));
    ASSERT_TRUE(marker) << sums;
    EXPECT_TRUE(marker->counts.context.queries) << sums;
    EXPECT_FALSE(marker->counts.context.keys) << sums;
    EXPECT_FALSE(marker->counts.context.queries_squared) << sums;
    EXPECT_FALSE(marker->counts.context.queries_times_keys) << sums;
  }
  EXPECT_TRUE(read_step_marker("", text("sq4sk4sqsq10sqsk10"))->counts.context.keys);
}

TEST(StepMarkers, StrangersTextIsNoMarker) {
  for (const char* text :
       {"", "{", "step[", "step[EXTEND bs= toks=]", "step[DECODE bs=8", "step[DECODE bs=-8]",
        "step[UNKNOWN bs=8]", "capture_x_FULL", "capture_32_FULL ",
        "execute_context_1()_generation_1(1)", "execute_diffusion_1_256x256", "decode[bs=4]",
        "decode[]", "prefill[", "ProfilerStep#", "ProfilerStep#1a", "Decoder", "decode",
        "megatron.core.pipeline_parallel.schedules.x.y"}) {
    EXPECT_EQ(read(text), "none") << text;
  }
  EXPECT_FALSE(read_step_marker("codec", "Decode")) << "a plain word of another domain";
}

TEST(StepMarkers, NumbersBeyondReasonAreAbsent) {
  EXPECT_EQ(read("step[DECODE bs=1000000001]"), "none");
  EXPECT_EQ(read("step[DECODE bs=99999999999999999999999]"), "none");
  EXPECT_EQ(read("step[EXTEND bs=1 toks=99999999999999999999]"), "prefill -/1");
  const auto marker = read_step_marker(
      "", "step[DECODE bs=2 g_sq=2 g_sk=9000000000000000000 g_sqsk=9000000000000000000]");
  EXPECT_EQ(marker->counts.generation, (PhaseCounts{2, 2, {}, 2, {}}));
}

TEST(StepMarkers, SlotsOfAMarker) {
  std::vector<SlotTokens> slots;
  read_slots("step[prefill=512 decode=2 seqs=0:512,1:1,2:1]", slots);
  EXPECT_EQ(slots, (std::vector<SlotTokens>{{0, 512}, {1, 1}, {2, 1}}));
  for (const char* text : {"step[prefill=1 decode=0]", "seqs=", "seqs=1", "seqs=1:", "seqs=1:0",
                           "seqs=1:2,", "seqs=1:2,x", "seqs=:3", "seqs=99999999999999999999:1"}) {
    read_slots(text, slots);
    EXPECT_EQ(slots.size(), 3U) << text;
  }
}

// Every beginning of a marker, and every one with a byte changed, is read or refused.
TEST(StepMarkers, DamagedMarkersAreReadOrRefused) {
  for (const StepGrammar& grammar : step_grammars()) {
    const std::string example(grammar.examples[0]);
    for (std::size_t i = 0; i < example.size(); ++i) {
      read(std::string_view(example).substr(0, i));
      for (const char byte : {'9', ' ', '=', ']', '\0'}) {
        std::string changed = example;
        changed[i] = byte;
        read(changed);
      }
    }
  }
}

RangeTotal range_of(const char* text, std::int64_t host_ns, std::int64_t kernel_ns) {
  RangeTotal range;
  range.range = std::string("NVTX:") + text;
  range.text = text;
  range.instances = 2;
  range.host_ns = host_ns;
  range.kernels = 3;
  range.kernel_ns = kernel_ns;
  return range;
}

std::vector<std::string> phases_of(const std::string& engine) {
  std::vector<std::string> texts;
  for (const HostPhase& phase : find_host_phases(
           {range_of("gpu_model_runner: forward", 50, 40), range_of("_schedule", 10, 0),
            range_of("sampling", 20, 5), range_of("scheduler.run_batch", 90, 80),
            range_of("my_range", 99, 99), range_of("Optimizer.step#AdamW.step", 7, 6),
            range_of("mtp-spec-decoding/depth-0/forward", 3, 2)},
           engine)) {
    texts.push_back(phase.engine + "|" + phase.phase + "|" + std::to_string(phase.host_ns) + "|" +
                    std::to_string(phase.kernel_ns));
  }
  return texts;
}

TEST(HostPhases, EachCallOfFsdpIsOneOfMany) {
  const auto phases = find_host_phases(
      {range_of("FSDP::pre_forward (block.1), op_id = 7", 50, 40),
       range_of("FSDP::pre_forward (block.2), op_id = 9", 30, 1), range_of("FSDP::root", 5, 0)},
      "");
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].phase, "FSDP::pre_forward");
  EXPECT_EQ(phases[0].host_ns, 80);
  EXPECT_EQ(phases[0].kernel_ns, 41);
}

TEST(HostPhases, ByHostTimeAndOnlyOfKnownEngines) {
  EXPECT_THAT(phases_of(""), ElementsAre("SGLang|scheduler.run_batch|90|80",
                                         "vLLM|gpu_model_runner: forward|50|40",
                                         "PyTorch|Optimizer.step#AdamW.step|7|6"));
}

TEST(HostPhases, PlainWordsCountBesideTheEnginesSteps) {
  EXPECT_THAT(
      phases_of("Megatron"),
      ElementsAre("SGLang|scheduler.run_batch|90|80", "vLLM|gpu_model_runner: forward|50|40",
                  "Megatron|sampling|20|5", "PyTorch|Optimizer.step#AdamW.step|7|6",
                  "Megatron|mtp-spec-decoding/depth-0/forward|3|2"));
  EXPECT_THAT(phases_of("TensorRT-LLM"), testing::Contains("TensorRT-LLM|_schedule|10|0"));
}

TEST(HostPhases, TheStepsThemselvesAreNone) {
  EXPECT_THAT(
      phases_of("SGLang's scheduler"),
      ElementsAre("vLLM|gpu_model_runner: forward|50|40", "PyTorch|Optimizer.step#AdamW.step|7|6"));
}

}  // namespace
}  // namespace gpuwhy
