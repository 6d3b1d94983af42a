// SPDX-License-Identifier: Apache-2.0
#include "analysis/stages/stages.h"

#include <algorithm>

#include "analysis/profile.h"
#include "analysis/stages/attribution.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

struct Range {
  const char* domain;
  const char* text;
  std::int64_t start;
  std::int64_t end;
  std::int64_t payload = kNoPayload;
};

Trace trace_of(const std::vector<Range>& rows) {
  TraceBuilder made;
  const std::uint32_t thread = made.add_thread(made.add_process());
  for (const Range& row : rows) {
    made.range(thread, row.start, row.end, row.text,
               {.domain = row.domain, .payload = row.payload});
  }
  return made.finish();
}

Stages stages_of(const std::vector<Range>& rows) {
  Rules rules;
  rules.stages = {{"", "my_prefill*", "prefill"}, {"mine", "decode", "decode"}};
  return find_stages(trace_of(rows), rules, 0, 1000);
}

std::vector<std::string> names_of(const Stages& stages) {
  std::vector<std::string> names;
  for (const RowName& name : stages.names) {
    names.push_back(name.text());
  }
  return names;
}

// "stage tokens" of each instance, by start.
std::vector<std::string> found(const std::vector<Range>& rows) {
  const Stages stages = stages_of(rows);
  std::vector<std::string> texts;
  for (const StageInstance& instance : stages.instances) {
    texts.push_back(stages.names[instance.stage].text() +
                    (instance.tokens ? " " + std::to_string(*instance.tokens) : ""));
  }
  return texts;
}

TEST(Stages, DomainLlmComesFirst) {
  EXPECT_THAT(found({{"LLM", "prefill", 0, 10, 512},
                     {"LLM", "decode_all", 10, 30},
                     {"LLM", "decode_step", 10, 20, 1},
                     {"", "execute_context_1(5)_generation_0(0)", 0, 5},
                     {"NCCL", "prefill", 2, 3},
                     {"LLM", "request", 0, 40}}),
              ElementsAre("prefill 512", "decode", "decode_step 1"));
}

// "The whole recording is one stage" must hold for work whose launch was not recorded, too.
TEST(Stages, WithoutMarksAllWorkIsInTheOneStage) {
  TraceBuilder made;
  const std::uint16_t process = made.add_process();
  const std::uint32_t thread = made.add_thread(process);
  const std::uint32_t stream = made.add_stream(process, made.add_device());
  made.kernel(stream, 10, 20, "before");
  made.launch(thread, 30, stream, 40, 50, "launched");
  made.kernel(stream, 60, 70, "after");
  const Trace trace = made.finish();
  const Stages stages = find_stages(trace, Rules(), 0, 100);
  const Attribution attribution = attribute(trace, stages);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(attribution.kernels.instance[row], 0U) << row;
  }
  EXPECT_EQ(attribution.kernels.call[0], kNone);
  EXPECT_EQ(attribution.kernels.call[1], 0U);
}

TEST(Stages, StepsAloneAreDecode) {
  const Stages stages = stages_of({{"LLM", "decode_step", 0, 10}, {"LLM", "decode_step", 10, 20}});
  EXPECT_THAT(names_of(stages), ElementsAre("decode"));
  EXPECT_FALSE(stages.is_nested[0]);
}

TEST(Stages, DraftsInDomainLlmAreAStageOfTheirOwn) {
  EXPECT_THAT(found({{"LLM", "prefill", 0, 10, 17}, {"LLM", "verify", 10, 20, 4}}),
              ElementsAre("prefill 17", "verify 4"));
}

TEST(Stages, MarksOfTransformersUnderPyTorchsProfiler) {
  EXPECT_THAT(
      found({{"", "transformers.prefill[bs=3 toks=51 c_sk=51 c_sqsq=867 c_sqsk=867]", 0, 10},
             {"", "transformers.decode_step[bs=3 toks=3 g_sk=54 g_sqsq=3 g_sqsk=54]", 10, 20},
             {"", "transformers.verify[bs=1 toks=4]", 20, 30}}),
      ElementsAre("prefill 51", "decode 3", "verify 4"));
}

TEST(Stages, VllmMarkers) {
  EXPECT_THAT(
      found({{"", "execute_context_2(600)_generation_0(0)", 0, 10},
             {"", "execute_context_0(0)_generation_8(8)", 10, 20},
             {"", "execute_context_1(100)_generation_3(3)", 20, 30},
             {"", "execute_888_context_1(sq888sk888sqsq1sqsk1)_generation_0(sq0sk0sqsq0sqsk0)", 30,
              40}}),
      ElementsAre("prefill 600", "decode 8", "mixed 103", "prefill 888"));
}

TEST(Stages, SglangMarkers) {
  EXPECT_THAT(found({{"", "step[EXTEND bs=4 toks=512 c_sq=512 c_sqsq=1 c_sqsk=1 c_sk=512]", 0, 10},
                     {"", "step[DECODE bs=8 g_sq=8]", 10, 20},
                     {"", "step[MIXED bs=9]", 20, 30},
                     {"", "step[MIXED bs=66 c=2 g=64 c_sq=2048 g_sq=64]", 30, 40},
                     {"", "step[IDLE bs=0]", 40, 50}}),
              ElementsAre("prefill 512", "decode 8", "mixed", "mixed 2112", "idle 0"));
}

TEST(Stages, TheSourceNamesTheEngine) {
  EXPECT_EQ(stages_of({{"", "execute_context_0(0)_generation_8(8)", 0, 10}}).source,
            "step markers of vLLM");
  EXPECT_EQ(stages_of({{"", "execute_context_0(0)_generation_8(8)", 0, 10},
                       {"", "step[DECODE bs=8]", 1, 9}})
                .source,
            "step markers of SGLang, in vLLM's form");
  const Stages steps =
      stages_of({{"TensorRT-LLM", "[Executor] _forward_step 3: 0 ctx reqs, 5 gen reqs", 0, 10}});
  EXPECT_EQ(steps.engine, "TensorRT-LLM");
  EXPECT_TRUE(steps.are_steps);
}

// A profiler's steps say least: any other mark comes before them.
TEST(Stages, StepsOfTheProfilerComeLast) {
  const Stages alone = stages_of({{"", "ProfilerStep#6", 0, 10}, {"", "ProfilerStep#7", 10, 20}});
  EXPECT_THAT(names_of(alone), ElementsAre("step"));
  EXPECT_TRUE(alone.instances[0].is_process_wide) << "autograd has threads of its own";
  EXPECT_TRUE(alone.are_steps);
  EXPECT_THAT(found({{"", "ProfilerStep#6", 0, 10}, {"", "step[DECODE bs=8]", 1, 9}}),
              ElementsAre("decode 8"));
  const Stages ruled = stages_of({{"", "ProfilerStep#6", 0, 10}, {"", "my_prefill", 1, 9}});
  EXPECT_THAT(names_of(ruled), ElementsAre("prefill"));
  EXPECT_FALSE(ruled.are_steps);
  EXPECT_EQ(ruled.engine, "");
}

TEST(Stages, SglangUnderNsysHasStepsOfUnknownContent) {
  EXPECT_THAT(found({{"NVTX", "scheduler.get_next_batch_to_run", 0, 5},
                     {"NVTX", "scheduler.run_batch", 5, 9}}),
              ElementsAre("step"));
  EXPECT_THAT(found({{"", "scheduler.run_batch", 0, 10}, {"", "step[DECODE bs=8]", 1, 9}}),
              ElementsAre("decode 8"));
}

// SGLang's draft model marks its steps like the model itself.
TEST(Stages, StepsOfADraftModelAreDrafts) {
  EXPECT_THAT(found({{"", "step[EXTEND bs=1 toks=900]", 0, 10},
                     {"", "draft_extend", 10, 20},
                     {"", "step[EXTEND bs=1 toks=900]", 11, 19},
                     {"", "draft", 20, 30},
                     {"", "step[DECODE bs=1]", 21, 29},
                     {"", "step[TARGET_VERIFY bs=1 g_sq=4]", 30, 40},
                     {"", "step[DECODE bs=1]", 50, 60}}),
              ElementsAre("prefill 900", "draft 900", "draft 1", "verify 4", "draft 1"));
}

// Plain words count beside the engine's other ranges or where nothing better is marked, and in the
// default domain.
TEST(Stages, MegatronsWordsNeedCompany) {
  EXPECT_THAT(found({{"codec", "Decode", 0, 10}}), ElementsAre("all"));
  EXPECT_THAT(found({{"", "Decode", 0, 10}, {"", "step[DECODE bs=1]", 10, 20}}),
              ElementsAre("decode 1"));
  EXPECT_THAT(found({{"", "Prefill", 0, 10}, {"", "Decode", 10, 20}}),
              ElementsAre("prefill", "decode"));
  EXPECT_THAT(found({{"", "Prefill", 0, 10},
                     {"", "Decode", 10, 20},
                     {"", "bookkeeping", 20, 30},
                     {"codec", "Decode", 30, 40},
                     {"", "AsyncOverlap", 40, 50}}),
              ElementsAre("prefill", "decode", "step"));
}

TEST(Stages, WhatOnlyLooksLikeAMarkerIsNone) {
  EXPECT_THAT(found({{"", "execute_context_", 0, 1},
                     {"", "execute_context_x(1)_generation_1(1)", 0, 1},
                     {"", "execute_generation_1(1)_context_1(1)", 0, 1},
                     {"", "execute_context_99999999999999999999(1)_generation_0(0)", 0, 1},
                     {"", "step[", 0, 1}}),
              ElementsAre("all"));
}

// Sums of them would overflow.
TEST(Stages, NumbersThatNoStepHasAreNoCounts) {
  EXPECT_THAT(
      found({{"", "execute_context_1(9223372036854775807)_generation_1(9223372036854775807)", 0, 1},
             {"", "execute_context_1(600)_generation_0(0)", 2, 3}}),
      ElementsAre("mixed", "prefill 600"));
  EXPECT_THAT(found({{"", "step[EXTEND bs=4 toks=9223372036854775807]", 0, 1}}),
              ElementsAre("prefill"));
  EXPECT_THAT(found({{"LLM", "prefill", 0, 1, INT64_MAX},
                     {"LLM", "prefill", 2, 3, -5},
                     {"LLM", "prefill", 4, 5, 1'000'000'000}}),
              ElementsAre("prefill", "prefill", "prefill 1000000000"));
}

TEST(Stages, RulesComeLast) {
  EXPECT_THAT(found({{"", "my_prefill of request 7", 0, 10},
                     {"mine", "decode", 10, 20},
                     {"other", "decode", 20, 30}}),
              ElementsAre("prefill", "decode"));
}

TEST(Stages, RulesOfAUsersFileComeFirstWhereOneFits) {
  Rules rules;
  rules.stages = {{"app", "read*", "prefill"}, {"", "decode", "decode"}};
  rules.num_user_stages = 1;
  rules.user_source = "rules of my.yaml";
  const Stages own = find_stages(
      trace_of({{"LLM", "prefill", 0, 9}, {"app", "read 7", 10, 20}, {"", "decode", 20, 30}}),
      rules, 0, 1000);
  EXPECT_THAT(names_of(own), ElementsAre("prefill", "decode"));
  EXPECT_EQ(own.instances.size(), 2U);
  EXPECT_EQ(own.source, "rules of my.yaml and conf/rules/stages.yaml");
  const Stages marked =
      find_stages(trace_of({{"LLM", "prefill", 0, 9}, {"", "decode", 20, 30}}), rules, 0, 1000);
  EXPECT_EQ(marked.source, "NVTX domain LLM");
}

// A recording cannot be refused, so its stage gets another name than the rows of gpuwhy's own.
TEST(Stages, AWordOfARowIsRenamed) {
  for (const std::string word : {"all", "capture", "steady", "startup", "ending", "outside"}) {
    Rules rules;
    rules.stages = {{"LLM", word, word}, {"", "mine", word}};
    const Stages stages = find_stages(
        trace_of(
            {{"LLM", word.c_str(), 0, 9}, {"", "mine", 20, 30}, {"LLM", word.c_str(), 40, 50}}),
        rules, 0, 1000);
    EXPECT_THAT(names_of(stages), ElementsAre(word + " (marked)"));
    EXPECT_EQ(stages.instances.size(), 3U);
    ASSERT_EQ(stages.notes.size(), 1U);
    EXPECT_EQ(stages.notes[0].kind, "stage_renamed");
    EXPECT_THAT(stages.notes[0].sentence, testing::HasSubstr("'" + word + " (marked)'"));
  }
  EXPECT_THAT(names_of(stages_of({{"LLM", "capture", 0, 9}, {"LLM", "prefill", 10, 19}})),
              ElementsAre("prefill"))
      << "domain LLM has stages of its own, and capture is none";
}

TEST(Stages, AnOpenRangeIsClosedAtTheEndAndFlagged) {
  const Stages stages = stages_of({{"LLM", "prefill", 5, kOpenEnd}});
  ASSERT_EQ(stages.instances.size(), 1U);
  EXPECT_TRUE(stages.instances[0].is_open);
  EXPECT_EQ(stages.instances[0].end_ns, 1000);
}

TEST(Stages, WithoutMarksEverythingIsOne) {
  const Stages stages = stages_of({});
  EXPECT_THAT(names_of(stages), ElementsAre("all"));
  EXPECT_EQ(stages.instances[0].end_ns, 1000);
  EXPECT_THAT(stages.source, testing::HasSubstr("no stage marks"));
}

// Reports name operators without PyTorch's numbers, and what they name can be typed.
TEST(Stages, AnOperatorIsFoundByItsName) {
  Rules rules;
  add_marks({"forward=flash_attn::fwd"}, {}, rules);
  const auto has = [&](const char* text) {
    return std::any_of(rules.stages.begin(), rules.stages.end(),
                       [&](const StageRule& rule) { return fits(rule, "", text); });
  };
  EXPECT_TRUE(has("flash_attn::fwd, seq = 45368, op_id = 990440"));
  EXPECT_TRUE(has("flash_attn::fwd"));
  EXPECT_FALSE(has("flash_attn::fwd_kernel, seq = 1, op_id = 2"));
  EXPECT_FALSE(has("flash_attn::fwd, of mine"));
}

// The step before was launched before the recording began.
TEST(StepWindows, KernelsWithoutARecordedLaunchAreOfTheStepBefore) {
  constexpr std::int64_t kMs = 1'000'000;
  TraceBuilder made;
  const auto process = made.add_process();
  const auto thread = made.add_thread(process);
  const auto stream = made.add_stream(process, made.add_device());
  for (int i = 0; i < 10; ++i) {
    made.kernel(stream, i * kMs, (i + 1) * kMs, "gemm");
  }
  made.range(thread, kMs, 20 * kMs, "decode_step", {.domain = "LLM"});
  for (int i = 0; i < 10; ++i) {
    made.kernel(stream, (10 + i) * kMs, (11 + i) * kMs, "gemm",
                made.call(thread, 2 * kMs + i, 3 * kMs));
  }
  made.kernel(stream, 30 * kMs, 31 * kMs, "gemm");  // later: another process
  const Analysis analysis = profile(made.finish(), Rules()).analysis;
  const auto step = std::find_if(analysis.ledgers.begin(), analysis.ledgers.end(),
                                 [](const LedgerRow& row) { return row.stage.text() == "decode"; });
  ASSERT_NE(step, analysis.ledgers.end());
  EXPECT_EQ(step->window_ns, 10 * kMs);
  EXPECT_EQ((*step)[Bucket::kUnattributed], 0);
}

}  // namespace
}  // namespace gpuwhy
