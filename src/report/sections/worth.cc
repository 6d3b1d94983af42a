// SPDX-License-Identifier: Apache-2.0
//
// Share of a day that a saving stands for.
#include "report/sections/worth.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"
#include "results/stage_role.h"
#include "results/step_time.h"

namespace gpuwhy {

std::optional<GpuPrice> parse_gpu_price(std::string_view text) {
  constexpr std::size_t kLongestUnit = 12;
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string unit = printable(trim(text.substr(end)));
  const auto per_hour = parse_price(text.substr(0, end));
  const bool has_digit = std::ranges::any_of(unit, [](char c) { return c >= '0' && c <= '9'; });
  if (!per_hour || unit.size() > kLongestUnit || has_digit) {
    return std::nullopt;
  }
  return GpuPrice{*per_hour, unit};
}

std::string money_text(double amount, const GpuPrice& price) {
  constexpr double kLeastOfTwoDecimals = 0.995;
  const std::string number = amount == 0 || amount >= kLeastOfTwoDecimals
                                 ? fmt::format("{:.2f}", amount)
                                 : fmt::format("{:.3g}", amount);
  return number + (price.unit.empty() ? "" : " " + price.unit);
}

std::string basis_words(const Results& metrics, const Finding& finding) {
  const std::string length = format_duration_ns(finding.window_ns);
  const auto stage = std::ranges::find(metrics.stages, finding.stage, &StageRow::stage);
  if (stage == metrics.stages.end() || is_without_work(finding.stage)) {
    return length + (finding.stage.kind == RowKind::kSteady ? " of the steady phase" : " recorded");
  }
  const std::string name = printable_name(finding.stage.text());
  return fmt::format("{}, {}",
                     count_of(stage->num_instances,
                              role_of(finding.stage) == StageRole::kStep ? name : name + " step"),
                     length);
}

std::string assumption_words(const DayWorth& worth) {
  const bool has_others = worth.num_gpus > worth.num_recorded;
  return !worth.is_one_step ? (has_others ? "if the others are like this one" : "")
                            : std::string("if every step is like the one that was recorded") +
                                  (has_others ? " and the other GPUs are like this one" : "");
}

std::string day_worth_words(const Results& metrics, const Finding& finding, const GpuPrice& price) {
  const auto worth = finding.saving_ns > 0 ? worth_of_day(metrics, finding) : std::nullopt;
  if (!worth) {
    return "";
  }
  const std::string assumption = assumption_words(*worth);
  return fmt::format("worth up to {} per day at {} per GPU-hour{}{}{} (from {})",
                     money_text(worth->saved_h() * price.per_hour, price),
                     money_text(price.per_hour, price),
                     worth->num_gpus > 1 ? fmt::format(" on {} GPUs", worth->num_gpus) : "",
                     assumption.empty() ? "" : ", ", assumption, basis_words(metrics, finding));
}

}  // namespace gpuwhy
