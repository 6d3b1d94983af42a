// SPDX-License-Identifier: Apache-2.0
//
// Share of a day that a saving stands for.
#include "report/worth.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/findings/findings.h"
#include "base/cut_name.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"
#include "report/speed.h"
#include "results/results.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

bool is_share_of_all(const Results& metrics, const Finding& finding) {
  const auto num_stages =
      std::ranges::count_if(metrics.stages, [](const StageRow& stage) { return !stage.is_nested; });
  const bool is_all = finding.stage.kind == RowKind::kRecording ||
                      finding.stage.kind == RowKind::kSteady || num_stages == 1;
  return is_all && num_working_gpus(metrics) > 0;
}

// "6 steps, 929 ms"; "929 ms of the steady phase".
std::string basis_of(const Results& metrics, const Finding& finding) {
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

}  // namespace

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

std::optional<DayWorth> worth_of_day(const Results& metrics, const Finding& finding) {
  if (!is_share_of_all(metrics, finding) || finding.window_ns < kLeastBasisNs) {
    return std::nullopt;
  }
  DayWorth worth;
  worth.num_recorded = num_working_gpus(metrics);
  worth.num_gpus =
      std::max(worth.num_recorded, metrics.capture.world_size.value_or(worth.num_recorded));
  worth.share = finding.saving_fraction().value_or(0);
  worth.basis = basis_of(metrics, finding);
  const auto stage = std::ranges::find(metrics.stages, finding.stage, &StageRow::stage);
  const bool is_one_step =
      stage != metrics.stages.end() && stage->num_instances == 1 && !is_without_work(finding.stage);
  worth.assumption = is_one_step ? "if every step is like the one that was recorded" : "";
  if (worth.num_gpus > worth.num_recorded) {
    worth.assumption += worth.assumption.empty() ? "if the others are like this one"
                                                 : " and the other GPUs are like this one";
  }
  return worth;
}

std::string day_worth_words(const Results& metrics, const Finding& finding, const GpuPrice& price) {
  const auto worth = finding.saving_ns > 0 ? worth_of_day(metrics, finding) : std::nullopt;
  return !worth
             ? ""
             : fmt::format("worth up to {} per day at {} per GPU-hour{}{}{} (from {})",
                           money_text(worth->saved_h() * price.per_hour, price),
                           money_text(price.per_hour, price),
                           worth->num_gpus > 1 ? fmt::format(" on {} GPUs", worth->num_gpus) : "",
                           worth->assumption.empty() ? "" : ", ", worth->assumption, worth->basis);
}

bool is_too_short_for_a_day(const Results& metrics, const Finding& finding) {
  return is_share_of_all(metrics, finding) && finding.window_ns < kLeastBasisNs;
}

}  // namespace gpuwhy
