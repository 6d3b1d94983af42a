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
#include <set>
#include <tuple>

#include "compare/breakdown.h"
#include "compare/compare.h"

namespace gpuwhy {
namespace {

using OperatorName = std::pair<RowName, std::string>;  // stage and name

// Operators that ran with inputs of unknown shape.
std::set<OperatorName> unshaped_of(const RunSummary& run) {
  std::set<OperatorName> names;
  for (const ShapedOperator& row : run.operators) {
    if (row.shape.empty()) {
      names.insert({row.stage, row.name});
    }
  }
  return names;
}

// The shapes of those in `mixed` are one row.
auto operators_by_name(const RunSummary& run, const std::set<OperatorName>& mixed) {
  std::vector<ShapedOperator> rows = run.operators;
  for (ShapedOperator& row : rows) {
    row.shape = mixed.contains({row.stage, row.name}) ? "" : row.shape;
  }
  return summed_by(
      rows, [](const ShapedOperator& row) { return std::tuple(row.stage, row.name, row.shape); });
}

std::string kind_of(const ShapedOperator& row) {
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
                                   [](const ShapedOperator& row) { return row.stage.text(); });
  comparison.kinds = breakdown_by(base.operators, candidate.operators, kind_of);
  // An operator of one run only is compared with one that took no time.
  std::set<OperatorName> mixed = unshaped_of(base);
  mixed.merge(unshaped_of(candidate));
  for_each_pair(operators_by_name(base, mixed), operators_by_name(candidate, mixed),
                [&](const auto&, const ShapedOperator* before, const ShapedOperator* after) {
                  OperatorChange& change = comparison.rows.emplace_back();
                  change.base = before == nullptr ? none_of(*after) : *before;
                  change.candidate = after == nullptr ? none_of(*before) : *after;
                  change.calls_ns = worth_of_calls(change.base, change.candidate);
                  change.duration_ns = change.difference_ns() - change.calls_ns;
                });
  sort_by_difference(comparison.rows);
  return comparison;
}

}  // namespace gpuwhy
