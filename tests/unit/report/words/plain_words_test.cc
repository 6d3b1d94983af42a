// SPDX-License-Identifier: Apache-2.0
//
// What a reader who has never seen a trace is told: what ran, how fast, what it is worth.
#include "report/words/plain_words.h"

#include "analysis/timeline/timeline.h"
#include "base/json.h"
#include "report/document/document.h"
#include "report/document/page.h"
#include "report/sections/sections.h"
#include "report/sections/speed.h"
#include "report/words/key_words.h"
#include "report/words/workload_words.h"
#include "results/json.h"
#include "results/results.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Six steps of a training loop that waits for its data.
Results training() {
  Results metrics;
  metrics.verdict.device = "cuda:0";
  metrics.verdict.sentence =
      "was busy 65 % of 900 ms; it waited while the CPU did other work "
      "('enumerate(DataLoader)#_Single.__next__').";
  metrics.verdict.top = {FindingId::kHostWork, ", up to 1.2x faster."};
  metrics.capture.file = "w0.json.gz";
  metrics.capture.tool = "PyTorch's profiler";
  metrics.capture.duration_ns = 900 * kMs;
  metrics.devices.resize(1);
  metrics.devices[0].device = "cuda:0";
  metrics.devices[0].name = "A100";
  metrics.devices[0].num_kernels = 10;
  metrics.stages.resize(1);
  metrics.stages[0].stage = row_name("step");
  metrics.stages[0].num_instances = 6;
  metrics.stages[0].median_ns = 152 * kMs;
  metrics.stages[0].total_ns = 900 * kMs;
  metrics.steps.resize(1);
  metrics.steps[0].stage = row_name("step");
  metrics.steps[0].period_median_ns = 150 * kMs;
  Finding& finding = metrics.findings.emplace_back();
  finding.id = FindingId::kHostWork;
  finding.stage = row_name("step");
  finding.device = "cuda:0";
  finding.saving_ns = 180 * kMs;
  finding.window_ns = 900 * kMs;
  finding.confidence = Confidence::kHigh;
  finding.sentence = "cuda:0 waited: 160 ms in 'enumerate(DataLoader)#_Single.__next__'";
  finding.advice.text = "load data while the GPU works";
  Finding& second = metrics.findings.emplace_back(finding);
  second.id = FindingId::kGemmOffTensorCores;
  second.advice = {.text = "use bf16", .after = FindingId::kHostWork};
  return metrics;
}

std::string page_of(const Results& metrics) {
  return page_html(metrics, metrics_json(metrics), {}, {});
}

TEST(PlainWords, ThePageHasTheStepTimeAndNoIdsInItsSentences) {
  const Results metrics = training();
  const std::string page = page_of(metrics);
  EXPECT_THAT(page, HasSubstr("<li>recorded for 900 ms</li>"));
  EXPECT_THAT(page, HasSubstr("Gains do not add up: each is for that point alone."));
  const std::size_t start = page.find("<section id=\"summary\"");
  const std::string told = page.substr(start, page.find("<section id=\"stages\"") - start);
  EXPECT_THAT(told, HasSubstr("One step takes 150 ms (from one to the next, median of 5): 6.67 per "
                              "second."));
  EXPECT_THAT(told, HasSubstr("while the CPU did other work (loading data with PyTorch&#39;s "
                              "DataLoader)"));
  EXPECT_THAT(told, HasSubstr("first solve: The GPU waits while the processor does other work"));
  EXPECT_THAT(told, Not(HasSubstr("_Single")));
  EXPECT_THAT(told, Not(HasSubstr("(after ")));
  EXPECT_EQ(key_words("idle_causes[stage=step,device=cuda:0,bucket=launch_late,kind=host_work,"
                      "scope=enumerate(DataLoader)#_Single.__next__].total_ns"),
            "time (step, cuda:0, waiting for CPU launch, CPU did other work, loading data with "
            "PyTorch's DataLoader)");
  EXPECT_EQ(key_words("idle_causes[bucket=launch_late,kind=launching,scope=a' and 'b].total_ns"),
            "time (waiting for CPU launch, 'a' and 'b')");
}

TEST(PlainWords, TheTimeOfAStepIsTheSameEverywhere) {
  Results metrics = training();
  const auto time = headline_time(metrics);
  ASSERT_TRUE(time);
  EXPECT_EQ(time->step.time_ns, 150 * kMs);
  EXPECT_EQ(time->step.key, "steps[stage=step].period_median_ns");
  EXPECT_EQ(time->note, "step: from one to the next, median of 5");
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, {})), HasSubstr("One step takes 150 ms"));
  EXPECT_FALSE(time->tokens_per_s);
  metrics.stages[0].num_instances = 1;
  metrics.stages[0].tokens = 32;
  metrics.ledgers.assign(1, {});
  metrics.ledgers[0].stage = row_name("step");
  metrics.ledgers[0].window_ns = 160 * kMs;
  metrics.steps.clear();
  const auto one = headline_time(metrics);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->step.time_ns, 160 * kMs);
  EXPECT_EQ(one->tokens_per_s, 200);
  EXPECT_EQ(one->rate_note, "32 tokens in a step; at best: one step was recorded");
  metrics.stages.clear();
  EXPECT_FALSE(headline_time(metrics));
}

TEST(PlainWords, ATimeThatIsNotKnownIsFollowedByWhatToType) {
  Results metrics = training();
  metrics.stages.clear();
  metrics.steps.clear();
  const auto text = [&] { return markdown_text(stakeholder_document(metrics, {})); };
  EXPECT_THAT(text(), HasSubstr("put an NVTX range around each step of the program"));
  metrics.ranges.resize(1);
  EXPECT_THAT(text(),
              HasSubstr("(gpuwhy table ranges w0.json.gz lists them) and name it: gpuwhy analyze "
                        "w0.json.gz --step NAME"));
  metrics.possible_marks = {{"--mark step='loop'", 6, 1, 1}};
  EXPECT_THAT(text(), HasSubstr("Next: gpuwhy analyze w0.json.gz --mark step='loop'"));
  metrics.capture.file = "a b; rm.json";
  EXPECT_THAT(text(), HasSubstr("Next: gpuwhy analyze FILE --mark"));
  metrics.findings[0].is_blocker = true;
  EXPECT_THAT(text(), Not(HasSubstr("How long a step takes")));
}

TEST(WorkloadWords, SayOnlyWhatIsProven) {
  Results metrics = training();
  EXPECT_EQ(workload_words(metrics).sentence(), "A program with PyTorch");
  metrics.kernels.resize(1);
  metrics.kernels[0].kernel_name = "void cudnn::dgrad_engine<float>";
  EXPECT_EQ(workload_words(metrics).kind, "") << "a transposed convolution uses it, too";
  metrics.operators.emplace().rows.emplace_back().name = "aten::convolution_backward";
  EXPECT_EQ(workload_words(metrics).sentence(), "Training with PyTorch");
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, {})),
              HasSubstr("Training with PyTorch on A100.\n\nw0.json.gz, recorded for 900 ms with "
                        "PyTorch's profiler.\n"));
  metrics.stages[0].stage = row_name("decode");
  EXPECT_EQ(workload_words(metrics).kind, "") << "both are there";
  metrics.operators.reset();
  metrics.capture.stage_source = "step markers of SGLang, in vLLM's form";
  metrics.aggregates.decode_sequences = 32;
  metrics.structure.emplace().passes.resize(2);
  metrics.structure->passes[0].num_layers = 36;
  metrics.structure->passes[0].kernel_ns = 2;
  metrics.structure->passes[1].num_layers = 4;
  EXPECT_EQ(workload_words(metrics).sentence(),
            "Inference with SGLang, a model of 36 layers, 32 sequences in a decode step");
  EXPECT_THAT(workload_words(metrics).facts(),
              ElementsAre("inference with SGLang", "36 layers", "32 sequences in a decode step"));
  metrics.capture.world_size = 8;
  EXPECT_THAT(workload_words(metrics).layers, "36 layers in this part of the job");
  EXPECT_EQ(workload_words(Results()).sentence(), "");
}

TEST(Worth, OneStepOrOneGpuOfManySaysWhatItStandsFor) {
  Results metrics = training();
  const GpuPrice price{2.5, "EUR"};
  const auto words = [&] { return day_worth_words(metrics, metrics.findings[0], price); };
  EXPECT_EQ(words(),
            "worth up to 12.00 EUR per day at 2.50 EUR per GPU-hour (from 6 steps, 900 ms)");
  metrics.stages[0].num_instances = 1;
  EXPECT_THAT(words(), HasSubstr("per GPU-hour, if every step is like the one that was recorded "
                                 "(from 1 step, 900 ms)"));
  metrics.capture.world_size = 64;
  EXPECT_THAT(words(), HasSubstr(", if every step is like the one that was recorded and the other "
                                 "GPUs are like this one ("));
}

TEST(Worth, TheTerminalHasOneLineForIt) {
  Results metrics = training();
  SectionOptions options;
  options.is_terminal = true;
  const auto text = [&] {
    return terminal_text(section_document(metrics, {"findings"}, options), {});
  };
  EXPECT_THAT(text(), Not(HasSubstr("worth")));
  options.gpu_hour_price = {2.5, "EUR"};
  EXPECT_THAT(text(), HasSubstr("host_work: worth up to 12.00 EUR per day"));
  for (Finding& finding : metrics.findings) {
    finding.window_ns = 9 * kMs;
    finding.saving_ns = 2 * kMs;
  }
  EXPECT_THAT(text(), HasSubstr("Worth per day: n/a (too little was recorded to stand for a day)"));
}

TEST(Worth, MoneyHasOneForm) {
  EXPECT_EQ(money_text(1920, {2.5, "EUR"}), "1920.00 EUR");
  EXPECT_EQ(money_text(2.5, {2.5, ""}), "2.50");
  EXPECT_EQ(money_text(0.0105, {2.5, "EUR"}), "0.0105 EUR");
  EXPECT_EQ(money_text(0, {2.5, ""}), "0.00");
}

TEST(Opportunity, OneChangeHasOneEffort) {
  Finding finding;
  finding.id = FindingId::kBlockedCall;
  EXPECT_EQ(change_of(finding).id, FindingId::kBlockedCall);
  finding.advice.same_as = FindingId::kExposedCopy;
  EXPECT_EQ(change_of(finding).effort, info_of(FindingId::kExposedCopy).effort);
}

// A file has one text, of which each part comes back.
TEST(Finding, TextsOfFilesComeBackAsTheyWere) {
  const Advice with_all = {.text = "torch.compile; or by hand",
                           .same_as = FindingId::kLaunchBound,
                           .after = FindingId::kHostWork};
  const std::string text = text_of_member(with_all);
  EXPECT_EQ(text, "also fixed by launch_bound: torch.compile; or by hand (after host_work)");
  Advice advice;
  read_member(text, advice);
  EXPECT_EQ(advice.text, with_all.text);
  EXPECT_EQ(advice.same_as, with_all.same_as);
  EXPECT_EQ(advice.after, with_all.after);
  for (const char* other : {"also fixed by nothing: known", "wait (after all)", "", " (after )"}) {
    Advice plain;
    read_member(other, plain);
    EXPECT_FALSE(plain.same_as || plain.after) << other;
    EXPECT_EQ(text_of_member(plain), other);
  }
  for (const char* words : {"cuda:0 was idle. Top opportunity: fusion, up to 2x faster.", "None.",
                            "A. Top opportunity: fusion.", "B. Top opportunity: ", ""}) {
    Verdict verdict;
    read_member(words, verdict);
    EXPECT_EQ(text_of_member(verdict), words);
    EXPECT_EQ(verdict.top.has_value(), std::string_view(words).find("fusion") < SIZE_MAX) << words;
  }
}

}  // namespace
}  // namespace gpuwhy
