// SPDX-License-Identifier: Apache-2.0
//
// The time of a step, and what follows from it: tokens per second, the worth of a saving in a day.
#include "results/step_time.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "results/field_path.h"
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

}  // namespace

bool is_work(const StageRow& stage) {
  return !stage.is_nested && stage.num_instances > 0 && !is_without_work(stage.stage);
}

const StageRow* main_stage(const Results& metrics) {
  const StageRow* longest = nullptr;
  for (const StageRow& stage : metrics.stages) {
    if (is_work(stage) && (longest == nullptr || stage.total_ns > longest->total_ns)) {
      longest = &stage;
    }
  }
  return longest;
}

const PassRow* repeated_pass(const Results& metrics) {
  if (metrics.structure) {
    for (const PassRow& pass : metrics.structure->passes) {
      if (pass.period_ns && pass.num_passes > 1) {
        return &pass;
      }
    }
  }
  return nullptr;
}

std::optional<StepTime> step_time(const Results& metrics, const StageRow& stage) {
  const auto steps = std::ranges::find(metrics.steps, stage.stage, &StepRow::stage);
  const std::string of_steps = fmt::format("steps[stage={}].", printable(stage.stage.text()));
  if (steps != metrics.steps.end() && steps->period_median_ns) {
    return StepTime{*steps->period_median_ns,
                    of_steps + path_of<StepRow>(&StepRow::period_median_ns), true};
  }
  // A range may end before the GPU has done what was launched in it, and a GPU may have been busy
  // with what was not recorded.
  std::optional<StepTime> window;
  for (const LedgerRow& row : metrics.ledgers) {
    // Less than a percent is not taken off: the time is then that of the ledger.
    const std::int64_t before_ns = row.unrecorded_before_ns();
    const std::int64_t time_ns = row.window_ns - (before_ns > row.window_ns / 100 ? before_ns : 0);
    if (row.stage == stage.stage && stage.num_instances == 1 && stage.num_open == 0 &&
        (!window || time_ns > window->time_ns)) {
      window = {time_ns, time_ns < row.window_ns ? ""
                                                 : row_path("ledgers", row, 0) + "." +
                                                       path_of<LedgerRow>(&LedgerRow::window_ns)};
    }
  }
  if (window) {
    return window;
  }
  const std::int64_t on_gpu_ns =
      steps == metrics.steps.end() ? 0 : steps->gpu_window_median_ns.value_or(0);
  if (on_gpu_ns > stage.median_ns) {
    return StepTime{on_gpu_ns, of_steps + path_of<StepRow>(&StepRow::gpu_window_median_ns)};
  }
  return stage.median_ns <= 0 ? std::nullopt
                              : std::optional(StepTime{
                                    stage.median_ns, fmt::format("stages[stage={}].",
                                                                 printable(stage.stage.text())) +
                                                         path_of<StageRow>(&StageRow::median_ns)});
}

std::optional<double> tokens_per_s(const Results& metrics, const StageRow& stage) {
  const std::optional<StepTime> step = step_time(metrics, stage);
  const std::int64_t tokens = stage.tokens.value_or(0) / stage.num_instances;
  return tokens <= 0 || !step || step->time_ns <= 0
             ? std::nullopt
             : std::optional(static_cast<double>(tokens) * 1e9 /
                             static_cast<double>(step->time_ns));
}

std::optional<double> tokens_per_s(const Results& metrics) {
  if (metrics.aggregates.decode_tokens_per_s) {
    return metrics.aggregates.decode_tokens_per_s;
  }
  for (const StageRole role : {StageRole::kDecode, StageRole::kDecodeStep, StageRole::kMixed}) {
    for (const StageRow& stage : metrics.stages) {
      if (role_of(stage.stage) == role && stage.num_instances > 0) {
        if (const auto rate = tokens_per_s(metrics, stage)) {
          return rate;
        }
      }
    }
  }
  return std::nullopt;
}

std::int64_t num_working_gpus(const Results& metrics) {
  return std::ranges::count_if(metrics.devices,
                               [](const DeviceRow& device) { return device.num_kernels > 0; });
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
  const auto stage = std::ranges::find(metrics.stages, finding.stage, &StageRow::stage);
  worth.is_one_step =
      stage != metrics.stages.end() && stage->num_instances == 1 && !is_without_work(finding.stage);
  return worth;
}

bool is_too_short_for_a_day(const Results& metrics, const Finding& finding) {
  return is_share_of_all(metrics, finding) && finding.window_ns < kLeastBasisNs;
}

}  // namespace gpuwhy
