// SPDX-License-Identifier: Apache-2.0
//
// Findings on made analyses: waste that was put in is found, to the nanosecond.
#include "analysis/findings/findings.h"

#include "analysis/idle/busy_row.h"
#include "base/json_path.h"
#include "results/catalog.h"
#include "testing.h"

namespace gpuwhy {
namespace {

struct Part {
  Bucket bucket;
  std::int64_t time_ns;
};

// Gaps: how many, their time, that in the call, the longest; when the first began, its length, when
// the last began.
using Gaps = std::array<std::int64_t, 7>;

void add_cause(Analysis& analysis, const LedgerRow& row, Bucket bucket, const IdleLabel& label,
               const Gaps& gaps) {
  analysis.idle_causes.push_back({row.stage, row.device, bucket, label.kind, label.call,
                                  label.scope, gaps[0], gaps[1], gaps[2], gaps[3], gaps[4], gaps[5],
                                  gaps[6]});
}

// Makes it the only cause of the first row.
void set_cause(Analysis& analysis, Bucket bucket, const IdleLabel& label, const Gaps& gaps) {
  analysis.idle_causes.clear();
  add_cause(analysis, analysis.ledgers[0], bucket, label, gaps);
}

// A GPU that computed for the rest of a window of 1 s. The host waits in sync, and launches late in
// a thousand short gaps.
Analysis analysis_with(const std::vector<Part>& parts, const std::string& stage = "capture") {
  Analysis analysis;
  analysis.capture.has_cuda = true;
  analysis.capture.duration_ns = 1'000'000'000;
  analysis.devices = {{.device = "cuda:0", .name = "Some GPU", .num_kernels = 1, .busy_stage = {}}};
  LedgerRow row;
  row.stage = row_name(stage);
  row.device = "cuda:0";
  row.window_ns = analysis.capture.duration_ns;
  std::int64_t rest = row.window_ns;
  for (const Part& part : parts) {
    row.buckets_ns[static_cast<std::size_t>(part.bucket)] = part.time_ns;
    rest -= part.time_ns;
    if (part.bucket == Bucket::kSync) {
      row.host_wait_ns = row.early_wait_ns = part.time_ns;
      add_cause(analysis, row, part.bucket, {IdleKind::kWaiting, "cudaStreamSynchronize", ""},
                {10, part.time_ns, part.time_ns, part.time_ns});
    } else if (part.bucket == Bucket::kLaunchLate) {
      add_cause(analysis, row, part.bucket, {IdleKind::kLaunching, "", ""},
                {1000, part.time_ns, 0, part.time_ns});
    }
  }
  row.buckets_ns[static_cast<std::size_t>(Bucket::kCompute)] = rest;
  set_base(row);
  analysis.capture.kernel_ns = rest;
  analysis.ledgers = {row};
  return analysis;
}

void add_kernel(Analysis& analysis, const char* name, const char* family, std::int64_t calls,
                std::int64_t mean_ns) {
  KernelRow kernel;
  kernel.kernel_name = name;
  kernel.family = family;
  kernel.device = "cuda:0";
  kernel.stage = row_name("decode");
  kernel.calls = calls;
  kernel.total_ns = calls * mean_ns;
  kernel.median_ns = mean_ns;
  analysis.kernels.push_back(kernel);
}

// Whether metrics.json has a key, or rows under it.
bool is_key(const std::string& key) {
  const std::string pattern = path_pattern(parse_path(key));
  return std::ranges::any_of(metric_catalog(), [&](const CatalogRow& row) {
    return row.keys == pattern || row.keys.starts_with(pattern + "[") ||
           row.keys.starts_with(pattern + ".") ||
           (row.keys.ends_with('*') &&
            pattern.starts_with(row.keys.substr(0, row.keys.size() - 1)));
  });
}

// Each rule gives evidence, and keys that exist.
Findings findings_of(const Analysis& analysis, const FindingFacts& facts) {
  Findings findings = find_findings(analysis, facts);
  for (const Finding& finding : findings.found) {
    EXPECT_THAT(finding.evidence, Not(IsEmpty())) << word_of(finding.id);
    for (const std::string& key : finding.evidence) {
      EXPECT_TRUE(is_key(key)) << key;
    }
  }
  return findings;
}

std::vector<std::string> ids_of(const Findings& findings) {
  std::vector<std::string> ids;
  for (const Finding& finding : findings.found) {
    ids.emplace_back(word_of(finding.id));
  }
  return ids;
}

TEST(Findings, NothingWastedNothingFound) {
  EXPECT_THAT(findings_of(analysis_with({}), {}).found, IsEmpty());
}

TEST(Findings, PlantedWasteIsFoundToTheNanosecondAndRankedByIt) {
  const Findings findings = findings_of(analysis_with({{Bucket::kSync, 50'000'003},
                                                       {Bucket::kLaunchLate, 300'000'001},
                                                       {Bucket::kCopy, 40'000'007},
                                                       {Bucket::kComm, 30'000'009}}),
                                        {});
  EXPECT_THAT(ids_of(findings),
              ElementsAre("launch_bound", "host_sync", "exposed_copy", "exposed_comm"));
  EXPECT_EQ(findings.found[0].saving_ns, 300'000'001);
  EXPECT_EQ(findings.found[1].saving_ns, 50'000'003);
  EXPECT_EQ(findings.found[2].saving_ns, 40'000'007);
  EXPECT_EQ(findings.found[3].saving_ns, 30'000'009);
  EXPECT_THAT(
      findings.found[0].evidence,
      ElementsAre(
          "idle_causes[stage=capture,device=cuda:0,bucket=launch_late,kind=launching].total_ns"));
}

TEST(Findings, TheLongerChainBoundsWhatWaitsCost) {
  // The GPU works 700 ms, the host 600 ms: without its waits it would run ahead of the GPU.
  Analysis analysis =
      analysis_with({{Bucket::kSync, 100'000'000}, {Bucket::kLaunchLate, 200'000'000}});
  Ledger& ledger = analysis.ledgers[0];
  ledger.host_wait_ns = ledger.early_wait_ns = 400'000'000;
  Findings findings = findings_of(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("host_sync"));
  EXPECT_EQ(findings.found[0].saving_ns, 300'000'000);
  EXPECT_THAT(findings.found[0].sentence,
              HasSubstr("waited for it (400 ms in cudaStreamSynchronize; 10 waits left it idle)"));
  EXPECT_EQ(text_of_member(findings.found[0].bound), "all of this idle time: 300 ms");
  // The host works 900 ms: it is the longer chain, and waits cost 100 ms at most.
  ledger.host_wait_ns = ledger.early_wait_ns = 100'000'000;
  findings = findings_of(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("launch_bound", "host_sync"));
  EXPECT_EQ(findings.found[0].saving_ns, 200'000'000);
  EXPECT_EQ(findings.found[1].saving_ns, 100'000'000);
  // It waits long, but only after the launches that were late: it did not keep them back.
  ledger.host_wait_ns = 400'000'000;
  ledger.early_wait_ns = 0;
  EXPECT_THAT(ids_of(findings_of(analysis, {})), testing::Contains("launch_bound"));
}

TEST(Findings, WhatTheHostDidDecidesWhatHelps) {
  const auto found = [](IdleKind kind, const char* call, const char* scope, std::int64_t gaps) {
    Analysis analysis = analysis_with({{Bucket::kLaunchLate, 200'000'000}});
    set_cause(analysis, Bucket::kLaunchLate, {kind, call, scope},
              {gaps, 200'000'000, 190'000'000, 20'000'000});
    const Findings findings = findings_of(analysis, {});
    return findings.found.empty() ? Finding() : findings.found[0];
  };
  const Finding data = found(IdleKind::kHostWork, "", "DataLoader.__next__", 10);
  EXPECT_EQ(data.id, FindingId::kHostWork);
  EXPECT_THAT(data.sentence, HasSubstr("190 ms in 'DataLoader.__next__'"));
  EXPECT_THAT(data.advice.words(), HasSubstr("num_workers"));
  EXPECT_THAT(found(IdleKind::kHostWork, "", "", 10).advice.words(),
              HasSubstr("find out what it does"));
  const Finding memory = found(IdleKind::kAllocating, "cudaMalloc", "", 10);
  EXPECT_EQ(memory.id, FindingId::kAllocation);
  EXPECT_THAT(memory.sentence, HasSubstr("190 ms in cudaMalloc"));
  EXPECT_EQ(memory.saving_ns, 0) << "ten gaps at one time are of a first iteration";
  const Finding once = found(IdleKind::kFirstUse, "cudaLaunchKernel", "", 10);
  EXPECT_EQ(once.id, FindingId::kFirstUse);
  EXPECT_EQ(once.saving_ns, 0) << "no step is faster without it";
  EXPECT_EQ(found(IdleKind::kBlocked, "cudaMemcpyAsync", "", 10).id, FindingId::kBlockedCall);
  EXPECT_EQ(found(IdleKind::kLaunching, "", "", 10).id, FindingId::kUnknown)
      << "ten gaps are too few";

  Analysis analysis = analysis_with({{Bucket::kLaunchLate, 200'000'000}});
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(), HasSubstr("as CUDA graphs"));
  analysis.stages.resize(1);
  analysis.stages[0].num_kernels = 10;
  analysis.stages[0].num_graph_kernels = 9;
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(),
              HasSubstr("already run in graphs"));
}

// Advice names what the recording has.
TEST(Findings, AdviceIsAboutRowsThatWereRecorded) {
  for (const char* scope : {"", "futex()", "ioctl()"}) {
    Analysis analysis = analysis_with({{Bucket::kLaunchLate, 200'000'000}});
    analysis.capture.format.tool_id = "nsys";
    set_cause(analysis, Bucket::kLaunchLate, {IdleKind::kHostWork, "", scope},
              {10, 200'000'000, 190'000'000, 20'000'000});
    EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(),
                AllOf(HasSubstr("NVTX"), HasSubstr("record CPU samples too")));
    analysis.capture.has_cpu_samples = true;
    EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(),
                AllOf(HasSubstr("NVTX"), HasSubstr("look at the CPU rows of nsys")));
  }
  Analysis graphs = analysis_with({{Bucket::kGraph, 200'000'000}});
  graphs.capture.format.tool_id = "nsys";
  graphs.capture.graph_mode = "Graph";
  EXPECT_THAT(findings_of(graphs, {}).found.at(0).advice.words(),
              HasSubstr("--cuda-graph-trace=node"));
  graphs.capture.graph_mode = "Node";
  EXPECT_THAT(findings_of(graphs, {}).found.at(0).advice.words(),
              HasSubstr("the nodes were recorded"));
}

TEST(Findings, PinnedMemoryIsOneChange) {
  Analysis analysis =
      analysis_with({{Bucket::kLaunchLate, 100'000'000}, {Bucket::kCopy, 200'000'000}});
  set_cause(analysis, Bucket::kLaunchLate, {IdleKind::kBlocked, "cudaMemcpyAsync", ""},
            {10, 100'000'000, 90'000'000, 20'000'000});
  analysis.copies = {{"cuda:0", "host_to_device", "pageable", 10, 1'000'000'000, 50'000'000}};
  const Findings findings = findings_of(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("exposed_copy", "blocked_call"));
  EXPECT_THAT(findings.found[0].advice.words(), HasSubstr("pin the host memory (cudaHostAlloc"));
  EXPECT_EQ(text_of_member(findings.found[1].advice),
            "also fixed by exposed_copy: pin the host memory");
}

TEST(Findings, AdviceFitsTheProgram) {
  Analysis analysis = analysis_with({{Bucket::kLaunchLate, 200'000'000}});
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(), Not(HasSubstr("torch")));
  analysis.engine = "vLLM";
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(),
              HasSubstr("start vLLM without --enforce-eager"));
  analysis.engine = "SGLang";
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(),
              HasSubstr("--cuda-graph-max-bs"));
  analysis.engine = "TensorRT-LLM";
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(), HasSubstr("cuda_graph_config"));
  analysis.engine = "";
  Analysis llama = analysis;
  add_kernel(llama, "void mul_mat_vec_q<(ggml_type)12, 1>", "gemv", 1, 1);
  EXPECT_THAT(findings_of(llama, {}).found.at(0).advice.words(),
              HasSubstr("-DGGML_CUDA_GRAPHS=ON"));
  add_kernel(analysis, "void at::native::vectorized_elementwise_kernel", "elementwise", 1, 1);
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(), HasSubstr("torch.compile"));
  analysis.devices[0].name = "AMD Instinct MI300X";
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(), HasSubstr("HIP graphs"));
}

TEST(Findings, IdleTimeOfACaptureOrASampleMeansNothing) {
  Analysis analysis = analysis_with({{Bucket::kLaunchLate, 900'000'000}});
  analysis.capture.num_captured_launches = 500;
  EXPECT_THAT(ids_of(findings_of(analysis, {})), ElementsAre("graph_capture"));
  analysis.capture.num_captured_launches = 0;
  analysis.capture.num_calls = 1000;
  analysis.capture.num_numbered_calls = 200'000;
  EXPECT_THAT(ids_of(findings_of(analysis, {})), ElementsAre("calls_missing"));
  analysis.capture.num_numbered_calls = 16'000;
  EXPECT_THAT(ids_of(findings_of(analysis, {})), ElementsAre("launch_bound"));
}

TEST(Findings, TheSameOnSeveralGpusIsOneFinding) {
  Analysis analysis = analysis_with({{Bucket::kComm, 90'000'000}});
  for (const char* device : {"cuda:1", "cuda:2"}) {
    analysis.ledgers.push_back(analysis_with({{Bucket::kComm, 40'000'000}}).ledgers[0]);
    analysis.ledgers.back().device = device;
  }
  analysis.ledgers[2].buckets_ns[static_cast<std::size_t>(Bucket::kComm)] += 10'000'000;
  const Findings findings = findings_of(analysis, {});
  ASSERT_EQ(ids_of(findings)[0], "exposed_comm");
  EXPECT_EQ(findings.found[0].saving_ns, 90'000'000);
  EXPECT_THAT(findings.found[0].sentence, HasSubstr("(2 other GPUs: save <= 40.0 ms to 50.0 ms)"));
}

TEST(Findings, AdviceOnCommunicationIsForTheCollectiveThatRan) {
  const std::pair<const char*, const char*> cases[] = {
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       "most of it is all-reduce: "},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       "most of it is all-gather: "},
      {"void deep_ep::internode_ll::dispatch<true>", "most of it is all-to-all: "},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
       "most of it is send and receive: "}};
  for (const auto& [name, advice] : cases) {
    Analysis analysis = analysis_with({{Bucket::kComm, 400'000'000}});
    add_kernel(analysis, name, "communication", 10, 40'000'000);
    const Finding finding = findings_of(analysis, {}).found.at(0);
    EXPECT_EQ(finding.id, FindingId::kExposedComm);
    EXPECT_THAT(finding.advice.words(), HasSubstr(advice)) << name;
    const bool is_all_reduce = std::string(advice).find("all-reduce") != std::string::npos;
    EXPECT_EQ(finding.advice.words().find("fused all-reduce") != std::string::npos, is_all_reduce)
        << name;
  }
}

// Communication of the start-up belongs to no stage, and no step is faster without it.
TEST(Findings, CommunicationOfTheStartUpIsNotThatOfTheSteps) {
  Analysis analysis = analysis_with({{Bucket::kComm, 400'000'000}}, "step");
  analysis.ledgers.push_back(analysis_with({{Bucket::kComm, 400'000'000}}, "steady").ledgers[0]);
  analysis.ledgers.push_back(analysis_with({{Bucket::kComm, 700'000'000}}, "capture").ledgers[0]);
  const Finding finding = findings_of(analysis, {}).found.at(0);
  EXPECT_EQ(finding.id, FindingId::kExposedComm);
  EXPECT_EQ(finding.stage.text(), "step");
  EXPECT_EQ(finding.saving_ns, 400'000'000);
}

// One number in all places, and the call that the host was in.
TEST(Findings, WorkThatWasNotRecordedHasItsCallAndTheTimeThatIsLeftOut) {
  Analysis analysis = analysis_with({{Bucket::kUnrecorded, 500'000'000}}, "decode");
  LedgerRow& row = analysis.ledgers[0];
  set_cause(analysis, Bucket::kUnrecorded, {IdleKind::kLaunching, "", ""},
            {1, 20'000'000, 0, 20'000'000});
  row.unrecorded_call = "hipMemcpyWithStream";
  row.unrecorded_call_ns = 463'000'000;
  const Findings findings = findings_of(analysis, {});
  const auto found = std::ranges::find(findings.found, FindingId::kUnrecordedWork, &Finding::id);
  ASSERT_NE(found, findings.found.end());
  EXPECT_THAT(found->sentence, HasSubstr("500 ms (50.0 %) of decode on cuda:0 is left out"));
  EXPECT_THAT(found->sentence, HasSubstr("(463 ms of it in hipMemcpyWithStream)"));
}

// A kernel that ran in the start-up alone is not evidence.
TEST(Findings, EvidenceHasTimeInTheSteadyPhase) {
  Analysis analysis = analysis_with({}, "steady");
  for (const char* name : {"ampere_sgemm_128x64_tn", "ampere_sgemm_64x32_nn"}) {
    add_kernel(analysis, name, "gemm", 10, 50'000'000);
    analysis.kernels.back().short_name = name;
  }
  analysis.kernels[0].calls = 20;
  analysis.kernels[0].total_ns *= 2;
  analysis.kernels[0].steady_ns = 0;
  analysis.kernels[1].steady_ns = 500'000'000;
  FindingFacts facts;
  facts.tensor_cores = [](const std::string&) { return TensorCores{16, true, 8}; };
  const Findings findings = findings_of(analysis, facts);
  const auto found =
      std::ranges::find(findings.found, FindingId::kGemmOffTensorCores, &Finding::id);
  ASSERT_NE(found, findings.found.end());
  for (const std::string& key : found->evidence) {
    EXPECT_THAT(key, Not(HasSubstr("128x64"))) << key;
  }
}

TEST(Findings, AttentionInPartsAndAnOldGeneration) {
  Analysis analysis = analysis_with({});
  analysis.kernel_chains = {{row_name("all"), "cuda:0", 24, 800'000'000, 300'000'000, 0, 0, 0}};
  EXPECT_EQ(findings_of(analysis, {}).found.at(0).id, FindingId::kUnfusedAttention);
  EXPECT_EQ(findings_of(analysis, {}).found.at(0).saving_ns, 500'000'000);
  // Its products at a tenth of the peak: at the peak they take 30 of their 300 ms.
  GemmRate rate;
  rate.op = "aten::bmm";
  rate.total_ns = 300'000'000;
  rate.peak_fraction = 0.1;
  analysis.operators.emplace();
  analysis.gemm_rates = {rate};
  EXPECT_EQ(findings_of(analysis, {}).found.at(0).saving_ns, 770'000'000);
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).sentence, HasSubstr("10.0 % of the GPU's"));
  analysis = analysis_with({});
  add_kernel(analysis, "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128>>", "attention",
             30, 10'000'000);
  EXPECT_THAT(findings_of(analysis, {}).found, IsEmpty());
  analysis.devices[0].compute_major = 9;
  EXPECT_EQ(findings_of(analysis, {}).found.at(0).id, FindingId::kFlashAttention2);
  EXPECT_EQ(findings_of(analysis, {}).found.at(0).saving_ns, 150'000'000);
  analysis.devices[0].name = "AMD Instinct MI300X";
  EXPECT_THAT(findings_of(analysis, {}).found, IsEmpty()) << "its 9 is not Hopper";
}

TEST(Findings, LayoutsThatAreConverted) {
  Analysis analysis = analysis_with({});
  add_kernel(analysis, "void cudnn::ops::nchwToNhwcKernel<__half, __half, float>", "copy", 72,
             1'000'000);
  add_kernel(analysis, "batched_transpose_64x64_pack_4x4_ediv_4x4_half", "copy", 32, 1'000'000);
  add_kernel(analysis, "void at::native::batch_norm_kernel<float>", "norm", 32, 1'000'000);
  Finding finding = findings_of(analysis, {}).found.at(0);
  EXPECT_EQ(finding.id, FindingId::kLayoutConversion);
  EXPECT_EQ(finding.saving_ns, 104'000'000);
  EXPECT_THAT(finding.sentence, HasSubstr("104 launches"));
  EXPECT_THAT(finding.advice.words(), HasSubstr("channels_last"));
  EXPECT_THAT(finding.advice.words(), Not(HasSubstr("MIOPEN")));
  analysis.devices[0].name = "AMD Instinct MI210";
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(),
              HasSubstr("MIOPEN_SUGGEST_NHWC=1"));
}

TEST(Findings, OneBlockOnAWholeGpu) {
  Analysis analysis = analysis_with({});
  analysis.devices[0].num_sms = 100;
  LaunchGroup group;
  group.kernel_name = "matmul";
  group.family = "gemm";
  group.stage = row_name("all");
  group.gpu = "cuda:0";
  group.shape = {{1, 1, 1}, {32, 1, 1}};
  group.calls = 1;
  group.total_ns = group.median_ns = 900'000'000;
  analysis.launch_groups = {group};
  const Findings findings = findings_of(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("empty_sms"));
  EXPECT_EQ(findings.found[0].saving_ns, 899'859'375) << "one warp of 6,400";
  EXPECT_THAT(findings.found[0].sentence, HasSubstr("1x1x1/32x1x1"));
  analysis.launch_groups[0].shape = {{1, 1, 1}, {256, 1, 1}};
  EXPECT_EQ(findings_of(analysis, {}).found.at(0).saving_ns, 891'000'000) << "one SM of 100";
}

TEST(Findings, WorkThatWasLaunchedButStartedLateIsACauseOfItsOwn) {
  const Analysis analysis = analysis_with({{Bucket::kStartedLate, 200'000'000}});
  const Finding finding = findings_of(analysis, {}).found.at(0);
  EXPECT_EQ(finding.id, FindingId::kStartedLate);
  EXPECT_EQ(finding.confidence, Confidence::kMedium);
  EXPECT_THAT(finding.sentence, HasSubstr("although the next launch call had already returned"));
}

TEST(Findings, StartUpAndWhatFollowsTheLastWorkAreNoFindings) {
  for (const char* phase : {"startup", "ending"}) {
    Analysis analysis = analysis_with({{Bucket::kLaunchLate, 600'000'000}}, phase);
    analysis.ledgers.push_back(analysis_with({{Bucket::kCopy, 20'000'000}}, "steady").ledgers[0]);
    EXPECT_THAT(ids_of(findings_of(analysis, {})), ElementsAre("exposed_copy")) << phase;
  }
}

TEST(Findings, StagesAreJudgedAloneWhereTheyAreMarked) {
  Analysis analysis = analysis_with({{Bucket::kLaunchLate, 500'000'000}}, "decode");
  analysis.stages.resize(1);
  analysis.stages[0].stage = row_name("decode");
  analysis.ledgers.push_back(analysis_with({{Bucket::kLaunchLate, 900'000'000}}).ledgers[0]);
  const Findings findings = findings_of(analysis, {});
  ASSERT_EQ(findings.found.size(), 1U);
  EXPECT_EQ(findings.found[0].stage.text(), "decode");
  EXPECT_EQ(findings.found[0].saving_ns, 500'000'000);
}

TEST(Findings, MatrixProductsOffTheTensorCoresAreBoundedByWhatTheseCanDo) {
  Analysis analysis = analysis_with({});
  add_kernel(analysis, "ampere_sgemm_128x64_tn", "gemm", 100, 4'000'000);
  add_kernel(analysis, "ampere_bf16_s16816gemm_bf16_128x64", "gemm", 100, 1'000'000);
  add_kernel(analysis, "implicit_convolve_sgemm<__half, __half, 1024>", "gemm", 100, 1'000'000);
  TensorCores cores = {16, true};
  FindingFacts facts;
  facts.tensor_cores = [&](const std::string& name) {
    return name == "Some GPU" ? std::optional(cores) : std::nullopt;
  };
  const Findings known = findings_of(analysis, facts);
  ASSERT_THAT(ids_of(known), ElementsAre("gemm_off_tensor_cores"));
  EXPECT_EQ(known.found[0].saving_ns, 481'250'000)
      << "500 ms at 60 % of the peak, of which a sixteenth remains";
  EXPECT_THAT(known.found[0].sentence, HasSubstr("16x faster"));
  EXPECT_THAT(known.found[0].advice.words(), HasSubstr("TF32"));
  cores.has_bf16 = false;
  EXPECT_THAT(findings_of(analysis, facts).found[0].advice.words(), HasSubstr("fp16"));
  EXPECT_THAT(findings_of(analysis, {}).found, IsEmpty()) << "no bound is known";
  analysis.devices[0].compute_major = 7;
  EXPECT_EQ(findings_of(analysis, {}).found.at(0).saving_ns, 425'000'000)
      << "a quarter of 60 % remains";
  analysis.devices[0].compute_major = 8;
  EXPECT_THAT(findings_of(analysis, {}).found, IsEmpty()) << "it may be 2 to 16 times";
  analysis.devices[0].name = "NVIDIA RTX 5000 Ada Generation Laptop GPU";
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).sentence, HasSubstr("are 4x faster"));
  analysis.devices[0].name = "NVIDIA GeForce RTX 4060";
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).sentence, HasSubstr("are 2x faster"));
}

TEST(Findings, KernelsInARowCouldBeFused) {
  Analysis analysis = analysis_with({});
  analysis.kernel_chains = {{row_name("all"), "cuda:0", 0, 0, 0, 10'000, 90'000'000, 40'000'000}};
  const Findings findings = findings_of(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("fusion"));
  EXPECT_EQ(findings.found[0].saving_ns, 50'000'000)
      << "what one kernel for each row takes remains";
  EXPECT_EQ(text_of_member(findings.found[0].bound),
            "90.0 ms of memory-bound kernels - 40.0 ms that remains if each row of them is one "
            "kernel = 50.0 ms");
}

TEST(Findings, AFixForOneComputationHasABoundOfItsOwn) {
  Analysis analysis = analysis_with({});
  analysis.capture.format.tool_id = "kineto";
  KernelChains chains{row_name("all"), "cuda:0", 0, 0, 0, 10'000, 90'000'000, 40'000'000};
  chains.row_kernels = "neg bf16, CatArrayBatchedCopy, mul bf16, add bf16";
  chains.num_rows = 24;
  chains.row_ns = 20'000'000;
  chains.row_fused_ns = 5'000'000;
  analysis.kernel_chains = {chains};
  const Findings findings = findings_of(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("fusion"));
  EXPECT_EQ(findings.found[0].saving_ns, 50'000'000);
  EXPECT_THAT(findings.found[0].advice.words(),
              testing::StartsWith("fuse them: torch.compile; rotary embedding alone (at most 15.0 "
                                  "ms of it): "));
  // What the compiler of PyTorch made, it need not make again.
  analysis.kernel_chains[0].row_kernels = "triton_red_fused_add_0, triton_poi_fused_mul_1";
  EXPECT_THAT(findings_of(analysis, {}).found.at(0).advice.words(), HasSubstr("graph breaks"));
}

TEST(Findings, OneChangeForTwoFindingsIsToldOnce) {
  Analysis analysis = analysis_with({{Bucket::kLaunchLate, 300'000'000}});
  analysis.capture.format.tool_id = "kineto";
  analysis.kernel_chains = {{row_name("all"), "cuda:0", 0, 0, 0, 10'000, 90'000'000, 10'000'000}};
  const Findings findings = findings_of(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("launch_bound", "fusion"));
  EXPECT_THAT(findings.found[0].advice.words(),
              HasSubstr("torch.compile(mode=\"reduce-overhead\")"));
  EXPECT_EQ(text_of_member(findings.found[1].advice),
            "also fixed by launch_bound: torch.compile; or by hand: fused norm and activation "
            "kernels");
}

TEST(Findings, WhatAnAdviceIsNotAboutIsNotItsSaving) {
  Analysis analysis = analysis_with({{Bucket::kLaunchLate, 200'000'000}}, "step");
  LedgerRow& row = analysis.ledgers[0];
  row.num_instances = 3;
  const auto gaps = [&](const char* scope, std::int64_t count, std::int64_t time_ns) {
    add_cause(analysis, row, Bucket::kLaunchLate, {IdleKind::kHostWork, "", scope},
              {count, time_ns, time_ns, time_ns, 0, 0, 900'000'000});
  };
  analysis.idle_causes.clear();
  gaps("aten::unflatten_dense_tensors", 6, 90'000'000);
  gaps("", 3, 60'000'000);
  gaps("Optimizer.step#SGD.step", 3, 50'000'000);
  Finding finding = findings_of(analysis, {}).found.at(0);
  EXPECT_EQ(finding.id, FindingId::kHostWork);
  EXPECT_THAT(finding.advice.words(), HasSubstr("broadcast_buffers=False"));
  EXPECT_EQ(finding.saving_ns, 90'000'000) << "the optimizer's part has another remedy";
  EXPECT_EQ(text_of_member(finding.bound),
            "200 ms of gaps - 110 ms that are not in what is named = 90.0 ms");
  // The first gap is the start of the workers.
  analysis.idle_causes.clear();
  gaps("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 3, 200'000'000);
  analysis.idle_causes[0].first_gap_ns = 164'000'000;
  finding = findings_of(analysis, {}).found.at(0);
  EXPECT_EQ(finding.saving_ns, 36'000'000);
  EXPECT_THAT(finding.sentence, HasSubstr("the first gap alone is 164 ms, and the others 36.0 ms"));
  EXPECT_EQ(text_of_member(finding.bound), "200 ms of gaps - 164 ms of the first, once = 36.0 ms");
}

TEST(Findings, MemoryAllocatedOnceIsNoSpeedUp) {
  const auto allocation = [](std::int64_t steps, std::int64_t count, std::int64_t last_ns) {
    Analysis analysis = analysis_with({{Bucket::kLaunchLate, 200'000'000}}, "step");
    analysis.ledgers[0].num_instances = steps;
    set_cause(analysis, Bucket::kLaunchLate, {IdleKind::kAllocating, "cudaMalloc", ""},
              {count, 200'000'000, 200'000'000, 20'000'000, 0, 20'000'000, last_ns});
    return findings_of(analysis, {}).found.at(0);
  };
  EXPECT_EQ(allocation(4, 8, 900'000'000).saving_ns, 200'000'000) << "in every step";
  EXPECT_EQ(allocation(4, 8, 100'000'000).saving_ns, 0) << "in the first step";
  EXPECT_EQ(allocation(4, 2, 900'000'000).saving_ns, 0) << "not in every step";
  const Finding once = allocation(1, 30, 900'000'000);
  EXPECT_EQ(once.id, FindingId::kAllocation);
  EXPECT_EQ(once.saving_ns, 0) << "one step does not show the next";
  EXPECT_FALSE(once.speedup());
  EXPECT_THAT(once.sentence, HasSubstr("perhaps once"));
}

TEST(Findings, KernelsThatOverlapSaveNoMoreThanTheyTook) {
  Analysis analysis = analysis_with({{Bucket::kTail, 900'000'000}});
  analysis.devices[0].compute_major = 7;
  add_kernel(analysis, "volta_sgemm_128x64_tn", "gemm", 100, 4'000'000);
  EXPECT_EQ(findings_of(analysis, {}).found.at(0).saving_ns, 85'000'000);
  EXPECT_EQ(findings_of(analysis, {}).found.at(0).id, FindingId::kGemmOffTensorCores);
}

TEST(Findings, SharesAreOfThePartTheySpeakOf) {
  Analysis analysis = analysis_with({}, "startup");
  analysis.capture.duration_ns = 10'000'000'000;
  const Analysis steady = analysis_with({{Bucket::kLaunchLate, 200'000'000}}, "steady");
  analysis.ledgers.push_back(steady.ledgers[0]);
  analysis.idle_causes = steady.idle_causes;
  const Findings findings = findings_of(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("launch_bound"));
  EXPECT_THAT(findings.found[0].sentence, HasSubstr("(20.0 %) in the steady phase"));
  EXPECT_EQ(findings.found[0].window_ns, 1'000'000'000);
}

TEST(Findings, ABadRecordingComesFirst) {
  Analysis opaque = analysis_with({{Bucket::kCopy, 400'000'000}});
  opaque.capture.opaque_graph_ns = opaque.capture.kernel_ns;
  EXPECT_THAT(ids_of(findings_of(opaque, {})), ElementsAre("graph_opaque", "exposed_copy"));
  Analysis nothing;
  nothing.tool_messages = {"No CUDA \x1b events collected"};
  const Findings findings = findings_of(nothing, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("no_gpu_activity"));
  EXPECT_THAT(findings.found[0].sentence, HasSubstr("\\x1b"));
  EXPECT_FALSE(findings.silent.empty()) << "rules that need a ledger say so";
}

TEST(Findings, NumbersThatCannotBeRightSaveNothing) {
  Analysis analysis = analysis_with({{Bucket::kCopy, 400'000'000}});
  analysis.data_quality = {{"unusable_event", Severity::kWarning, 1, "left out 1 of 999 kernels"}};
  EXPECT_THAT(ids_of(findings_of(analysis, {})), ElementsAre("exposed_copy"));
  analysis.data_quality[0].severity = Severity::kImpossible;
  EXPECT_THAT(ids_of(findings_of(analysis, {})), ElementsAre("impossible_rows"));
  analysis.capture.kernel_ns = 0;
  EXPECT_THAT(ids_of(findings_of(analysis, {})), ElementsAre("impossible_rows"))
      << "not that none was recorded";
}

TEST(Findings, TheProfilersShareIsNamed) {
  Analysis analysis = analysis_with({});
  const std::vector<SilentRule> silent = findings_of(analysis, {}).silent;
  EXPECT_TRUE(std::any_of(silent.begin(), silent.end(), [](const SilentRule& rule) {
    return rule.id == FindingId::kProfilerOverhead;
  }));
  analysis.baseline.emplace(1);
  analysis.overhead = {{row_name("decode"), 100, 120}, {row_name("prefill"), 100, 130}};
  const Findings findings = findings_of(analysis, {});
  ASSERT_THAT(ids_of(findings), ElementsAre("profiler_overhead"));
  EXPECT_EQ(findings.found[0].stage.text(), "prefill");
}

const Finding* find(const Findings& findings, const std::string& id) {
  const auto found = std::find_if(findings.found.begin(), findings.found.end(),
                                  [&](const Finding& f) { return word_of(f.id) == id; });
  return found == findings.found.end() ? nullptr : &*found;
}

bool is_silent(const Findings& findings, const std::string& id) {
  return std::any_of(findings.silent.begin(), findings.silent.end(),
                     [&](const SilentRule& rule) { return word_of(rule.id) == id; });
}

TEST(Findings, TheSameTimeIsNotCountedTwice) {
  Analysis analysis =
      analysis_with({{Bucket::kLaunchLate, 300'000'000}, {Bucket::kCopy, 50'000'000}});
  analysis.copies = {{"cuda:0", "host_to_device", "pageable", 10, 1'000'000'000, 50'000'000}};
  analysis.devices[0].compute_major = 7;
  add_kernel(analysis, "volta_sgemm_128x64_tn", "gemm", 100, 5'000'000);
  analysis.kernel_chains = {{row_name("all"), "cuda:0", 0, 0, 0, 20'000, 100'000'000, 0}};
  const Findings findings = findings_of(analysis, {});
  EXPECT_THAT(ids_of(findings),
              ElementsAre("launch_bound", "gemm_off_tensor_cores", "exposed_copy", "fusion"));
  std::int64_t sum_ns = 0;
  for (const Finding& finding : findings.found) {
    sum_ns += finding.overlaps ? 0 : finding.saving_ns;
  }
  EXPECT_EQ(sum_ns, 425'000'000 + 300'000'000 + 50'000'000);
  EXPECT_TRUE(find(findings, "fusion")->overlaps);
  EXPECT_THAT(find(findings, "exposed_copy")->sentence,
              HasSubstr("host to device (pageable memory), 954 MiB at 20.0 GB/s"));
  EXPECT_THAT(find(findings, "exposed_copy")->advice.words(), HasSubstr("pin"));
}

TEST(Findings, ARequestThatWaitsBeforeItsFirstKernel) {
  Analysis analysis = analysis_with({{Bucket::kLaunchLate, 200'000'000}}, "prefill");
  analysis.stages.resize(1);
  analysis.stages[0].stage = row_name("prefill");
  analysis.ledgers[0].lead_ns = 150'000'000;
  const Findings findings = findings_of(analysis, {});
  ASSERT_NE(find(findings, "idle_at_start"), nullptr);
  EXPECT_EQ(find(findings, "idle_at_start")->saving_ns, 150'000'000);
  EXPECT_TRUE(find(findings, "idle_at_start")->overlaps) << "it is a part of launch_bound";
  EXPECT_TRUE(is_silent(findings_of(analysis_with({}), {}), "idle_at_start"));
}

TEST(Findings, TheRankThatCommunicatesLeastIsTheLateOne) {
  Analysis analysis = analysis_with({{Bucket::kComm, 90'000'000}});
  LedgerRow other = analysis_with({{Bucket::kComm, 30'000'000}}).ledgers[0];
  other.device = "cuda:1";
  analysis.ledgers.push_back(other);
  add_kernel(analysis, "ncclAllReduce", "communication", 10, 10'000'000);
  add_kernel(analysis, "ncclAllReduce", "communication", 10, 4'000'000);
  analysis.kernels[1].device = "cuda:1";
  const Findings findings = findings_of(analysis, {});
  ASSERT_NE(find(findings, "rank_skew"), nullptr);
  EXPECT_EQ(find(findings, "rank_skew")->device, "cuda:0");
  EXPECT_EQ(find(findings, "rank_skew")->saving_ns, 60'000'000);
  EXPECT_THAT(find(findings, "rank_skew")->advice.words(), HasSubstr("cuda:1"));
  EXPECT_TRUE(
      is_silent(findings_of(analysis_with({{Bucket::kComm, 90'000'000}}), {}), "rank_skew"));
}

TEST(Findings, FamiliesThatAStepWouldRatherNotRun) {
  Analysis analysis = analysis_with({});
  add_kernel(analysis, "topk", "sampling", 100, 500'000);
  add_kernel(analysis, "reshape_and_cache", "kv_cache", 100, 400'000);
  const Findings findings = findings_of(analysis, {});
  EXPECT_EQ(find(findings, "sampling")->saving_ns, 50'000'000);
  EXPECT_EQ(find(findings, "kv_cache_copy")->saving_ns, 40'000'000);
}

TEST(Findings, AStageFarFromItsRoof) {
  Analysis analysis = analysis_with({{Bucket::kLaunchLate, 400'000'000}}, "decode");
  EXPECT_TRUE(is_silent(findings_of(analysis, {}), "decode_off_memory_roof"));
  StageEfficiency stage;
  stage.stage = row_name("decode");
  stage.busy_ns = 600'000'000;
  stage.bound_ns = 1e8;
  stage.sol.busy_fraction = 1.0 / 6;
  stage.side = "memory";
  analysis.efficiency = Efficiency{};
  analysis.efficiency->gpu = "H100";
  analysis.efficiency->stages = {stage};
  const Findings findings = findings_of(analysis, {});
  ASSERT_NE(find(findings, "decode_off_memory_roof"), nullptr);
  EXPECT_EQ(find(findings, "decode_off_memory_roof")->saving_ns, 500'000'000);
  analysis.efficiency->stages[0].side = "compute";
  EXPECT_NE(find(findings_of(analysis, {}), "prefill_off_compute_roof"), nullptr);
  analysis.efficiency->stages[0].sol.busy_fraction = 0.8;
  EXPECT_EQ(find(findings_of(analysis, {}), "prefill_off_compute_roof"), nullptr);
}

TEST(Findings, WhatCountersSayOfHotKernels) {
  Analysis analysis = analysis_with({});
  add_kernel(analysis, "starved", "elementwise", 1, 200'000'000);
  add_kernel(analysis, "flash_fwd", "attention", 1, 100'000'000);
  add_kernel(analysis, "gemv", "gemv", 1, 100'000'000);
  EXPECT_TRUE(is_silent(findings_of(analysis, {}), "low_occupancy"));
  std::vector<CounterRow>& measured = analysis.counters.emplace().kernels;
  measured.resize(3);
  for (std::size_t i = 0; i < 3; ++i) {
    KernelRow& kernel = analysis.kernels[i];
    kernel.short_name = kernel.kernel_name;
    kernel.covered_ns = kernel.total_ns;
    LaunchGroup& group = analysis.launch_groups.emplace_back();
    group.kernel_name = kernel.kernel_name;
    group.stage = kernel.stage;
    group.gpu = kernel.device;
    group.counters = i;
    measured[i].winnable_ns = 8e7;
  }
  measured[0].bound = "latency";
  measured[0].roofline.achieved_occupancy_fraction = 0.1;
  measured[2].bound = "memory";
  measured[2].roofline.memory_fraction = 0.9;
  measured[2].roofline.compute_fraction = 0.1;
  const Findings findings = findings_of(analysis, {});
  EXPECT_EQ(find(findings, "low_occupancy")->saving_ns, 80'000'000);
  EXPECT_EQ(find(findings, "attention_off_roof")->saving_ns, 80'000'000);
  EXPECT_EQ(find(findings, "gemv_memory_bound")->saving_ns, 75'000'000);
  EXPECT_EQ(find(findings, "gemv_memory_bound")->confidence, Confidence::kLow);
}

// Stage names are the user's; a key must still parse and name the stage.
TEST(Findings, EvidenceQuotesStageNames) {
  const std::string name = "a,b]=\"c";
  Analysis analysis = analysis_with({{Bucket::kComm, 90'000'000}}, name);
  LedgerRow other = analysis_with({{Bucket::kComm, 30'000'000}}, name).ledgers[0];
  other.device = "cuda:1";
  analysis.ledgers.push_back(other);
  add_kernel(analysis, "ncclAllReduce", "communication", 10, 10'000'000);
  add_kernel(analysis, "ncclAllReduce", "communication", 10, 4'000'000);
  analysis.kernels[0].stage = analysis.kernels[1].stage = row_name(name);
  analysis.kernels[1].device = "cuda:1";
  analysis.stages.resize(1);
  analysis.stages[0].stage = row_name(name);
  analysis.stages[0].num_instances = 5;
  analysis.stages[0].first_ns = 20'000'000;
  analysis.stages[0].steady_mean_ns = 10'000'000;
  analysis.baseline.emplace(1);
  analysis.overhead = {{row_name(name), 100, 130}};
  StageEfficiency efficiency;
  efficiency.stage = row_name(name);
  efficiency.busy_ns = 600'000'000;
  efficiency.bound_ns = 1e8;
  efficiency.sol.busy_fraction = 1.0 / 6;
  efficiency.side = "memory";
  analysis.efficiency = Efficiency{};
  analysis.efficiency->gpu = "H100";
  analysis.efficiency->stages = {efficiency};
  const Findings findings = findings_of(analysis, {});
  for (const char* id : {"rank_skew", "first_range_stretch", "profiler_overhead",
                         "decode_off_memory_roof", "exposed_comm"}) {
    const Finding* finding = find(findings, id);
    ASSERT_NE(finding, nullptr) << id;
    for (const std::string& key : finding->evidence) {
      std::string stage;
      for (const PathStep& step : parse_path(key)) {
        for (const auto& [field, value] : step.choices) {
          stage = field == "stage" ? value : stage;
        }
      }
      EXPECT_EQ(stage, name) << key;
    }
  }
}

TEST(Findings, WhatSpoilsAMeasurement) {
  Analysis analysis = analysis_with({});
  EXPECT_TRUE(is_silent(findings_of(analysis, {}), "other_gpu_users"));
  analysis.tool_messages = {"Some events were dropped because a buffer was full"};
  analysis.stages.resize(1);
  analysis.stages[0].stage = row_name("decode");
  analysis.stages[0].num_instances = 5;
  analysis.stages[0].first_ns = 20'000'000;
  analysis.stages[0].steady_mean_ns = 10'000'000;
  FindingFacts facts;
  facts.num_other_gpu_users = 2;
  facts.keeps_clocks = false;
  const Findings findings = findings_of(analysis, facts);
  EXPECT_EQ(findings.found[0].id, FindingId::kDataLoss);
  EXPECT_TRUE(findings.found[0].is_blocker);
  EXPECT_THAT(find(findings, "first_range_stretch")->sentence, HasSubstr("2.0 times"));
  EXPECT_THAT(find(findings, "other_gpu_users")->sentence, HasSubstr("2 other"));
  EXPECT_NE(find(findings, "clocks_not_locked"), nullptr);
  facts.num_other_gpu_users = 0;
  facts.keeps_clocks = true;
  EXPECT_EQ(find(findings_of(analysis, facts), "other_gpu_users"), nullptr);
  EXPECT_EQ(find(findings_of(analysis, facts), "clocks_not_locked"), nullptr);
  FindingFacts nothing;
  nothing.has_gpu = false;
  EXPECT_THAT(findings_of(Analysis{}, nothing).found.at(0).sentence, HasSubstr("no GPU"));
}

}  // namespace
}  // namespace gpuwhy
