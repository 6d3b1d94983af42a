// SPDX-License-Identifier: Apache-2.0
//
// Selection of the time windows of a long recording that are shown in full detail.
//
// They show what a reader looks for: how a prefill runs, what a typical step looks like, and what
// was different in the slowest ones. A window extends to the end of the GPU work launched by its
// stage, because the GPU lags behind the host.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analysis/timeline/timeline.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

struct Chosen {
  std::uint32_t instance = 0;
  std::string label;
};

// Instances of a stage in time order, without those that never ended.
std::vector<std::uint32_t> instances_of(const Stages& stages, bool are_steps) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < stages.instances.size(); ++i) {
    const StageRole role = role_of(stages.names[stages.instances[i].stage]);
    const bool is_step = role == StageRole::kDecodeStep || role == StageRole::kStep ||
                         (stages.are_steps && role == StageRole::kDecode);
    if (!stages.instances[i].is_open && (are_steps ? is_step : role == StageRole::kPrefill)) {
      found.push_back(i);
    }
  }
  std::ranges::stable_sort(found, {},
                           [&](std::uint32_t one) { return stages.instances[one].start_ns; });
  return found;
}

// Typical and worst cases, the most telling ones first.
std::vector<Chosen> choose(const Trace& trace, const Stages& stages,
                           const std::vector<StepOnGpu>& step_windows) {
  const std::vector<std::uint32_t> numbers = number_steps(trace, stages);
  std::vector<std::int64_t> periods_ns(stages.instances.size());  // 0: there is none
  for (const StepOnGpu& window : step_windows) {
    std::int64_t& period_ns = periods_ns[window.instance];
    period_ns = std::max(period_ns, window.period_ns.value_or(0));
  }
  std::vector<Chosen> chosen;
  for (const bool are_steps : {false, true}) {
    const std::vector<std::uint32_t> all = instances_of(stages, are_steps);
    const bool has_periods =
        are_steps && std::ranges::any_of(all, [&](std::uint32_t i) { return periods_ns[i] > 0; });
    // Of one kind: a step without a period is not ranked among those that have one.
    const auto length_ns = [&](std::size_t place) {
      const StageInstance& instance = stages.instances[all[place]];
      return has_periods ? periods_ns[all[place]] : instance.end_ns - instance.start_ns;
    };
    std::vector<std::size_t> ranked;
    for (std::size_t place = 0; place < all.size(); ++place) {
      if (!has_periods || length_ns(place) > 0) {
        ranked.push_back(place);
      }
    }
    if (ranked.empty()) {
      continue;
    }
    const auto add = [&](std::size_t place, const char* why) {
      const std::size_t number = numbers[all[place]] == kNone ? place : numbers[all[place]];
      chosen.push_back(
          {all[place],
           fmt::format("{} {}{}", stages.names[stages.instances[all[place]].stage].text(), number,
                       why)});
    };
    // Stable: the choice among equally long instances does not depend on the sort.
    std::ranges::stable_sort(ranked, {}, length_ns);
    const std::size_t median = ranked[(ranked.size() - 1) / 2];
    if (!are_steps) {
      add(median, ", the median");
      continue;
    }
    const std::int64_t most_ns = length_ns(ranked.back());
    const std::size_t second = ranked[ranked.size() - std::min<std::size_t>(2, ranked.size())];
    if (most_ns > length_ns(median)) {
      add(ranked.back(), ", the slowest");
    }
    // Neighbours of the median show whether a typical step looks the same twice.
    add(median, ", the median");
    if (median + 1 < all.size()) {
      add(median + 1, ", after the median");
    }
    if (median > 0) {
      add(median - 1, ", before the median");
    }
    if (length_ns(second) > length_ns(median) && length_ns(second) < most_ns) {
      add(second, ", the second slowest");
    }
  }
  return chosen;
}

template <typename Visit>
void each_work(const Trace& trace, Visit visit) {
  const auto table = [&](const auto& work) {
    for (std::size_t i = 0; i < work.size(); ++i) {
      visit(work.start_ns[i], work.end_ns[i]);
    }
  };
  table(trace.kernels);
  table(trace.copies);
  table(trace.graphs);
}

// The end of the part of a window with at most `most` pieces of work.
std::int64_t end_with(const Trace& trace, const CloseUp& window, std::int64_t most) {
  std::vector<std::int64_t> starts;
  each_work(trace, [&](std::int64_t start_ns, std::int64_t end_ns) {
    if (start_ns < window.end_ns && end_ns > window.start_ns) {
      starts.push_back(start_ns);
    }
  });
  if (static_cast<std::int64_t>(starts.size()) <= most) {
    return window.end_ns;
  }
  const auto last = starts.begin() + most;
  std::nth_element(starts.begin(), last, starts.end());
  return std::max(*last, window.start_ns);
}

std::vector<CloseUp> middle_window(const Trace& trace, std::int64_t most_work) {
  std::vector<std::int64_t> starts;
  each_work(trace, [&](std::int64_t start_ns, std::int64_t) { starts.push_back(start_ns); });
  const auto size = static_cast<std::int64_t>(starts.size());
  if (size <= most_work) {
    return {};
  }
  const auto at = [&](std::int64_t place) {
    const auto nth = starts.begin() + std::clamp<std::int64_t>(place, 0, size - 1);
    std::nth_element(starts.begin(), nth, starts.end());
    return *nth;
  };
  return {{"the middle of the recording", at((size - most_work) / 2), at((size + most_work) / 2)}};
}

void reach_to_work(const Trace& trace, const Attribution& attribution,
                   const std::map<std::uint32_t, std::size_t>& place_of,
                   std::vector<CloseUp>& windows) {
  const auto reach = [&](const auto& work, const Origins& origins) {
    for (std::size_t i = 0; i < work.size(); ++i) {
      for (const std::uint32_t instance : {origins.instance[i], origins.nested[i]}) {
        const auto found = instance == kNone ? place_of.end() : place_of.find(instance);
        if (found != place_of.end()) {
          std::int64_t& end_ns = windows[found->second].end_ns;
          end_ns = std::max(end_ns, work.end_ns[i]);
        }
      }
    }
  };
  reach(trace.kernels, attribution.kernels);
  reach(trace.copies, attribution.copies);
  reach(trace.graphs, attribution.graphs);
}

}  // namespace

std::vector<CloseUp> telling_windows(const Trace& trace, const Stages& stages,
                                     const Attribution& attribution,
                                     const std::vector<StepOnGpu>& step_windows,
                                     std::int64_t most_work) {
  std::vector<CloseUp> windows;
  std::map<std::uint32_t, std::size_t> place_of;
  for (const Chosen& one : choose(trace, stages, step_windows)) {
    if (place_of.try_emplace(one.instance, windows.size()).second) {
      const StageInstance& instance = stages.instances[one.instance];
      windows.push_back({one.label, instance.start_ns, instance.end_ns});
    }
  }
  if (windows.empty()) {
    return middle_window(trace, most_work);
  }
  reach_to_work(trace, attribution, place_of, windows);
  std::int64_t left = most_work;
  std::vector<CloseUp> kept;
  for (CloseUp& window : windows) {
    std::int64_t num_work = 0;
    each_work(trace, [&](std::int64_t start_ns, std::int64_t end_ns) {
      num_work += start_ns < window.end_ns && end_ns > window.start_ns ? 1 : 0;
    });
    if (num_work > left / 2 && num_work > 0) {
      const std::int64_t end_ns = end_with(trace, window, left / 2);
      window.label += end_ns < window.end_ns ? " (its beginning)" : "";
      window.end_ns = end_ns;
      num_work = std::min(num_work, left / 2);
    }
    if (window.start_ns < window.end_ns) {
      left -= num_work;
      kept.push_back(window);
    }
  }
  return kept;
}

}  // namespace gpuwhy
