// SPDX-License-Identifier: Apache-2.0
#include "analysis/stages/window.h"

#include <random>

#include "analysis/model_trace.h"
#include "analysis/names/rules_json.h"
#include "analysis/profile.h"
#include "config/presets.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

using std::chrono::nanoseconds;

// Steps of 100 from 1000 on. Each launches two kernels, which run `lag` later, in order.
Trace steps_of(int num_steps, std::int64_t lag, int num_ranks = 1, const char* loop = nullptr) {
  TraceBuilder made;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const std::uint16_t process = made.add_process();
    const std::uint32_t thread = made.add_thread(process);
    const std::uint32_t stream = made.add_stream(process, made.add_device());
    made.launch(thread, 0, stream, 10, 20, "load");
    for (int i = 0; i < num_steps; ++i) {
      const std::int64_t start = 1000 + 100 * i;
      made.range(thread, start, start + 90, "it#" + std::to_string(i));
      made.launch(thread, start + 10, stream, start + lag + 20, start + lag + 50, "gemm");
      made.launch(thread, start + 20, stream, start + lag + 60, start + lag + 100, "attention");
    }
    if (loop != nullptr) {
      made.range(thread, 900, 1000 + 100 * num_steps, loop);
    }
    made.launch(thread, 5000, stream, 5010, 5020, "save");
  }
  return made.finish();
}

Rules rules_of(const std::vector<std::string>& marks, const std::vector<std::string>& steps) {
  Rules rules;
  add_marks(marks, steps, rules);
  return rules;
}

Rules step_rules() {
  return rules_of({}, {"it#*"});
}

WindowOptions steps(std::int64_t first, std::int64_t last) {
  WindowOptions options;
  options.steps = StepSpan{first, last};
  return options;
}

WindowOptions times(std::int64_t from, std::int64_t to) {
  WindowOptions options;
  options.from = nanoseconds(from);
  options.to = nanoseconds(to);
  return options;
}

Profile profile_of(Trace trace, const WindowOptions& options, const Rules& rules) {
  apply_window(options, rules, trace);
  return profile(std::move(trace), rules);
}

const StageRow& stage(const Profile& profile, const std::string& name) {
  for (const StageRow& row : profile.analysis.stages) {
    if (row.stage.text() == name) {
      return row;
    }
  }
  ADD_FAILURE() << "no stage " << name;
  static const StageRow kNothing;
  return kNothing;
}

TEST(Window, OfTimesKeepsTheWorkThatBeginsInIt) {
  const Profile made = profile_of(steps_of(4, 0), times(1100, 1200), step_rules());
  EXPECT_EQ(made.trace->kernels.size(), 2U);
  EXPECT_EQ(made.analysis.capture.start_ns, 1100);
  EXPECT_EQ(made.analysis.capture.duration_ns, 100);
  EXPECT_EQ(made.analysis.capture.window->why, "from 1.10 us to 1.20 us of 5.02 us");
  EXPECT_EQ(stage(made, "step").num_instances, 1);
  EXPECT_EQ(stage(made, "step").num_open, 0);
  EXPECT_EQ(stage(made, "step").kernel_ns, 70);
}

TEST(Window, CutsTheRangesAtItsEdges) {
  const Profile made = profile_of(steps_of(4, 0), times(1150, 1250), step_rules());
  EXPECT_EQ(stage(made, "step").num_instances, 2);
  EXPECT_EQ(stage(made, "step").num_open, 2) << "cut ones have no length";
  EXPECT_EQ(stage(made, "step").kernel_ns, 70);
  EXPECT_EQ(made.analysis.capture.unattributed_kernel_ns, 0)
      << "its call began before, in a step that goes on";
  EXPECT_EQ(made.analysis.capture.duration_ns, 100);
}

TEST(Window, EndsWithTheWorkThatBeginsInIt) {
  const Profile made = profile_of(steps_of(4, 0), times(1100, 1170), step_rules());
  EXPECT_EQ(made.trace->kernels.size(), 2U);
  EXPECT_EQ(made.analysis.capture.duration_ns, 100) << "the last kernel ends at 1200";
}

TEST(Window, OfStepsHasExactlyThose) {
  for (const std::int64_t lag : {0, 70, 250}) {
    const Profile made = profile_of(steps_of(10, lag), steps(3, 5), step_rules());
    EXPECT_EQ(stage(made, "step").num_instances, 3) << lag;
    EXPECT_EQ(stage(made, "step").num_kernels, 6) << lag;
    EXPECT_EQ(stage(made, "step").kernel_ns, 210) << lag;
    EXPECT_EQ(made.analysis.capture.window->why, "steps 3..5 of 10");
    EXPECT_EQ(made.analysis.capture.start_ns, 1300);
    EXPECT_EQ(made.analysis.capture.duration_ns, 300 + lag) << "with the work of the last step";
    // The GPU was busy with earlier steps: that work is there, and of no stage.
    EXPECT_EQ(made.analysis.capture.kernel_ns - 210, made.analysis.capture.unattributed_kernel_ns)
        << lag;
    EXPECT_GE(made.analysis.capture.unattributed_kernel_ns, lag / 100 * 70) << lag;
  }
}

// Two threads launch; the second marks steps of its own or, like autograd's, none.
Trace two_threads(bool are_both_marked) {
  TraceBuilder made;
  const std::uint16_t process = made.add_process();
  const std::uint32_t main = made.add_thread(process);
  const std::uint32_t other = made.add_thread(process);
  const std::uint32_t stream = made.add_stream(process, made.add_device());
  for (int i = 0; i < 4; ++i) {
    const std::int64_t start = 1000 + 100 * i;
    made.range(main, start, start + 90, "it#" + std::to_string(i));
    if (are_both_marked) {
      made.range(other, start + 45, start + 135, "it#" + std::to_string(i));
    }
    made.launch(main, start + 10, stream, start + 20, start + 50, "forward");
    made.launch(other, start + 50, stream, start + 60, start + 80, "backward");
  }
  return made.finish();
}

TEST(Window, AStepHoldsWhatAnyThreadOfItsProcessLaunches) {
  const Profile made = profile_of(two_threads(false), steps(1, 2), step_rules());
  EXPECT_EQ(stage(made, "step").num_instances, 2);
  EXPECT_EQ(stage(made, "step").kernel_ns, 2 * (30 + 20));
  EXPECT_EQ(made.analysis.capture.unattributed_kernel_ns, 0);
}

TEST(Window, StepsOfTwoThreadsHoldWhatTheirOwnThreadLaunches) {
  Trace trace = two_threads(true);
  const Profile made = profile(std::move(trace), step_rules());
  for (const StageInstance& instance : made.stages.instances) {
    EXPECT_FALSE(instance.is_process_wide);
  }
  EXPECT_EQ(stage(made, "step").kernel_ns, 4 * (30 + 20));
}

TEST(Window, OfStepsCountsThoseOfEachRank) {
  const Profile made = profile_of(steps_of(10, 40, 2), steps(8, 20), step_rules());
  EXPECT_EQ(made.stages.instances.size(), 4U);
  EXPECT_EQ(made.analysis.capture.window->why, "steps 8..9 of 10");
}

TEST(Window, StepsKeepTheirNumbers) {
  const Profile made = profile_of(steps_of(10, 40), steps(3, 5), step_rules());
  ASSERT_EQ(made.analysis.stage_steps.size(), 3U);
  EXPECT_EQ(made.analysis.stage_steps[0].number, 3U);
  EXPECT_EQ(made.analysis.stage_steps[2].number, 5U);
}

TEST(Window, SpansOfStepsAreReadInOnePlace) {
  const auto span = [](const char* text) {
    const std::optional<StepSpan> steps = parse_steps(text);
    return steps ? std::pair(steps->first, steps->last) : std::pair<std::int64_t, std::int64_t>();
  };
  EXPECT_EQ(span("10..20"), std::pair(std::int64_t{10}, std::int64_t{20}));
  EXPECT_EQ(span("10"), std::pair(std::int64_t{10}, std::int64_t{10}));
  EXPECT_EQ(span("10.."), std::pair(std::int64_t{10}, INT64_MAX));
  for (const char* wrong : {"", "..", "..5", "5..4", "-1..4", "a..b", "1...4", "1..4x"}) {
    EXPECT_FALSE(parse_steps(wrong)) << wrong;
  }
}

TEST(Window, BeyondTheEndIsNamedAsTyped) {
  const auto refusal = [](std::int64_t first, std::int64_t last) {
    try {
      profile_of(steps_of(10, 40), steps(first, last), step_rules());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  EXPECT_EQ(refusal(70, 80), "--steps 70..80: the recording has 10 steps");
  EXPECT_EQ(refusal(70, INT64_MAX), "--steps 70..: the recording has 10 steps");
  EXPECT_EQ(refusal(70, 70), "--steps 70: the recording has 10 steps");
}

TEST(Window, OfStepsCutsTheLoopAroundThem) {
  const Profile made =
      profile_of(steps_of(10, 40, 1, "loop"), steps(4, 5), rules_of({"decode=loop"}, {"it#*"}));
  EXPECT_EQ(stage(made, "step").num_instances, 2);
  EXPECT_EQ(stage(made, "decode").num_instances, 1);
  EXPECT_EQ(stage(made, "decode").num_open, 1);
}

TEST(Window, TrimmedToMarksOrKernels) {
  WindowOptions trim;
  trim.is_trimmed = true;
  const Profile marked = profile_of(steps_of(4, 30), trim, step_rules());
  EXPECT_EQ(marked.trace->kernels.size(), 8U) << "without load and save";
  EXPECT_EQ(marked.analysis.capture.start_ns, 1000);
  EXPECT_EQ(marked.analysis.capture.duration_ns, 430);
  const Profile bare = profile_of(steps_of(4, 30), trim, {});
  EXPECT_EQ(bare.trace->kernels.size(), 10U);
  EXPECT_EQ(bare.analysis.capture.start_ns, 10);
  EXPECT_EQ(bare.analysis.capture.duration_ns, 5010);
  EXPECT_EQ(bare.analysis.capture.unattributed_kernel_ns, 0)
      << "the first launch began before its kernel";
}

TEST(Window, ThatIsNotThereIsRefused) {
  const auto refused = [](const WindowOptions& options, const Rules& rules, const char* what,
                          const char* hint) {
    Trace trace = steps_of(4, 0);
    expect_error([&] { apply_window(options, rules, trace); }, ErrorKind::kUsage, HasSubstr(what),
                 HasSubstr(hint));
  };
  refused(steps(0, 1), {}, "--steps: the recording marks no steps", "--step 'ProfilerStep#*'");
  refused(steps(4, 9), step_rules(), "--steps 4..9: the recording has 4 steps", "from 0");
  refused(times(6000, 7000), {}, "--from 6.00 us: the recording lasts 5.02 us", "");
  refused(times(2000, 3000), {}, "no GPU work begins in the window (from 2.00 us to 3.00 us",
          "it begins 10 ns after the start of the capture and ends after 5.02 us");
  WindowOptions trim;
  trim.is_trimmed = true;
  Trace nothing;
  expect_error([&] { apply_window(trim, {}, nothing); }, ErrorKind::kUsage,
               HasSubstr("neither marks nor kernels"), "");
}

TEST(Window, IsSaidInOneWay) {
  WindowOptions options = times(5, 5);
  expect_error([&] { check_window(options); }, ErrorKind::kUsage,
               HasSubstr("--from 5 ns is not before --to 5 ns"), "");
  options = times(5, 6);
  check_window(options);
  options.is_trimmed = true;
  expect_error([&] { check_window(options); }, ErrorKind::kUsage, HasSubstr("--trim"),
               HasSubstr("choose one"));
}

// What a window by time leaves of two passes looks like a model with fewer layers.
TEST(Window, AFewPassesThatItCutsAreNoModel) {
  // From and to in 32nds of the recording, which has eight passes.
  const auto reason_of = [](std::int64_t from, std::int64_t to) {
    std::mt19937 random(7);
    ModelTraceOptions model;
    model.num_passes = 8;
    Trace trace = make_model_trace(model, random).trace;
    const Kernels& kernels = trace.kernels;
    const std::int64_t length = kernels.end_ns[kernels.size() - 1] - kernels.start_ns[0];
    apply_window(times(from * length / 32, to * length / 32), Rules(), trace);
    return profile(std::move(trace), rules_from(embedded_yaml("rules/kernels.yaml"),
                                                embedded_yaml("rules/stages.yaml")))
        .analysis.structure->reason;
  };
  int num_refused = 0;
  for (std::int64_t to = 7; to < 9; ++to) {
    const std::string reason = reason_of(2, to);
    EXPECT_NE(reason, "") << to;
    num_refused += reason.find("fewer than three passes") != std::string::npos ? 1 : 0;
  }
  EXPECT_GT(num_refused, 0);
  EXPECT_EQ(reason_of(1, 32), "");
}

// The laws of profile() hold in every window: ledgers sum, stages and `outside` sum.
TEST(Window, OfAnyKindKeepsTheLaws) {
  std::mt19937 random(7);
  const auto upto = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  for (int round = 0; round < 500; ++round) {
    const int num_steps = static_cast<int>(upto(6)) + 1;
    const std::int64_t lag = upto(300);
    const int num_ranks = static_cast<int>(upto(1)) + 1;
    const char* loop = upto(1) == 0 ? "loop" : nullptr;
    const Trace whole = steps_of(num_steps, lag, num_ranks, loop);
    const std::int64_t from = upto(1800);
    WindowOptions options = times(from, from + 1 + upto(2000));
    if (upto(2) == 0) {
      options = steps(upto(num_steps - 1), INT64_MAX);
    }
    Rules rules = step_rules();
    if (upto(1) == 0) {
      rules.stages.push_back({"", "loop", "decode"});
    }
    std::int64_t expected_ns = 0;
    Trace trace = steps_of(num_steps, lag, num_ranks, loop);
    try {
      apply_window(options, rules, trace);
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("no GPU work begins"));
      continue;
    }
    const Window window = *trace.capture.window;
    for (std::size_t row = 0; row < whole.kernels.size(); ++row) {
      const std::int64_t start = whole.kernels.start_ns[row];
      if (start >= window.start_ns() && start < window.end_ns()) {
        expected_ns += whole.kernels.end_ns[row] - start;
      }
    }
    const Profile made = profile(std::move(trace), rules);
    if (options.steps) {
      EXPECT_LE(made.analysis.capture.kernel_ns, expected_ns);
    } else {
      EXPECT_EQ(made.analysis.capture.kernel_ns, expected_ns);
    }
    for (const LedgerRow& row : made.analysis.ledgers) {
      EXPECT_EQ(row.sum_ns(), row.window_ns);
    }
    for (const StageInstance& instance : made.stages.instances) {
      EXPECT_GE(instance.start_ns, window.start_ns());
      EXPECT_LE(instance.start_ns, instance.end_ns);
    }
  }
}

}  // namespace
}  // namespace gpuwhy
