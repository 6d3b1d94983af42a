// SPDX-License-Identifier: Apache-2.0
//
// The efficiency of stages for a reader and for machines. A ratio stands beside its denominators:
// without peak, bandwidth and clock nobody can check it.
#include "report/report.h"

namespace llmprof {
namespace {

Json clocks_json(const TwoClocks& clocks) {
  return {{"wall_fraction", number_or_null(clocks.wall_fraction)},
          {"busy_fraction", number_or_null(clocks.busy_fraction)}};
}

Json stage_json(const StageEfficiency& row) {
  const auto each = [&](double total) { return total / static_cast<double>(row.passes); };
  return {
      {"stage", row.stage},
      {"passes", row.passes},
      {"tokens", row.tokens},
      {"mean_context", row.mean_context},
      {"wall_ns", row.wall_ns},
      {"busy_ns", number_or_null(row.busy_ns)},
      {"flops", row.flops},
      {"executed_flops", row.executed_flops},
      {"bytes", row.bytes},
      {"least_bytes", row.least_bytes},
      {"bound_ns", number_or_null(row.bound_ns)},
      {"pass_ns", row.passes == 0 ? Json(nullptr) : Json(each(static_cast<double>(row.wall_ns)))},
      {"pass_bound_ns",
       row.passes == 0 || !row.bound_ns ? Json(nullptr) : Json(each(*row.bound_ns))},
      {"mfu", clocks_json(row.mfu)},
      {"hfu", clocks_json(row.hfu)},
      {"mbu", clocks_json(row.mbu)},
      {"sol", clocks_json(row.sol)},
      {"side", row.side},
      {"verdict", row.verdict},
      {"reason", row.reason}};
}

Json fit_json(const StepFit& fit) {
  Json outliers = Json::array();
  for (const StepOutlier& outlier : fit.outliers) {
    outliers.push_back({{"step", outlier.step},
                        {"start_ns", outlier.start_ns},
                        {"measured_ns", outlier.measured_ns},
                        {"fitted_ns", outlier.fitted_ns}});
  }
  return {{"steps", fit.num_steps},
          {"fixed_ns", fit.fixed_ns},
          {"per_token_ns", number_or_null(fit.per_token_ns)},
          {"per_kv_token_ns", number_or_null(fit.per_kv_token_ns)},
          {"r_squared", fit.r_squared},
          {"num_outliers", fit.num_outliers},
          {"outliers", outliers}};
}

}  // namespace

Json efficiency_json(const Efficiency& efficiency) {
  Json json = {{"model", efficiency.model},
               {"gpu", text_or_null(efficiency.gpu)},
               {"num_gpus", efficiency.num_gpus},
               {"dtype", efficiency.dtype},
               {"peak_flops_per_s", number_or_null(efficiency.flops_per_s)},
               {"peak_bytes_per_s", number_or_null(efficiency.bytes_per_s)},
               {"reason", efficiency.reason},
               {"stages", Json::array()},
               {"step_fit", efficiency.fit ? fit_json(*efficiency.fit) : Json(nullptr)},
               {"step_fit_reason", efficiency.fit_reason},
               {"errors", efficiency.errors},
               {"notes", efficiency.notes}};
  for (const StageEfficiency& row : efficiency.stages) {
    json["stages"].push_back(stage_json(row));
  }
  return json;
}

}  // namespace llmprof
