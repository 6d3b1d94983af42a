// SPDX-License-Identifier: Apache-2.0
#include "capture/contract.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/units.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// The one breach of a check: it says something and is of this pass.
Breach only(const std::vector<Breach>& breaches, Reason reason, const std::string& pass) {
  if (breaches.size() != 1) {
    ADD_FAILURE() << breaches.size() << " breaches where " << code_of(reason) << " was expected";
    return {};
  }
  EXPECT_EQ(breaches[0].reason, reason) << code_of(breaches[0].reason);
  EXPECT_EQ(breaches[0].pass, pass);
  EXPECT_FALSE(breaches[0].sentence.empty());
  return breaches[0];
}

StepResult ended(StepEnd end, int exit_code = 0) {
  StepResult step;
  step.end = end;
  step.exit_code = exit_code;
  step.duration_ns = 90 * kNsPerS;
  return step;
}

TEST(Reasons, AreUniqueWordsWithAMeaning) {
  std::set<std::string> codes;
  for (const ReasonInfo& reason : all_reasons()) {
    const std::string code = reason.code;
    EXPECT_TRUE(codes.insert(code).second) << code << " twice";
    EXPECT_EQ(code.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << code;
    EXPECT_FALSE(std::string(reason.meaning).empty()) << code;
  }
  EXPECT_GE(codes.size(), 30U);
}

TEST(Reasons, ToolsPermissionsAndDriversAreTheEnvironments) {
  for (const ReasonInfo& reason : all_reasons()) {
    const std::string code = reason.code;
    const bool is_expected =
        code.starts_with("tool_") || code.starts_with("counter") || code == "importer_failed";
    const int otherwise = code == "interrupted" ? 130 : 7;
    EXPECT_EQ(reason.exit_code, is_expected ? 5 : otherwise) << code;
  }
}

TEST(CheckStep, AGoodEndIsNoBreach) {
  EXPECT_THAT(check_step("nsys", {}, ended(StepEnd::kItself), {}), IsEmpty());
  EXPECT_THAT(check_step("nsys", {}, ended(StepEnd::kItself, 143), {143}), IsEmpty());
  Contract contract;
  contract.workload_may_fail = true;
  EXPECT_THAT(check_step("nsys", contract, ended(StepEnd::kItself, 3), {}), IsEmpty());
}

TEST(CheckStep, AFailedProgramIsToldWithItsLastLine) {
  StepResult step = ended(StepEnd::kItself, 3);
  step.last_lines = "loading\nCUDA out of mem\x1b[0mory\n\n";
  Breach breach =
      only(check_step("baseline", {}, step, {143}), Reason::kWorkloadFailed, "baseline");
  EXPECT_THAT(breach.sentence,
              AllOf(HasSubstr("exited with code 3"), HasSubstr("CUDA out of mem\\x1b[0mory"),
                    Not(HasSubstr("loading"))));
  EXPECT_EQ(breach.next_override, "contract.workload_may_fail=true");
  EXPECT_TRUE(breach.is_fatal);

  step.exit_code = 139;
  step.last_lines = " \n";
  breach = only(check_step("baseline", {}, step, {}), Reason::kWorkloadFailed, "baseline");
  EXPECT_THAT(breach.sentence, AllOf(HasSubstr("ended by SIGSEGV"), HasSubstr("printed nothing")));
  for (const int code : {128, 160, 161, 192, 193, 254, 255, -1}) {
    step.exit_code = code;
    only(check_step("nsys", {}, step, {}), Reason::kWorkloadFailed, "nsys");
  }
}

TEST(CheckStep, EveryEndOfOursHasItsReason) {
  Contract contract;
  contract.workload_may_fail = true;
  const auto check = [&](StepEnd end, Reason reason) {
    return only(check_step("ncu", contract, ended(end, 137), {}), reason, "ncu");
  };
  EXPECT_EQ(check(StepEnd::kTimeout, Reason::kTimeout).next_override, "run.timeout_s=182");
  EXPECT_FALSE(check(StepEnd::kTooLarge, Reason::kTooLarge).is_fatal);
  EXPECT_TRUE(check(StepEnd::kDiskFull, Reason::kDiskFull).is_fatal);
  EXPECT_THAT(check(StepEnd::kNoProgress, Reason::kNoProgress).sentence, HasSubstr("after 90.0 s"));
  EXPECT_TRUE(check(StepEnd::kInterrupted, Reason::kInterrupted).is_fatal);
  EXPECT_TRUE(check(StepEnd::kAborted, Reason::kInterrupted).is_fatal);
}

TEST(CheckStep, TheNextLimitOnSizeIsLarger) {
  StepResult step = ended(StepEnd::kTooLarge);
  step.bytes = 3'000'000'000;
  EXPECT_EQ(only(check_step("nsys", {}, step, {}), Reason::kTooLarge, "nsys").next_override,
            "run.max_report_bytes=12000000000");
}

class NsysReport : public testing::Test {
 protected:
  NsysReport() {
    report.expected = directory.path() / "nsys/run.nsys-rep";
    report.scratch = directory.path() / "scratch";
    report.pass_start = std::filesystem::file_time_type::clock::now();
    report.gate_text = "LLM:req\x1b";
  }

  TemporaryDirectory directory;
  ReportFacts report;
};

TEST_F(NsysReport, OneThatIsThereIsGood) {
  directory.add("nsys/run.nsys-rep", "data");
  EXPECT_THAT(check_nsys_report(report, ended(StepEnd::kItself)), IsEmpty());
  std::filesystem::last_write_time(report.expected,
                                   report.pass_start - std::chrono::milliseconds(500));
  EXPECT_THAT(check_nsys_report(report, ended(StepEnd::kItself)), IsEmpty())
      << "file systems keep coarse times";
}

TEST_F(NsysReport, OneOfAnotherRunIsStale) {
  directory.add("nsys/run.nsys-rep", "data");
  std::filesystem::last_write_time(report.expected, report.pass_start - std::chrono::minutes(1));
  EXPECT_THAT(only(check_nsys_report(report, ended(StepEnd::kItself)), Reason::kReportStale, "nsys")
                  .sentence,
              HasSubstr("run.nsys-rep"));
}

TEST_F(NsysReport, MissingOnesAreToldApart) {
  const StepResult fine = ended(StepEnd::kItself);
  EXPECT_THAT(
      only(check_nsys_report(report, ended(StepEnd::kItself, 1)), Reason::kReportMissing, "nsys")
          .sentence,
      HasSubstr("exited with code 1"));
  only(check_nsys_report(report, fine), Reason::kReportMissing, "nsys");

  report.is_gated = true;
  const Breach gate = only(check_nsys_report(report, fine), Reason::kGateNotFired, "nsys");
  EXPECT_THAT(gate.sentence, HasSubstr("LLM:req\\x1b was never entered"));
  EXPECT_EQ(gate.next_override, "run.gate=none");
  only(check_nsys_report(report, ended(StepEnd::kItself, 139)), Reason::kReportMissing, "nsys");
  StepResult generated = ended(StepEnd::kItself, 3);
  generated.last_lines = "Generating...\nGenerated:\n";
  only(check_nsys_report(report, generated), Reason::kGateNotFired, "nsys");
  report.num_gate_entries = 20;
  const Breach missed = only(check_nsys_report(report, generated), Reason::kReportMissing, "nsys");
  EXPECT_THAT(missed.sentence, HasSubstr("LLM:req\\x1b was entered 20 times in the baseline pass"));
  EXPECT_EQ(missed.next_override, "run.gate=none");
  report.num_gate_entries = 0;

  directory.add("scratch/nvidia/x.qdstrm", "raw");
  const Breach raw = only(check_nsys_report(report, fine), Reason::kImporterFailed, "nsys");
  EXPECT_THAT(raw.next, HasSubstr("nsys/x.qdstrm"));

  directory.add("nsys/run.nsys-rep", "");
  only(check_nsys_report(report, fine), Reason::kImporterFailed, "nsys");
  std::filesystem::remove_all(report.scratch);
  only(check_nsys_report(report, fine), Reason::kGateNotFired, "nsys");
}

TEST(CheckStages, DeclaredOnesMustBeThereOftenEnough) {
  Contract contract;
  EXPECT_THAT(check_stages("baseline", contract, {}), IsEmpty()) << "nothing was declared";
  contract.stages = {"prefill", "decode"};
  contract.min_instances = 2;
  EXPECT_THAT(check_stages("baseline", contract, {{"prefill", 2}, {"decode", 5}}), IsEmpty());
  EXPECT_THAT(only(check_stages("nsys", contract, {{"prefill", 1}, {"decode", 2}}),
                   Reason::kStageMissing, "nsys")
                  .sentence,
              AllOf(HasSubstr("names prefill"), HasSubstr("1 instance,"), HasSubstr("at least 2")));
  EXPECT_EQ(check_stages("nsys", contract, {}).size(), 2U);
}

TEST(CheckRecording, NothingExpectedNothingBroken) {
  EXPECT_THAT(check_recording({}, {}, {}), IsEmpty());
  RecordingFacts facts;
  facts.has_kernels = true;
  facts.num_processes_with_ranges = 2;
  facts.opaque_graph_fraction = 0.5;
  facts.tool_messages = {"Using the default sampling period"};
  EXPECT_THAT(check_recording({}, {true, false, 2, {}}, facts), IsEmpty());
}

TEST(CheckRecording, EachFactHasItsReason) {
  Contract contract;
  contract.stages = {"prefill"};
  only(check_recording(contract, {}, {}), Reason::kStageMissing, "nsys");

  RecordingFacts facts;
  facts.num_processes_with_ranges = 1;
  EXPECT_EQ(
      only(check_recording({}, {false, false, 3, {}}, facts), Reason::kChildrenNotTraced, "nsys")
          .next_override,
      "pipeline.nsys.trace_fork_before_exec=true");

  EXPECT_EQ(
      only(check_recording({}, {true, false, 0, {}}, {}), Reason::kNoKernels, "nsys").next_override,
      "contract.gpu=none");
  RecordingFacts calls_only;
  calls_only.has_cuda = true;
  EXPECT_THAT(
      only(check_recording({}, {true, false, 0, {}}, calls_only), Reason::kNoKernels, "nsys")
          .sentence,
      HasSubstr("CUDA calls were recorded"));

  RecordingFacts graphs;
  graphs.has_cuda = true;
  graphs.opaque_graph_fraction = 0.75;
  const Breach opaque =
      only(check_recording({}, {true, false, 0, {}}, graphs), Reason::kGraphOpaque, "nsys");
  EXPECT_THAT(opaque.sentence, HasSubstr("75"));

  facts.stage_instances = {{"decode_step", 17}};
  const Breach lost = only(check_recording({}, {false, false, 0, {{"decode_step", 20}}}, facts),
                           Reason::kDroppedEvents, "nsys");
  EXPECT_TRUE(lost.is_fatal);
  EXPECT_THAT(lost.sentence,
              AllOf(HasSubstr("20 instances of decode_step"), HasSubstr("recording 17")));
  EXPECT_THAT(check_recording({}, {false, false, 0, {{"decode_step", 18}}}, facts), IsEmpty());
  const Breach followed =
      only(check_recording({}, {false, true, 3, {}}, facts), Reason::kChildrenNotTraced, "nsys");
  EXPECT_EQ(followed.next_override, "") << "it was told so already";

  RecordingFacts lossy;
  lossy.tool_messages = {"fine", "Not all CUDA events might have been \x1b collected", "3 dropped"};
  const auto breaches = check_recording({}, {}, lossy);
  ASSERT_EQ(breaches.size(), 2U);
  EXPECT_EQ(breaches[0].reason, Reason::kDroppedEvents);
  EXPECT_FALSE(breaches[0].is_fatal);
  EXPECT_THAT(breaches[0].sentence, HasSubstr("\\x1b"));
}

TEST(NcuReport, WhatItPrintedAndLeftHasAReason) {
  const TemporaryDirectory directory;
  const auto report = directory.path() / "run.ncu-rep";
  StepResult step = ended(StepEnd::kItself);
  const auto check = [&](const char* said) {
    step.last_lines = said;
    return check_ncu_report(report, step);
  };
  only(check("==WARNING== No kernels were profiled.\n"), Reason::kNoKernelsProfiled, "ncu");
  step.exit_code = 9;
  EXPECT_THAT(only(check("==ERROR== x\n"), Reason::kReportMissing, "ncu").sentence,
              AllOf(HasSubstr("exited with code 9"), HasSubstr("==ERROR== x")));
  directory.add("run.ncu-rep", "");
  only(check(""), Reason::kReportMissing, "ncu");
  directory.add("run.ncu-rep", "data");
  EXPECT_THAT(check("==PROF== Report: run.ncu-rep\n"), IsEmpty());
  only(check("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"),
       Reason::kCounterPermission, "ncu");
  only(check("==ERROR== Profiling failed because a driver resource was unavailable.\n"),
       Reason::kCountersBusy, "ncu");
}

}  // namespace
}  // namespace gpuwhy
