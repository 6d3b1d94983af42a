// SPDX-License-Identifier: Apache-2.0
//
// History queries for slowness: stragglers among ranks, and regressions between versions.
//
// A straggler is identified by its compute time, not by the length of its stages: in a job with
// collectives all ranks take equally long, the slow one computing while the others wait. If a
// summary has no ledger, all kernel time is used instead, and then a rank that waits looks like one
// that computes. Ranks with different work (pipeline stages) look like stragglers too. Ranks
// without kernels (ranks.capture leaves most unprofiled) are not compared: their compute time is
// unknown.
//
// A kernel is compared by its mean time per call within its stage, so more calls are not a
// regression. Two runs with different shapes under one kernel name do look like one: compare like
// with like.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "base/json.h"
#include "compare/statistics.h"
#include "fleet/history/history_rows.h"
#include "fleet/history/query_common.h"

namespace gpuwhy {
namespace {

struct Slow {
  RankStageTimes row;
  double median_ns = 0;
  std::int64_t measured_ns = 0;
  double excess_ns() const { return static_cast<double>(measured_ns) - median_ns; }
};

// Whether the rank was recorded in this stage, not only timed.
bool is_measured(const RankStageTimes& row) {
  return row.window_ns > 0 || row.kernel_ns > 0;
}

// Ranks of one stage that are above its median.
void add_slow(std::span<const RankStageTimes> all, double over_fraction, std::vector<Slow>& slow) {
  std::vector<RankStageTimes> stage;
  std::copy_if(all.begin(), all.end(), std::back_inserter(stage), is_measured);
  if (stage.empty()) {
    return;
  }
  const bool has_ledger = std::all_of(stage.begin(), stage.end(),
                                      [](const RankStageTimes& row) { return row.window_ns > 0; });
  const auto measured = [&](const RankStageTimes& row) {
    return has_ledger ? row.compute_ns : row.kernel_ns;
  };
  std::vector<double> times;
  for (const RankStageTimes& row : stage) {
    times.push_back(static_cast<double>(measured(row)));
  }
  const double median_ns = median_of(times);
  for (std::size_t i = 0; i < stage.size(); ++i) {
    if (median_ns > 0 && times[i] > median_ns * (1 + over_fraction)) {
      slow.push_back({stage[i], median_ns, measured(stage[i])});
    }
  }
}

std::vector<Slow> slow_ranks(const std::vector<RankStageTimes>& rows, double over_fraction) {
  std::vector<Slow> slow;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t last = first;
    while (last < rows.size() && rows[last].stage_key == rows[first].stage_key) {
      ++last;
    }
    add_slow(std::span(rows).subspan(first, last - first), over_fraction, slow);
    first = last;
  }
  std::stable_sort(slow.begin(), slow.end(),
                   [](const Slow& a, const Slow& b) { return a.excess_ns() > b.excess_ns(); });
  return slow;
}

}  // namespace

Json fleet_stragglers(HistorySource& history, const FleetFilter& filter) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  if (runs.empty()) {
    throw no_runs(filter.run.empty() ? "this kind" : filter.run);
  }
  // The latest run: slow ranks of earlier ones may have been replaced.
  const KnownRun& run = runs.back();
  std::vector<RankStageTimes> rows = history.rank_stages(run);
  if (!filter.stage.empty()) {
    std::erase_if(rows, [key = key_of(filter.stage)](const RankStageTimes& row) {
      return row.stage_key != key;
    });
  }
  std::set<std::int64_t> measured;
  for (const RankStageTimes& row : rows) {
    if (is_measured(row)) {
      measured.insert(row.rank);
    }
  }
  std::vector<Slow> slow = slow_ranks(rows, filter.over_fraction);
  const std::size_t num_slow = slow.size();
  slow.resize(std::min(slow.size(), filter.top));
  // Names and nodes are looked up for the shown rows only.
  ShownNames names;
  std::set<std::int64_t> ranks;
  for (const Slow& one : slow) {
    names.want(one.row.stage_key);
    ranks.insert(one.row.rank);
  }
  names.look_up(history);
  const std::map<std::int64_t, RankSite> places = history.places(run, ranks);
  Json answer = json_document("fleet_stragglers", 1);
  answer["run_id"] = run.run_id;
  answer["ranks"] = run.ranks;
  answer["num_ranks"] = run.num_ranks > 0 ? Json(run.num_ranks) : Json(nullptr);
  answer["num_measured"] = measured.size();
  answer["num_slow"] = num_slow;
  answer["stragglers"] = Json::array();
  for (const Slow& one : slow) {
    const auto place = places.find(one.row.rank);
    const auto measured_ns = static_cast<double>(one.measured_ns);
    answer["stragglers"].push_back(
        {{"rank", one.row.rank},
         {"node", text_or_null(place == places.end() ? "" : place->second.node)},
         {"gpu", text_or_null(place == places.end() ? "" : place->second.gpu)},
         {"stage", names[one.row.stage_key]},
         {"compute_ns", one.measured_ns},
         {"median_ns", one.median_ns},
         {"slower_fraction", measured_ns / one.median_ns - 1}});
  }
  answer["notes"] = notes_of(history, {run});
  const auto num_measured = static_cast<std::int64_t>(measured.size());
  if (num_measured < run.ranks) {
    answer["notes"].push_back(
        fmt::format("{} of {} ranks have kernels and are compared; the others ran unprofiled "
                    "(ranks.capture)",
                    num_measured, run.ranks));
  }
  return answer;
}

namespace {

struct Side {
  std::string label;
  std::vector<KnownRun> runs;
};

// The last two versions by when they were first seen.
std::pair<std::string, std::string> last_versions(const std::vector<KnownRun>& runs) {
  std::vector<std::string> versions;
  for (const KnownRun& run : runs) {
    if (std::find(versions.begin(), versions.end(), run.engine_version) == versions.end()) {
      versions.push_back(run.engine_version);
    }
  }
  if (versions.size() < 2) {
    throw Error(ErrorKind::kInput, "fewer than two engine versions to compare",
                "name the sides: --base and --candidate take a run or a version");
  }
  return {versions[versions.size() - 2], versions.back()};
}

Side side_of(const std::vector<KnownRun>& runs, const std::string& label) {
  Side side{label, {}};
  for (const bool by_run : {true, false}) {
    for (const KnownRun& run : runs) {
      if ((by_run ? run.run_id : run.engine_version) == label) {
        side.runs.push_back(run);
      }
    }
    if (!side.runs.empty()) {
      return side;
    }
  }
  throw no_runs(label);
}

struct Grown {
  WideKernelSums base;
  WideKernelSums candidate;
  double base_mean() const { return mean_of(base.total_ns, base.calls); }
  double candidate_mean() const { return mean_of(candidate.total_ns, candidate.calls); }
  double added_ns() const { return (candidate_mean() - base_mean()) * candidate.calls.value(); }
};

struct Compared {
  std::vector<Grown> grown;  // most added time first
  std::size_t num_common = 0;
  std::size_t num_new = 0;
  std::size_t num_gone = 0;
};

Compared compared(const std::vector<WideKernelSums>& base,
                  const std::vector<WideKernelSums>& candidate, const FleetFilter& filter) {
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  std::map<Key, const WideKernelSums*> before;
  for (const WideKernelSums& kernel : base) {
    before[{kernel.stage_key, kernel.kernel_key}] = &kernel;
  }
  Compared result;
  for (const WideKernelSums& kernel : candidate) {
    const auto found = before.find({kernel.stage_key, kernel.kernel_key});
    if (found == before.end()) {
      ++result.num_new;
      continue;
    }
    ++result.num_common;
    const Grown grown{*found->second, kernel};
    if (grown.base_mean() > 0 &&
        grown.candidate_mean() > grown.base_mean() * (1 + filter.over_fraction)) {
      result.grown.push_back(grown);
    }
  }
  result.num_gone = base.size() - result.num_common;
  std::stable_sort(result.grown.begin(), result.grown.end(),
                   [](const Grown& a, const Grown& b) { return a.added_ns() > b.added_ns(); });
  return result;
}

}  // namespace

Json fleet_regressions(HistorySource& history, const FleetFilter& filter) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  std::string base_label = filter.base;
  std::string candidate_label = filter.candidate;
  if (base_label.empty() && candidate_label.empty()) {
    std::tie(base_label, candidate_label) = last_versions(runs);
  }
  const Side before = side_of(runs, base_label);
  const Side after = side_of(runs, candidate_label);
  std::vector<WideKernelSums> base_kernels = history.kernel_sums(before.runs);
  std::vector<WideKernelSums> candidate_kernels = history.kernel_sums(after.runs);
  if (!filter.stage.empty()) {
    const auto is_other = [key = key_of(filter.stage)](const WideKernelSums& sums) {
      return sums.stage_key != key;
    };
    std::erase_if(base_kernels, is_other);
    std::erase_if(candidate_kernels, is_other);
  }
  Compared result = compared(base_kernels, candidate_kernels, filter);
  const std::size_t num_grown = result.grown.size();
  result.grown.resize(std::min(result.grown.size(), filter.top));
  ShownNames names;
  for (const Grown& grown : result.grown) {
    names.want(grown.candidate.stage_key);
    names.want(grown.candidate.kernel_key);
  }
  names.look_up(history);
  Json answer = json_document("fleet_regressions", 1);
  answer["base"] = {{"label", before.label}, {"runs", before.runs.size()}};
  answer["candidate"] = {{"label", after.label}, {"runs", after.runs.size()}};
  answer["num_compared"] = result.num_common;
  answer["num_new"] = result.num_new;
  answer["num_gone"] = result.num_gone;
  answer["num_slower"] = num_grown;
  answer["kernels"] = Json::array();
  for (const Grown& grown : result.grown) {
    answer["kernels"].push_back(
        {{"stage", names[grown.candidate.stage_key]},
         {"kernel", names[grown.candidate.kernel_key]},
         {"base_mean_ns", grown.base_mean()},
         {"candidate_mean_ns", grown.candidate_mean()},
         {"slower_fraction", grown.candidate_mean() / grown.base_mean() - 1},
         {"added_ns", grown.added_ns()}});
  }
  std::vector<KnownRun> both = before.runs;
  both.insert(both.end(), after.runs.begin(), after.runs.end());
  answer["notes"] = notes_of(history, both);
  const auto other_gpu = std::find_if(both.begin(), both.end(), [&](const KnownRun& run) {
    return run.gpu != both[0].gpu || run.model != both[0].model;
  });
  if (other_gpu != both.end()) {
    answer["notes"].push_back("the runs are of several models or GPUs: narrow them with --model");
  }
  return answer;
}

}  // namespace gpuwhy
