// SPDX-License-Identifier: Apache-2.0
#include "ingest/ncu/ncu_rep.h"

#include "ingest/ncu_report_writer.h"
#include "testing.h"

namespace gpuwhy {
namespace {

using test::report_bytes;
using test::WrittenBlock;
using test::WrittenLaunch;

std::string text(const Counters& counters, StringId id) {
  return std::string(counters.strings[id]);
}

// One block with two launches whose second metric's name comes in a later block.
std::string small_report() {
  WrittenLaunch first;
  first.metrics = {{0, 1500}, {2, 40}};
  first.nvtx_domain = "LLM";
  first.nvtx_stack = {"decode_all", "decode_step"};
  WrittenLaunch second;
  second.mangled = "_Z3addv";
  second.demangled = "";
  second.function = "add";
  second.metrics = {{1, 3}};
  second.has_rule = true;
  return report_bytes({{{"a source"},
                        {first, second},
                        {"gpu__time_duration.sum", "x__y"},
                        test::session_message(),
                        42},
                       {{}, {}, {"dram__bytes.sum.per_second"}, "", 42}});
}

TEST(NcuRep, ReadsLaunches) {
  const std::string report = small_report();
  const Counters counters = parse_ncu_rep(report);
  EXPECT_TRUE(counters.diagnostics.empty());
  EXPECT_EQ(counters.tool_version, "2025.1.0.0");
  EXPECT_EQ(counters.clock_control, "Base");
  ASSERT_EQ(counters.devices.size(), 1U);
  EXPECT_EQ(counters.devices[0].attributes.at(0).value, 40);
  ASSERT_EQ(counters.results.size(), 2U);
  const CounterResult& first = counters.results[0];
  EXPECT_EQ(name_of(counters, first), "gemm(float *)");
  EXPECT_EQ(text(counters, first.mangled_name), "_Z4gemmPf");
  EXPECT_EQ(first.pid, 42U);
  EXPECT_EQ(first.stream, 7U);
  ASSERT_TRUE(first.shape);
  EXPECT_EQ(first.num_blocks, 16);
  EXPECT_EQ(first.threads_per_block, 128);
  EXPECT_EQ(text(counters, first.device_name), "Test GPU");
  EXPECT_EQ(number_of(counters, first, "gpu__time_duration.sum"), 1500);
  EXPECT_EQ(number_of(counters, first, "no such metric"), std::nullopt);
  ASSERT_EQ(first.ranges.size(), 2U);
  EXPECT_EQ(text(counters, first.ranges[1].domain), "LLM");
  EXPECT_EQ(text(counters, first.ranges[1].name), "decode_step");
}

TEST(NcuRep, JoinsTheStringTablesOfAllBlocks) {
  const std::string report = small_report();
  const Counters counters = parse_ncu_rep(report);
  EXPECT_EQ(number_of(counters, counters.results[0], "dram__bytes.sum.per_second"), 40);
  const CounterMetric& metric = counters.results[0].metrics.back();
  EXPECT_EQ(text(counters, metric.unit()), "byte/second");
}

TEST(NcuRep, FallsBackToTheFunctionName) {
  const std::string report = small_report();
  const Counters counters = parse_ncu_rep(report);
  EXPECT_EQ(name_of(counters, counters.results[1]), "add");
}

TEST(NcuRep, ReadsWhatARuleEstimates) {
  const std::string report = small_report();
  const Counters counters = parse_ncu_rep(report);
  ASSERT_EQ(counters.results[1].rules.size(), 1U);
  const CounterRule& rule = counters.results[1].rules[0];
  EXPECT_EQ(text(counters, rule.rule), "SOLBottleneck");
  EXPECT_EQ(text(counters, rule.section), "SpeedOfLight");
  EXPECT_EQ(text(counters, rule.message), "too few warps");
  EXPECT_EQ(rule.speedup_percent, 12.5);
  EXPECT_TRUE(rule.is_global);
}

TEST(NcuRep, CutAnywhereItSaysSoOrRefuses) {
  const std::string report = small_report();
  std::size_t refused = 0;
  std::size_t said = 0;
  for (std::size_t size = 0; size < report.size(); ++size) {
    try {
      const Counters counters = parse_ncu_rep(std::string_view(report).substr(0, size));
      const bool is_block_end = counters.diagnostics.empty();
      said += is_block_end ? 0 : 1;
      // Only the end of a block looks like the end of a file; then metrics miss their names.
      EXPECT_TRUE(!is_block_end || counters.results.empty()) << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      ++refused;
    }
  }
  EXPECT_GT(refused, 100U);
  EXPECT_GT(said, 20U);
}

TEST(NcuRep, AValueWithoutANameIsCounted) {
  WrittenLaunch launch;
  launch.metrics = {{9, 1}, {0, 2}};
  const std::string report = report_bytes({{{}, {launch}, {"a__b"}, "", 1}});
  const Counters counters = parse_ncu_rep(report);
  ASSERT_EQ(counters.diagnostics.size(), 1U);
  EXPECT_EQ(counters.diagnostics[0].kind, "ncu_metric_without_name");
  EXPECT_EQ(counters.results[0].metrics.size(), 1U);
}

TEST(NcuRep, NoNumberIsAbsentAndCounted) {
  WrittenLaunch launch;
  launch.metrics = {{0, std::numeric_limits<double>::quiet_NaN()}, {1, 2}};
  const std::string report = report_bytes({{{}, {launch}, {"a__b", "c__d"}, "", 1}});
  const Counters counters = parse_ncu_rep(report);
  ASSERT_EQ(counters.diagnostics.size(), 1U);
  EXPECT_EQ(counters.diagnostics[0].kind, "ncu_not_a_number");
  EXPECT_EQ(number_of(counters, counters.results[0], "a__b"), std::nullopt);
  EXPECT_EQ(number_of(counters, counters.results[0], "c__d"), 2);
}

TEST(NcuRep, ADamagedResultCostsOnlyItself) {
  WrittenLaunch launch;
  launch.metrics = {{0, 2}};
  std::string report = report_bytes({{{}, {launch, launch}, {"a__b"}, "", 1}});
  // The tag of the first result's name becomes an invalid protobuf tag.
  report[report.find("_Z4gemmPf") - 2] = '\x07';
  const Counters counters = parse_ncu_rep(report);
  EXPECT_EQ(counters.results.size(), 1U);
  ASSERT_EQ(counters.diagnostics.size(), 1U);
  EXPECT_EQ(counters.diagnostics[0].kind, "ncu_result_damaged");
}

TEST(NcuRep, HugeLengthsAllocateNothing) {
  std::string report = test::report_head();
  report += std::string("\xff\xff\xff\x7f", 4) + "x";
  EXPECT_THROW(parse_ncu_rep(report), Error);
}

TEST(NcuRep, AnEmptyReportHasNoResults) {
  EXPECT_TRUE(parse_ncu_rep(test::report_head()).results.empty());
}

TEST(NcuRep, RefusesWhatIsNone) {
  EXPECT_THROW(parse_ncu_rep("PK\x03\x04"), Error);
  EXPECT_THROW(parse_ncu_rep(""), Error);
}

}  // namespace
}  // namespace gpuwhy
