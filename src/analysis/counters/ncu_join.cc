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
#include "analysis/kernel_names.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

constexpr double kSameFactor = 1.25;
constexpr double kDisturbedFactor = 2;
constexpr double kFasterThanFastest = 2;
constexpr double kSlowerThanSlowest = 4;

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

  void match(const CounterResult& result, KernelCounters& found) const {
    const std::string name(name_of(counters_, result));
    const std::string mangled(counters_.strings[result.mangled_name]);
    if (try_key(by_mangled_, mangled, MatchKind::kMangled, result, found) ||
        try_key(by_name_, kernel_match_key(name), MatchKind::kName, result, found) ||
        try_key(by_bare_name_, bare_match_key(name), MatchKind::kBareName, result, found) ||
        (is_function_name(name) &&
         try_key(by_function_, function_match_key(name), MatchKind::kFunction, result, found))) {
      return;
    }
    if (found.match_reason.empty()) {
      found.match_reason = "no kernel of the recording has this name";
    }
  }

 private:
  // True if decided, one way or the other.
  bool try_key(const Index& index, const std::string& key, MatchKind kind,
               const CounterResult& result, KernelCounters& found) const {
    const auto at = index.find(key);
    if (key.empty() || at == index.end()) {
      return false;
    }
    std::vector<std::size_t> same;
    std::set<std::string> names;
    for (const std::size_t i : at->second) {
      const LaunchGroup& group = groups_[i];
      if (is_same_shape(result, group) &&
          (found.stage.stage.empty() || group.stage == found.stage ||
           group.stage.kind == RowKind::kUnmarked)) {
        same.push_back(i);
        names.insert(group.kernel_name);
      }
    }
    if (same.empty()) {
      found.match_reason = found.stage.stage.empty()
                               ? "the kernel ran, but never with this grid and block"
                               : fmt::format(
                                     "the kernel ran, but never with this grid and block "
                                     "in {}",
                                     found.stage.text());
      return false;
    }
    if (names.size() > 1) {
      found.match = MatchKind::kAmbiguous;
      found.match_reason = fmt::format("{} kernels of the recording may be this one", names.size());
      return true;
    }
    found.match = kind;
    found.match_reason.clear();
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

// SM clock under ncu: locked clocks alone slow a kernel by as much.
void compare_clocks(const KernelCounters& kernel, const std::optional<double>& clock_hz,
                    Representativeness& judged) {
  judged.ncu_clock_hz = clock_hz;
  const std::optional<double>& boost_hz = kernel.roofs.boost_clock_hz;
  if (clock_hz && boost_hz && *boost_hz > 0) {
    judged.clock_fraction = std::min(*clock_hz / *boost_hz, 1.0);
  }
}

Representativeness judge(const KernelCounters& kernel, const std::optional<double>& clock_hz,
                         const Together& group) {
  const RooflineInput& input = kernel.input;
  Representativeness judged;
  compare_clocks(kernel, clock_hz, judged);
  if (!input.duration_ns) {
    judged.reason = "ncu recorded no duration to compare";
    return judged;
  }
  const double ncu_ns = *input.duration_ns;
  judged.slowdown = group.median_ns > 0
                        ? std::optional(ncu_ns / static_cast<double>(group.median_ns))
                        : std::nullopt;
  if (ncu_ns * kFasterThanFastest < static_cast<double>(group.min_ns) ||
      ncu_ns > static_cast<double>(group.max_ns) * kSlowerThanSlowest) {
    judged.confidence = JoinConfidence::kWithheld;
    judged.reason = fmt::format(
        "under ncu it took {:.1f} us, in the recording {:.1f} to {:.1f} us: another problem size",
        ncu_ns / 1e3, static_cast<double>(group.min_ns) / 1e3,
        static_cast<double>(group.max_ns) / 1e3);
    return judged;
  }
  // At the workload's clock it would take between this and the measured time.
  const double at_boost_ns = ncu_ns * judged.clock_fraction.value_or(1);
  const auto median_ns = static_cast<double>(group.median_ns);
  const double factor =
      median_ns >= at_boost_ns && median_ns <= ncu_ns
          ? 1
          : std::min(factor_between(ncu_ns, median_ns), factor_between(at_boost_ns, median_ns));
  const double spread =
      factor_between(static_cast<double>(group.min_ns), static_cast<double>(group.max_ns));
  judged.reason = fmt::format("{:.2f} times as long under ncu as in the recording",
                              judged.slowdown.value_or(0));
  if (judged.clock_fraction) {
    judged.reason += fmt::format(" at {:.0f} % of the boost clock", *judged.clock_fraction * 100);
  }
  if (!group.has_shape && spread > kDisturbedFactor) {
    judged.reason += "; the summary mixes launches of different shapes";
  } else if (spread > kDisturbedFactor * kDisturbedFactor) {
    judged.reason += fmt::format("; its launches differ by a factor of {:.1f}", spread);
  } else if (factor <= kSameFactor) {
    judged.confidence = JoinConfidence::kHigh;
  } else if (factor <= kDisturbedFactor) {
    judged.confidence = JoinConfidence::kMedium;
    judged.reason += ", as locked clocks and flushed caches make it";
  }
  return judged;
}

// If several results represent one group, the one nearest to its median keeps it.
void settle_claims(const std::vector<LaunchGroup>& groups, std::vector<KernelCounters>& kernels) {
  std::unordered_map<std::size_t, std::pair<double, std::size_t>> best;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    for (const std::size_t group : kernels[k].groups) {
      const double distance = factor_between(kernels[k].input.duration_ns.value_or(0),
                                             static_cast<double>(groups[group].median_ns));
      const auto [at, is_new] = best.try_emplace(group, distance, k);
      if (!is_new && distance < at->second.first) {
        at->second = {distance, k};
      }
    }
  }
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::size_t before = kernels[k].groups.size();
    std::erase_if(kernels[k].groups, [&](std::size_t group) { return best.at(group).second != k; });
    if (before > 0 && kernels[k].groups.empty()) {
      kernels[k].match_reason = "another result of the same launches is nearer to their median";
    }
  }
}

std::vector<StageCoverage> coverage_of(const Analysis& analysis,
                                       const std::vector<KernelCounters>& kernels) {
  std::vector<StageCoverage> rows;
  StageCoverage whole{"total", 0, analysis.capture.kernel_ns};
  const auto row_of = [&](const std::string& stage) -> StageCoverage& {
    const auto at = std::find_if(rows.begin(), rows.end(),
                                 [&](const StageCoverage& row) { return row.stage == stage; });
    return at != rows.end() ? *at : rows.emplace_back(StageCoverage{stage, 0, 0});
  };
  for (const LaunchGroup& group : analysis.launch_groups) {
    row_of(group.stage.text()).kernel_ns += group.total_ns;
  }
  for (const KernelCounters& kernel : kernels) {
    for (const std::size_t i : kernel.groups) {
      if (kernel.covered_ns > 0) {
        const LaunchGroup& group = analysis.launch_groups[i];
        row_of(group.stage.text()).covered_ns += group.total_ns;
        whole.covered_ns += group.total_ns;
      }
    }
  }
  rows.push_back(whole);
  return rows;
}

// A row of the kernel table gets the result that covers most of its time.
void mark_records(std::vector<KernelCounters>& kernels, Analysis& analysis) {
  std::map<std::tuple<std::string, std::string, std::string>, KernelRow*> records;
  const auto device_of = [&](const LaunchGroup& group) {
    return analysis.is_summary ? std::string() : group.gpu;
  };
  for (KernelRow& record : analysis.kernels) {
    records[{record.kernel_name, record.stage.text(), analysis.is_summary ? "" : record.device}] =
        &record;
  }
  std::map<KernelRow*, std::int64_t> largest;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    for (const std::size_t i : kernels[k].groups) {
      const LaunchGroup& group = analysis.launch_groups[i];
      const auto at = records.find({group.kernel_name, group.stage.text(), device_of(group)});
      if (at == records.end()) {
        continue;
      }
      // ncu shortens names beyond recognition; the recording's are complete.
      kernels[k].short_name = at->second->short_name;
      if (kernels[k].covered_ns == 0) {
        continue;
      }
      at->second->covered_ns += group.total_ns;
      if (group.total_ns > largest[at->second]) {
        largest[at->second] = group.total_ns;
        at->second->counters = k;
      }
    }
  }
}

void add_short_names(std::vector<KernelCounters>& kernels) {
  std::set<std::string> distinct;
  for (const KernelCounters& kernel : kernels) {
    distinct.insert(kernel.kernel_name);
  }
  const std::vector<std::string> names(distinct.begin(), distinct.end());
  const std::vector<std::string> short_names = short_kernel_names(names);
  for (KernelCounters& kernel : kernels) {
    const auto at = std::lower_bound(names.begin(), names.end(), kernel.kernel_name);
    kernel.short_name = short_names[static_cast<std::size_t>(at - names.begin())];
  }
}

}  // namespace

const char* match_name(MatchKind kind) {
  static constexpr const char* kNames[] = {"none", "ambiguous", "mangled name",
                                           "name", "bare name", "function name"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* confidence_name(JoinConfidence confidence) {
  static constexpr const char* kNames[] = {"high", "medium", "low", "withheld"};
  return kNames[static_cast<std::size_t>(confidence)];
}

void join_counters(const Counters& counters, const std::vector<GpuSpec>& gpus, Analysis& analysis) {
  JoinedCounters joined;
  joined.tool_version = counters.tool_version;
  joined.clock_control = counters.clock_control;
  const Joiner joiner(counters, analysis);
  for (const CounterResult& result : counters.results) {
    if (result.is_range) {
      continue;  // counters of many launches represent none of them
    }
    KernelCounters& kernel = joined.kernels.emplace_back();
    kernel.kernel_name = name_of(counters, result);
    kernel.stage = stage_of(counters, result);
    kernel.device_name = counters.strings[result.device_name];
    kernel.shape = result.shape;
    kernel.input = roofline_input(counters, result);
    kernel.roofs = roofs_of(counters, result, gpus);
    kernel.representativeness.ncu_clock_hz = sm_clock_hz(counters, result);
    joiner.match(result, kernel);
  }
  // Groups are settled before judging, so that no time is covered twice.
  settle_claims(analysis.launch_groups, joined.kernels);
  for (KernelCounters& kernel : joined.kernels) {
    if (kernel.groups.empty()) {
      kernel.roofline = roofline(kernel.input, kernel.roofs);
      continue;
    }
    const Together group = together(kernel.groups, analysis.launch_groups);
    kernel.representativeness = judge(kernel, kernel.representativeness.ncu_clock_hz, group);
    if (kernel.representativeness.confidence == JoinConfidence::kWithheld) {
      continue;
    }
    // A summary's median is over all shapes and says nothing about this launch.
    if (group.has_shape) {
      kernel.input.workload_duration_ns = static_cast<double>(group.median_ns);
    }
    kernel.roofline = roofline(kernel.input, kernel.roofs);
    kernel.covered_ns = group.total_ns;
    if (kernel.roofline.sol_fraction) {
      kernel.winnable_ns = winnable_of(group, *kernel.roofline.sol_fraction);
    }
  }
  std::stable_sort(
      joined.kernels.begin(), joined.kernels.end(),
      [](const KernelCounters& a, const KernelCounters& b) { return a.covered_ns > b.covered_ns; });
  add_short_names(joined.kernels);
  joined.coverage = coverage_of(analysis, joined.kernels);
  mark_records(joined.kernels, analysis);
  analysis.diagnostics.insert(analysis.diagnostics.end(), counters.diagnostics.begin(),
                              counters.diagnostics.end());
  analysis.counters = std::move(joined);
}

}  // namespace gpuwhy
