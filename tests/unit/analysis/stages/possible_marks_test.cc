// SPDX-License-Identifier: Apache-2.0
#include "analysis/stages/possible_marks.h"

#include "testing.h"

namespace gpuwhy {
namespace {

RangeTotal range(std::string name, std::int64_t kernel_ns, std::int64_t instances = 1) {
  RangeTotal total;
  total.range = std::move(name);
  total.instances = instances;
  total.kernel_ns = kernel_ns;
  total.host_ns = 10;
  return total;
}

std::vector<std::string> options_for(const std::vector<RangeTotal>& ranges,
                                     const std::string& stage = "all", std::int64_t kernel_ns = 0) {
  Stages stages;
  stages.names = {row_name(stage)};
  std::vector<std::string> options;
  for (const PossibleMark& mark : possible_marks(stages, ranges, kernel_ns)) {
    options.push_back(mark.option);
  }
  return options;
}

TEST(PossibleMarks, AreNamedByTheirWords) {
  EXPECT_THAT(options_for({range("benchmark_loop", 9), range("read Prompt", 8), range("warmup", 7),
                           range("train_step", 6, 40), range("app:it's", 5)}),
              ElementsAre("--step 'train_step'", "--mark step='benchmark_loop'",
                          "--mark prefill='read Prompt'", "--mark warmup='warmup'",
                          "--mark step='app:it'\\''s'"));
}

// A loop is not a step: what repeats in it is, if it has the work.
TEST(PossibleMarks, WhatRepeatsComesFirst) {
  EXPECT_THAT(options_for({range("main", 100), range("loop", 90), range("iteration", 60, 30),
                           range("attention", 40, 900)}),
              ElementsAre("--step 'iteration'", "--mark step='main'", "--mark step='loop'",
                          "--mark step='attention'"));
}

TEST(PossibleMarks, PartsOfStepsAreNotOffered) {
  EXPECT_THAT(options_for({range("benchmark_loop", 100), range("computing softmax", 20, 128),
                           range("prefill", 3)}),
              ElementsAre("--mark step='benchmark_loop'", "--mark prefill='prefill'"));
}

TEST(PossibleMarks, HaveMostOfTheGpuTimeOrTheNameOfAStage) {
  const std::vector<RangeTotal> parts = {range("computing softmax", 20, 60),
                                         range("computing scores", 19, 60)};
  EXPECT_THAT(options_for(parts, "all", 200), IsEmpty());
  EXPECT_THAT(options_for({range("work", 120, 9), range("prefill", 20), range("softmax", 60, 60)},
                          "all", 200),
              ElementsAre("--mark step='work'", "--mark prefill='prefill'"));
  EXPECT_THAT(options_for({range("FlashAttnFunc", 150, 60), range("flash_attn::forward", 150, 60),
                           range("## Call CompiledFxGraph f6 ##", 190)},
                          "all", 200),
              IsEmpty())
      << "functions of a framework";
}

TEST(PossibleMarks, NumberedNamesAreOnePrefix) {
  EXPECT_THAT(options_for({range("ProfilerStep#11", 3), range("ProfilerStep#12", 3)}),
              ElementsAre("--step 'ProfilerStep#*'"));
  EXPECT_THAT(options_for({range("token_0_processing", 3), range("token_17_processing", 3)}),
              ElementsAre("--step 'token_*'"));
  EXPECT_THAT(options_for({range("block_0", 3, 40), range("block_1", 3, 40)}),
              ElementsAre("--mark step='block_*'"))
      << "they repeat: not steps";
  EXPECT_THAT(options_for({range("layer_0", 3), range("layer_1", 3), range("layer_norm", 3)}),
              ElementsAre("--mark step='layer_norm'"))
      << "the prefix would fit the other, too";
  EXPECT_THAT(options_for({range("7 dwarfs", 3), range("8 dwarfs", 3)}), IsEmpty());
}

TEST(PossibleMarks, SumTheRangesOfTheirPrefix) {
  Stages stages;
  stages.names = {row_name("all")};
  const auto marks = possible_marks(stages, {range("it 1", 3, 2), range("it 2", 4, 5)});
  ASSERT_EQ(marks.size(), 1U);
  EXPECT_EQ(marks[0].kernel_ns, 7);
  EXPECT_EQ(marks[0].instances, 7);
  EXPECT_EQ(marks[0].host_ns, 20);
}

TEST(PossibleMarks, LeaveOutWhatIsNoStage) {
  EXPECT_THAT(options_for({range("NCCL:ncclAllReduce", 9), range("ncclGroupEnd", 9),
                           range("cuBLAS:cublasCreate_v2", 9), range("TensorRT:execute", 9),
                           range("FSDP::pre_forward", 9), range("aten::linear, op_id = 3", 9),
                           range("{'mod': 'x'}", 9), range("bad\x1b[31m", 9), range("", 9),
                           range("idle", 0)}),
              IsEmpty())
      << "the GPU worked, but not in it";
  EXPECT_THAT(options_for({range("idle", 0)}), ElementsAre("--mark step='idle'"));
  EXPECT_THAT(options_for({range("work", 1), range("idle", 0)}), ElementsAre("--mark step='work'"));
  EXPECT_THAT(options_for({range("loop", 9)}, "decode"), IsEmpty()) << "stages are known";
}

TEST(PossibleMarks, AreFiveAtMost) {
  std::vector<RangeTotal> ranges;
  for (char name = 'a'; name < 'z'; ++name) {
    ranges.push_back(range(std::string(1, name), 1));
  }
  EXPECT_EQ(options_for(ranges).size(), 5U);
}

}  // namespace
}  // namespace gpuwhy
