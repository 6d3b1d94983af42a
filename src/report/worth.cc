// SPDX-License-Identifier: Apache-2.0
//
// Share of a day that a saving stands for.
#include "report/worth.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/findings/findings.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"
#include "report/metrics.h"
#include "report/speed.h"

namespace llmprof {
namespace {

bool is_share_of_all(const Metrics& metrics, const Finding& finding) {
  const auto num_stages = std::ranges::count_if(
      metrics.stages, [](const StageSummary& stage) { return !stage.is_nested; });
  const bool is_all = finding.stage == "capture" || finding.stage == "steady" || num_stages == 1;
  return is_all && num_working_gpus(metrics) > 0;
}

// "6 steps, 929 ms"; "929 ms of the steady phase".
std::string basis_of(const Metrics& metrics, const Finding& finding) {
  const std::string length = format_duration_ns(finding.window_ns);
  const auto stage = std::ranges::find(metrics.stages, finding.stage, &StageSummary::stage);
  if (stage == metrics.stages.end() || is_without_work(finding.stage)) {
    return length + (finding.stage == "steady" ? " of the steady phase" : " recorded");
  }
  const std::string name = printable(finding.stage);
  return fmt::format(
      "{}, {}", count_of(stage->num_instances, name == "step" ? name : name + " step"), length);
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
  return fmt::format("{:.2f}{}{}", amount, price.unit.empty() ? "" : " ", price.unit);
}

std::optional<DayWorth> worth_of_day(const Metrics& metrics, const Finding& finding) {
  if (!is_share_of_all(metrics, finding) || finding.window_ns < kLeastBasisNs) {
    return std::nullopt;
  }
  DayWorth worth;
  worth.num_recorded = num_working_gpus(metrics);
  worth.num_gpus =
      std::max(worth.num_recorded, metrics.capture.world_size.value_or(worth.num_recorded));
  worth.share = finding.saving_fraction().value_or(0);
  worth.basis = basis_of(metrics, finding);
  return worth;
}

bool is_too_short_for_a_day(const Metrics& metrics, const Finding& finding) {
  return is_share_of_all(metrics, finding) && finding.window_ns < kLeastBasisNs;
}

}  // namespace llmprof
