// SPDX-License-Identifier: Apache-2.0
//
// Answers from sums.
//
// A straggler is found by its compute time, not by how long its stages took: in a job that meets in
// collectives all ranks take equally long, the slow one computing while the others wait. Where a
// summary has no ledger, all kernel time stands in, and then a rank that waits is not told from one
// that computes. Ranks with different work (pipeline stages) look like stragglers too.
//
// A kernel is compared by its mean time a call within its stage, so more calls are no regression.
// Two runs with other shapes under one kernel name are: compare like with like.
#include "fleet/questions.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "analysis/duration_steps.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "fleet/history_rows.h"

namespace llmprof {
namespace {

constexpr std::size_t kMostNotes = 20;

// Whole where a JSON integer can hold it.
Json wide_json(const WideSum& sum) {
  constexpr std::int64_t kMost = INT64_MAX / WideSum::kBillion - 1;
  return sum.billions <= kMost ? Json(sum.billions * WideSum::kBillion + sum.rest)
                               : Json(sum.value());
}

double mean_of(const WideSum& total, const WideSum& count) {
  return count.value() > 0 ? total.value() / count.value() : 0;
}

Json ratio_or_null(const WideSum& part, const WideSum& whole) {
  return whole.value() > 0 ? Json(part.value() / whole.value()) : Json(nullptr);
}

// The duration that `fraction` of the calls do not exceed, rounded up to its step.
std::int64_t quantile_ns(const KernelSums& sums, double fraction) {
  double calls = 0;
  for (const auto& [step, count] : sums.histogram) {
    calls += static_cast<double>(count);
  }
  double seen = 0;
  for (const auto& [step, count] : sums.histogram) {
    seen += static_cast<double>(count);
    if (seen >= calls * fraction) {
      return std::clamp(last_of(step), sums.min_ns, sums.max_ns);
    }
  }
  return sums.max_ns;
}

std::vector<KnownRun> chosen_runs(HistorySource& history, const FleetFilter& filter) {
  RunFilter asked{filter.since_day, {}};
  if (!filter.run.empty()) {
    asked.run_keys = {key_of(filter.run)};
  }
  std::vector<KnownRun> runs = history.runs(asked);
  std::erase_if(runs, [&](const KnownRun& run) {
    return (!filter.run.empty() && run.run_id != filter.run) ||
           (!filter.model.empty() && run.model != filter.model) ||
           (!filter.engine_version.empty() && run.engine_version != filter.engine_version);
  });
  return runs;
}

Error no_runs(const std::string& what) {
  return {ErrorKind::kInput, fmt::format("no run of {} is known", printable(what)),
          "llmprof fleet status --to WHERE lists them"};
}

Json notes_of(const HistorySource& history, const std::vector<KnownRun>& runs) {
  Json notes = Json::array();
  std::size_t num_left_out = 0;
  const auto add = [&](const std::string& note) {
    if (notes.size() < kMostNotes) {
      notes.push_back(printable(note));
    } else {
      ++num_left_out;
    }
  };
  for (const std::string& note : history.notes()) {
    add(note);
  }
  for (const KnownRun& run : runs) {
    if (run.num_ranks > 0 && run.ranks < run.num_ranks) {
      add(fmt::format("run {}: {} of {} ranks", run.run_id, run.ranks, run.num_ranks));
    } else if (run.num_ranks == 0) {
      add(fmt::format("run {}: {} ranks, and how many there should be is not known", run.run_id,
                      run.ranks));
    }
  }
  if (num_left_out > 0) {
    notes.push_back(fmt::format("{} more", num_left_out));
  }
  return notes;
}

// Names for the keys of what is shown; a name that has not arrived yet is shown as its number.
class Names {
 public:
  void want(std::uint64_t key) { keys_.insert(key); }
  void look_up(HistorySource& history) { names_ = history.names(keys_); }
  std::string operator[](std::uint64_t key) const {
    const auto found = names_.find(key);
    return found == names_.end() ? fmt::format("#{:016x}", key) : found->second;
  }

 private:
  std::set<std::uint64_t> keys_;
  std::map<std::uint64_t, std::string> names_;
};

Json day_json(std::int64_t day) {
  return day == 0 ? Json(nullptr) : Json(date_text(day));
}

}  // namespace

std::string date_text(std::int64_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

Json fleet_status(HistorySource& history, const FleetFilter& filter) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  Json answer = json_document("fleet_status", 1);
  answer["runs"] = Json::array();
  for (const KnownRun& run : runs) {
    answer["runs"].push_back(
        {{"run_id", run.run_id},
         {"attempt", run.attempt},
         {"ranks", run.ranks},
         {"num_ranks", run.num_ranks > 0 ? Json(run.num_ranks) : Json(nullptr)},
         {"is_complete", run.is_complete()},
         {"is_sealed", run.is_sealed},
         {"model", text_or_null(run.model)},
         {"gpu", text_or_null(run.gpu)},
         {"engine", text_or_null(run.engine)},
         {"engine_version", text_or_null(run.engine_version)},
         {"day", day_json(run.day)},
         {"kernel_rows", run.kernel_rows}});
  }
  answer["notes"] = notes_of(history, {});
  return answer;
}

Json fleet_top(HistorySource& history, const FleetFilter& filter) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  const std::uint64_t stage_key = key_of(filter.stage);
  KernelTable table;
  WideSum total_ns;
  for (KernelSums sums : history.kernel_sums(runs)) {
    if (filter.stage.empty() || sums.stage_key == stage_key) {
      sums.stage_key = 0;
      total_ns.add(sums.total_ns);
      table.add(sums);
    }
  }
  std::vector<KernelSums> kernels = table.rows();
  std::stable_sort(kernels.begin(), kernels.end(), [](const KernelSums& a, const KernelSums& b) {
    return a.total_ns.value() > b.total_ns.value();
  });
  kernels.resize(std::min(kernels.size(), filter.top));
  Names names;
  for (const KernelSums& kernel : kernels) {
    names.want(kernel.kernel_key);
    names.want(kernel.family_key);
  }
  names.look_up(history);
  Json answer = json_document("fleet_top", 1);
  answer["runs"] = runs.size();
  answer["total_ns"] = wide_json(total_ns);
  answer["kernels"] = Json::array();
  for (const KernelSums& kernel : kernels) {
    answer["kernels"].push_back({{"kernel", names[kernel.kernel_key]},
                                 {"family", names[kernel.family_key]},
                                 {"calls", wide_json(kernel.calls)},
                                 {"total_ns", wide_json(kernel.total_ns)},
                                 {"share_fraction", ratio_or_null(kernel.total_ns, total_ns)},
                                 {"mean_ns", mean_of(kernel.total_ns, kernel.calls)},
                                 {"p50_ns", quantile_ns(kernel, 0.5)},
                                 {"p99_ns", quantile_ns(kernel, 0.99)},
                                 {"max_ns", kernel.max_ns}});
  }
  answer["notes"] = notes_of(history, runs);
  return answer;
}

Json fleet_trend(HistorySource& history, const FleetFilter& filter) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  std::map<std::uint64_t, const KnownRun*> by_key;
  for (const KnownRun& run : runs) {
    by_key[run.run_key] = &run;
  }
  const std::vector<StageSums> sums = history.stage_sums(runs);
  Names names;
  for (const StageSums& sum : sums) {
    names.want(sum.stage_key);
  }
  names.look_up(history);
  struct Line {
    StageSums sums;
    std::int64_t runs = 0;
  };
  std::map<std::tuple<std::int64_t, std::string, std::string, std::string, std::string>, Line>
      lines;
  for (const StageSums& sum : sums) {
    const KnownRun& run = *by_key.at(sum.run_key);
    const std::string stage = names[sum.stage_key];
    if (!filter.stage.empty() && stage != filter.stage) {
      continue;
    }
    Line& line = lines[{run.day, run.model, run.gpu, run.engine_version, stage}];
    ++line.runs;
    line.sums.add(sum);
  }
  Json answer = json_document("fleet_trend", 1);
  answer["stages"] = Json::array();
  for (const auto& [key, line] : lines) {
    const auto& [day, model, gpu, version, stage] = key;
    const StageSums& sum = line.sums;
    const double seconds = sum.total_ns.value() / 1e9;
    answer["stages"].push_back(
        {{"day", day_json(day)},
         {"model", text_or_null(model)},
         {"gpu", text_or_null(gpu)},
         {"engine_version", text_or_null(version)},
         {"stage", stage},
         {"runs", line.runs},
         {"instances", wide_json(sum.instances)},
         {"mean_ns", mean_of(sum.total_ns, sum.instances)},
         {"tokens_per_s", seconds > 0 && sum.tokens.value() > 0 ? Json(sum.tokens.value() / seconds)
                                                                : Json(nullptr)},
         {"mfu_fraction", ratio_or_null(sum.model_flops, sum.peak_flops)},
         {"mbu_fraction", ratio_or_null(sum.model_bytes, sum.peak_bytes)}});
  }
  answer["notes"] = notes_of(history, runs);
  return answer;
}

namespace {

struct Slow {
  RankStageTimes row;
  double median_ns = 0;
  std::int64_t measured_ns = 0;
  double excess_ns() const { return static_cast<double>(measured_ns) - median_ns; }
};

double median_of(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const auto upper = static_cast<double>(values[middle]);
  return values.size() % 2 == 1 ? upper : (static_cast<double>(values[middle - 1]) + upper) / 2;
}

// Ranks of one stage that are above its median.
void add_slow(std::span<const RankStageTimes> stage, double over_fraction,
              std::vector<Slow>& slow) {
  const bool has_ledger = std::all_of(stage.begin(), stage.end(),
                                      [](const RankStageTimes& row) { return row.window_ns > 0; });
  std::vector<std::int64_t> measured;
  for (const RankStageTimes& row : stage) {
    measured.push_back(has_ledger ? row.compute_ns : row.kernel_ns);
  }
  const double median_ns = median_of(measured);
  for (std::size_t i = 0; i < stage.size(); ++i) {
    if (median_ns > 0 && static_cast<double>(measured[i]) > median_ns * (1 + over_fraction)) {
      slow.push_back({stage[i], median_ns, measured[i]});
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
  const KnownRun& run = runs.back();
  std::vector<RankStageTimes> rows = history.rank_stages(run);
  if (!filter.stage.empty()) {
    std::erase_if(rows, [key = key_of(filter.stage)](const RankStageTimes& row) {
      return row.stage_key != key;
    });
  }
  std::vector<Slow> slow = slow_ranks(rows, filter.over_fraction);
  const std::size_t num_slow = slow.size();
  slow.resize(std::min(slow.size(), filter.top));
  Names names;
  std::set<std::int64_t> ranks;
  for (const Slow& one : slow) {
    names.want(one.row.stage_key);
    ranks.insert(one.row.rank);
  }
  names.look_up(history);
  const std::map<std::int64_t, RankPlace> places = history.places(run, ranks);
  Json answer = json_document("fleet_stragglers", 1);
  answer["run_id"] = run.run_id;
  answer["ranks"] = run.ranks;
  answer["num_ranks"] = run.num_ranks > 0 ? Json(run.num_ranks) : Json(nullptr);
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
    throw Error(ErrorKind::kInput, "there are no two engine versions to compare",
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
  KernelSums base;
  KernelSums candidate;
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

Compared compared(const std::vector<KernelSums>& base, const std::vector<KernelSums>& candidate,
                  const FleetFilter& filter) {
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  std::map<Key, const KernelSums*> before;
  for (const KernelSums& kernel : base) {
    before[{kernel.stage_key, kernel.kernel_key}] = &kernel;
  }
  Compared result;
  for (const KernelSums& kernel : candidate) {
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

Json fleet_regressions(HistorySource& history, const FleetFilter& filter, const std::string& base,
                       const std::string& candidate) {
  const std::vector<KnownRun> runs = chosen_runs(history, filter);
  std::string base_label = base;
  std::string candidate_label = candidate;
  if (base.empty() && candidate.empty()) {
    std::tie(base_label, candidate_label) = last_versions(runs);
  }
  const Side before = side_of(runs, base_label);
  const Side after = side_of(runs, candidate_label);
  std::vector<KernelSums> base_kernels = history.kernel_sums(before.runs);
  std::vector<KernelSums> candidate_kernels = history.kernel_sums(after.runs);
  if (!filter.stage.empty()) {
    const auto is_other = [key = key_of(filter.stage)](const KernelSums& sums) {
      return sums.stage_key != key;
    };
    std::erase_if(base_kernels, is_other);
    std::erase_if(candidate_kernels, is_other);
  }
  Compared result = compared(base_kernels, candidate_kernels, filter);
  const std::size_t num_grown = result.grown.size();
  result.grown.resize(std::min(result.grown.size(), filter.top));
  Names names;
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

}  // namespace llmprof
