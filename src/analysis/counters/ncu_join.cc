// SPDX-License-Identifier: Apache-2.0
//
// Join of Nsight Compute results to the launches of an nsys recording.
//
// nsys knows when, ncu knows why, in two runs of the program. A result is looked up among the
// launch groups by mangled name, then by normal forms of the name (kernel_match.cc), each coarser
// than the one before. Grid and block must agree if both sides have them, and the stage if ncu saw
// NVTX ranges. If several kernels share a key, it is ambiguous and nothing is attached: a wrong
// counter is worse than none.
//
// ncu serializes kernels, locks clocks and flushes caches before each pass, so its durations differ
// from the workload's by the slowdown, of which the locked clock explains the ratio of boost to
// clock. A remaining factor below 1.25 is insignificant; below 2 it is the cost of locked clocks
// and cold caches for a short kernel. Beyond that, or if the launches of the group differ more than
// that among themselves, confidence is low. A result outside the group's range (twice as fast as
// its fastest, four times slower than its slowest) was another problem size and is withheld. These
// factors are ours, chosen before there was a pair of recordings of one program to check them. They
// fail on kernels whose work depends on data.
#include "analysis/counters/ncu_join.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "analysis/analysis.h"
#include "analysis/counters/counter_roofline.h"
#include "analysis/counters/kernel_match.h"
#include "analysis/names/kernel_names.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

constexpr double kSameFactor = 1.25;
constexpr double kDisturbedFactor = 2;
constexpr double kFasterThanFastest = 2;
constexpr double kSlowerThanSlowest = 4;

// Confidence in a measurement that is another problem size than the recording's launches.
constexpr const char* kWithheld = "withheld";

// One profiled launch while it is joined.
struct Profiled {
  CounterRow row;
  RooflineInput input;
  GpuRoofs roofs;
  std::vector<std::size_t> groups;  // that it represents: into Analysis::launch_groups
};

using Index = std::unordered_map<std::string, std::vector<std::size_t>>;

bool is_same_shape(const CounterResult& result, const LaunchGroup& group) {
  if (!group.has_shape) {
    return true;
  }
  if (result.shape) {
    return *result.shape == group.shape;
  }
  const auto volume = [](const std::int32_t(&dims)[3]) {
    return static_cast<double>(dims[0]) * dims[1] * dims[2];
  };
  return (result.num_blocks == 0 ||
          static_cast<double>(result.num_blocks) == volume(group.shape.grid)) &&
         (result.threads_per_block == 0 ||
          static_cast<double>(result.threads_per_block) == volume(group.shape.block));
}

// The stage named by ncu's NVTX ranges, in the recording's terms; without a name if they name none.
RowName stage_of(const Counters& counters, const CounterResult& result) {
  for (const CounterRange& range : result.ranges) {
    const std::string_view name = counters.strings[range.name];
    if (counters.strings[range.domain] != "LLM") {
      continue;
    }
    RowName row = row_name(name);
    if (role_of(row) == StageRole::kPrefill) {
      return row;
    }
    if (name == "decode_all" || is_decode(row)) {
      return row_name("decode");
    }
  }
  return {};
}

// Whether ncu was asked for function names only. A full name that is not found must not be looked
// up by its function: Kernel2 of cutlass is a hundred kernels, and a recording may contain just one
// of them.
bool is_function_name(std::string_view name) {
  return name.find_first_of("<(") == std::string_view::npos;
}

// Indexes the launch groups under each form of their names.
class Joiner {
 public:
  Joiner(const Counters& counters, const Analysis& analysis)
      : counters_(counters), groups_(analysis.launch_groups) {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const LaunchGroup& group = groups_[i];
      if (!group.mangled_name.empty()) {
        by_mangled_[group.mangled_name].push_back(i);
      }
      by_name_[kernel_match_key(group.kernel_name)].push_back(i);
      by_bare_name_[bare_match_key(group.kernel_name)].push_back(i);
      by_function_[function_match_key(group.kernel_name)].push_back(i);
    }
  }

  void match(const CounterResult& result, Profiled& found) const {
    const std::string name(name_of(counters_, result));
    const std::string mangled(counters_.strings[result.mangled_name]);
    if (try_key(by_mangled_, mangled, "mangled name", result, found) ||
        try_key(by_name_, kernel_match_key(name), "name", result, found) ||
        try_key(by_bare_name_, bare_match_key(name), "bare name", result, found) ||
        (is_function_name(name) &&
         try_key(by_function_, function_match_key(name), "function name", result, found))) {
      return;
    }
    if (found.row.match_reason.empty()) {
      found.row.match_reason = "no kernel of the recording has this name";
    }
  }

 private:
  // True if decided, one way or the other.
  bool try_key(const Index& index, const std::string& key, const char* kind,
               const CounterResult& result, Profiled& found) const {
    const auto at = index.find(key);
    if (key.empty() || at == index.end()) {
      return false;
    }
    std::vector<std::size_t> same;
    std::set<std::string> names;
    for (const std::size_t i : at->second) {
      const LaunchGroup& group = groups_[i];
      if (is_same_shape(result, group) &&
          (found.row.stage.stage.empty() || group.stage == found.row.stage ||
           group.stage.kind == RowKind::kUnmarked)) {
        same.push_back(i);
        names.insert(group.kernel_name);
      }
    }
    if (same.empty()) {
      found.row.match_reason = found.row.stage.stage.empty()
                                   ? "the kernel ran, but never with this grid and block"
                                   : fmt::format(
                                         "the kernel ran, but never with this grid and block "
                                         "in {}",
                                         found.row.stage.text());
      return false;
    }
    if (names.size() > 1) {
      found.row.match = "ambiguous";
      found.row.match_reason =
          fmt::format("{} kernels of the recording may be this one", names.size());
      return true;
    }
    found.row.match = kind;
    found.row.match_reason.clear();
    found.groups = std::move(same);
    return true;
  }

  const Counters& counters_;
  const std::vector<LaunchGroup>& groups_;
  Index by_mangled_;
  Index by_name_;
  Index by_bare_name_;
  Index by_function_;
};

// The groups that a result represents, combined.
struct Together {
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  std::int64_t median_ns = 0;  // of the largest group
  std::int64_t min_ns = INT64_MAX;
  std::int64_t max_ns = 0;
  bool has_shape = true;
};

Together together(const std::vector<std::size_t>& indices, const std::vector<LaunchGroup>& groups) {
  Together all;
  for (const std::size_t i : indices) {
    const LaunchGroup& group = groups[i];
    all.median_ns = all.median_ns == 0 ? group.median_ns : all.median_ns;
    all.total_ns += group.total_ns;
    all.calls += group.calls;
    all.min_ns = std::min(all.min_ns, group.min_ns);
    all.max_ns = std::max(all.max_ns, group.max_ns);
    all.has_shape = all.has_shape && group.has_shape;
  }
  return all;
}

// At most what the nearest ceiling leaves, and never all of a launch: even an empty kernel takes
// about a microsecond.
double winnable_of(const Together& group, double sol_fraction) {
  constexpr double kShortestLaunchNs = 1000;
  const auto total_ns = static_cast<double>(group.total_ns);
  const double below_roof_ns = total_ns * (1 - sol_fraction);
  const double above_shortest_ns = total_ns - static_cast<double>(group.calls) * kShortestLaunchNs;
  return std::max(0.0, std::min(below_roof_ns, above_shortest_ns));
}

double factor_between(double a, double b) {
  return a > 0 && b > 0 ? std::max(a / b, b / a) : INFINITY;
}

// Whether the measurement is valid for the launches, and why.
void judge(const Together& group, Profiled& profiled) {
  CounterRow& row = profiled.row;
  row.confidence = "low";
  // Locked clocks alone slow a kernel by as much.
  const std::optional<double>& boost_hz = profiled.roofs.boost_clock_hz;
  if (row.ncu_sm_clock_hz && boost_hz && *boost_hz > 0) {
    row.ncu_clock_fraction = std::min(*row.ncu_sm_clock_hz / *boost_hz, 1.0);
  }
  if (!row.ncu_duration_ns) {
    row.confidence_reason = "ncu recorded no duration to compare";
    return;
  }
  const double ncu_ns = *row.ncu_duration_ns;
  const auto median_ns = static_cast<double>(group.median_ns);
  if (group.median_ns > 0) {
    row.slowdown_under_ncu = ncu_ns / median_ns;
  }
  if (ncu_ns * kFasterThanFastest < static_cast<double>(group.min_ns) ||
      ncu_ns > static_cast<double>(group.max_ns) * kSlowerThanSlowest) {
    row.confidence = kWithheld;
    row.confidence_reason = fmt::format(
        "under ncu it took {:.1f} us, in the recording {:.1f} to {:.1f} us: another problem size",
        ncu_ns / 1e3, static_cast<double>(group.min_ns) / 1e3,
        static_cast<double>(group.max_ns) / 1e3);
    return;
  }
  // At the workload's clock it would take between this and the measured time.
  const double at_boost_ns = ncu_ns * row.ncu_clock_fraction.value_or(1);
  const double factor =
      median_ns >= at_boost_ns && median_ns <= ncu_ns
          ? 1
          : std::min(factor_between(ncu_ns, median_ns), factor_between(at_boost_ns, median_ns));
  const double spread =
      factor_between(static_cast<double>(group.min_ns), static_cast<double>(group.max_ns));
  row.confidence_reason = fmt::format("{:.2f} times as long under ncu as in the recording",
                                      row.slowdown_under_ncu.value_or(0));
  if (row.ncu_clock_fraction) {
    row.confidence_reason +=
        fmt::format(" at {:.0f} % of the boost clock", *row.ncu_clock_fraction * 100);
  }
  if (!group.has_shape && spread > kDisturbedFactor) {
    row.confidence_reason += "; the summary mixes launches of different shapes";
  } else if (spread > kDisturbedFactor * kDisturbedFactor) {
    row.confidence_reason += fmt::format("; its launches differ by a factor of {:.1f}", spread);
  } else if (factor <= kSameFactor) {
    row.confidence = "high";
  } else if (factor <= kDisturbedFactor) {
    row.confidence = "medium";
    row.confidence_reason += ", as locked clocks and flushed caches make it";
  }
}

// If several results represent one group, the one nearest to its median keeps it.
void settle_claims(const std::vector<LaunchGroup>& groups, std::vector<Profiled>& profiled) {
  std::unordered_map<std::size_t, std::pair<double, std::size_t>> best;
  for (std::size_t k = 0; k < profiled.size(); ++k) {
    for (const std::size_t group : profiled[k].groups) {
      const double distance = factor_between(profiled[k].row.ncu_duration_ns.value_or(0),
                                             static_cast<double>(groups[group].median_ns));
      const auto [at, is_new] = best.try_emplace(group, distance, k);
      if (!is_new && distance < at->second.first) {
        at->second = {distance, k};
      }
    }
  }
  for (std::size_t k = 0; k < profiled.size(); ++k) {
    const std::size_t before = profiled[k].groups.size();
    std::erase_if(profiled[k].groups,
                  [&](std::size_t group) { return best.at(group).second != k; });
    if (before > 0 && profiled[k].groups.empty()) {
      profiled[k].row.match_reason =
          "another result of the same launches is nearer to their median";
    }
  }
}

std::vector<StageCoverage> coverage_of(const Analysis& analysis) {
  std::vector<StageCoverage> rows;
  StageCoverage whole{"total", 0, analysis.capture.kernel_ns};
  for (const LaunchGroup& group : analysis.launch_groups) {
    const std::string& stage = group.stage.text();
    auto row = std::ranges::find(rows, stage, &StageCoverage::stage);
    if (row == rows.end()) {
      row = rows.insert(rows.end(), StageCoverage{stage, 0, 0});
    }
    const std::int64_t covered_ns = group.counters ? group.total_ns : 0;
    row->kernel_ns += group.total_ns;
    row->covered_ns += covered_ns;
    whole.covered_ns += covered_ns;
  }
  rows.push_back(whole);
  return rows;
}

// A row of the kernel table gets the bound of the result that covers most of its time.
void mark_kernels(Analysis& analysis) {
  std::map<std::tuple<std::string_view, RowName, std::string_view>, KernelRow*> rows;
  for (KernelRow& row : analysis.kernels) {
    rows[{row.kernel_name, row.stage, row.device}] = &row;
  }
  for (const LaunchGroup& group : analysis.launch_groups) {  // by total time
    const auto at = rows.find({group.kernel_name, group.stage, group.gpu});
    if (!group.counters || at == rows.end()) {
      continue;
    }
    KernelRow& row = *at->second;
    row.covered_ns += group.total_ns;
    if (row.bound.empty()) {
      const std::string& bound = analysis.counters->kernels[*group.counters].bound;
      row.bound = bound.empty() ? bound_name(BoundBy::kUnknown) : bound;
    }
  }
}

// ncu shortens names beyond recognition; the recording's are complete.
void add_short_names(const std::vector<KernelRow>& kernels, std::vector<CounterRow>& rows) {
  std::map<std::string_view, std::string_view> recorded;
  for (const KernelRow& kernel : kernels) {
    recorded[kernel.kernel_name] = kernel.short_name;
  }
  std::set<std::string> distinct;
  for (const CounterRow& row : rows) {
    distinct.insert(row.kernel_name);
  }
  const std::map<std::string, std::string> short_names = short_names_of(distinct);
  for (CounterRow& row : rows) {
    const auto known = recorded.find(row.matched_kernel);
    row.short_name = known != recorded.end() ? known->second : short_names.at(row.kernel_name);
  }
}

// What the recording knows of a result, before it is joined.
Profiled profiled_of(const Counters& counters, const CounterResult& result,
                     const std::vector<GpuSpec>& gpus) {
  Profiled profiled{{}, roofline_input(counters, result), roofs_of(counters, result, gpus), {}};
  CounterRow& row = profiled.row;
  row.kernel_name = name_of(counters, result);
  row.stage = stage_of(counters, result);
  row.device_name = counters.strings[result.device_name];
  // Without a launch shape, grid and block stay empty.
  if (result.shape) {
    const auto& [grid, block] = *result.shape;
    row.grid = {grid[0], grid[1], grid[2]};
    row.block = {block[0], block[1], block[2]};
  }
  row.match = "none";
  row.ncu_duration_ns = profiled.input.duration_ns;
  row.ncu_sm_clock_hz = sm_clock_hz(counters, result);
  row.roofline = profiled.input;
  row.roofline.roof_source = profiled.roofs.source;
  return profiled;
}

// The launches that a result represents, whether it may, and what bounds them.
void complete_row(const Analysis& analysis, Profiled& profiled) {
  CounterRow& row = profiled.row;
  const Together group = together(profiled.groups, analysis.launch_groups);
  if (!profiled.groups.empty()) {
    row.matched_kernel = analysis.launch_groups[profiled.groups.front()].kernel_name;
    judge(group, profiled);
    if (row.confidence == kWithheld) {
      return;
    }
    // A summary's median is over all shapes and says nothing about this launch.
    if (group.has_shape) {
      profiled.input.workload_duration_ns = static_cast<double>(group.median_ns);
    }
    row.covered_ns = group.total_ns;
    row.covered_fraction = fraction_of(group.total_ns, analysis.capture.kernel_ns);
  }
  const Roofline judged = roofline(profiled.input, profiled.roofs);
  row.roofline = judged;
  row.bound = judged.bound == BoundBy::kUnknown ? "" : bound_name(judged.bound);
  row.bound_reason = judged.reason;
  if (const auto sol_fraction = judged.sol_fraction(); sol_fraction && !profiled.groups.empty()) {
    row.winnable_ns = winnable_of(group, *sol_fraction);
  }
}

}  // namespace

void join_counters(const Counters& counters, const std::vector<GpuSpec>& gpus, Analysis& analysis) {
  std::vector<Profiled> profiled;
  const Joiner joiner(counters, analysis);
  for (const CounterResult& result : counters.results) {
    if (!result.is_range) {  // counters of many launches represent none of them
      joiner.match(result, profiled.emplace_back(profiled_of(counters, result, gpus)));
    }
  }
  // Groups are settled before judging, so that no time is covered twice.
  settle_claims(analysis.launch_groups, profiled);
  for (Profiled& one : profiled) {
    complete_row(analysis, one);
  }
  std::stable_sort(profiled.begin(), profiled.end(), [](const Profiled& a, const Profiled& b) {
    return a.row.covered_ns > b.row.covered_ns;
  });
  CountersRow& joined = analysis.counters.emplace();
  joined.tool_version = counters.tool_version;
  joined.clock_control = counters.clock_control;
  for (Profiled& one : profiled) {
    for (const std::size_t group : one.groups) {
      if (one.row.covered_ns > 0) {
        analysis.launch_groups[group].counters = joined.kernels.size();
      }
    }
    joined.kernels.push_back(std::move(one.row));
  }
  add_short_names(analysis.kernels, joined.kernels);
  joined.coverage = coverage_of(analysis);
  mark_kernels(analysis);
  analysis.data_quality.insert(analysis.data_quality.end(), counters.diagnostics.begin(),
                               counters.diagnostics.end());
}

}  // namespace gpuwhy
