// SPDX-License-Identifier: Apache-2.0
//
// How long does each stage take? Every range of it counts alike, whichever process or thread marked
// it. Percentiles are exact: the lengths are sorted and one of them is named, never a value between
// two that nobody measured. A range that was never ended has no length, and enters no mean.
//
// Tokens a second are those of one stream: with requests on several threads at once the program as
// a whole is faster than that.
#include "capture/stage_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace llmprof {
namespace {

// Sums of what a file says must not overflow; hostile ones stop at the largest number.
std::int64_t add_bounded(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

std::int64_t percentile(const std::vector<std::int64_t>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

std::optional<std::int64_t> tokens_of(const TimedRange& range) {
  const auto payload = range.integer_payload();
  return payload && *payload >= 0 ? payload : std::nullopt;
}

struct Entered {
  StageSamples samples;
  std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
};
using EnteredStages = std::map<std::string, Entered>;

// `first_ns` is the first start of one of its names in a process: ranges come by start.
Entered* enter(EnteredStages& stages, const std::optional<std::string>& stage,
               std::int64_t first_ns) {
  if (!stage) {
    return nullptr;
  }
  Entered& entered = stages[*stage];
  entered.samples.stage = *stage;
  entered.first_ns = std::min(entered.first_ns, first_ns);
  return &entered;
}

std::vector<StageSamples> in_order(EnteredStages stages) {
  if (const auto step = stages.find("decode_step");
      step != stages.end() && !stages.contains("decode")) {
    step->second.samples.stage = "decode";
  }
  std::vector<Entered*> ordered;
  ordered.reserve(stages.size());
  for (auto& [stage, entered] : stages) {
    ordered.push_back(&entered);
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Entered* a, const Entered* b) { return a->first_ns < b->first_ns; });
  std::vector<StageSamples> samples;
  samples.reserve(ordered.size());
  for (Entered* const entered : ordered) {
    samples.push_back(std::move(entered->samples));
  }
  return samples;
}

}  // namespace

void StageSamples::add(std::optional<std::int64_t> duration_ns,
                       std::optional<std::int64_t> num_tokens) {
  if (!duration_ns) {
    ++num_open;
    return;
  }
  durations_ns.push_back(*duration_ns);
  if (num_tokens) {
    tokens = add_bounded(tokens.value_or(0), *num_tokens);
    tokens_ns = add_bounded(tokens_ns, *duration_ns);
  }
}

StageTime stage_time(StageSamples samples) {
  StageTime time;
  time.stage = std::move(samples.stage);
  time.num_open = samples.num_open;
  std::vector<std::int64_t>& durations = samples.durations_ns;
  time.n = durations.size();
  if (durations.empty()) {
    return time;
  }
  std::sort(durations.begin(), durations.end());
  double sum = 0;
  for (const std::int64_t duration : durations) {
    time.total_ns = add_bounded(time.total_ns, duration);
    sum += static_cast<double>(duration);
  }
  const double n = static_cast<double>(durations.size());
  const double mean = sum / n;
  time.mean_ns = mean;
  if (durations.size() > 1) {
    double squares = 0;
    for (const std::int64_t duration : durations) {
      squares += (static_cast<double>(duration) - mean) * (static_cast<double>(duration) - mean);
    }
    time.std_ns = std::sqrt(squares / (n - 1));
  }
  time.min_ns = durations.front();
  time.p50_ns = percentile(durations, 50);
  time.p99_ns = percentile(durations, 99);
  time.max_ns = durations.back();
  time.tokens = samples.tokens;
  if (samples.tokens && samples.tokens_ns > 0) {
    time.tokens_per_s =
        static_cast<double>(*samples.tokens) * 1e9 / static_cast<double>(samples.tokens_ns);
  }
  return time;
}

std::optional<std::string> marked_stage(std::string_view domain, std::string_view name) {
  if (domain != "LLM") {
    return std::nullopt;
  }
  if (name == "prefill" || name == "decode_step" || name == "request") {
    return std::string(name);
  }
  return name == "decode_all" ? std::optional<std::string>("decode") : std::nullopt;
}

std::vector<StageSamples> stage_samples(const TimedRun& run, const StageOf& stage_of) {
  EnteredStages stages;
  for (const TimedProcess& process : run.processes) {
    // A rule is asked once for each name of a process, not for each of its million ranges.
    std::map<std::pair<std::uint32_t, std::uint32_t>, Entered*> known;
    for (const TimedRange& range : process.ranges) {
      const auto [found, is_new] = known.try_emplace({range.domain, range.name}, nullptr);
      if (is_new) {
        found->second = enter(stages, stage_of(process.domain_of(range), process.name_of(range)),
                              range.start_ns);
      }
      if (found->second != nullptr) {
        found->second->samples.add(range.duration_ns(), tokens_of(range));
      }
    }
  }
  return in_order(std::move(stages));
}

std::vector<StageTime> stage_times(const TimedRun& run, const StageOf& stage_of) {
  std::vector<StageTime> times;
  for (StageSamples& samples : stage_samples(run, stage_of)) {
    times.push_back(stage_time(std::move(samples)));
  }
  return times;
}

}  // namespace llmprof
