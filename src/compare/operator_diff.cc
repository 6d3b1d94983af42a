// SPDX-License-Identifier: Apache-2.0
//
// Attribution of the difference between two runs to operators.
//
// A program on the CPU launches no kernels, and only its operators show where time went. If a
// framework names operators above kernels, they show what a replaced kernel was for. Rows are
// operators of a stage, one run per side; they do not overlap, and time outside of them is the
// rest. So rows and rest sum exactly to the difference. An operator whose inputs have known shapes
// on both sides has a row for each: the same operator on other sizes is other work.
//
// What this gets wrong: operators that a program times itself are from a separate pass, in which
// each waits for the previous one. Which of them changed is right; their sum does not say by how
// much the timed passes changed.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "compare/breakdown.h"
#include "compare/compare.h"

namespace gpuwhy {
namespace {

using OperatorName = std::pair<RowName, std::string>;  // stage and name
using OperatorMap = std::map<std::pair<OperatorName, std::string>, OperatorAmount>;

// Operators that ran with inputs of unknown shape.
std::set<OperatorName> unshaped_of(const RunSummary& run) {
  std::set<OperatorName> names;
  for (const OperatorAmount& row : run.operators) {
    if (row.shape.empty()) {
      names.insert({row.stage, row.name});
    }
  }
  return names;
}

// By name and shape; the shapes of those in `mixed` are summed.
OperatorMap operators_by_name(const RunSummary& run, const std::set<OperatorName>& mixed) {
  OperatorMap rows;
  for (OperatorAmount row : run.operators) {
    const OperatorName name{row.stage, row.name};
    if (mixed.contains(name)) {
      row.shape.clear();
    }
    const auto [found, is_new] = rows.try_emplace({name, row.shape}, row);
    if (!is_new) {
      found->second.total_ns += row.total_ns;
      found->second.calls += row.calls;
    }
  }
  return rows;
}

OperatorAmount none_of(const OperatorAmount& row) {
  return {row.name, row.stage, 0, 0, row.shape};
}

void split(OperatorChange& change) {
  change.calls_ns = worth_of_calls(change.base.total_ns, change.base.calls,
                                   change.candidate.total_ns, change.candidate.calls);
  change.duration_ns = change.difference_ns() - change.calls_ns;
}

std::string kind_of(const OperatorAmount& row) {
  return row.name.substr(0, row.name.find(' '));
}

std::string why_missing(const RunSummary& base, const RunSummary& candidate) {
  if (base.operators.empty() && candidate.operators.empty()) {
    return "no run names operators";
  }
  if (base.operators.empty() || candidate.operators.empty()) {
    return base.operators.empty() ? "the base names no operators"
                                  : "the candidate names no operators";
  }
  return base.operators_time == candidate.operators_time
             ? ""
             : "the sides time their operators differently: " + base.operators_time + "; " +
                   candidate.operators_time;
}

}  // namespace

OperatorComparison operator_changes(const RunSummary& base, const RunSummary& candidate) {
  OperatorComparison comparison;
  comparison.missing = why_missing(base, candidate);
  if (!comparison.missing.empty()) {
    return comparison;
  }
  comparison.time_of = base.operators_time;
  comparison.base_ns = base.operators_whole_ns;
  comparison.candidate_ns = candidate.operators_whole_ns;
  comparison.stages = breakdown_by(base.operators, candidate.operators,
                                   [](const OperatorAmount& row) { return row.stage.text(); });
  comparison.kinds = breakdown_by(base.operators, candidate.operators, kind_of);
  // An operator of one run only is compared with one that took no time.
  std::set<OperatorName> mixed = unshaped_of(base);
  mixed.merge(unshaped_of(candidate));
  const OperatorMap before = operators_by_name(base, mixed);
  OperatorMap after = operators_by_name(candidate, mixed);
  for (const auto& [key, row] : before) {
    const auto other = after.find(key);
    OperatorChange& change = comparison.rows.emplace_back();
    change.base = row;
    change.candidate = other == after.end() ? none_of(row) : other->second;
    after.erase(key);
  }
  for (const auto& [key, row] : after) {
    OperatorChange& change = comparison.rows.emplace_back();
    change.base = none_of(row);
    change.candidate = row;
  }
  for (OperatorChange& change : comparison.rows) {
    split(change);
  }
  // Largest change first, in either direction.
  std::stable_sort(comparison.rows.begin(), comparison.rows.end(),
                   [](const OperatorChange& a, const OperatorChange& b) {
                     return std::abs(a.difference_ns()) > std::abs(b.difference_ns());
                   });
  return comparison;
}

}  // namespace gpuwhy
