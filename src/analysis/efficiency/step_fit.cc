// SPDX-License-Identifier: Apache-2.0
//
// Linear model of decode step time: fixed cost, cost per token, cost per token of context.
//
// A line through the steps separates the three, and steps far off it are worth a look: a garbage
// collection, another request, a profiler flush. A column that does not vary is indistinguishable
// from the fixed cost and remains in it.
//
// Outliers bend a least-squares line, so it is fitted twice, the second time without steps whose
// residual exceeds six times the typical one (its median, which for normal noise is four standard
// deviations). What it gets wrong: more than a third of bad steps pull the line towards them.
#include "analysis/efficiency/step_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace gpuwhy {
namespace {

constexpr double kLeastExplained = 0.1;  // of the variance
constexpr std::size_t kFewestSteps = 8;
constexpr double kFarResiduals = 6;
constexpr double kFarFraction = 0.05;  // and at least so much of the step itself
constexpr std::size_t kMostOutliers = 10;

struct Line {
  double fixed = 0;
  std::array<double, 2> slopes{};  // tokens, kv_tokens
};

double at(const Line& line, const StepSample& step) {
  return line.fixed + line.slopes[0] * step.tokens + line.slopes[1] * step.kv_tokens;
}

bool varies(const std::vector<StepSample>& steps, double StepSample::*column) {
  const auto [least, most] = std::minmax_element(
      steps.begin(), steps.end(),
      [&](const StepSample& a, const StepSample& b) { return a.*column < b.*column; });
  return (*most).*column > (*least).*column;
}

// Least squares with means subtracted, so that the two slopes are a 2 x 2 system.
Line fitted(const std::vector<StepSample>& steps, bool has_tokens, bool has_kv) {
  const auto count = static_cast<double>(steps.size());
  double mean_y = 0;
  double mean_t = 0;
  double mean_k = 0;
  for (const StepSample& step : steps) {
    mean_y += static_cast<double>(step.duration_ns) / count;
    mean_t += step.tokens / count;
    mean_k += step.kv_tokens / count;
  }
  double tt = 0;
  double kk = 0;
  double tk = 0;
  double ty = 0;
  double ky = 0;
  for (const StepSample& step : steps) {
    const double t = has_tokens ? step.tokens - mean_t : 0;
    const double k = has_kv ? step.kv_tokens - mean_k : 0;
    const double y = static_cast<double>(step.duration_ns) - mean_y;
    tt += t * t;
    kk += k * k;
    tk += t * k;
    ty += t * y;
    ky += k * y;
  }
  Line line;
  const double determinant = tt * kk - tk * tk;
  if (has_tokens && has_kv && determinant > 1e-9 * tt * kk) {
    line.slopes = {(ty * kk - ky * tk) / determinant, (ky * tt - ty * tk) / determinant};
  } else if (has_kv && kk > 0) {
    line.slopes[1] = ky / kk;
  } else if (has_tokens && tt > 0) {
    line.slopes[0] = ty / tt;
  }
  line.fixed = mean_y - line.slopes[0] * mean_t - line.slopes[1] * mean_k;
  return line;
}

double residual(const Line& line, const StepSample& step) {
  return std::fabs(static_cast<double>(step.duration_ns) - at(line, step));
}

double far_residual(const Line& line, const std::vector<StepSample>& steps) {
  std::vector<double> residuals;
  std::vector<double> lengths;
  residuals.reserve(steps.size());
  lengths.reserve(steps.size());
  for (const StepSample& step : steps) {
    residuals.push_back(residual(line, step));
    lengths.push_back(static_cast<double>(step.duration_ns));
  }
  const auto middle = static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(residuals.begin(), residuals.begin() + middle, residuals.end());
  std::nth_element(lengths.begin(), lengths.begin() + middle, lengths.end());
  const auto index = static_cast<std::size_t>(middle);
  return std::max(kFarResiduals * residuals[index], kFarFraction * lengths[index]);
}

double r_squared(const Line& line, const std::vector<StepSample>& steps) {
  double mean = 0;
  for (const StepSample& step : steps) {
    mean += static_cast<double>(step.duration_ns) / static_cast<double>(steps.size());
  }
  double left = 0;
  double all = 0;
  for (const StepSample& step : steps) {
    left += std::pow(residual(line, step), 2);
    all += std::pow(static_cast<double>(step.duration_ns) - mean, 2);
  }
  return all > 0 ? 1 - left / all : 1;
}

void add_outliers(const Line& line, const std::vector<StepSample>& steps, double far,
                  StepFit& fit) {
  for (const StepSample& step : steps) {
    if (residual(line, step) > far) {
      fit.outliers.push_back({step.number, step.start_ns, step.duration_ns, at(line, step)});
    }
  }
  fit.num_outliers = static_cast<std::int64_t>(fit.outliers.size());
  std::stable_sort(fit.outliers.begin(), fit.outliers.end(),
                   [](const StepOutlier& a, const StepOutlier& b) {
                     return std::fabs(static_cast<double>(a.measured_ns) - a.fitted_ns) >
                            std::fabs(static_cast<double>(b.measured_ns) - b.fitted_ns);
                   });
  fit.outliers.resize(std::min(fit.outliers.size(), kMostOutliers));
}

}  // namespace

std::optional<StepFit> fit_steps(const std::vector<StepSample>& steps, std::string& reason) {
  if (steps.size() <= kFewestSteps) {
    reason = fmt::format("needs more than {} decode steps, has {}", kFewestSteps, steps.size());
    return std::nullopt;
  }
  const std::vector<StepSample> used(steps.begin() + 1, steps.end());
  const bool has_tokens = varies(used, &StepSample::tokens);
  const bool has_kv = varies(used, &StepSample::kv_tokens);
  const Line first = fitted(used, has_tokens, has_kv);
  const double first_far = far_residual(first, used);
  std::vector<StepSample> near;
  std::copy_if(used.begin(), used.end(), std::back_inserter(near),
               [&](const StepSample& step) { return residual(first, step) <= first_far; });
  const Line line = near.size() < kFewestSteps ? first : fitted(near, has_tokens, has_kv);
  StepFit fit;
  fit.num_steps = static_cast<std::int64_t>(used.size());
  fit.fixed_ns = line.fixed;
  if (has_tokens) {
    fit.per_token_ns = line.slopes[0];
  }
  if (has_kv) {
    fit.per_kv_token_ns = line.slopes[1];
  }
  fit.r_squared = r_squared(line, near.size() < kFewestSteps ? used : near);
  // A negative cost, or a line that explains almost none of the variation, is rejected.
  if (line.fixed < 0 || ((has_tokens || has_kv) && fit.r_squared < kLeastExplained)) {
    reason = fmt::format(
        "the steps' times do not follow tokens and context: a line explains {:.0f} % of them",
        100 * std::max(fit.r_squared, 0.0));
    return std::nullopt;
  }
  add_outliers(line, used, far_residual(line, near.size() < kFewestSteps ? used : near), fit);
  return fit;
}

}  // namespace gpuwhy
