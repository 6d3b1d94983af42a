// SPDX-License-Identifier: Apache-2.0
#include "session/reading/unprofiled_trace.h"

#include "analysis/stages/stage_times.h"
#include "testing.h"

namespace gpuwhy {
namespace {

struct Marked {
  const char* domain;
  const char* name;
  std::int64_t start_ns;
  std::int64_t end_ns;  // 0: open
};

TimedRun run_of(const std::vector<Marked>& marks) {
  TimedProcess process;
  for (const Marked& mark : marks) {
    TimedRange range;
    range.domain = static_cast<std::uint32_t>(process.texts.size());
    range.name = range.domain + 1;
    process.texts.insert(process.texts.end(), {mark.domain, mark.name});
    range.start_ns = mark.start_ns;
    range.end_ns = mark.end_ns;
    range.is_open = mark.end_ns == 0;
    process.ranges.push_back(range);
  }
  return {{process}, {}};
}

// The stages as the analysis finds them in the ranges of the timer.
Stages stages_of(const TimedRun& run, const Rules& rules) {
  return find_stages(trace_of(run), rules, 0, 0);
}

std::vector<std::string> described(const Stages& stages) {
  std::vector<std::string> rows;
  for (const StageTimes& time : time_stages(stages)) {
    rows.push_back(time.stage.text() + " " + std::to_string(time.n) + "x, " +
                   std::to_string(time.total_ns) + " ns, open " + std::to_string(time.num_open));
  }
  return rows;
}

TEST(Baseline, MarksOfDomainLlmComeFirst) {
  const auto stages = stages_of(run_of({{"LLM", "request", 10, 900},
                                        {"LLM", "prefill", 20, 120},
                                        {"", "prefill", 30, 40},
                                        {"LLM", "decode_all", 200, 0},
                                        {"LLM", "decode_step", 210, 220},
                                        {"LLM", "decode_step", 230, 250}}),
                                {{}, {{"", "prefill", "prefill"}}});
  EXPECT_EQ(stages.source, "NVTX domain LLM");
  EXPECT_THAT(described(stages),
              ElementsAre("prefill 1x, 100 ns, open 0", "decode 0x, 0 ns, open 1",
                          "decode_step 2x, 30 ns, open 0"));
}

TEST(Baseline, EnginesSayTheirTokens) {
  const auto stages = stages_of(run_of({{"", "execute_context_1(600)_generation_0(0)", 100, 1100},
                                        {"", "execute_context_0(0)_generation_3(3)", 2000, 2600},
                                        {"NCCL", "AllReduce", 2100, 2200}}),
                                {});
  EXPECT_THAT(described(stages),
              ElementsAre("prefill 1x, 1000 ns, open 0", "decode 1x, 600 ns, open 0"));
  const auto times = time_stages(stages);
  EXPECT_EQ(times[0].tokens, 600);
  EXPECT_EQ(times[1].tokens, 3);
  EXPECT_EQ(times[1].tokens_per_s, 3 * 1e9 / 600);
}

TEST(Baseline, WithoutMarksEverythingIsOneStage) {
  const auto stages = stages_of(run_of({{"NCCL", "AllReduce", 2100, 2200}}), {});
  EXPECT_THAT(stages.names, ElementsAre(row_name("all")));
  EXPECT_THAT(stages.source, HasSubstr("no stage marks"));
}

TEST(Baseline, MarksKnowHowTheyWereMade) {
  TimedRun run =
      run_of({{"LLM", "prefill", 20, 120}, {"LLM", "prefill", 200, 300}, {"", "x", 1, 2}});
  run.processes[0].ranges[0].is_registered = true;
  run.processes[0].ranges[2].kind = TimedRangeKind::kStartEnd;
  run.processes[0].ranges[2].is_registered = true;
  const std::vector<SeenMark> seen = seen_marks(run);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].mark.text(), "LLM:prefill");
  EXPECT_EQ(seen[0].count, 2);
  EXPECT_FALSE(seen[0].is_registered) << "one of the two was plain";
  EXPECT_TRUE(seen[0].is_push_pop && !seen[0].is_start_end);
  EXPECT_TRUE(seen[1].is_registered && seen[1].is_start_end && !seen[1].is_push_pop);
}

}  // namespace
}  // namespace gpuwhy
