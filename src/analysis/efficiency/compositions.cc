// SPDX-License-Identifier: Apache-2.0
//
// Steps by composition: stage and number of sequences.
//
// A mean over all decode steps of a server says little: one with 4 sequences and one with 200
// differ in all that matters. Time is the period, which holds all that a step costs its users; a
// step without one (the last, or before a pause) enters no ratio.
#include "analysis/efficiency/compositions.h"

#include <algorithm>
#include <bit>
#include <map>

#include "analysis/analysis.h"
#include "base/median.h"
#include "model/efficiency_setup.h"
#include "model/lower_bound.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// The smallest power of two that is not below the number.
std::int64_t bucket_of(std::int64_t sequences) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(sequences)));
}

std::optional<double> mean_context_of(const std::vector<const StageStep*>& steps) {
  double keys = 0;
  double requests = 0;
  for (const StageStep* step : steps) {
    const auto& [context, generation] = step->counts;
    if (!context.keys || !generation.keys) {
      return std::nullopt;
    }
    keys += static_cast<double>(*context.keys) + static_cast<double>(*generation.keys);
    requests += static_cast<double>(context.requests) + static_cast<double>(generation.requests);
  }
  return requests > 0 ? std::optional(keys / requests) : std::nullopt;
}

std::optional<std::int64_t> tokens_of(const std::vector<const StageStep*>& steps) {
  std::int64_t tokens = 0;
  for (const StageStep* step : steps) {
    if (!step->tokens) {
      return std::nullopt;
    }
    tokens += *step->tokens;
  }
  return tokens;
}

std::optional<std::int64_t> median_period(const std::vector<const StageStep*>& steps) {
  std::vector<std::int64_t> periods;
  for (const StageStep* step : steps) {
    if (step->period_ns) {
      periods.push_back(*step->period_ns);
    }
  }
  return lower_median(std::move(periods));
}

void add_ratios(const std::vector<const StageStep*>& steps, const Analysis& analysis,
                const EfficiencySetup& model, Composition& row) {
  LlmCost cost;
  std::int64_t time_ns = 0;
  for (const StageStep* step : steps) {
    if (step->period_ns && step->counts.is_complete()) {
      cost.add(cost_of(model.llm, step->counts));
      time_ns += *step->period_ns;
    }
  }
  if (time_ns == 0) {
    return;
  }
  const CostBound bound = bound_of(model.llm, cost, *model.gpu.gpu);
  const double gpu_s =
      static_cast<double>(time_ns) * 1e-9 * static_cast<double>(analysis.efficiency->num_gpus);
  row.mfu_fraction = bound.compute_s ? std::optional(*bound.compute_s / gpu_s) : std::nullopt;
  row.mbu_fraction = bound.memory_s / gpu_s;
}

// A draft model has other sizes than the model that was named.
bool has_cost(const RowName& stage) {
  return role_of(stage) != StageRole::kDraft && role_of(stage) != StageRole::kIdle;
}

}  // namespace

std::vector<Composition> find_compositions(const Analysis& analysis, const EfficiencySetup* model) {
  std::map<std::pair<std::uint32_t, std::int64_t>, std::vector<const StageStep*>> groups;
  for (const StageStep& step : analysis.stage_steps) {
    if (step.is_step && !step.is_open && step.sequences.value_or(0) > 0) {
      groups[{step.stage, bucket_of(*step.sequences)}].push_back(&step);
    }
  }
  // Without a GPU in `efficiency` it is not known what the model's GPUs could do.
  const bool has_ratios = model != nullptr && model->gpu.gpu && analysis.efficiency &&
                          !analysis.efficiency->gpu.empty();
  std::vector<Composition> rows;
  for (const auto& [key, steps] : groups) {
    Composition& row = rows.emplace_back();
    row.stage = analysis.stages[key.first].stage;
    row.most_sequences = key.second;
    row.least_sequences = key.second / 2 + 1;
    row.num_steps = static_cast<std::int64_t>(steps.size());
    row.tokens = tokens_of(steps);
    row.mean_context = mean_context_of(steps);
    row.period_median_ns = median_period(steps);
    if (has_ratios && has_cost(row.stage)) {
      add_ratios(steps, analysis, *model, row);
    }
  }
  return rows;
}

}  // namespace gpuwhy
