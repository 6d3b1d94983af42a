// SPDX-License-Identifier: Apache-2.0
#include "analysis/counters/ncu_join.h"

#include "analysis/analysis.h"
#include "analysis/counters/kernel_match.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// -- names

TEST(KernelMatch, NsysNcuAndKinetoAgree) {
  // The spelling of each tool for one lambda, made up after real ones.
  const std::string nsys =
      "void at::native::f<(int)4, at::native::<unnamed>::g(at::It &)::[lambda() (instance "
      "1)]::operator ()() const::[lambda(float) (instance 2)], std::array<char *, (unsigned "
      "long)2>, (bool)1>(int, T2)";
  const std::string ncu =
      "void f<4, unnamed>::g(It &)::[lambda() (instance 1)]::operator ()() lambda(float) (instance "
      "2)], array<char *, 2>, 1>(int, T2)";
  const std::string kineto =
      "void at::native::f<4, at::native::(anonymous namespace)::g(at::It&)::{lambda()#1}::"
      "operator()() const::{lambda(float)#2}, std::array<char*, 2ul>, true>(int, T2)";
  EXPECT_EQ(kernel_match_key(nsys), kernel_match_key(ncu));
  EXPECT_EQ(kernel_match_key(nsys), kernel_match_key(kineto));
}

TEST(KernelMatch, WhatTellsKernelsApartStays) {
  EXPECT_NE(kernel_match_key("f<(int)4>(int)"), kernel_match_key("f<(int)8>(int)"));
  EXPECT_NE(kernel_match_key("f<(int)-1>()"), kernel_match_key("f<(int)1>()"));
  EXPECT_NE(kernel_match_key("f(float *)"), kernel_match_key("f(double *)"));
  EXPECT_NE(kernel_match_key("gemm_128x64_tn"), kernel_match_key("gemm_128x64_nt"));
  EXPECT_NE(kernel_match_key("f<[lambda(int) (instance 1)]>()"),
            kernel_match_key("f<[lambda(int) (instance 2)]>()"));
}

TEST(KernelMatch, CoarserFormsDropParametersAndTemplates) {
  EXPECT_EQ(bare_match_key("void f<(int)4>(T1, T2)"), bare_match_key("void f<4>(float*, char*)"));
  EXPECT_NE(bare_match_key("void f<4>(T1)"), bare_match_key("void f<8>(T1)"));
  EXPECT_EQ(function_match_key("void a::f<(int)4>(T1)"), function_match_key("f"));
}

TEST(KernelMatch, HostileNamesAreJustNames) {
  for (const std::string& name :
       {std::string(), std::string(100'000, '('), std::string("::"), std::string(100'000, '<'),
        std::string("(int)"), std::string("f<(")}) {
    EXPECT_LE(kernel_match_key(name).size(), 2 * name.size() + 2);
    bare_match_key(name);
    function_match_key(name);
  }
}

// -- joining

LaunchGroup group(std::string name, std::int64_t total_ns, std::int64_t calls,
                  std::int32_t grid = 8, const std::string& stage = "all",
                  std::string mangled = "") {
  LaunchGroup made;
  made.gpu = "cuda:0";
  made.kernel_name = std::move(name);
  made.mangled_name = std::move(mangled);
  made.stage = row_name(stage);
  made.shape = {{grid, 1, 1}, {128, 1, 1}};
  made.calls = calls;
  made.total_ns = total_ns;
  made.min_ns = made.median_ns = made.max_ns = total_ns / calls;
  return made;
}

Analysis recording(std::vector<LaunchGroup> groups) {
  Analysis analysis;
  for (const LaunchGroup& one : groups) {
    KernelRow record;
    record.kernel_name = record.short_name = one.kernel_name;
    record.stage = one.stage;
    record.device = "cuda:0";
    record.total_ns = one.total_ns;
    analysis.kernels.push_back(record);
    analysis.capture.kernel_ns += one.total_ns;
  }
  analysis.launch_groups = std::move(groups);
  return analysis;
}

struct Profiled {
  Counters counters;

  CounterResult& add(std::string_view name, double duration_ns, std::int32_t grid = 8) {
    CounterResult& result = counters.results.emplace_back();
    result.demangled_name = counters.strings.intern(name);
    result.shape = LaunchShape{{grid, 1, 1}, {128, 1, 1}};
    set(result, "gpu__time_duration.sum", duration_ns);
    return result;
  }

  void set(CounterResult& result, std::string_view metric, double value) {
    result.metrics.push_back({counters.strings.intern(metric), {}, value});
  }

  const CountersRow& join(Analysis& analysis) {
    complete_results(counters);
    join_counters(counters, {}, analysis);
    return *analysis.counters;
  }
};

TEST(Join, MangledNamesWin) {
  Analysis analysis = recording(
      {group("f(int)", 1000, 1, 8, "all", "_Z1fi"), group("g(int)", 900, 1, 8, "all", "_Z1gi")});
  Profiled profiled;
  // ncu's demangled name says g, its mangled one says f.
  profiled.add("g(int)", 1000).mangled_name = profiled.counters.strings.intern("_Z1fi");
  const CountersRow& found = profiled.join(analysis);
  ASSERT_EQ(found.kernels.size(), 1U);
  EXPECT_EQ(found.kernels[0].match, "mangled name");
  EXPECT_EQ(analysis.launch_groups[0].counters, 0U);
  EXPECT_EQ(analysis.kernels[0].covered_ns, 1000);
  EXPECT_EQ(analysis.kernels[1].covered_ns, 0);
}

TEST(Join, GridAndBlockMustAgree) {
  Analysis analysis = recording({group("f(int)", 1000, 1, 8), group("f(int)", 900, 1, 16)});
  Profiled profiled;
  profiled.add("f(int)", 900, 16);
  profiled.add("f(int)", 900, 99);
  const CountersRow& found = profiled.join(analysis);
  EXPECT_EQ(analysis.launch_groups[0].counters, std::nullopt);
  EXPECT_EQ(analysis.launch_groups[1].counters, 0U);
  EXPECT_EQ(found.kernels[1].match, "none");
  EXPECT_NE(found.kernels[1].match_reason.find("grid and block"), std::string::npos);
  EXPECT_EQ(found.coverage.back().covered_ns, 900);
  EXPECT_EQ(found.coverage.back().kernel_ns, 1900);
}

TEST(Join, AmbiguousStaysAmbiguous) {
  // Brackets are forgotten, so these two have one normal form.
  Analysis analysis =
      recording({group("f<a<b>, c>(int)", 1000, 1), group("f<a<b, c>>(int)", 900, 1)});
  Profiled profiled;
  profiled.add("f<a<b>, c>(int)", 1000);
  const CountersRow& found = profiled.join(analysis);
  EXPECT_EQ(found.kernels[0].match, "ambiguous");
  EXPECT_EQ(found.kernels[0].matched_kernel, "");
  EXPECT_EQ(found.coverage.back().covered_ns, 0);
}

TEST(Join, TheStageOfAnNvtxRangeMustAgree) {
  Analysis analysis =
      recording({group("f(int)", 1000, 1, 8, "prefill"), group("f(int)", 900, 1, 8, "decode")});
  Profiled profiled;
  CounterResult& result = profiled.add("f(int)", 900);
  StringPool& strings = profiled.counters.strings;
  result.ranges.push_back(
      {strings.intern("LLM"), strings.intern("decode_step"), 1, RangeKind::kPushPop});
  const CountersRow& found = profiled.join(analysis);
  EXPECT_EQ(analysis.launch_groups[0].counters, std::nullopt);
  EXPECT_EQ(analysis.launch_groups[1].counters, 0U);
  ASSERT_EQ(found.coverage.size(), 3U);
  EXPECT_EQ(found.coverage[0].covered_ns, 0);
  EXPECT_EQ(found.coverage[1].covered_ns, 900);
}

TEST(Join, WithoutARangeItStandsForTheKernelInEveryStage) {
  Analysis analysis =
      recording({group("f(int)", 1000, 1, 8, "prefill"), group("f(int)", 900, 1, 8, "decode")});
  Profiled profiled;
  profiled.add("f(int)", 950);
  EXPECT_EQ(profiled.join(analysis).kernels[0].covered_ns, 1900);
}

TEST(Join, ConfidenceFollowsTheDurations) {
  const auto judged = [](double ncu_ns, std::int64_t min_ns, std::int64_t median_ns,
                         std::int64_t max_ns) {
    LaunchGroup one = group("f(int)", median_ns * 4, 4);
    one.min_ns = min_ns;
    one.median_ns = median_ns;
    one.max_ns = max_ns;
    Analysis analysis = recording({one});
    Profiled profiled;
    profiled.add("f(int)", ncu_ns);
    return profiled.join(analysis).kernels[0];
  };
  EXPECT_EQ(judged(1000, 900, 1000, 1100).confidence, "high");
  EXPECT_EQ(judged(1600, 900, 1000, 1100).confidence, "medium");
  EXPECT_EQ(judged(3000, 900, 1000, 1100).confidence, "low");
  EXPECT_EQ(judged(1000, 100, 1000, 5000).confidence, "low");
  const CounterRow withheld = judged(9000, 900, 1000, 1100);
  EXPECT_EQ(withheld.confidence, "withheld");
  EXPECT_EQ(withheld.covered_ns, 0);
  EXPECT_EQ(withheld.bound, "");
  EXPECT_NE(withheld.confidence_reason.find("another problem size"), std::string::npos);
  EXPECT_EQ(judged(100, 900, 1000, 1100).confidence, "withheld");
}

TEST(Join, LockedClocksExplainASlowdown) {
  const auto confidence = [](double clock_hz) {
    Analysis analysis = recording({group("f(int)", 1000, 1)});
    Profiled profiled;
    CounterResult& result = profiled.add("f(int)", 1600);
    profiled.set(result, "smsp__cycles_elapsed.avg.per_second", clock_hz);
    profiled.set(result, "device__attribute_max_gpu_frequency_khz", 2'000'000);
    return profiled.join(analysis).kernels[0];
  };
  EXPECT_EQ(confidence(2e9).confidence, "medium");
  EXPECT_EQ(confidence(1.2e9).confidence, "high");
  EXPECT_DOUBLE_EQ(*confidence(1.2e9).ncu_clock_fraction, 0.6);
}

TEST(Join, TheNearestOfSeveralResultsStandsForAGroup) {
  Analysis analysis = recording({group("f(int)", 1000, 1)});
  Profiled profiled;
  profiled.add("f(int)", 1900);
  profiled.add("f(int)", 1050);
  const CountersRow& found = profiled.join(analysis);
  EXPECT_EQ(found.coverage.back().covered_ns, 1000);
  EXPECT_EQ(found.kernels[0].ncu_duration_ns, 1050);
  EXPECT_EQ(found.kernels[1].matched_kernel, "");
}

TEST(Join, ATruncatedNameAndAFunctionNameFindTheirKernel) {
  Analysis analysis =
      recording({group("void a::f<(int)4>(T1)", 1000, 1), group("void a::g<(int)4>(T1)", 900, 1),
                 group("void a::g<(int)8>(T1)", 800, 1)});
  Profiled profiled;
  profiled.add("f", 1000);
  profiled.add("g", 900);
  const CountersRow& found = profiled.join(analysis);
  EXPECT_EQ(found.kernels[0].match, "function name");
  EXPECT_EQ(found.kernels[1].match, "ambiguous");
}

TEST(Join, AWholeNameIsNotFoundByItsFunction) {
  Analysis analysis = recording({group("void cutlass::Kernel2<gemm_16x16>(T1::Params)", 1000, 1)});
  Profiled profiled;
  profiled.add("void Kernel2<gemm_32x32>(Params)", 1000);
  EXPECT_EQ(profiled.join(analysis).kernels[0].match, "none");
}

TEST(Join, WhatCanBeWonIsWhatTheNearestCeilingLeaves) {
  Analysis analysis = recording({group("f(int)", 1'000'000, 10)});
  Profiled profiled;
  CounterResult& result = profiled.add("f(int)", 100'000);
  profiled.set(result, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 75);
  profiled.set(result, "sm__throughput.avg.pct_of_peak_sustained_elapsed", 20);
  const CounterRow& kernel = profiled.join(analysis).kernels[0];
  EXPECT_EQ(kernel.bound, "memory");
  EXPECT_DOUBLE_EQ(*kernel.winnable_ns, 250'000);
}

TEST(Join, NoLaunchCanBeWonWhole) {
  // Two microseconds per launch, far from every ceiling: the one that an empty kernel takes stays.
  Analysis analysis = recording({group("f(int)", 200'000, 100)});
  Profiled profiled;
  CounterResult& result = profiled.add("f(int)", 2'000);
  profiled.set(result, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 0.4);
  profiled.set(result, "sm__throughput.avg.pct_of_peak_sustained_elapsed", 0);
  EXPECT_DOUBLE_EQ(*profiled.join(analysis).kernels[0].winnable_ns, 100'000);
}

}  // namespace
}  // namespace gpuwhy
