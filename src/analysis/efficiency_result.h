// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/row.h"

namespace gpuwhy {

// The diagnostic of a model that does not fit the recording.
inline constexpr std::string_view kModelMismatch = "model_mismatch";

// A ratio over two times: the stage's wall time, and the part of it in which a GPU was busy.
struct TwoClocks {
  std::optional<double> wall_fraction;
  std::optional<double> busy_fraction;
};

// What a stage achieved, relative to what the GPUs could have done.
struct StageEfficiency {
  RowName stage;
  std::int64_t passes = 0;   // forward passes: prompts, or steps
  std::int64_t tokens = 0;   // computed: read, made or verified
  double mean_context = 0;   // of a request in decode or verify; 0 for prefill and mixed
  std::int64_t wall_ns = 0;  // all instances, to the end of their GPU work
  std::optional<std::int64_t> busy_ns;
  std::int64_t flops = 0;           // the model's
  std::int64_t executed_flops = 0;  // what kernels of the usual kind execute for them
  std::int64_t bytes = 0;
  std::int64_t least_bytes = 0;  // of a mixture: every token takes the same experts
  std::optional<double> bound_ns;
  TwoClocks mfu;
  TwoClocks hfu;  // executed FLOPs instead of the model's
  TwoClocks mbu;
  TwoClocks sol;
  std::string side;     // "compute" or "memory": which one binds
  std::string verdict;  // "memory-bound", "GPU mostly idle", ...
  std::string reason;   // why ratios are missing

  std::optional<double> pass_ns() const { return of_pass(static_cast<double>(wall_ns)); }
  std::optional<double> pass_bound_ns() const {
    return bound_ns ? of_pass(*bound_ns) : std::nullopt;
  }

 private:
  std::optional<double> of_pass(double total) const {
    return passes == 0 ? std::nullopt : std::optional(total / static_cast<double>(passes));
  }
};

// A decode step far off the fitted line.
struct StepOutlier {
  std::int64_t step = 0;  // from 0, in time
  std::int64_t start_ns = 0;
  std::int64_t measured_ns = 0;
  double fitted_ns = 0;
};

// The duration of decode steps as fixed + per_token x tokens + per_kv_token x tokens attended to.
struct StepFit {
  std::int64_t num_steps = 0;
  double fixed_ns = 0;
  std::optional<double> per_token_ns;     // nullopt if all steps make the same number
  std::optional<double> per_kv_token_ns;  // nullopt if the context does not vary
  double r_squared = 0;
  std::int64_t num_outliers = 0;
  std::vector<StepOutlier> outliers;  // the worst of them
};

// Efficiency of a recording for one model.
struct Efficiency {
  std::string model;
  std::string gpu;  // the row of the table; empty when there is none
  std::int64_t num_gpus = 0;
  std::string dtype;                  // the linear layers execute in
  std::optional<double> flops_per_s;  // dense peak of one GPU in it
  std::optional<double> bytes_per_s;
  std::string reason;  // why there are no ratios at all
  std::vector<StageEfficiency> stages;
  std::optional<StepFit> fit;
  std::string fit_reason;
  std::vector<std::string> notes;
  std::vector<std::string> errors;  // ratios above one, each with the input to look at
};

}  // namespace gpuwhy
