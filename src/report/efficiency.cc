// SPDX-License-Identifier: Apache-2.0
//
// The efficiency of stages for a reader and for machines. A ratio stands beside its denominators:
// without peak, bandwidth and clock nobody can check it.
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/report.h"

namespace llmprof {
namespace {

// Small ratios are the interesting ones: 0.0519 %, not 0.05 %.
std::string percent(const std::optional<double>& fraction) {
  if (!fraction) {
    return "n/a";
  }
  return *fraction < 0.01 ? fmt::format("{:.3g} %", *fraction * 100) : format_fraction(*fraction);
}

std::string stage_line(const StageEfficiency& row, const std::string& known_reason) {
  std::string text =
      fmt::format("  {:<12} {:>6} {:>9} {:>9} {:>9} {:>9}  {}\n", printable(row.stage), row.passes,
                  percent(row.mfu.wall_fraction), percent(row.mbu.wall_fraction),
                  percent(row.sol.wall_fraction), percent(row.sol.busy_fraction), row.verdict);
  if (row.bound_ns && row.passes > 0) {
    const auto passes = static_cast<double>(row.passes);
    const auto each = [&](double total) {
      return format_duration_ns(static_cast<std::int64_t>(total / passes));
    };
    text += fmt::format(
        "  {:<12} {} a pass against a bound of {} ({}){}\n", "",
        each(static_cast<double>(row.wall_ns)), each(*row.bound_ns), row.side,
        row.mean_context > 0 ? fmt::format(", mean context {:.1f}", row.mean_context) : "");
  }
  if (!row.reason.empty() && row.reason != known_reason) {
    text += fmt::format("  {:<12} n/a ({})\n", "", printable(row.reason));
  }
  return text;
}

std::string fit_text(const StepFit& fit) {
  const auto length = [](double ns) { return format_duration_ns(static_cast<std::int64_t>(ns)); };
  std::string text = fmt::format("  a decode step takes {}", length(fit.fixed_ns));
  if (fit.per_token_ns) {
    text += fmt::format(" + {:.4g} ns a token", *fit.per_token_ns);
  }
  if (fit.per_kv_token_ns) {
    text += fmt::format(" + {:.4g} ns a token attended to", *fit.per_kv_token_ns);
  }
  text += fmt::format(" (fit over {} steps, R2 {:.2f}, {} outliers)\n", fit.num_steps,
                      fit.r_squared, fit.num_outliers);
  for (const StepOutlier& outlier : fit.outliers) {
    text += fmt::format("    step {} took {}, {} expected\n", outlier.step,
                        format_duration_ns(outlier.measured_ns), length(outlier.fitted_ns));
  }
  return text;
}

Json clocks_json(const TwoClocks& clocks) {
  return {{"wall_fraction", number_or_null(clocks.wall_fraction)},
          {"busy_fraction", number_or_null(clocks.busy_fraction)}};
}

Json stage_json(const StageEfficiency& row) {
  return {{"stage", row.stage},
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

std::string efficiency_text(const Efficiency& efficiency) {
  std::string text = fmt::format("\nEfficiency of {} on {}\n", printable(efficiency.model),
                                 efficiency.gpu.empty()
                                     ? fmt::format("n/a ({})", printable(efficiency.reason))
                                     : fmt::format("{} x {}", efficiency.num_gpus, efficiency.gpu));
  if (!efficiency.gpu.empty()) {
    text += fmt::format("  peak {} dense {}, {:g} GB/s a GPU\n",
                        efficiency.flops_per_s
                            ? fmt::format("{:g} TFLOP/s", *efficiency.flops_per_s / 1e12)
                            : "n/a",
                        efficiency.dtype, efficiency.bytes_per_s.value_or(0) / kGB);
  }
  if (!efficiency.stages.empty()) {
    text += fmt::format("  {:<12} {:>6} {:>9} {:>9} {:>9} {:>9}\n", "stage", "passes", "MFU", "MBU",
                        "SOL", "SOL busy");
  }
  if (efficiency.stages.empty()) {
    text += "  n/a: the recording marks neither prefill nor decode (docs/marking.md)\n";
  }
  for (const StageEfficiency& row : efficiency.stages) {
    text += stage_line(row, efficiency.reason);
  }
  if (efficiency.fit) {
    text += fit_text(*efficiency.fit);
  }
  for (const std::string& error : efficiency.errors) {
    text += fmt::format("  error: {}\n", printable(error));
  }
  for (const std::string& note : efficiency.notes) {
    text += fmt::format("  note: {}\n", printable(note));
  }
  return text;
}

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
