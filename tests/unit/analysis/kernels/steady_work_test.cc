// SPDX-License-Identifier: Apache-2.0
//
// Kernel time inside the steady phase.
#include "analysis/kernels/steady_work.h"

#include "analysis/kernels/kernel_chains.h"
#include "analysis/kernels/kernels.h"
#include "analysis/names/rules_json.h"
#include "base/json.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

// Two sizes of a GEMM and two additions at the start, and the same in the steady phase.
struct Made {
  Trace trace;
  Stages stages;
  Attribution attribution;
  Analysis analysis;
  Rules rules = rules_from({{"families",
                             {{{"family", "gemm"}, {"words", {"gemm"}}},
                              {{"family", "elementwise"}, {"words", {"add"}}}}}},
                           {{"stages", Json::array()}});

  Made() {
    stages.names = {row_name("all")};
    stages.is_nested = {false};
    stages.instances.resize(1);
    TraceBuilder builder;
    const std::uint16_t device = builder.add_device(0);
    builder.add_stream(builder.add_process(), device);
    builder.add_shape({{1, 1, 1}, {32, 1, 1}});
    builder.add_shape({{8, 1, 1}, {32, 1, 1}});
    for (const std::int64_t from_ns : {0, 1000}) {
      builder.kernel(0, from_ns, from_ns + 100, "gemm", TraceBuilder::kNoCall, {.shape = 0});
      builder.kernel(0, from_ns + 100, from_ns + 130, "gemm", TraceBuilder::kNoCall, {.shape = 1});
      builder.kernel(0, from_ns + 130, from_ns + 140, "add", TraceBuilder::kNoCall, {.shape = 0});
      builder.kernel(0, from_ns + 140, from_ns + 160, "add", TraceBuilder::kNoCall, {.shape = 0});
    }
    trace = builder.finish();
    attribution.kernels.instance = Column<std::uint32_t>(trace.kernels.size());
    for (std::size_t row = 0; row < trace.kernels.size(); ++row) {
      attribution.kernels.instance[row] = 0;
    }
    const LaunchTallies tallies = tally_launches(trace, stages, attribution);
    summarise_kernels(trace, {trace, rules}, stages, attribution, tallies, analysis);
    analysis.launch_groups = group_launches(trace, {trace, rules}, stages, tallies);
  }
};

LedgerRow phase(const char* name, std::int64_t start_ns, std::int64_t end_ns) {
  LedgerRow row;
  row.stage = row_name(name);
  row.device = "cuda:0";
  row.start_ns = start_ns;
  row.end_ns = end_ns;
  return row;
}

TEST(SteadyWork, CountsWhatStartsInThePhase) {
  Made made;
  const auto windows =
      steady_parts(made.trace, {phase("startup", 0, 500), phase("steady", 500, 2000)});
  measure_steady(made.trace, made.stages, made.attribution, windows, made.analysis);
  ASSERT_EQ(made.analysis.kernels.size(), 2U);
  EXPECT_EQ(made.analysis.kernels[0].total_ns, 260);
  EXPECT_EQ(made.analysis.kernels[0].steady_ns, 130);
  EXPECT_EQ(made.analysis.kernels[1].steady_ns, 30);
  std::int64_t sum_ns = 0;
  for (const LaunchGroup& group : made.analysis.launch_groups) {
    sum_ns += group.steady_ns.value();
  }
  EXPECT_EQ(sum_ns, 160);
}

TEST(SteadyWork, WithoutAPhaseNothingIsKnown) {
  Made made;
  measure_steady(made.trace, made.stages, made.attribution, steady_parts(made.trace, {}),
                 made.analysis);
  EXPECT_EQ(made.analysis.kernels[0].steady_ns, std::nullopt);
  EXPECT_EQ(made.analysis.launch_groups[0].steady_ns, std::nullopt);
}

TEST(SteadyWork, ChainsOfThePhaseAreAStageOfTheirOwn) {
  const Made made;
  const auto windows = steady_parts(made.trace, {phase("steady", 500, 2000)});
  const auto chains = find_kernel_chains(made.trace, {made.trace, made.rules}, made.stages,
                                         made.attribution, windows);
  ASSERT_EQ(chains.size(), 2U);
  EXPECT_EQ(chains[0].stage.text(), "all");
  EXPECT_EQ(chains[1].stage.text(), "steady");
  EXPECT_EQ(chains[1].mover_ns, 30);
}

}  // namespace
}  // namespace gpuwhy
