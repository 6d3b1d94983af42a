// SPDX-License-Identifier: Apache-2.0
//
// Sets of runs before they are compared: each run once, and the times that may decide.
//
// Reports and comparisons give one time of a step: see step_time(). Two times look like speed and
// are not. Marks of an engine that runs ahead of the GPU end before
// the work does, so there the distance of steps or their time on the GPU decides. The length of a
// recording that a clock ended is the clock's, so there the time for the same work decides.
//
// What this gets wrong: the same work is that of the same kernels. Where most of them were
// replaced, nothing decides, and the verdict says so.
#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "compare/compare.h"

namespace gpuwhy {
namespace {

using Runs = std::vector<RunSummary*>;  // of both sides, those of the base first

RunMetric* metric_of(RunSummary& run, const std::string& key) {
  const auto found = std::ranges::find(run.metrics, key, &RunMetric::key);
  return found == run.metrics.end() ? nullptr : &*found;
}

bool all_have(const Runs& runs, const std::string& key) {
  return std::ranges::all_of(runs,
                             [&](RunSummary* run) { return metric_of(*run, key) != nullptr; });
}

bool is_gated(const Runs& runs, const std::string& key) {
  return std::ranges::any_of(runs, [&](RunSummary* run) {
    const RunMetric* metric = metric_of(*run, key);
    return metric != nullptr && metric->is_gated;
  });
}

void set_gated(const Runs& runs, const std::string& key, bool is_gated) {
  for (RunSummary* run : runs) {
    if (RunMetric* metric = metric_of(*run, key)) {
      metric->is_gated = is_gated;
    }
  }
}

// A stage is judged by the time of a step that reports give, where all runs have the same kind of
// it.
void judge_by_step(const Runs& runs) {
  std::map<std::string, std::string> key_of_stage;  // empty: runs differ
  for (const RunSummary* run : runs) {
    for (const ComparedStage& stage : run->stages) {
      const auto [known, is_new] = key_of_stage.try_emplace(stage.stage.text(), stage.step_key);
      known->second = is_new || known->second == stage.step_key ? stage.step_key : "";
    }
  }
  for (const auto& [stage, key] : key_of_stage) {
    const std::string of_marks = fmt::format("stages[stage={}].host_median_ns", stage);
    if (!key.empty() && is_gated(runs, of_marks) && all_have(runs, key)) {
      set_gated(runs, of_marks, false);
      set_gated(runs, key, true);
    }
  }
}

// A time that no run has decides nothing.
void drop_zeros(const Runs& runs) {
  std::map<std::string, bool> is_zero;  // in all runs
  for (const RunSummary* run : runs) {
    for (const RunMetric& metric : run->metrics) {
      const auto known = is_zero.try_emplace(metric.key, true).first;
      known->second = known->second && metric.value == 0;
    }
  }
  for (const auto& [key, is_zero_everywhere] : is_zero) {
    if (is_zero_everywhere && is_gated(runs, key)) {
      set_gated(runs, key, false);
    }
  }
}

// Steps of a stage are judged by their distance if every run has one, else by their time on the
// GPU.
void judge_on_gpu(const Runs& runs, const std::string& stage) {
  const std::string period = fmt::format("steps[stage={}].period_median_ns", stage);
  const std::string window = fmt::format("steps[stage={}].gpu_window_median_ns", stage);
  for (const std::string& of_marks : {fmt::format("stages[stage={}].host_median_ns", stage),
                                      fmt::format("baseline[stage={}].p50_ns", stage)}) {
    if (is_gated(runs, of_marks)) {
      set_gated(runs, of_marks, false);
      set_gated(runs, all_have(runs, period) ? period : window, true);
    }
  }
}

// The time in which each run would have done the work of the first; false if the kernels do not
// tell.
bool add_pace(const Runs& runs) {
  std::vector<double> times_ns;
  for (const RunSummary* run : runs) {
    const std::optional<double> ratio = work_ratio(*runs.front(), *run);
    if (!ratio || !(*ratio > 0)) {
      return false;
    }
    times_ns.push_back(static_cast<double>(run->recording_ns) / *ratio);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i]->metrics.insert(runs[i]->metrics.begin(),
                            {kPaceKey, "ns", times_ns[i], false, true, ""});
  }
  return true;
}

bool has_other_gate(const Runs& runs) {
  return std::ranges::any_of(runs.front()->metrics, [&](const RunMetric& metric) {
    return metric.is_gated && metric.key != kLengthKey && all_have(runs, metric.key);
  });
}

}  // namespace

std::vector<RunSummary> distinct_runs(std::vector<RunSummary> runs,
                                      std::vector<RepeatedRun>& repeated) {
  std::vector<RunSummary> distinct;
  for (RunSummary& run : runs) {
    const auto before = std::ranges::find_if(distinct, [&](const RunSummary& one) {
      return !one.identity.empty() && one.identity == run.identity;
    });
    if (before == distinct.end()) {
      distinct.push_back(std::move(run));
    } else {
      repeated.push_back({run.label, before->label});
    }
  }
  return distinct;
}

std::string choose_deciding_times(std::vector<RunSummary>& base,
                                  std::vector<RunSummary>& candidate) {
  Runs runs;
  for (std::vector<RunSummary>* side : {&base, &candidate}) {
    std::ranges::transform(*side, std::back_inserter(runs), [](RunSummary& run) { return &run; });
  }
  drop_zeros(runs);
  judge_by_step(runs);
  std::vector<std::string> ahead;
  for (const RunSummary* run : runs) {
    for (const ComparedStage& stage : run->stages) {
      if (stage.is_host_ahead && std::ranges::count(ahead, stage.stage.text()) == 0) {
        ahead.push_back(stage.stage.text());
      }
    }
  }
  for (const std::string& stage : ahead) {
    judge_on_gpu(runs, stage);
  }
  const bool is_same_work = std::ranges::all_of(
      runs, [&](const RunSummary* run) { return run->launches == runs.front()->launches; });
  if (!is_gated(runs, kLengthKey) || is_same_work || !are_equally_long(base, candidate)) {
    return "";
  }
  if (add_pace(runs) || has_other_gate(runs)) {
    set_gated(runs, kLengthKey, false);
    return "";
  }
  return "the recordings are equally long, a clock ended them, and most of their kernels differ; name "
         "a range that repeats (--step NAME)";
}

}  // namespace gpuwhy
