// SPDX-License-Identifier: Apache-2.0
//
// The first sentence of a comparison: what was measured on both sides, before any verdict on it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/units.h"
#include "report/comparison/comparison_parts.h"
#include "report/document/section_parts.h"

namespace gpuwhy {
namespace {

std::string sides_text(const TimeChange& sides) {
  return fmt::format("{} -> {}", format_duration_ns(sides.base_ns),
                     format_duration_ns(sides.candidate_ns));
}

std::string percent_change(const TimeChange& sides) {
  return format_change(
      sides.base_ns == 0
          ? 0
          : static_cast<double>(sides.candidate_ns) / static_cast<double>(sides.base_ns) - 1);
}

// The change is the ratio of the row, which is not that of the medians where there are several
// runs.
std::string metric_change(const MetricChange& row, bool is_one_run) {
  const auto text = [&](double value) { return shown({value, metric_unit(row), ""}); };
  const std::string values = fmt::format("{} -> {}", text(*row.base), text(*row.candidate));
  const std::string label = metric_label(row.key);
  if (!row.ratio) {
    return fmt::format("{} {}", label, values);
  }
  const std::string change = change_text(row);
  return is_one_run ? fmt::format("{} {} ({})", label, values, change)
                    : fmt::format("{} {} (medians {})", label, change, values);
}

// ", mean 151 ms -> 136 ms (-10.0 %)", where it tells another story than the median: a step that is
// long now and then is in the bill, and not in a median.
std::string mean_words(const Comparison& comparison, const MetricChange& row) {
  constexpr double kOther = 0.02;
  if (!comparison.steps || !row.ratio || !(comparison.steps->base_mean_ns > 0) ||
      comparison.steps->stage != row.stage) {
    return "";
  }
  const PairedSteps& steps = *comparison.steps;
  const double ratio = steps.candidate_mean_ns / steps.base_mean_ns;
  return std::abs(ratio - *row.ratio) < kOther
             ? ""
             : fmt::format(", mean {} -> {} ({})",
                           format_duration_ns(static_cast<std::int64_t>(steps.base_mean_ns)),
                           format_duration_ns(static_cast<std::int64_t>(steps.candidate_mean_ns)),
                           format_change(ratio - 1));
}

// Kernel time of one pass: it stays comparable where the sides made different numbers of passes.
std::string pass_change(const ModelPassChange& pass) {
  return fmt::format("one {} pass ({}) {} of kernel time ({})", pass.pass,
                     count_of(pass.num_layers, "layer"), sides_text(pass), percent_change(pass));
}

// Kernel time, and launches where their number changed by a percent or more: then the sides did
// different work, and less time is not more speed.
std::string kernel_change(const Comparison& comparison) {
  const auto base = static_cast<double>(comparison.base_launches);
  const auto candidate = static_cast<double>(comparison.candidate_launches);
  std::string text = fmt::format("kernel time {} ({})", sides_text(comparison.kernel_time),
                                 percent_change(comparison.kernel_time));
  if (base > 0 && candidate > 0 && std::abs(candidate / base - 1) >= 0.01) {
    text += fmt::format(" with {:.1f} % {} launches ({} -> {})",
                        std::abs(candidate / base - 1) * 100, candidate < base ? "fewer" : "more",
                        comparison.base_launches, comparison.candidate_launches);
  }
  return text;
}

// A clock ended both recordings: the length says nothing, the work in it does.
std::string pace_text(const PaceChange& pace) {
  const double work = std::abs(pace.work_ratio - 1) * 100;
  const double time = pace.time_ratio() - 1;
  const char* less = pace.work_ratio < 1 ? "less" : "more";
  return fmt::format(
      "both recordings are {} long; the candidate did {:.1f} % {} work per second (its kernels ran {} "
      "often), so the same work takes about {:.1f} % {}",
      format_duration_ns(pace.candidate_ns), work, less, less, std::abs(time) * 100,
      time > 0 ? "longer" : "less time");
}

// Without a base: the values that have limits.
std::string measured_values(const Comparison& comparison) {
  std::vector<std::string> parts;
  for (const MetricChange& row : comparison.metrics) {
    if (row.candidate) {
      const std::size_t runs = comparison.candidate.size();
      parts.push_back(fmt::format(
          "{} {} ({}{})", metric_label(row.key), shown({*row.candidate, metric_unit(row), ""}),
          row.missing_runs == 0
              ? ""
              : fmt::format("in {} of {} runs, ", runs - static_cast<std::size_t>(row.missing_runs),
                            runs),
          limit_text(row)));
    }
  }
  return parts.empty() ? "Nothing that has a limit was measured."
                       : with_capital(printable(fmt::format("{}", fmt::join(parts, "; ")))) + ".";
}

}  // namespace

std::string repeated_words(const std::vector<RepeatedRun>& repeated) {
  if (repeated.empty()) {
    return "";
  }
  const std::string first =
      fmt::format("{} is the same run as {}", repeated.front().label, repeated.front().same_as);
  return printable(repeated.size() == 1
                       ? first + " and counts once"
                       : fmt::format("{} runs were given twice and count once; {}, for example",
                                     repeated.size(), first));
}

std::string change_text(const MetricChange& row) {
  const std::string change = shown({row.ratio.value_or(1), CellFormat::kRatio, ""});
  const bool is_other_way =
      row.base && row.candidate && (*row.ratio - 1) * (*row.candidate - *row.base) < 0;
  return is_other_way ? change + " over all pairs of runs, unlike the medians" : change;
}

std::string level_text(double level) {
  return fmt::format("{:.3g} %", level * 100);
}

std::string limit_text(const MetricChange& metric) {
  std::vector<std::string> limits;
  for (const auto& [word, limit] :
       {std::pair("at most", metric.at_most), std::pair("at least", metric.at_least)}) {
    if (limit) {
      limits.push_back(fmt::format("{} {}", word, shown({*limit, metric_unit(metric), ""})));
    }
  }
  return fmt::format("{}", fmt::join(limits, ", "));
}

std::string measured_change(const Comparison& comparison) {
  if (has_failed_run(comparison)) {
    return fmt::format("Nothing was {}: a run failed or is empty.",
                       comparison.base.empty() ? "judged" : "compared");
  }
  if (comparison.base.empty()) {
    return measured_values(comparison);
  }
  if (const auto only = std::ranges::find(comparison.facts, "gpu_work", &FactDifference::fact);
      only != comparison.facts.end()) {
    return fmt::format("Nothing was compared: {}.", only->sentence);
  }
  std::vector<std::string> parts;
  const bool is_one_run = comparison.base.size() == 1 && comparison.candidate.size() == 1;
  if (comparison.pace) {
    parts.push_back(pace_text(*comparison.pace));
  }
  const std::size_t most = parts.size() + 2;
  for (const MetricChange& row : comparison.metrics) {
    const bool is_length = row.key == kLengthKey || row.key == kPaceKey;
    if (row.is_gated && row.base && row.candidate && *row.base > 0 && parts.size() < most &&
        !(comparison.pace && is_length)) {
      parts.push_back(metric_change(row, is_one_run) + mean_words(comparison, row));
    }
  }
  for (const ModelPassChange& pass : comparison.model.passes) {
    parts.push_back(pass_change(pass));
  }
  if (comparison.kernel_time.base_ns > 0 && comparison.kernel_time.candidate_ns > 0) {
    parts.push_back(kernel_change(comparison));
  }
  if (parts.empty()) {
    return "Nothing was measured on both sides.";
  }
  return with_capital(printable(fmt::format("{}", fmt::join(parts, "; ")))) + ".";
}

std::string moved_wait_text(const MovedWait& row) {
  const std::int64_t sum_ns = row.more_ns - row.less_ns;
  return fmt::format(
      "Waiting moved from {0} to {1} ({2}): {0} waits {3} less, {1} {4} more{5}.{6}",
      printable(row.from), printable(row.to), bucket_in_words(row.bucket),
      format_duration_ns(row.less_ns), format_duration_ns(row.more_ns),
      sum_ns == 0 ? ""
                  : fmt::format(", {} {} in all", format_duration_ns(std::abs(sum_ns)),
                                sum_ns > 0 ? "more" : "less"),
      row.bucket == Bucket::kComm ? " There a GPU waits for a slower one, which itself waits less."
                                  : "");
}

std::string runs_sentence(const Comparison& comparison) {
  const std::size_t base = comparison.base.size();
  const std::size_t candidate = comparison.candidate.size();
  const std::string twice = repeated_words(comparison.repeated);
  const std::string repeated = twice.empty() ? "" : " " + twice + ".";
  if (base == 0) {
    return fmt::format("{}, judged by limits alone: no baseline was given.{}",
                       count_of(static_cast<std::int64_t>(candidate), "run"), repeated);
  }
  std::string text = base == 1 && candidate == 1
                         ? "One run per side."
                         : fmt::format("{} {} of the base, {} of the candidate.", base,
                                       base == 1 ? "run" : "runs", candidate);
  for (const std::string& more : {paired_sentence(comparison), dates_sentence(comparison)}) {
    text += more.empty() ? "" : " " + more;
  }
  return text + repeated;
}

}  // namespace gpuwhy
