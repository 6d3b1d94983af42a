// SPDX-License-Identifier: Apache-2.0
//
// Causes of idle time, planted one by one and in mixtures.
#include "analysis/idle/idle_causes.h"

#include <map>
#include <random>

#include "analysis/findings/findings.h"
#include "analysis/idle/wait_calls.h"
#include "analysis/names/operator_names.h"
#include "analysis/profile.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kUs = 1'000;
constexpr std::int64_t kMs = 1'000'000;

// A program with one thread and one stream. The host is never ahead: it launches each kernel in the
// gap before it, and what else it does there is the cause of the gap.
class Program {
 public:
  Program() {
    process_ = made_.add_process();
    thread_ = made_.add_thread(process_);
    stream_ = made_.add_stream(process_, made_.add_device());
    work(0, "gemm");
  }

  // A gap in which calls are made that take next to no time.
  void gap_with_calls(std::int64_t length_ns, const std::string& first, const std::string& last) {
    const std::int64_t start_ns = time_ns_;
    gap(IdleKind::kLaunching, length_ns);
    made_.call(thread_, start_ns + kUs, start_ns + 2 * kUs, first);
    made_.call(thread_, start_ns + length_ns - 20 * kUs, start_ns + length_ns - 19 * kUs, last);
  }

  // A gap in two ranges, 2.2 and 1.7 ms of each 4 ms.
  void gap_in_two(std::int64_t length_ns) {
    const std::int64_t start_ns = time_ns_;
    gap(IdleKind::kLaunching, length_ns);
    const std::int64_t middle_ns = start_ns + length_ns * 55 / 100;
    made_.range(thread_, start_ns, middle_ns, "load");
    made_.range(thread_, middle_ns, start_ns + length_ns * 975 / 1000, "prefetch");
  }

  // The same without a range, in Python functions around each other.
  void gap_in_functions(std::int64_t length_ns) {
    const std::int64_t start_ns = time_ns_;
    made_.function(thread_, start_ns - 50 * length_ns, start_ns + 50 * length_ns,
                   "main.py(9): main");
    gap(IdleKind::kLaunching, length_ns);
    made_.function(thread_, start_ns, start_ns + length_ns, "a/loader.py(12): __next__");
    made_.function(thread_, start_ns + kUs, start_ns + length_ns - 10 * kUs,
                   "<built-in method acquire of lock object at 0x7f01>");
  }

  // A gap of that length with its cause, and a kernel after it.
  void gap(IdleKind kind, std::int64_t length_ns) {
    const std::int64_t end_ns = time_ns_ + length_ns;
    planted_[kind] += length_ns;
    switch (kind) {
      case IdleKind::kWaiting:
        made_.call(thread_, time_ns_ - 5 * kUs, end_ns - 4 * kUs, "cudaStreamSynchronize");
        planted_[kind] -= 4 * kUs;
        planted_[IdleKind::kLaunching] += 4 * kUs;
        launch(end_ns - 3 * kUs, end_ns - kUs, end_ns, "gemm");
        return;
      case IdleKind::kHostWork:
        made_.range(thread_, time_ns_ + kUs, end_ns - 10 * kUs,
                    "load batch " + std::to_string(num_batches_++));
        break;
      case IdleKind::kAllocating:
        made_.call(thread_, time_ns_ + kUs, end_ns - 10 * kUs, "cudaMalloc");
        break;
      case IdleKind::kFirstUse:
        launch(time_ns_ + kUs, end_ns - kUs, end_ns, "new " + std::to_string(num_kernels_++));
        return;
      case IdleKind::kBlocked:
        launch(time_ns_ + kUs, end_ns - kUs, end_ns, "gemm");
        return;
      default:
        break;
    }
    launch(end_ns - 5 * kUs, end_ns - 2 * kUs, end_ns, "gemm");
  }

  const std::map<IdleKind, std::int64_t>& planted() const { return planted_; }
  Trace finish() { return made_.finish(); }
  void shuffle(std::mt19937& random) { made_.shuffle(random); }
  std::int64_t time_ns() const { return time_ns_; }

 private:
  void launch(std::int64_t start_ns, std::int64_t returned_ns, std::int64_t kernel_ns,
              const std::string& name) {
    correlation_ = made_.call(thread_, start_ns, returned_ns);
    work(kernel_ns, name);
  }
  void work(std::int64_t start_ns, const std::string& name) {
    made_.kernel(stream_, start_ns, start_ns + 200 * kUs, name, correlation_);
    time_ns_ = start_ns + 200 * kUs;
  }

  TraceBuilder made_;
  std::uint16_t process_ = 0;
  std::uint32_t thread_ = 0;
  std::uint32_t stream_ = 0;
  std::uint32_t correlation_ = TraceBuilder::kNoCall;
  std::int64_t time_ns_ = 0;
  int num_batches_ = 0;
  int num_kernels_ = 0;
  std::map<IdleKind, std::int64_t> planted_;
};

std::map<IdleKind, std::int64_t> found_in(const Analysis& analysis) {
  std::map<IdleKind, std::int64_t> found;
  for (const IdleRow& cause : causes_of(analysis.idle_causes, analysis.ledgers.back())) {
    found[cause.kind] += cause.total_ns;
  }
  return found;
}

FindingId finding_of(IdleKind kind) {
  return kind == IdleKind::kWaiting ? FindingId::kHostSync
                                    : std::ranges::find(kFindingInfo, kind, &FindingInfo::idle)->id;
}

TEST(IdleCauses, EachIsNamed) {
  for (const IdleKind kind : {IdleKind::kWaiting, IdleKind::kHostWork, IdleKind::kAllocating,
                              IdleKind::kFirstUse, IdleKind::kBlocked, IdleKind::kLaunching}) {
    Program program;
    for (int i = 0; i < 30; ++i) {
      program.gap(kind, kind == IdleKind::kLaunching ? 60 * kUs : 3 * kMs);
    }
    const auto planted = program.planted();
    const Analysis analysis = profile(program.finish(), Rules()).analysis;
    EXPECT_EQ(found_in(analysis), planted) << word_of(kind);
    const Findings findings = find_findings(analysis, {});
    ASSERT_FALSE(findings.found.empty()) << word_of(kind);
    EXPECT_EQ(findings.found[0].id, finding_of(kind));
    if (kind != IdleKind::kFirstUse) {
      EXPECT_NEAR(static_cast<double>(findings.found[0].saving_ns),
                  static_cast<double>(planted.at(kind)),
                  0.1 * static_cast<double>(planted.at(kind)));
    }
  }
}

TEST(IdleCauses, NamesAreThoseOfTheCallAndTheRange) {
  Program program;
  for (int i = 0; i < 30; ++i) {
    program.gap(IdleKind::kHostWork, 3 * kMs);
    program.gap(IdleKind::kAllocating, 4 * kMs);
  }
  const Analysis analysis = profile(program.finish(), Rules()).analysis;
  const Findings findings = find_findings(analysis, {});
  ASSERT_GE(findings.found.size(), 2U);
  EXPECT_THAT(findings.found[0].sentence, HasSubstr("in cudaMalloc"));
  EXPECT_THAT(findings.found[1].sentence, HasSubstr("89.7 ms in 'load batch N'"));
}

// Of the functions around a gap the innermost, and only where no range names it.
TEST(IdleCauses, FunctionsNameWhatNoRangeNames) {
  Program program;
  for (int i = 0; i < 30; ++i) {
    program.gap_in_functions(3 * kMs);
    program.gap(IdleKind::kHostWork, 2 * kMs);
  }
  const Findings findings = find_findings(profile(program.finish(), Rules()).analysis, {});
  ASSERT_FALSE(findings.found.empty());
  EXPECT_EQ(findings.found[0].id, FindingId::kHostWork);
  EXPECT_THAT(findings.found[0].sentence,
              HasSubstr("89.7 ms in '<built-in method acquire of lock object>'"));
  EXPECT_THAT(findings.found[0].sentence, testing::Not(HasSubstr("loader.py")));
}

// Two ranges, one after the other, are the gap together.
TEST(IdleCauses, TwoNamesThatCoverAGap) {
  Program program;
  for (int i = 0; i < 30; ++i) {
    program.gap_in_two(4 * kMs);
  }
  const Findings findings = find_findings(profile(program.finish(), Rules()).analysis, {});
  ASSERT_FALSE(findings.found.empty());
  EXPECT_THAT(findings.found[0].sentence, HasSubstr("117 ms in 'load' and 'prefetch'"));
}

// Where no name has half of the time, the largest are listed.
TEST(IdleCauses, SeveralNamesAreListed) {
  Program program;
  for (int i = 0; i < 30; ++i) {
    program.gap_in_functions(2 * kMs);
    program.gap(IdleKind::kHostWork, 2 * kMs);
    program.gap(IdleKind::kLaunching, 2 * kMs);  // long, and nothing names it
  }
  const Findings findings = find_findings(profile(program.finish(), Rules()).analysis, {});
  ASSERT_FALSE(findings.found.empty());
  EXPECT_THAT(findings.found[0].sentence,
              HasSubstr("59.7 ms in '<built-in method acquire of lock object>', 59.7 ms in 'load "
                        "batch N'"));
}

// The host compiles and captures without a call that lasts.
TEST(IdleCauses, LinkingAndCapturingAreFirstUse) {
  for (const auto& [first, last] : {std::pair("cuLinkCreate", "cuLinkComplete"),
                                    {"cudaStreamBeginCapture", "cudaStreamEndCapture"},
                                    {"cudaGetDevice", "cudaGetDevice"}}) {
    Program program;
    for (int i = 0; i < 30; ++i) {
      program.gap_with_calls(3 * kMs, first, last);
    }
    const auto found = found_in(profile(program.finish(), Rules()).analysis);
    const bool is_plain = std::string_view(first) == "cudaGetDevice";
    EXPECT_EQ(found.contains(IdleKind::kFirstUse), !is_plain) << first;
    EXPECT_EQ(found.contains(IdleKind::kHostWork), is_plain) << first;
  }
}

TEST(IdleCauses, FunctionsLoseTheirLineAndAddress) {
  EXPECT_EQ(function_name("torch/utils/data/dataloader.py(630): __next__"),
            "dataloader.py: __next__");
  EXPECT_EQ(function_name("<built-in method item of Tensor object at 0x7f1234>"),
            "<built-in method item of Tensor object>");
  EXPECT_EQ(function_name("read()"), "read()");
  EXPECT_EQ(function_name(".py("), ".py(");
  EXPECT_LE(function_name(std::string(9'000, 'x') + ".py(1): " + std::string(9'000, 'y')).size(),
            202U);
}

// The first finding is the largest planted cause, and no saving is above what was planted.
TEST(IdleCauses, AThousandMixturesRightToTheNanosecond) {
  std::mt19937 random(20261116);
  int num_first_use = 0;
  for (int i = 0; i < 1'000; ++i) {
    Program program;
    const int num_gaps = std::uniform_int_distribution<int>(60, 120)(random);
    std::vector<int> weights(kNumIdleKinds);
    for (int& weight : weights) {
      weight = std::uniform_int_distribution<int>(0, 4)(random);
    }
    weights[static_cast<std::size_t>(IdleKind::kNotHost)] = 0;
    weights[static_cast<std::size_t>(IdleKind::kLaunching)] += 1;
    std::discrete_distribution<int> kinds(weights.begin(), weights.end());
    for (int g = 0; g < num_gaps; ++g) {
      const auto kind = static_cast<IdleKind>(kinds(random));
      const std::int64_t length_ns =
          kind == IdleKind::kLaunching
              ? std::uniform_int_distribution<std::int64_t>(30 * kUs, 90 * kUs)(random)
              : std::uniform_int_distribution<std::int64_t>(2 * kMs, 4 * kMs)(random);
      program.gap(kind, length_ns);
    }
    const auto planted = program.planted();
    program.shuffle(random);
    const Analysis analysis = profile(program.finish(), Rules()).analysis;
    ASSERT_EQ(found_in(analysis), planted) << "recording " << i;
    const Findings findings = find_findings(analysis, {});
    // Medium confidence counts for less, and what happened once saves nothing.
    const auto weight = [](IdleKind kind, std::int64_t time_ns) {
      return static_cast<double>(time_ns) * (kind == IdleKind::kFirstUse  ? 0
                                             : kind == IdleKind::kBlocked ? 0.4
                                                                          : 1.0);
    };
    const auto most =
        std::max_element(planted.begin(), planted.end(), [&](const auto& a, const auto& b) {
          return weight(a.first, a.second) < weight(b.first, b.second);
        });
    if (most->first == IdleKind::kLaunching || weight(most->first, most->second) == 0) {
      ++num_first_use;  // nothing but first uses, or too little to be said
      continue;
    }
    ASSERT_FALSE(findings.found.empty()) << "recording " << i;
    // Other work of the CPU saves the time in what is named, which is a little less than its gaps.
    const auto first = std::ranges::find_if(
        planted, [&](const auto& one) { return findings.found[0].id == finding_of(one.first); });
    ASSERT_NE(first, planted.end()) << "recording " << i;
    ASSERT_GE(weight(first->first, first->second) * 1.05, weight(most->first, most->second))
        << "recording " << i << " " << word_of(findings.found[0].id);
    for (const Finding& finding : findings.found) {
      for (const auto& [kind, time_ns] : planted) {
        if (finding.id == finding_of(kind)) {
          ASSERT_LE(finding.saving_ns, time_ns) << "recording " << i << " " << word_of(finding.id);
        }
      }
    }
  }
  EXPECT_LT(num_first_use, 50);
}

TEST(IdleCauses, NumbersInNamesAreOneName) {
  EXPECT_EQ(without_numbers("layer_12 of 40"), "layer_N of N");
  EXPECT_EQ(without_numbers("aten::conv2d"), "aten::conv2d");
  EXPECT_EQ(without_numbers("12"), "N");
  EXPECT_EQ(without_numbers(std::string(10'000, 'x')).size(), 200U);
}

TEST(IdleCauses, AGpuThatSeemsIdleWhileTheHostWaitsRanSomethingElse) {
  const auto buckets_of = [](bool waits) {
    TraceBuilder made;
    const auto process = made.add_process();
    const auto thread = made.add_thread(process);
    const auto stream = made.add_stream(process, made.add_device());
    made.kernel(stream, 10 * kUs, 20 * kUs, "gemm", made.call(thread, 0, 2 * kUs));
    const auto launched = made.call(thread, 3 * kUs, 5 * kUs);
    if (waits) {
      made.call(thread, 6 * kUs, 50 * kMs, "cudaStreamSynchronize");
    }
    made.kernel(stream, 49 * kMs, 50 * kMs, "gemm", launched);
    return profile(made.finish(), Rules()).analysis.ledgers.back();
  };
  EXPECT_EQ(buckets_of(true)[Bucket::kUnrecorded], 49 * kMs - 20 * kUs + 10 * kUs);
  EXPECT_EQ(buckets_of(false)[Bucket::kQueued], 49 * kMs - 20 * kUs);
}

// An engine copies a few bytes while a step that was not recorded still runs. Gaps after real work
// are within the recording.
TEST(IdleCauses, UnrecordedTimeAfterRealWorkIsNotBeforeIt) {
  const auto ledger_of = [](std::int64_t first_ns) {
    TraceBuilder made;
    const auto process = made.add_process();
    const auto thread = made.add_thread(process);
    const auto stream = made.add_stream(process, made.add_device());
    made.kernel(stream, 0, first_ns, "gemm", made.call(thread, -2 * kUs, -1 * kUs));
    const auto launched = made.call(thread, 3 * kUs, 5 * kUs);
    made.call(thread, 6 * kUs, 60 * kMs, "cudaStreamSynchronize");
    made.kernel(stream, first_ns + 40 * kMs, first_ns + 50 * kMs, "gemm", launched);
    return profile(made.finish(), Rules()).analysis.ledgers.back();
  };
  const Ledger lead = ledger_of(kMs);
  EXPECT_EQ(lead.between_ns, 0);
  EXPECT_EQ(lead.work_ns(), 11 * kMs);
  const Ledger between = ledger_of(8 * kMs);
  EXPECT_EQ(between.between_ns, 40 * kMs);
  EXPECT_EQ(between.work_ns(), 58 * kMs);
}

TEST(WaitCalls, CopiesThatReturnWhenTheyAreDoneAreWaits) {
  TraceBuilder made;
  const auto process = made.add_process();
  const auto thread = made.add_thread(process);
  const auto stream = made.add_stream(process, made.add_device());
  made.copy(stream, 100, 200, made.call(thread, 50, 210, "cudaMemcpyAsync"),
            CopyKind::kDeviceToPageable);
  made.copy(stream, 400, 500, made.call(thread, 300, 310, "cudaMemcpyAsync"),
            CopyKind::kDeviceToHost);
  made.call(thread, 600, 700, "cudaDeviceSynchronize");
  made.call(thread, 650, 660, "cuCtxSynchronize");  // below it
  made.call(thread, 690, 720, "cudaStreamSynchronize");
  const Trace trace = made.finish();
  Stages stages;
  const WaitCalls waits(trace, attribute(trace, stages).copies);
  WaitCalls::Cursor cursor(waits);
  EXPECT_EQ(cursor.at(thread, 60), 0U);
  EXPECT_EQ(cursor.at(thread, 305), kNone);
  EXPECT_EQ(cursor.at(thread, 655), 2U);
  EXPECT_EQ(cursor.at(thread, 710), 4U);
  EXPECT_EQ(waits.waited_ns(thread, 0, 1000), 160 + 120);
  EXPECT_EQ(waits.waited_ns(thread, 640, 655), 15);
  EXPECT_TRUE(waits.waits_throughout(600, 720));
  EXPECT_FALSE(waits.waits_throughout(500, 720));
}

}  // namespace
}  // namespace gpuwhy
