// SPDX-License-Identifier: Apache-2.0
//
// Stage times with their spread, without a profiler and under one.
//
// A percentile is the smallest duration that at least that share of the instances does not exceed:
// always a duration that occurred, never an interpolated one.
#include "analysis/stages/stage_times.h"

#include <algorithm>
#include <cmath>

namespace gpuwhy {
namespace {

std::int64_t percentile(const std::vector<std::int64_t>& sorted, std::size_t percent) {
  const std::size_t rank = (sorted.size() * percent + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

std::optional<double> deviation(const std::vector<std::int64_t>& values, double mean) {
  if (values.size() < 2) {
    return std::nullopt;
  }
  double sum = 0;
  for (const std::int64_t value : values) {
    const double distance = static_cast<double>(value) - mean;
    sum += distance * distance;
  }
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

void fill(std::vector<std::int64_t> durations, std::int64_t first_ns, std::int64_t tokens_ns,
          StageTimes& times) {
  times.n = static_cast<std::int64_t>(durations.size());
  for (const std::int64_t duration : durations) {
    // Times of a hostile file may lie centuries apart.
    if (__builtin_add_overflow(times.total_ns, duration, &times.total_ns)) {
      times.total_ns = INT64_MAX;
      break;
    }
  }
  const auto n = static_cast<double>(durations.size());
  times.mean_ns = static_cast<double>(times.total_ns) / n;
  if (durations.size() > 1) {
    times.steady_mean_ns = static_cast<double>(times.total_ns - first_ns) / (n - 1);
  }
  std::ranges::sort(durations);
  times.std_ns = deviation(durations, times.mean_ns);  // sorted: the same digits in any order
  times.min_ns = durations.front();
  times.max_ns = durations.back();
  times.p50_ns = percentile(durations, 50);
  times.p99_ns = percentile(durations, 99);
  if (times.tokens && tokens_ns > 0) {
    times.tokens_per_s = static_cast<double>(*times.tokens) * 1e9 / static_cast<double>(tokens_ns);
  }
}

// Mean of the instances that the overhead compares, and the relative error of that mean; nullopt:
// too few instances to know it.
struct Compared {
  double mean_ns = 0;
  std::int64_t n = 0;
  std::optional<double> error;
};

Compared compared(const StageTimes& times, bool is_steady) {
  constexpr std::int64_t kLeast = 3;
  Compared result = {is_steady ? *times.steady_mean_ns : times.mean_ns,
                     times.n - (is_steady ? 1 : 0), std::nullopt};
  if (!times.std_ns || result.n < kLeast || result.mean_ns <= 0) {
    return result;
  }
  const auto all = static_cast<double>(times.n);
  const auto n = static_cast<double>(result.n);
  double squares = *times.std_ns * *times.std_ns * (all - 1) + times.mean_ns * times.mean_ns * all;
  if (is_steady) {
    const double first_ns = static_cast<double>(times.total_ns) - result.mean_ns * n;
    squares -= first_ns * first_ns;
  }
  const double variance = std::max(squares - result.mean_ns * result.mean_ns * n, 0.0) / (n - 1);
  result.error = std::sqrt(variance / n) / result.mean_ns;
  return result;
}

// Student's t for an interval of 95 %: Fisher's series, 1 % too small at two degrees of freedom.
double students_t(double degrees) {
  return 1.96 + 2.372 / degrees + 2.822 / std::pow(degrees, 2) + 2.556 / std::pow(degrees, 3) +
         1.6 / std::pow(degrees, 4);
}

// Of the ratio of two means, on the scale of logarithms.
void measure(const Compared& without, const Compared& with, StageOverhead& overhead) {
  if (!without.error || !with.error) {
    overhead.reason = "too few instances to know how much they differ by themselves";
    return;
  }
  const double ratio = with.mean_ns / without.mean_ns;
  const double reach = std::exp(students_t(static_cast<double>(std::min(without.n, with.n) - 1)) *
                                std::hypot(*without.error, *with.error));
  if (ratio * reach < 1) {
    overhead.reason = "shorter under the profiler: the passes differ by more than it adds";
    return;
  }
  overhead.fraction = ratio - 1;
  overhead.low_fraction = ratio / reach - 1;
  overhead.high_fraction = ratio * reach - 1;
}

}  // namespace

std::vector<StageTimes> time_stages(const Stages& stages) {
  std::vector<StageTimes> all(stages.names.size());
  std::vector<std::vector<std::int64_t>> durations(stages.names.size());
  std::vector<std::pair<std::int64_t, std::int64_t>> first(stages.names.size(), {INT64_MAX, 0});
  std::vector<std::int64_t> tokens_ns(stages.names.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].stage = stages.names[i];
  }
  for (const StageInstance& instance : stages.instances) {
    // An open instance has no duration; only those with a token count enter tokens per second.
    StageTimes& times = all[instance.stage];
    if (instance.is_open) {
      ++times.num_open;
      continue;
    }
    const std::int64_t duration = instance.end_ns - instance.start_ns;
    durations[instance.stage].push_back(duration);
    first[instance.stage] = std::min(first[instance.stage], {instance.start_ns, duration});
    if (instance.tokens) {
      times.tokens = times.tokens.value_or(0) + *instance.tokens;
      tokens_ns[instance.stage] += duration;
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!durations[i].empty()) {
      fill(std::move(durations[i]), first[i].second, tokens_ns[i], all[i]);
    }
  }
  return all;
}

StageTimes times_of_durations(std::vector<std::int64_t> durations) {
  StageTimes times;
  if (!durations.empty()) {
    const std::int64_t first_ns = durations.front();
    fill(std::move(durations), first_ns, 0, times);
  }
  return times;
}

std::vector<StageOverhead> overheads_of(const std::vector<StageTimes>& baseline,
                                        const std::vector<StageTimes>& profiled) {
  std::vector<StageOverhead> overheads;
  for (const StageTimes& without : baseline) {
    for (const StageTimes& with : profiled) {
      if (with.stage != without.stage || with.n == 0 || without.n == 0) {
        continue;
      }
      const bool is_steady = with.steady_mean_ns && without.steady_mean_ns;
      const Compared before = compared(without, is_steady);
      const Compared after = compared(with, is_steady);
      if (before.mean_ns > 0) {
        overheads.push_back({with.stage, before.mean_ns, after.mean_ns});
        measure(before, after, overheads.back());
      }
    }
  }
  return overheads;
}

}  // namespace gpuwhy
