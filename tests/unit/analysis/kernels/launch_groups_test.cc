// SPDX-License-Identifier: Apache-2.0
//
// Launch groups of random recordings against a plain sort of all durations.
#include "analysis/kernels/launch_groups.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "analysis/kernels/kernels.h"
#include "analysis/names/rules_json.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "base/json.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

struct Launch {
  int name, mangled, shape, device, process, stage;  // each 0 or 1; stage -1: outside
  std::int64_t start_ns, duration_ns;
};

struct Made {
  Trace trace;
  Stages stages;
  Attribution attribution;
};

constexpr const char* kNames[] = {"gemm<int>", "other"};
constexpr const char* kMangled[] = {"", "_Z4gemm"};

Made make(const std::vector<Launch>& launches) {
  Made made;
  made.stages.names = {row_name("prefill"), row_name("decode")};
  made.stages.is_nested = {false, false};
  made.stages.instances.resize(2);
  made.stages.instances[1].stage = 1;
  TraceBuilder builder;
  const std::uint16_t devices[] = {builder.add_device(4), builder.add_device(7)};
  for (const std::uint16_t process : {builder.add_process(), builder.add_process()}) {
    for (const std::uint16_t device : devices) {
      builder.add_stream(process, device);
    }
  }
  builder.add_shape({{1, 1, 1}, {32, 1, 1}});
  builder.add_shape({{8, 2, 1}, {128, 1, 1}});
  made.attribution.kernels.instance = Column<std::uint32_t>(launches.size());
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Launch& launch = launches[i];
    builder.kernel(
        static_cast<std::uint32_t>(launch.process * 2 + launch.device), launch.start_ns,
        launch.start_ns + launch.duration_ns, kNames[launch.name], TraceBuilder::kNoCall,
        {.mangled = kMangled[launch.mangled], .shape = static_cast<std::uint32_t>(launch.shape)});
    made.attribution.kernels.instance[i] =
        launch.stage < 0 ? kNone : static_cast<std::uint32_t>(launch.stage);
  }
  made.trace = builder.finish();
  return made;
}

Rules rules() {
  return rules_from({{"families", {{{"family", "gemm"}, {"words", {"gemm"}}}}}},
                    {{"stages", Json::array()}});
}

std::vector<LaunchGroup> groups_of(const std::vector<Launch>& launches) {
  const Made made = make(launches);
  return group_launches(made.trace, {made.trace, rules()}, made.stages,
                        tally_launches(made.trace, made.stages, made.attribution));
}

TEST(LaunchGroups, AShapeOrAStageMakesAGroup) {
  const auto groups = groups_of({
      {0, 1, 0, 0, 0, 0, 900, 40},
      {0, 1, 0, 0, 0, 0, 100, 60},
      {0, 1, 1, 0, 0, 0, 200, 50},   // another shape
      {0, 1, 0, 0, 0, 1, 300, 30},   // another stage
      {1, 0, 0, 1, 1, -1, 400, 20},  // outside, another GPU
  });
  ASSERT_EQ(groups.size(), 4U);
  EXPECT_EQ(groups[0].kernel_name, "gemm<int>");
  EXPECT_EQ(groups[0].mangled_name, "_Z4gemm");
  EXPECT_EQ(groups[0].family, "gemm");
  EXPECT_EQ(groups[0].stage.text(), "prefill");
  EXPECT_EQ(groups[0].gpu, "cuda:4");
  EXPECT_EQ(groups[0].calls, 2);
  EXPECT_EQ(groups[0].total_ns, 100);
  EXPECT_EQ(groups[0].min_ns, 40);
  EXPECT_EQ(groups[0].max_ns, 60);
  EXPECT_EQ(groups[0].first_ns, 100);
  EXPECT_EQ(groups[1].shape.block[0], 128);
  EXPECT_EQ(groups[2].stage.text(), "decode");
  EXPECT_EQ(groups[3].stage.text(), "outside");
  EXPECT_EQ(groups[3].family, "other");
  EXPECT_EQ(groups[3].mangled_name, "");
  EXPECT_EQ(groups[3].device, 1);
  EXPECT_EQ(groups[3].gpu, "cuda:7");
}

// Ids of names, devices and stages must not run into each other, however many there are.
TEST(Kernels, ManyDevicesDoNotShareRows) {
  Made made = make({{0, 0, 0, 0, 0, 0, 100, 10}, {1, 0, 0, 0, 0, 0, 200, 20}});
  const auto far_device = static_cast<std::uint16_t>(4096 * (1U ^ 2U));
  ASSERT_EQ(static_cast<std::uint32_t>(made.trace.kernels.name[0]), 1U);
  ASSERT_EQ(static_cast<std::uint32_t>(made.trace.kernels.name[1]), 2U);
  made.trace.devices.resize(far_device + 1U);
  made.trace.kernels.device[1] = far_device;
  Analysis analysis;
  summarise_kernels(made.trace, {made.trace, rules()}, made.stages, made.attribution,
                    tally_launches(made.trace, made.stages, made.attribution), analysis);
  ASSERT_EQ(analysis.kernels.size(), 2U);
  EXPECT_EQ(analysis.kernels[0].kernel_name, "other");
  EXPECT_EQ(analysis.kernels[0].total_ns, 20);
  EXPECT_EQ(analysis.kernels[1].kernel_name, "gemm<int>");
  EXPECT_EQ(analysis.kernels[1].total_ns, 10);
}

TEST(LaunchGroups, NoKernelsNoGroups) {
  EXPECT_TRUE(groups_of({}).empty());
}

TEST(LaunchGroups, SumsAreExactAndMediansLieWithinAStep) {
  std::mt19937 random(5);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  std::vector<Launch> launches;
  std::map<std::tuple<std::string, std::string, std::string, int, int, int>,
           std::vector<std::int64_t>>
      expected;
  const char* const stages[] = {"outside", "prefill", "decode"};
  for (int i = 0; i < 20'000; ++i) {
    const Launch launch{pick(0, 1), pick(0, 1),  pick(0, 1), pick(0, 1),
                        pick(0, 1), pick(-1, 1), i,          1LL << pick(0, 30)};
    launches.push_back(launch);
    launches.back().duration_ns += pick(0, 1000);
    expected[{kNames[launch.name], kMangled[launch.mangled], stages[launch.stage + 1], launch.shape,
              launch.device, launch.process}]
        .push_back(launches.back().duration_ns);
  }
  const auto groups = groups_of(launches);
  ASSERT_EQ(groups.size(), expected.size());
  EXPECT_TRUE(std::is_sorted(groups.begin(), groups.end(),
                             [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; }));
  for (const LaunchGroup& group : groups) {
    std::vector<std::int64_t>& all =
        expected.at({group.kernel_name, group.mangled_name, group.stage.text(),
                     group.shape.grid[0] == 8 ? 1 : 0, group.device, group.process});
    std::sort(all.begin(), all.end());
    std::int64_t total = 0;
    for (const std::int64_t duration : all) {
      total += duration;
    }
    EXPECT_EQ(group.total_ns, total);
    EXPECT_EQ(group.calls, static_cast<std::int64_t>(all.size()));
    EXPECT_EQ(group.min_ns, all.front());
    EXPECT_EQ(group.max_ns, all.back());
    const auto median = static_cast<double>(all[(all.size() - 1) / 2]);
    EXPECT_GE(static_cast<double>(group.median_ns), median);
    EXPECT_LE(static_cast<double>(group.median_ns), median * 1.125 + 1);
  }
}

}  // namespace
}  // namespace gpuwhy
