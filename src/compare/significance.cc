// SPDX-License-Identifier: Apache-2.0
//
// Statistical significance of the changes of kernels and operators.
//
// The amounts of two median runs are broken down to the nanosecond, including noise. If there are
// several runs per side, the times of a row in each of them are compared by ranks, with 0 where it
// did not run. There are many rows, so some seem to change by chance: the Benjamini-Hochberg
// correction limits the share of those among the reported ones. A row that changed by less than
// what matters is not reported either. None of this decides the verdict.
//
// What this gets wrong: with few runs per side no change can be significant, however large, and all
// are within noise. The number of runs that would decide is that of the metrics.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "compare/compare.h"
#include "compare/statistics.h"

namespace gpuwhy {
namespace {

constexpr double kFalseDiscoveries = 0.05;

std::string key_of(const KernelRow& kernel) {
  return kernel.stage.text() + '\n' + kernel.device + '\n' + kernel.kernel_name;
}

std::string key_of(const ShapedOperator& row) {
  return row.stage.text() + '\n' + row.name + '\n' + row.shape;
}

// The row that stands for several of the same name.
std::optional<std::string> key_of_all(const ShapedOperator& row) {
  return row.shape.empty() ? std::nullopt
                           : std::optional(row.stage.text() + '\n' + row.name + '\n');
}
std::optional<std::string> key_of_all(const KernelRow&) {
  return std::nullopt;
}

// Times of a row in each run.
using RowTimes = std::map<std::string, std::vector<double>>;

template <typename Amount>
RowTimes times_of(const std::vector<RunSummary>& runs, std::vector<Amount> RunSummary::*rows) {
  RowTimes times;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto add = [&](const std::string& key, const Amount& row) {
      std::vector<double>& of = times[key];
      of.resize(runs.size());
      of[i] += static_cast<double>(row.total_ns);
    };
    for (const Amount& row : runs[i].*rows) {
      add(key_of(row), row);
      if (const std::optional<std::string> all = key_of_all(row)) {
        add(*all, row);
      }
    }
  }
  return times;
}

template <typename Amount, typename Change>
void test_rows(const std::vector<RunSummary>& base, const std::vector<RunSummary>& candidate,
               std::vector<Amount> RunSummary::*amounts, double smallest_effect,
               std::vector<Change>& changes) {
  const RowTimes before = times_of(base, amounts);
  const RowTimes after = times_of(candidate, amounts);
  const auto in = [](const RowTimes& times, const Amount& row, std::size_t runs) {
    const auto found = times.find(key_of(row));
    return found == times.end() ? std::vector<double>(runs) : found->second;
  };
  std::vector<double> all;
  all.reserve(changes.size());
  for (const Change& change : changes) {
    all.push_back(rank_test(in(before, change.base, base.size()),
                            in(after, change.candidate, candidate.size()), Tail::kTwoSided)
                      .p);
  }
  const std::vector<double> adjusted = benjamini_hochberg(all);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Change& change = changes[i];
    change.p = all[i];
    change.adjusted_p = adjusted[i];
    const auto whole = static_cast<double>(std::max<std::int64_t>(change.base.total_ns, 1));
    const double moved = std::abs(static_cast<double>(change.difference_ns())) / whole;
    change.is_significant = adjusted[i] <= kFalseDiscoveries && moved >= smallest_effect;
  }
}

}  // namespace

void mark_significant_changes(const std::vector<RunSummary>& base,
                              const std::vector<RunSummary>& candidate,
                              const CompareOptions& options, Comparison& comparison) {
  if (base.size() < 2 || candidate.size() < 2) {
    return;
  }
  test_rows(base, candidate, &RunSummary::kernels, options.smallest_effect, comparison.kernels);
  test_rows(base, candidate, &RunSummary::operators, options.smallest_effect,
            comparison.operators.rows);
}

}  // namespace gpuwhy
