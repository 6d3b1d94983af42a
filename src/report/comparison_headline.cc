// SPDX-License-Identifier: Apache-2.0
//
// The first sentence of a comparison: what was measured on both sides, before any verdict on it.
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/units.h"
#include "report/comparison_parts.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

std::string percent_change(double base, double candidate) {
  return format_change(base == 0 ? 0 : candidate / base - 1);
}

std::string metric_change(const MetricChange& row) {
  const auto text = [&](double value) { return shown({value, metric_unit(row), ""}); };
  return fmt::format("{} {} -> {} ({})", metric_label(row.key), text(*row.base),
                     text(*row.candidate), percent_change(*row.base, *row.candidate));
}

// Kernel time, and launches where their number changed by a percent or more: then the sides did
// different work, and less time is not more speed.
std::string kernel_change(const Comparison& comparison) {
  const auto base = static_cast<double>(comparison.base_launches);
  const auto candidate = static_cast<double>(comparison.candidate_launches);
  std::string text =
      fmt::format("kernel time {} -> {} ({})", format_duration_ns(comparison.base_kernel_ns),
                  format_duration_ns(comparison.candidate_kernel_ns),
                  percent_change(static_cast<double>(comparison.base_kernel_ns),
                                 static_cast<double>(comparison.candidate_kernel_ns)));
  if (base > 0 && candidate > 0 && std::abs(candidate / base - 1) >= 0.01) {
    text += fmt::format(" with {:.1f} % {} launches ({} -> {})",
                        std::abs(candidate / base - 1) * 100, candidate < base ? "fewer" : "more",
                        comparison.base_launches, comparison.candidate_launches);
  }
  return text;
}

}  // namespace

std::string measured_change(const Comparison& comparison) {
  std::vector<std::string> parts;
  for (const MetricChange& row : comparison.metrics) {
    if (row.is_gated && row.base && row.candidate && *row.base > 0 && parts.size() < 2) {
      parts.push_back(metric_change(row));
    }
  }
  if (comparison.base_kernel_ns > 0 && comparison.candidate_kernel_ns > 0) {
    parts.push_back(kernel_change(comparison));
  }
  if (parts.empty()) {
    return "Nothing was measured on both sides.";
  }
  return with_capital(printable(fmt::format("{}", fmt::join(parts, "; ")))) + ".";
}

std::string runs_sentence(const Comparison& comparison) {
  const std::size_t base = comparison.base.size();
  const std::size_t candidate = comparison.candidate.size();
  return base == 1 && candidate == 1 ? "One run per side."
                                     : fmt::format("{} {} of the base, {} of the candidate.", base,
                                                   base == 1 ? "run" : "runs", candidate);
}

}  // namespace llmprof
