// SPDX-License-Identifier: Apache-2.0
//
// Findings on made analyses: waste that was put in is found, to the nanosecond.
#include "analysis/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/analysis.h"

namespace llmprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Part {
  Bucket bucket;
  std::int64_t time_ns;
};

// A GPU that computed for the rest of a window of 1 s.
Analysis analysis_with(const std::vector<Part>& parts, const std::string& stage = "capture") {
  Analysis analysis;
  analysis.capture.has_cuda = true;
  analysis.capture_ns = 1'000'000'000;
  analysis.devices = {{"cuda:0", "Some GPU", 0, 1}};
  StageLedger row;
  row.stage = stage;
  row.device = "cuda:0";
  row.ledger.window_ns = analysis.capture_ns;
  std::int64_t rest = row.ledger.window_ns;
  for (const Part& part : parts) {
    row.ledger.buckets_ns[static_cast<std::size_t>(part.bucket)] = part.time_ns;
    rest -= part.time_ns;
  }
  row.ledger.buckets_ns[static_cast<std::size_t>(Bucket::kCompute)] = rest;
  analysis.kernel_ns = rest;
  analysis.ledgers = {row};
  return analysis;
}

void add_kernel(Analysis& analysis, const char* name, const char* family, std::int64_t calls,
                std::int64_t mean_ns) {
  KernelRecord kernel;
  kernel.kernel_name = name;
  kernel.family = family;
  kernel.device = "cuda:0";
  kernel.stage = "decode";
  kernel.calls = calls;
  kernel.total_ns = calls * mean_ns;
  kernel.median_ns = mean_ns;
  analysis.kernels.push_back(kernel);
}

std::vector<std::string> ids_of(const Findings& findings) {
  std::vector<std::string> ids;
  for (const Finding& finding : findings.found) {
    ids.push_back(finding.id);
  }
  return ids;
}

TEST(Findings, NothingWastedNothingFound) {
  EXPECT_THAT(find_findings(analysis_with({}), {}).found, IsEmpty());
}

TEST(Findings, PlantedWasteIsFoundToTheNanosecondAndRankedByIt) {
  const Findings findings = find_findings(analysis_with({{Bucket::kSync, 20'000'003},
                                                         {Bucket::kLaunchLate, 300'000'001},
                                                         {Bucket::kCopy, 40'000'007},
                                                         {Bucket::kComm, 30'000'009}}),
                                          {});
  EXPECT_THAT(ids_of(findings),
              ElementsAre("launch_bound", "exposed_copy", "exposed_comm", "host_sync"));
  EXPECT_EQ(findings.found[0].saving_ns, 300'000'001);
  EXPECT_EQ(findings.found[1].saving_ns, 40'000'007);
  EXPECT_EQ(findings.found[2].saving_ns, 30'000'009);
  EXPECT_EQ(findings.found[3].saving_ns, 20'000'003);
  EXPECT_THAT(findings.found[0].evidence,
              ElementsAre("ledgers[stage=capture,device=cuda:0].buckets_ns.launch_late"));
}

TEST(Findings, StagesAreJudgedAloneWhereTheyAreMarked) {
  Analysis analysis = analysis_with({{Bucket::kLaunchLate, 500'000'000}}, "decode");
  analysis.stages.resize(1);
  analysis.stages[0].stage = "decode";
  analysis.ledgers.push_back(analysis_with({{Bucket::kLaunchLate, 900'000'000}}).ledgers[0]);
  const Findings findings = find_findings(analysis, {});
  ASSERT_EQ(findings.found.size(), 1U);
  EXPECT_EQ(findings.found[0].stage, "decode");
  EXPECT_EQ(findings.found[0].saving_ns, 500'000'000);
}

TEST(Findings, MatrixProductsOffTheTensorCoresAreBoundedByWhatTheseCanDo) {
  Analysis analysis = analysis_with({});
  add_kernel(analysis, "ampere_sgemm_128x64_tn", "gemm", 100, 4'000'000);
  add_kernel(analysis, "ampere_bf16_s16816gemm_bf16_128x64", "gemm", 100, 1'000'000);
  const Findings known = find_findings(analysis, {[](const std::string& name) { return name == "Some GPU" ? 16.0 : 0.0; }});
  ASSERT_THAT(ids_of(known), ElementsAre("gemm_off_tensor_cores"));
  EXPECT_EQ(known.found[0].saving_ns, 375'000'000) << "400 ms, of which a sixteenth remains";
  EXPECT_THAT(known.found[0].sentence, HasSubstr("16 times"));
  const Findings unknown = find_findings(analysis, {});
  EXPECT_EQ(unknown.found[0].saving_ns, 400'000'000);
  EXPECT_EQ(unknown.found[0].confidence, "low");
}

TEST(Findings, ManySmallKernelsCouldBeFused) {
  Analysis analysis = analysis_with({});
  add_kernel(analysis, "vectorized_elementwise", "elementwise", 10'000, 5'000);
  add_kernel(analysis, "large_elementwise", "elementwise", 200, 500'000);
  const Findings findings = find_findings(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("fusion"));
  EXPECT_EQ(findings.found[0].saving_ns, 50'000'000);
}

TEST(Findings, KernelsThatOverlapSaveNoMoreThanTheyTook) {
  Analysis analysis = analysis_with({{Bucket::kTail, 900'000'000}});
  add_kernel(analysis, "ampere_sgemm_128x64_tn", "gemm", 100, 4'000'000);
  EXPECT_EQ(find_findings(analysis, {}).found.at(0).saving_ns, 100'000'000);
}

TEST(Findings, ABadRecordingComesFirst) {
  Analysis opaque = analysis_with({{Bucket::kCopy, 400'000'000}});
  opaque.opaque_graph_ns = opaque.kernel_ns;
  EXPECT_THAT(ids_of(find_findings(opaque, {})), ElementsAre("graph_opaque", "exposed_copy"));
  Analysis nothing;
  nothing.capture.messages = {"No CUDA \x1b events collected"};
  const Findings findings = find_findings(nothing, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("no_gpu_activity"));
  EXPECT_THAT(findings.found[0].sentence, HasSubstr("\\x1b"));
  EXPECT_FALSE(findings.silent.empty()) << "rules that need a ledger say so";
}

TEST(Findings, TheProfilersShareIsNamed) {
  Analysis analysis = analysis_with({});
  const std::vector<SilentRule> silent = find_findings(analysis, {}).silent;
  EXPECT_TRUE(std::any_of(silent.begin(), silent.end(),
                          [](const SilentRule& rule) { return rule.id == "profiler_overhead"; }));
  analysis.baseline.resize(1);
  analysis.overheads = {{"decode", 100, 120, 0.2}, {"prefill", 100, 130, 0.3}};
  const Findings findings = find_findings(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("profiler_overhead"));
  EXPECT_EQ(findings.found[0].stage, "prefill");
}

}  // namespace
}  // namespace llmprof
