// SPDX-License-Identifier: Apache-2.0
//
// Check that two sets of runs did the same work on the same machine.
//
// Comparing different work gives a meaningless number, and often a good one: a candidate that
// failed early is fast. So facts are compared first. Some may differ, because they are what was
// changed (arguments, a driver); they are shown. Others make the comparison invalid, unless the
// user says that this fact is under test.
//
// What this gets wrong: it only knows what is in the files. Another prompt of the same length,
// another clock limit or another process on the GPU are not.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compare/compare.h"
#include "compare/decision.h"

namespace gpuwhy {
namespace {

struct FactRule {
  std::string_view fact;
  bool breaks;
  const char* why;
};

constexpr FactRule kFactRules[] = {
    {"runs", true,
     "the same run is on both sides, so part of the comparison is with itself; gpuwhy gate "
     "--self-test tries the gate on runs of one build"},
    {"gpu", true, "another device is another ceiling"},
    {"model", true, "another model is other work"},
    {"inputs", true, "other inputs are other work"},
    {"format", true, "recordings of different tools time different things"},
    {"timing", true, "one side was timed under a profiler, the other was not"},
    {"graphs", true, "kernels inside graphs recorded as a whole are not seen"},
    {"stages", true, "there is no stage to compare with"},
    {"instances", true, "a stage ran more or less often"},
    {"tokens", true, "a stage had more or fewer tokens to work on"},
    {"launches", true,
     "kernel counts differ and there are no stage marks: probably not the same amount of work"},
    {"command", false, ""},
    {"overrides", false, ""},
    {"stage_source", false, ""},
    {"driver", false, ""},
    {"cpu", false, ""},
    {"system", false, ""},
    {"profiler", false, ""},
    {"engine", false, ""},
};

// Amounts this close are equal: a step more or less at the end of a long run.
constexpr double kSameAmount = 0.01;

bool is_near(std::int64_t a, std::int64_t b) {
  const double larger = static_cast<double>(std::max(std::abs(a), std::abs(b)));
  return static_cast<double>(std::abs(a - b)) <= kSameAmount * larger;
}

using Values = std::set<std::string>;

Values fact_values(const std::vector<RunSummary>& runs, const std::string& fact) {
  Values values;
  for (const RunSummary& run : runs) {
    for (const auto& [name, value] : run.facts) {
      if (name == fact && !value.empty()) {
        values.insert(value);
      }
    }
  }
  return values;
}

// Differences, and which of them matter.
struct FactComparer {
  const std::vector<std::string>& allowed;
  std::vector<FactDifference> found = {};

  // By the rule of the fact; `why`: instead of what the rule says.
  void add(const std::string& fact, std::string base, std::string candidate,
           const char* why = nullptr) {
    const auto* rule = std::ranges::find(kFactRules, fact, &FactRule::fact);
    const bool is_allowed = std::ranges::count(allowed, fact) > 0;
    found.push_back({fact, std::move(base), std::move(candidate), rule->breaks && !is_allowed,
                     is_allowed       ? "allowed to differ"
                     : why != nullptr ? why
                                      : rule->why});
  }

  // A fact that is unknown on one side is not a difference.
  void add_texts(const std::string& fact, const std::vector<RunSummary>& base,
                 const std::vector<RunSummary>& candidate) {
    const Values before = fact_values(base, fact);
    const Values after = fact_values(candidate, fact);
    if (!before.empty() && !after.empty() && (before.size() != 1 || before != after)) {
      add(fact, fmt::format("{}", fmt::join(before, " | ")),
          fmt::format("{}", fmt::join(after, " | ")));
    }
  }
};

struct Range {
  std::int64_t low = INT64_MAX;
  std::int64_t high = INT64_MIN;

  void add(std::int64_t value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  std::string text() const {
    return low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
  }
};

Range launches_of(const std::vector<RunSummary>& runs) {
  Range launches;
  for (const RunSummary& run : runs) {
    launches.add(run.launches);
  }
  return launches;
}

bool differ(const Range& a, const Range& b) {
  return !is_near(std::min(a.low, b.low), std::max(a.high, b.high));
}

using Amounts = std::map<std::string, Range>;  // by stage

template <typename Amount>
Amounts amounts_of(const std::vector<RunSummary>& runs, Amount&& amount) {
  Amounts amounts;
  for (const RunSummary& run : runs) {
    for (const ComparedStage& stage : run.stages) {
      if (const std::optional<std::int64_t> value = amount(stage)) {
        amounts[stage.stage.text()].add(*value);
      }
    }
  }
  return amounts;
}

// `why_shown` says why a difference breaks nothing; empty: it does.
template <typename Amount>
void add_amounts(const std::string& fact, const std::vector<RunSummary>& base,
                 const std::vector<RunSummary>& candidate, Amount&& amount,
                 const std::string& why_shown, FactComparer& comparer) {
  const Amounts before = amounts_of(base, amount);
  const Amounts after = amounts_of(candidate, amount);
  for (const auto& [stage, range] : before) {
    const auto other = after.find(stage);
    if (other == after.end() || !differ(range, other->second)) {
      continue;
    }
    const std::string of_base = fmt::format("{} {}", stage, range.text());
    const std::string of_candidate = fmt::format("{} {}", stage, other->second.text());
    // With few, one more is not the clock's doing.
    constexpr std::int64_t kLeast = 5;
    if (why_shown.empty() || std::min(range.low, other->second.low) < kLeast) {
      comparer.add(fact, of_base, of_candidate);
    } else {
      comparer.found.push_back({fact, of_base, of_candidate, false, why_shown});
    }
  }
}

// The names of all stages of a side; nullopt if its runs differ among themselves.
std::optional<Values> stages_of(const std::vector<RunSummary>& runs, Values& all) {
  std::optional<Values> same;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Values of_run;
    for (const ComparedStage& stage : runs[i].stages) {
      of_run.insert(stage.stage.text());
    }
    all.insert(of_run.begin(), of_run.end());
    same = i == 0 || same == of_run ? std::optional(of_run) : std::nullopt;
  }
  return same;
}

void add_stages(const std::vector<RunSummary>& base, const std::vector<RunSummary>& candidate,
                FactComparer& comparer) {
  Values before;
  Values after;
  const std::optional<Values> of_base = stages_of(base, before);
  if (!of_base || of_base != stages_of(candidate, after)) {
    comparer.add("stages", fmt::format("{}", fmt::join(before, ", ")),
                 fmt::format("{}", fmt::join(after, ", ")));
  }
}

// Runs that are on both sides, which no command means to compare.
void add_shared_runs(const std::vector<RunSummary>& base, const std::vector<RunSummary>& candidate,
                     FactComparer& comparer) {
  std::vector<std::string> of_base;
  std::vector<std::string> of_candidate;
  for (const RunSummary& run : base) {
    const auto same = std::ranges::find_if(candidate, [&](const RunSummary& one) {
      return !one.identity.empty() && one.identity == run.identity;
    });
    if (same != candidate.end()) {
      of_base.push_back(run.label);
      of_candidate.push_back(same->label);
    }
  }
  if (!of_base.empty()) {
    comparer.add("runs", runs_in_words(of_base), runs_in_words(of_candidate));
  }
}

// Every run has the time from one pass of the model to the next, which judges unmarked work.
bool have_pass_times(const std::vector<RunSummary>& runs) {
  return std::all_of(runs.begin(), runs.end(), [](const RunSummary& run) {
    return std::any_of(run.metrics.begin(), run.metrics.end(), [](const RunMetric& metric) {
      return metric.is_gated && metric.key.starts_with("structure.passes[");
    });
  });
}

bool all_without_kernels(const std::vector<RunSummary>& runs) {
  return std::ranges::all_of(runs, &RunSummary::is_without_kernels);
}

bool all_with_kernels(const std::vector<RunSummary>& runs) {
  return std::ranges::all_of(
      runs, [](const RunSummary& run) { return run.launches > 0 && run.absent.empty(); });
}

// A side that ran on the CPU alone, and one that did not; false: they are not that.
bool add_only_one_on_gpu(const std::vector<RunSummary>& base,
                         const std::vector<RunSummary>& candidate, FactComparer& comparer) {
  for (const bool is_base : {true, false}) {
    const std::vector<RunSummary>& idle = is_base ? base : candidate;
    const std::vector<RunSummary>& other = is_base ? candidate : base;
    if (all_without_kernels(idle) && all_with_kernels(other)) {
      const std::string some = launches_of(other).text() + " launches";
      // Cannot be allowed: there is nothing to compare.
      comparer.found.push_back(
          {"gpu_work", is_base ? "none" : some, is_base ? some : "none", true,
           fmt::format("the {} recorded no kernel, the {} {}", is_base ? "base" : "candidate",
                       is_base ? "candidate" : "base", some)});
      return true;
    }
  }
  return false;
}

void add_launches(const std::vector<RunSummary>& base, const std::vector<RunSummary>& candidate,
                  bool is_timed, FactComparer& comparer) {
  const Range before = launches_of(base);
  const Range after = launches_of(candidate);
  const bool is_marked = std::ranges::all_of(base, &RunSummary::is_marked) &&
                         std::ranges::all_of(candidate, &RunSummary::is_marked);
  // Fewer launches for the same stages are the effect of fusing. No launches at all are a lost
  // recording.
  if ((before.low == 0) != (after.low == 0)) {
    comparer.found.push_back({"content", before.text() + " launches", after.text() + " launches",
                              true, "some runs have no kernel, and others have some"});
  } else if (!is_marked && differ(before, after)) {
    if (is_timed && have_pass_times(base) && have_pass_times(candidate)) {
      comparer.found.push_back({"launches", before.text(), after.text(), false,
                                "recordings of equal length: the time of a pass is compared"});
    } else {
      comparer.add("launches", before.text(), after.text(),
                   is_timed
                       ? "recordings of equal length hold more or fewer launches; name a range "
                         "that repeats (--step NAME) to judge its time"
                       : nullptr);
    }
  }
}

// Stages, how often they ran, their tokens and launches.
void add_work(const std::vector<RunSummary>& base, const std::vector<RunSummary>& candidate,
              FactComparer& comparer) {
  add_stages(base, candidate, comparer);
  // A clock ended these recordings, so the work is not that of a whole program: steps are compared.
  const bool is_timed = are_equally_long(base, candidate);
  add_amounts(
      "instances", base, candidate,
      [](const ComparedStage& stage) { return std::optional(stage.num_instances); },
      is_timed ? "recordings of equal length: times of one instance are compared" : "", comparer);
  add_amounts(
      "tokens", base, candidate,
      [&](const ComparedStage& stage) -> std::optional<std::int64_t> {
        const bool is_of_one = is_timed && stage.tokens && stage.num_instances > 0;
        return is_of_one ? *stage.tokens / stage.num_instances : stage.tokens;
      },
      "", comparer);
  add_launches(base, candidate, is_timed, comparer);
}

}  // namespace

std::vector<std::string> comparable_facts() {
  std::vector<std::string> facts;
  for (const FactRule& rule : kFactRules) {
    if (rule.breaks) {
      facts.emplace_back(rule.fact);
    }
  }
  return facts;
}

std::vector<FactDifference> empty_runs(const std::vector<RunSummary>& runs, bool is_base) {
  std::vector<ReasonGroup> groups;
  for (const RunSummary& run : runs) {
    if (!run.absent.empty()) {
      add_reason(run.absent, run.label, groups);
    }
  }
  std::vector<FactDifference> rows;
  for (const ReasonGroup& group : groups) {
    const std::string who = runs_in_words(group.names);
    rows.push_back({"content", is_base ? who : "", is_base ? "" : who, true,
                    fmt::format("{}: {}", who, group.reason)});
  }
  return rows;
}

std::vector<FactDifference> check_comparable(const std::vector<RunSummary>& base,
                                             const std::vector<RunSummary>& candidate,
                                             const std::vector<std::string>& allowed) {
  FactComparer comparer{allowed};
  const bool is_only_one_on_gpu = add_only_one_on_gpu(base, candidate, comparer);
  if (!is_only_one_on_gpu) {
    // An empty side cannot be allowed.
    for (const bool is_base : {true, false}) {
      std::ranges::move(empty_runs(is_base ? base : candidate, is_base),
                        std::back_inserter(comparer.found));
    }
    add_shared_runs(base, candidate, comparer);
  }
  for (const FactRule& rule : kFactRules) {
    comparer.add_texts(std::string(rule.fact), base, candidate);
  }
  if (!is_only_one_on_gpu) {
    add_work(base, candidate, comparer);
  }
  std::ranges::stable_sort(comparer.found, std::greater<>(), &FactDifference::breaks);
  return comparer.found;
}

}  // namespace gpuwhy
