// SPDX-License-Identifier: Apache-2.0
//
// How much of what the GPUs could do a program did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/field.h"
#include "results/row.h"

namespace gpuwhy {

// The diagnostic of a model that does not fit the recording.
inline constexpr std::string_view kModelMismatch = "model_mismatch";

// A ratio over two times: the stage's wall time, and the part of it in which a GPU was busy.
struct TwoClocks {
  std::optional<double> wall_fraction;
  std::optional<double> busy_fraction;
};

template <typename F>
void describe(const TwoClocks*, F&& f) {
  f("wall_fraction", &TwoClocks::wall_fraction, kInherited);
  f("busy_fraction", &TwoClocks::busy_fraction, kInherited);
}

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

template <typename F>
void describe(const StageEfficiency*, F&& f) {
  using T = StageEfficiency;
  const auto of_marks = [](std::string_view count, std::string_view text) {
    return number("1", count, "marks", "efficiency.work", text);
  };
  const auto time = [](std::string_view text) {
    return number("ns", "passes", "marks kernels", "efficiency.time", text);
  };
  const auto cost = [](std::string_view unit, std::string_view formula, std::string_view text) {
    return number(unit, "passes", "model marks", formula, text);
  };
  const auto bound = [](std::string_view text) {
    return number("ns", "passes", "model gpus marks", "efficiency.bound", text);
  };
  const auto ratio = [](std::string_view formula, std::string_view text) {
    return number("fraction", "passes", "model gpus marks kernels", formula, text);
  };
  f("stage", &T::stage, names_row("the stage"));
  f("passes", &T::passes, of_marks("", "prompts or steps"));
  f("tokens", &T::tokens, of_marks("", "tokens computed: read, made or verified"));
  f("mean_context", &T::mean_context,
    of_marks("passes", "tokens a request in decode or verify attends to, its own included"));
  f("wall_ns", &T::wall_ns, time("sum of the stage's windows, mean over GPUs"));
  f("busy_ns", &T::busy_ns, time("of wall_ns: in which a GPU ran work of the stage"));
  f("flops", &T::flops,
    cost("FLOP", "efficiency.flops",
         "2 x multiply-adds of the model's matrix products for that work"));
  f("executed_flops", &T::executed_flops,
    cost("FLOP", "efficiency.flops", "the same as usual kernels execute them"));
  f("bytes", &T::bytes,
    cost("bytes", "efficiency.bytes",
         "weights touched once a pass at stored width, keys and values read and written"));
  f("least_bytes", &T::least_bytes,
    cost("bytes", "efficiency.bytes", "the same if all tokens took the same experts"));
  f("bound_ns", &T::bound_ns, bound("max(flops / peak, bytes / bandwidth) / GPUs"));
  f("pass_ns", &T::pass_ns, time("wall_ns / passes"));
  f("pass_bound_ns", &T::pass_bound_ns, bound("bound_ns / passes"));
  f("mfu", &T::mfu, ratio("efficiency.mfu", "flops / peak / GPUs / time"));
  f("hfu", &T::hfu, ratio("efficiency.hfu", "executed_flops / peak / GPUs / time"));
  f("mbu", &T::mbu, ratio("efficiency.mbu", "bytes / bandwidth / GPUs / time"));
  f("sol", &T::sol, ratio("efficiency.sol", "bound_ns / time"));
  f("side", &T::side, plain("compute or memory, whichever binds"));
  f("verdict", &T::verdict, plain("what limits the stage"));
  f("reason", &T::reason, plain("why ratios are missing"));
}

// A decode step far off the fitted line.
struct StepOutlier {
  std::int64_t step = 0;  // from 0, in time
  std::int64_t start_ns = 0;
  std::int64_t measured_ns = 0;
  double fitted_ns = 0;
};

template <typename F>
void describe(const StepOutlier*, F&& f) {
  using T = StepOutlier;
  const Field time = number("ns", "", "marks", "efficiency.step_fit",
                            "a step far from the line, and what the line says");
  f("step", &T::step, number("1", "", "marks", "efficiency.step_fit", "from 0, in time"));
  f("start_ns", &T::start_ns, is_signed(time));
  f("measured_ns", &T::measured_ns, time);
  f("fitted_ns", &T::fitted_ns, time);
}

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

template <typename F>
void describe(const StepFit*, F&& f) {
  using T = StepFit;
  const auto fitted = [](std::string_view unit, std::string_view count, std::string_view text) {
    return number(unit, count, "marks", "efficiency.step_fit", text);
  };
  const Field line = fitted(
      "ns", "steps", "least squares: length = fixed + per token made + per token attended to");
  f("steps", &T::num_steps, fitted("1", "", "steps the line is fitted to"));
  f("fixed_ns", &T::fixed_ns, line);
  f("per_token_ns", &T::per_token_ns, line);
  f("per_kv_token_ns", &T::per_kv_token_ns, line);
  f("r_squared", &T::r_squared, fitted("1", "steps", "how much of the spread the line explains"));
  f("num_outliers", &T::num_outliers, fitted("1", "steps", "steps set aside"));
  f("outliers", &T::outliers, plain("the worst of them"));
}

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

template <typename F>
void describe(const Efficiency*, F&& f) {
  using T = Efficiency;
  f("model", &T::model, plain("the model that was named"));
  f("gpu", &T::gpu, maybe("the row of conf/hardware/gpus.yaml"));
  f("num_gpus", &T::num_gpus,
    number("1", "", "kernels", "efficiency.gpus", "GPUs with kernels, or as --tp says"));
  f("dtype", &T::dtype, plain("the type the linear layers execute in"));
  f("peak_flops_per_s", &T::flops_per_s,
    number("FLOP/s", "", "gpus", "efficiency.peak",
           "dense peak of one GPU in the type the linear layers execute in"));
  f("peak_bytes_per_s", &T::bytes_per_s,
    number("bytes/s", "", "gpus", "efficiency.peak",
           "bandwidth of one GPU: the device's own, or the table's"));
  f("reason", &T::reason, plain("why there are no ratios at all"));
  f("stages", &T::stages, plain("the stages that cost something"));
  f("step_fit", &T::fit, plain("the length of decode steps as a line"));
  f("step_fit_reason", &T::fit_reason, plain("why there is no line"));
  f("errors", &T::errors, plain("ratios above 1, each with the inputs to look at"));
  f("notes", &T::notes, plain("what was assumed"));
}

}  // namespace gpuwhy
