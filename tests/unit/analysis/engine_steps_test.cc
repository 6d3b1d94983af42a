// SPDX-License-Identifier: Apache-2.0
//
// Steps of simulated engines against what is true of them, and laws that hold whatever a recording
// lacks.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>

#include "analysis/efficiency/latencies.h"
#include "analysis/engine_trace.h"
#include "analysis/profile.h"
#include "analysis/steps/steps.h"
#include "base/median.h"
#include "sanitizers.h"
#include "testing.h"

namespace gpuwhy {
namespace {

const Rules kRules = {{{"communication", {"nccl"}}}, {}};

std::string words_of(const EngineShape& shape) {
  return fmt::format(
      "depth {}, workers {}, replicas {}, steps {}, warm-up {}, mixed every {}, layers {}, prepare "
      "{} ns{}{}{}{}{}",
      shape.depth, shape.num_workers, shape.num_replicas, shape.num_steps, shape.num_warm_up,
      shape.mixed_every, shape.num_layers, shape.prepare_ns,
      shape.samples_after_marker ? ", samples after the marker" : "",
      shape.has_graphs ? ", graphs" : "", shape.is_sglang ? ", SGLang" : "",
      shape.has_startup ? ", start-up" : "", shape.has_idle_tail ? ", idle tail" : "");
}

std::vector<EngineShape> all_shapes() {
  std::vector<EngineShape> shapes;
  for (const int depth : {0, 1, 2}) {
    for (const int num_workers : {1, 2, 4, 8}) {
      for (const int num_replicas : {1, 2}) {
        for (const int mixed_every : {0, 3}) {
          for (unsigned flags = 0; flags < 16; ++flags) {
            EngineShape& shape = shapes.emplace_back();
            shape.depth = depth;
            shape.num_workers = num_workers;
            shape.num_replicas = num_replicas;
            shape.mixed_every = mixed_every;
            shape.samples_after_marker = (flags & 1U) != 0;
            shape.has_graphs = (flags & 2U) != 0;
            shape.is_sglang = (flags & 4U) != 0;
            shape.has_startup = shape.has_idle_tail = (flags & 8U) != 0;
          }
        }
      }
    }
  }
  return shapes;
}

// Steps of a group in time order.
std::vector<StageStep> steps_of(const Analysis& analysis, std::uint32_t group) {
  std::vector<StageStep> steps;
  std::copy_if(analysis.stage_steps.begin(), analysis.stage_steps.end(), std::back_inserter(steps),
               [&](const StageStep& step) { return step.group == group; });
  std::sort(steps.begin(), steps.end(),
            [](const StageStep& a, const StageStep& b) { return a.start_ns < b.start_ns; });
  return steps;
}

void expect_steps(const Analysis& analysis, const Replica& replica, std::uint32_t group) {
  EXPECT_EQ((*analysis.rank_groups)[group].pids, replica.pids);
  EXPECT_EQ((*analysis.rank_groups)[group].devices, replica.devices);
  const std::vector<StageStep> steps = steps_of(analysis, group);
  ASSERT_EQ(steps.size(), replica.steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    SCOPED_TRACE(fmt::format("step {}", i));
    const EngineStep& truth = replica.steps[i];
    EXPECT_EQ(analysis.stages[steps[i].stage].stage.text(), truth.stage);
    EXPECT_EQ(steps[i].start_ns, truth.host_start_ns);
    EXPECT_EQ(steps[i].duration_ns, truth.host_end_ns - truth.host_start_ns);
    EXPECT_EQ(steps[i].gpu_start_ns, truth.gpu_start_ns);
    EXPECT_EQ(steps[i].gpu_window_ns, truth.gpu_window_ns);
    EXPECT_EQ(steps[i].gpu_work_ns, truth.gpu_work_ns);
    EXPECT_EQ(steps[i].period_ns, truth.period_ns);
    EXPECT_EQ(steps[i].tokens, truth.tokens);
    EXPECT_EQ(steps[i].sequences, truth.sequences);
  }
}

// Time per token and tokens per second, of decode steps after warm-up that a decode step follows.
void expect_latencies(const Analysis& analysis, const std::vector<Replica>& replicas) {
  std::vector<std::int64_t> periods;
  double tokens_per_s = 0;
  for (const Replica& replica : replicas) {
    std::int64_t tokens = 0;
    std::int64_t time_ns = 0;
    for (std::size_t i = 0; i + 1 < replica.steps.size(); ++i) {
      const EngineStep& step = replica.steps[i];
      if (!step.is_warm_up && step.stage == "decode" && replica.steps[i + 1].stage == "decode") {
        periods.push_back(*step.period_ns);
        tokens += step.tokens;
        time_ns += *step.period_ns;
      }
    }
    tokens_per_s += static_cast<double>(tokens) * 1e9 / static_cast<double>(time_ns);
  }
  const Latencies latencies = latencies_of(analysis);
  EXPECT_EQ(latencies.tpot.reason, "");
  EXPECT_EQ(latencies.tpot.n, static_cast<std::int64_t>(periods.size()));
  EXPECT_EQ(latencies.tpot.p50_ns, lower_median(periods));
  ASSERT_TRUE(latencies.decode_tokens_per_s);
  EXPECT_NEAR(*latencies.decode_tokens_per_s, tokens_per_s, tokens_per_s * 1e-9);
}

TEST(EngineSteps, OfEveryShapeAreExact) {
  for (const EngineShape& shape : all_shapes()) {
    SCOPED_TRACE(words_of(shape));
    EngineTrace made = make_engine_trace(shape);
    const Analysis analysis = profile(std::move(made.trace), kRules).analysis;
    ASSERT_EQ(analysis.rank_groups->size(), made.replicas.size());
    std::int64_t num_kernels = 0;
    for (std::uint32_t group = 0; group < made.replicas.size(); ++group) {
      expect_steps(analysis, made.replicas[group], group);
      for (const EngineStep& step : made.replicas[group].steps) {
        num_kernels += step.num_kernels;
      }
    }
    std::int64_t num_instances = 0;
    for (const StageRow& stage : analysis.stages) {
      num_instances += stage.num_instances;
      num_kernels -= stage.num_kernels;
    }
    EXPECT_EQ(num_instances, shape.num_steps * shape.num_replicas) << "each step counts once";
    EXPECT_EQ(num_kernels, 0) << "a step has all of its kernels, and no others";
    expect_latencies(analysis, made.replicas);
    if (HasFailure()) {
      return;  // one shape at a time
    }
  }
}

// The n-th marks of two ranks are then not of one step.
TEST(EngineSteps, ARankWithoutItsFirstMarkIsInStep) {
  for (const int num_workers : {2, 4}) {
    EngineShape shape;
    shape.num_workers = num_workers;
    shape.lacks_first_marker = true;
    EngineTrace made = make_engine_trace(shape);
    const Analysis analysis = profile(std::move(made.trace), kRules).analysis;
    ASSERT_EQ(analysis.rank_groups->size(), 1U);
    Replica& replica = made.replicas[0];
    // Of the first step, what that rank did is not known.
    const std::vector<StageStep> steps = steps_of(analysis, 0);
    ASSERT_EQ(steps.size(), replica.steps.size());
    replica.steps[0].gpu_window_ns = *steps[0].gpu_window_ns;
    replica.steps[0].gpu_work_ns = *steps[0].gpu_work_ns;
    expect_steps(analysis, replica, 0);
  }
}

// What the simulation is for: a host that runs ahead has marks far shorter than its steps.
TEST(EngineSteps, AHostThatRunsAheadMarksLessThanAStep) {
  for (const int depth : {0, 1, 2}) {
    EngineShape shape;
    shape.depth = depth;
    const std::vector<EngineStep> steps = make_engine_trace(shape).replicas[0].steps;
    for (std::size_t i = 4; i + 1 < steps.size(); ++i) {
      const std::int64_t host_ns = steps[i].host_end_ns - steps[i].host_start_ns;
      EXPECT_EQ(host_ns > steps[i].gpu_work_ns, depth == 0);
      // The step that the GPU runs when this one is marked.
      const auto running = std::count_if(steps.begin(), steps.end(), [&](const EngineStep& step) {
        return step.gpus[0].end_ns <= steps[i].host_start_ns;
      });
      EXPECT_EQ(static_cast<std::int64_t>(i) - running, depth);
    }
  }
}

void expect_sums(const Profile& found) {
  const Analysis& analysis = found.analysis;
  // A mark may begin before the first recorded call, and end after the last.
  std::int64_t start_ns = analysis.capture.start_ns;
  std::int64_t end_ns = start_ns + analysis.capture.duration_ns;
  for (const StageInstance& mark : found.stages.instances) {
    start_ns = std::min(start_ns, mark.start_ns);
    end_ns = std::max(end_ns, mark.end_ns);
  }
  std::map<std::string, std::int64_t> staged_ns;  // by device
  for (const LedgerRow& row : analysis.ledgers) {
    ASSERT_EQ(row.sum_ns(), row.window_ns);
    ASSERT_GE(*std::min_element(row.buckets_ns.begin(), row.buckets_ns.end()), 0);
    if (std::any_of(analysis.stages.begin(), analysis.stages.end(),
                    [&](const StageRow& stage) { return stage.stage == row.stage; })) {
      staged_ns[row.device] += row.window_ns;
    }
  }
  for (const auto& [device, window_ns] : staged_ns) {
    ASSERT_LE(window_ns, end_ns - start_ns) << device;
  }
  std::int64_t kernel_ns = analysis.capture.unattributed_kernel_ns;
  for (const StageRow& stage : analysis.stages) {
    kernel_ns += stage.kernel_ns;
  }
  ASSERT_EQ(kernel_ns, analysis.capture.kernel_ns);
  std::int64_t calls = 0;
  for (const KernelRow& kernel : analysis.kernels) {
    calls += kernel.calls;
  }
  ASSERT_EQ(calls, static_cast<std::int64_t>(found.trace->kernels.size()));
  for (const DeviceRow& device : analysis.devices) {
    ASSERT_LE(device.busy_ns, analysis.capture.duration_ns);
  }
  ASSERT_GE(analysis.capture.outside_stages_ns, 0);
  ASSERT_LE(analysis.capture.outside_stages_ns, analysis.capture.duration_ns);
}

// Marks by process, none twice: what a group's steps are counted by.
void expect_counts(const Profile& found) {
  const Trace& trace = *found.trace;
  const Analysis& analysis = found.analysis;
  std::map<std::int64_t, std::int64_t> marks;  // by pid
  for (std::size_t row = 0; row < trace.ranges.size(); ++row) {
    ++marks[trace.processes[trace.threads[trace.ranges.thread[row]].process].pid];
  }
  std::set<std::int64_t> pids;
  std::int64_t num_steps = 0;
  for (const RankGroupSummary& group : *analysis.rank_groups) {
    ASSERT_EQ(group.num_steps, marks[group.pids.front()]);
    num_steps += group.num_steps;
    for (const std::int64_t pid : group.pids) {
      ASSERT_TRUE(pids.insert(pid).second) << "a process is in two groups";
    }
  }
  if (!marks.empty()) {
    ASSERT_EQ(pids.size(), marks.size());
    ASSERT_EQ(static_cast<std::int64_t>(analysis.stage_steps.size()), num_steps);
  }
}

void expect_times(const Analysis& analysis) {
  for (const StageStep& step : analysis.stage_steps) {
    ASSERT_EQ(step.gpu_start_ns.has_value(), step.gpu_work_ns.has_value());
    ASSERT_EQ(step.gpu_start_ns.has_value(), step.gpu_window_ns.has_value());
    if (step.gpu_start_ns) {
      ASSERT_GE(*step.gpu_work_ns, 0);
      ASSERT_LE(*step.gpu_window_ns, analysis.capture.duration_ns);
    }
    ASSERT_TRUE(!step.period_ns || (*step.period_ns > 0 && step.gpu_start_ns));
  }
  const Latencies latencies = latencies_of(analysis);
  if (latencies.tpot.n == 0) {
    ASSERT_NE(latencies.tpot.reason, "");
    return;
  }
  std::vector<std::int64_t> work_ns;
  for (const StageStep& step : analysis.stage_steps) {
    if (step.is_steady && step.is_before_same && step.period_ns) {
      work_ns.push_back(*step.gpu_work_ns);
    }
  }
  ASSERT_GE(latencies.tpot.p50_ns, lower_median(work_ns).value_or(0));
}

TEST(EngineSteps, TenThousandFlawedRecordingsKeepTheLaws) {
  std::mt19937 random(20261116);
  std::int64_t num_grouped = 0;
  std::int64_t num_timed = 0;
  constexpr int kRecordings = num_random_inputs(10'000);
  for (int i = 0; i < kRecordings; ++i) {
    const EngineShape shape = random_engine(random);
    SCOPED_TRACE(fmt::format("recording {}: {}", i, words_of(shape)));
    const Profile found = profile(make_engine_trace(shape, &random).trace, kRules);
    expect_sums(found);
    expect_counts(found);
    expect_times(found.analysis);
    if (HasFatalFailure()) {
      return;
    }
    for (const RankGroupSummary& group : *found.analysis.rank_groups) {
      num_grouped += group.pids.size() > 1 ? 1 : 0;
    }
    num_timed += latencies_of(found.analysis).tpot.n > 0 ? 1 : 0;
  }
  EXPECT_GT(num_grouped, kRecordings / 10) << "groups are too rare to prove anything";
  EXPECT_GT(num_timed, kRecordings / 5) << "times per token are too rare to prove anything";
}

}  // namespace
}  // namespace gpuwhy
