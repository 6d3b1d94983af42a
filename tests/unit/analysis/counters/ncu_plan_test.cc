// SPDX-License-Identifier: Apache-2.0
//
// Plans of recordings small enough to plan by hand; and stretches of random ones against trying
// every stretch there is.
#include "analysis/counters/ncu_plan.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "analysis/names/rules_json.h"
#include "analysis/profile.h"
#include "base/json.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kUs = 1000;

struct MadeLaunch {
  std::string name;
  std::int64_t duration_ns = 0;
  int shape = 0;   // 0 or 1
  int device = 0;  // 0 or 1
  std::string mangled = "";
};

// A range of domain LLM and what is launched inside; an empty stage has no range. `steps` parts the
// launches into decode_step ranges of this many.
struct MadeStage {
  std::string stage;
  std::vector<MadeLaunch> launches;
  std::uint32_t process = 0;  // 0 or 1
  std::size_t steps = 0;
};

Trace trace_of(const std::vector<MadeStage>& stages) {
  TraceBuilder made;
  const std::uint16_t devices[] = {made.add_device(), made.add_device()};
  for (const std::uint16_t process : {made.add_process(), made.add_process()}) {
    made.add_thread(process);
    for (const std::uint16_t device : devices) {
      made.add_stream(process, device);
    }
  }
  made.add_shape({{1, 1, 1}, {32, 1, 1}});
  made.add_shape({{8, 2, 1}, {128, 1, 1}});
  std::int64_t now = 1000;
  for (const MadeStage& stage : stages) {
    const std::int64_t start = now;
    std::int64_t step_start = ++now;
    std::size_t in_step = 0;
    for (const MadeLaunch& launch : stage.launches) {
      made.launch(stage.process, now, stage.process * 2 + static_cast<std::uint32_t>(launch.device),
                  now + 10, now + 10 + launch.duration_ns, launch.name,
                  {.mangled = launch.mangled, .shape = static_cast<std::uint32_t>(launch.shape)});
      now += launch.duration_ns + 20;
      if (++in_step == stage.steps) {
        made.range(stage.process, step_start, now, "decode_step", {.domain = "LLM"});
        step_start = ++now;
        in_step = 0;
      }
    }
    if (!stage.stage.empty()) {
      made.range(stage.process, start, ++now, stage.stage, {.domain = "LLM"});
    }
    now += 100;
  }
  std::mt19937 random(1);
  made.shuffle(random);  // the order of rows means nothing
  return made.finish();
}

NcuPlan plan_of_profile(const Profile& made, const PlanOptions& options) {
  return plan_ncu(*made.trace, made.stages, made.attribution, made.kernel_parts, made.analysis,
                  options);
}

NcuPlan plan_of(const std::vector<MadeStage>& stages, const PlanOptions& options = {}) {
  const Rules rules =
      rules_from({{"families", {{{"family", "communication"}, {"words", {"ringy"}}}}}},
                 {{"stages", Json::array()}});
  return plan_of_profile(profile(trace_of(stages), rules), options);
}

std::vector<std::string> planned(const NcuPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedKernel& kernel : plan.kernels) {
    names.push_back(kernel.group.kernel_name);
  }
  return names;
}

std::vector<std::pair<std::string, std::string>> excluded(const NcuPlan& plan) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const ExcludedKernel& kernel : plan.excluded) {
    names.emplace_back(kernel.group.kernel_name, kernel.reason);
  }
  return names;
}

TEST(NcuPlan, AnEmptyRecordingHasAnEmptyPlan) {
  for (const bool per_launch_config : {false, true}) {
    PlanOptions options;
    options.has_per_launch_config = per_launch_config;
    for (const NcuPlan& plan : {plan_of({}, options), plan_of({{"prefill", {}}}, options),
                                plan_of({{"prefill", {{"ringy", 5}}}}, options)}) {
      EXPECT_THAT(plan.kernels, IsEmpty());
      EXPECT_THAT(plan.commands, IsEmpty());
      EXPECT_EQ(plan.forecast_s, 0);
      EXPECT_EQ(plan.covered_ns, 0);
    }
  }
}

TEST(NcuPlan, TheTopByTimeInOrder) {
  const MadeStage stage = {"prefill", {{"small", 10}, {"big", 100}, {"often", 30}, {"often", 31}}};
  PlanOptions options;
  options.top_n = 2;
  const NcuPlan plan = plan_of({stage, stage}, options);
  EXPECT_THAT(planned(plan), ElementsAre("big", "often"));
  EXPECT_THAT(excluded(plan), ElementsAre(Pair("small", "beyond_top_n")));
  EXPECT_EQ(plan.kernel_ns, 2 * 171);
  EXPECT_EQ(plan.covered_ns, 2 * 161);
  options.top_n = 0;
  EXPECT_THAT(plan_of({stage}, options).kernels, IsEmpty());
}

// A product in two shapes, and attention that takes less than either of them.
TEST(NcuPlan, EachPartOfTheModelComesBeforeASecondShape) {
  const MadeStage stage = {"prefill", {{"gemm", 100, 0}, {"gemm", 90, 1}, {"attention", 10}}};
  Profile made = profile(trace_of({stage, stage}), Rules());
  PlanOptions options;
  options.top_n = 2;
  EXPECT_THAT(planned(plan_of_profile(made, options)), ElementsAre("gemm", "gemm"));

  made.analysis.structure.emplace();
  for (const auto& [place, part] :
       {std::pair("layer 0", "qkv"), {"layer 1", "o"}, {"layer B 0", "attention"}}) {
    LayerPartRow& summary = made.analysis.structure->parts.emplace_back();
    summary.pass = "forward";
    summary.place = place;
    summary.part = part;
  }
  bool is_next_o = false;  // products take turns
  for (const StringId name : made.trace->kernels.name) {
    const bool is_gemm = made.trace->strings[name] == "gemm";
    made.kernel_parts.push_back(is_gemm ? (is_next_o ? 1U : 0U) : 2U);
    is_next_o = is_gemm != is_next_o;
  }
  const NcuPlan plan = plan_of_profile(made, options);
  ASSERT_THAT(planned(plan), ElementsAre("gemm", "attention"));
  EXPECT_THAT(plan.kernels[0].parts, testing::UnorderedElementsAre("qkv", "o"));
  EXPECT_THAT(plan.kernels[1].parts, ElementsAre("attention (layer B)"));
  EXPECT_THAT(excluded(plan), ElementsAre(Pair("gemm", "beyond_top_n")));
}

TEST(NcuPlan, WithoutMarksEverythingIsOneStage) {
  const NcuPlan plan = plan_of({{"", {{"a", 10}, {"b", 5}}}});
  EXPECT_THAT(planned(plan), ElementsAre("a", "b"));
  ASSERT_EQ(plan.commands.size(), 1U);
  EXPECT_EQ(plan.commands[0].launch_skip, 0);
  EXPECT_EQ(plan.commands[0].launch_count, 2);
}

TEST(NcuPlan, GpusThatDoTheSameAreOneGroup) {
  const MadeStage stage = {"prefill", {{"a", 100, 0, 0}, {"a", 50, 0, 1}, {"a", 7, 1, 1}}};
  const NcuPlan plan = plan_of({stage, stage});
  ASSERT_EQ(plan.kernels.size(), 2U) << "a shape is a group, a GPU is none";
  EXPECT_EQ(plan.kernels[0].group.total_ns, 300);
  EXPECT_EQ(plan.kernels[0].group.calls, 4);
  EXPECT_EQ(plan.kernels[1].group.total_ns, 14);
}

TEST(NcuPlan, ProcessesThatDoTheSameAreMeasuredInTheBusiest) {
  const NcuPlan plan = plan_of({{"prefill", {{"a", 50}, {"mine", 1}}, 0},
                                {"prefill", {{"a", 60}, {"other", 20}}, 1},
                                {"prefill", {{"a", 50}, {"mine", 1}}, 0},
                                {"prefill", {{"a", 60}, {"other", 20}}, 1}});
  EXPECT_THAT(planned(plan), ElementsAre("a", "other"));
  EXPECT_EQ(plan.kernels[0].group.total_ns, 220);
  EXPECT_EQ(plan.kernels[0].group.process, 1);
  EXPECT_EQ(plan.kernels[0].group.max_ns, 60) << "of the process that will be measured";
  EXPECT_THAT(excluded(plan), ElementsAre(Pair("mine", "other_process")));
}

TEST(NcuPlan, WhatIsLeftOutAndWhy) {
  const MadeStage steady = {"prefill",
                            {{"gemm", 100},
                             {"ringy", 90},
                             {"ncclDevKernel_x", 80},
                             {"oneShotAllReduceKernel", 70},
                             {"my_cooperative_thing", 60}}};
  MadeStage first = steady;
  first.launches.push_back({"autotune", 500});
  const NcuPlan plan = plan_of({{"", {{"load", 1000}}}, first, steady});
  EXPECT_THAT(planned(plan), ElementsAre("gemm"));
  EXPECT_THAT(excluded(plan),
              ElementsAre(Pair("load", "outside_stages"), Pair("autotune", "warm_up"),
                          Pair("ringy", "communication"), Pair("ncclDevKernel_x", "communication"),
                          Pair("oneShotAllReduceKernel", "communication"),
                          Pair("my_cooperative_thing", "communication")))
      << "by time";
  EXPECT_EQ(plan.covered_ns, 200);
  EXPECT_EQ(plan.kernel_ns, 200 + 180 + 160 + 140 + 120 + 1000 + 500);
}

TEST(NcuPlan, TheWarmUpIsNotMeasured) {
  const MadeStage stage = {"prefill", {{"a", 100}, {"b", 100}}};
  NcuPlan plan = plan_of({stage, stage, stage});
  ASSERT_EQ(plan.commands.size(), 1U);
  EXPECT_EQ(plan.commands[0].launch_skip, 2);
  EXPECT_EQ(plan.commands[0].launch_count, 2);
  EXPECT_EQ(plan.commands[0].expected_launches, 2);
  plan = plan_of({stage});
  EXPECT_EQ(plan.commands.at(0).launch_skip, 0) << "a stage that ran once has no other";
}

TEST(NcuPlan, TheFirstStepOfOneLoopIsWarmUpToo) {
  const NcuPlan plan = plan_of({{"decode_all", {{"a", 10}, {"a", 10}, {"a", 10}}, 0, 1}});
  ASSERT_EQ(plan.commands.size(), 1U);
  EXPECT_THAT(plan.commands[0].stages, ElementsAre("decode"));
  EXPECT_EQ(plan.commands[0].launch_skip, 1);
  EXPECT_EQ(plan.commands[0].launch_count, 1);
}

TEST(NcuPlan, EachProcessHasItsOwnWarmUp) {
  // Process 1 is the busiest, and process 0 was first by a moment.
  const NcuPlan plan = plan_of({{"prefill", {{"a", 10}}, 0},
                                {"prefill", {{"a", 90}}, 1},
                                {"prefill", {{"a", 10}}, 0},
                                {"prefill", {{"a", 90}}, 1}});
  ASSERT_EQ(plan.commands.size(), 1U);
  EXPECT_EQ(plan.commands[0].launch_skip, 1);
}

TEST(NcuPlan, TheLaunchIsLikeTheOthers) {
  const MadeStage warm = {"prefill", {{"a", 1000}}};
  const NcuPlan plan =
      plan_of({warm, {"prefill", {{"a", 5000}, {"a", 100}, {"a", 1010}, {"a", 990}, {"a", 1000}}}});
  ASSERT_EQ(plan.commands.size(), 1U);
  EXPECT_EQ(plan.commands[0].launch_skip, 3) << "the first is warm-up, two are outliers";
  EXPECT_EQ(plan.commands[0].launch_count, 1);
}

TEST(NcuPlan, AStageIsACommandWithItsOwnCount) {
  const MadeStage prefill = {"prefill", {{"x", 900}, {"y", 9}, {"x", 900}}};
  const MadeStage decode = {"decode_all", {{"x", 10}, {"z", 10}}};
  PlanOptions options;
  NcuPlan plan = plan_of({prefill, decode, prefill, decode}, options);
  ASSERT_EQ(plan.commands.size(), 2U);
  EXPECT_THAT(plan.commands[0].stages, ElementsAre("decode"));
  EXPECT_THAT(plan.commands[0].names, ElementsAre("x", "z"));
  EXPECT_EQ(plan.commands[0].launch_skip, 2);
  EXPECT_EQ(plan.commands[0].launch_count, 2);
  EXPECT_THAT(plan.commands[1].stages, ElementsAre("prefill"));
  EXPECT_THAT(plan.commands[1].names, ElementsAre("x", "y"));
  EXPECT_EQ(plan.commands[1].launch_skip, 3);
  for (const PlannedKernel& kernel : plan.kernels) {
    EXPECT_THAT(plan.commands.at(kernel.command).stages, ElementsAre(kernel.group.stage.text()));
  }
  // Without the gate launches of these names count wherever they are made.
  options.is_gated = false;
  plan = plan_of({prefill, decode, prefill, decode}, options);
  ASSERT_EQ(plan.commands.size(), 2U);
  EXPECT_THAT(plan.commands[0].stages, IsEmpty());
  EXPECT_EQ(plan.commands[0].launch_skip, 6) << "x x, x z, x x | x z: y is not of this command";
  EXPECT_EQ(plan.commands[1].launch_skip, 4) << "x y x, x | x y";
}

TEST(NcuPlan, SignaturesAreCountedAloneWhereNcuCan) {
  const MadeStage stage = {"prefill", {{"a", 100}, {"a", 100}, {"b", 50}, {"b", 50, 1}}};
  PlanOptions options;
  options.has_per_launch_config = true;
  NcuPlan plan = plan_of({stage, stage, stage}, options);
  ASSERT_EQ(plan.commands.size(), 1U);
  EXPECT_TRUE(plan.commands[0].is_per_launch_config);
  EXPECT_EQ(plan.commands[0].launch_skip, 2) << "a has two launches in the warm-up";
  EXPECT_EQ(plan.commands[0].launch_count, 1);
  EXPECT_EQ(plan.commands[0].expected_launches, 3);
  // b has but two launches: skipping two would measure none of it.
  plan = plan_of({stage, stage}, options);
  EXPECT_EQ(plan.commands[0].launch_skip, 1);
}

TEST(NcuPlan, StagesThatLaunchAlikeAreMeasuredApart) {
  const MadeStage prefill = {"prefill", {{"x", 900}, {"x", 900}}};
  const MadeStage alike = {"decode_all", {{"x", 10}}};
  const MadeStage apart = {"decode_all", {{"x", 10, 1}, {"y", 5}}};
  PlanOptions options;
  options.has_per_launch_config = true;
  NcuPlan plan = plan_of({prefill, alike, prefill, alike}, options);
  ASSERT_EQ(plan.commands.size(), 2U);
  EXPECT_THAT(plan.commands[0].stages, ElementsAre("decode"));
  EXPECT_EQ(plan.commands[0].launch_skip, 1);
  EXPECT_EQ(plan.commands[1].launch_skip, 2);
  EXPECT_EQ(plan.commands[0].expected_launches + plan.commands[1].expected_launches, 2);
  plan = plan_of({prefill, apart, prefill, apart}, options);
  ASSERT_EQ(plan.commands.size(), 1U) << "another shape tells them apart";
  EXPECT_THAT(plan.commands[0].stages, ElementsAre("decode", "prefill"));
  EXPECT_EQ(plan.commands[0].expected_launches, 3);
}

TEST(NcuPlan, MangledNamesOnlyWhereAllHaveThem) {
  const MadeStage both = {"prefill", {{"a", 100, 0, 0, "_Z1a"}, {"b", 50, 0, 0, "_Z1b"}}};
  NcuPlan plan = plan_of({both});
  EXPECT_TRUE(plan.commands.at(0).is_mangled);
  EXPECT_THAT(plan.commands[0].names, ElementsAre("_Z1a", "_Z1b"));
  plan = plan_of({{"prefill", {{"a", 100, 0, 0, "_Z1a"}, {"b", 50}}}});
  EXPECT_FALSE(plan.commands.at(0).is_mangled);
  EXPECT_THAT(plan.commands[0].names, ElementsAre("a", "b"));
}

TEST(NcuPlan, TheForecastIsThatOfItsText) {
  const MadeStage stage = {"prefill", {{"a", 1000 * kUs}, {"b", 500 * kUs}}};
  PlanOptions options;
  options.passes = 10;
  options.program_s = 4;
  const NcuPlan plan = plan_of({stage}, options);
  EXPECT_NEAR(plan.forecast_s, 1.5 * 4 + 10 * (3 * 0.001 + 0.02) + 10 * (3 * 0.0005 + 0.02), 1e-9);
  EXPECT_DOUBLE_EQ(plan.commands.at(0).forecast_s, plan.forecast_s);
  options.passes = 20;
  const NcuPlan more_passes = plan_of({stage}, options);
  EXPECT_GT(more_passes.forecast_s, plan.forecast_s);
  options.passes = 10;
  options.top_n = 1;
  EXPECT_LT(plan_of({stage}, options).forecast_s, plan.forecast_s);
}

TEST(NcuPlan, TheBudgetDropsTheLeast) {
  const MadeStage stage = {"prefill", {{"a", 300}, {"b", 200}, {"c", 100}}};
  PlanOptions options;
  options.passes = 10;      // 0.2 s per launch
  options.budget_s = 0.45;  // two of them
  NcuPlan plan = plan_of({stage}, options);
  EXPECT_THAT(planned(plan), ElementsAre("a", "b"));
  EXPECT_THAT(excluded(plan), ElementsAre(Pair("c", "budget")));
  EXPECT_LE(plan.forecast_s, options.budget_s);
  EXPECT_EQ(plan.covered_ns, 500);
  EXPECT_EQ(plan.commands.at(0).launch_count, 2);
  // One kernel stays whatever it costs: a run that measures nothing helps nobody.
  options.budget_s = 0;
  plan = plan_of({stage}, options);
  EXPECT_THAT(planned(plan), ElementsAre("a"));
  EXPECT_GT(plan.forecast_s, plan.budget_s);
}

// Launches in the order of the host, as a person would list them.
struct Listed {
  std::pair<std::string, int> group;
  std::int64_t duration_ns;
  bool is_warm_up;
};

TEST(NcuPlan, TheShortestStretchOfRandomRecordings) {
  std::mt19937 random(11);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<MadeStage> stages(static_cast<std::size_t>(pick(1, 3)), {"prefill", {}});
    std::vector<Listed> listed;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      for (int n = pick(1, 12); n > 0; --n) {
        const MadeLaunch launch{std::string(1, static_cast<char>('a' + pick(0, 3))),
                                pick(0, 4) == 0 ? pick(1, 5000) : pick(900, 1100), pick(0, 1)};
        stages[i].launches.push_back(launch);
        listed.push_back(
            {{launch.name, launch.shape}, launch.duration_ns, i == 0 && stages.size() > 1});
      }
    }
    const NcuPlan plan = plan_of(stages);
    if (plan.kernels.empty()) {
      continue;  // all of it was warm-up
    }
    std::map<std::pair<std::string, int>, std::int64_t> median;
    std::set<std::string> names;
    for (const PlannedKernel& kernel : plan.kernels) {
      median[{kernel.group.kernel_name, kernel.group.shape.grid[0] == 8 ? 1 : 0}] =
          kernel.group.median_ns;
      names.insert(kernel.group.kernel_name);
    }
    std::erase_if(listed, [&](const Listed& l) { return !names.contains(l.group.first); });
    const auto rank_of = [&](const Listed& l) {
      const double ratio =
          static_cast<double>(l.duration_ns) / static_cast<double>(median.at(l.group));
      return l.is_warm_up ? 0 : ratio <= 1.25 && ratio >= 0.8 ? 2 : 1;
    };
    std::map<std::pair<std::string, int>, int> best_rank;
    for (const Listed& l : listed) {
      if (median.contains(l.group)) {
        best_rank[l.group] = std::max(best_rank[l.group], rank_of(l));
      }
    }
    std::size_t best_start = 0;
    std::size_t best_count = SIZE_MAX;
    for (std::size_t start = 0; start < listed.size(); ++start) {
      std::set<std::pair<std::string, int>> found;
      for (std::size_t end = start; end < listed.size(); ++end) {
        const Listed& l = listed[end];
        if (median.contains(l.group) && rank_of(l) == best_rank[l.group]) {
          found.insert(l.group);
        }
        if (found.size() == median.size() && end + 1 - start < best_count) {
          best_start = start;
          best_count = end + 1 - start;
        }
      }
    }
    ASSERT_EQ(plan.commands.size(), 1U) << round;
    EXPECT_EQ(plan.commands[0].launch_count, static_cast<std::int64_t>(best_count)) << round;
    EXPECT_EQ(plan.commands[0].launch_skip, static_cast<std::int64_t>(best_start)) << round;
    std::int64_t covered = 0;
    for (const PlannedKernel& kernel : plan.kernels) {
      covered += kernel.group.total_ns;
    }
    EXPECT_EQ(plan.covered_ns, covered);
  }
}

}  // namespace
}  // namespace gpuwhy
