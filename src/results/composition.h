// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "results/field.h"

namespace gpuwhy {

// Steps of one stage with about the same number of sequences.
struct Composition {
  RowName stage;
  // Up to a power of two: 1, 2, 3 to 4, 5 to 8, ...
  std::int64_t least_sequences = 0;
  std::int64_t most_sequences = 0;
  std::int64_t num_steps = 0;
  std::optional<std::int64_t> tokens;            // computed; nullopt if a step does not tell
  std::optional<double> mean_context;            // tokens a request attends to; likewise
  std::optional<std::int64_t> period_median_ns;  // from a step's first kernel to the next step's
  // Over the periods of the steps whose marker tells all sums.
  std::optional<double> mfu_fraction;
  std::optional<double> mbu_fraction;

  // "5 to 8"
  std::string sequences() const {
    const std::string most = std::to_string(most_sequences);
    return least_sequences == most_sequences ? most
                                             : std::to_string(least_sequences) + " to " + most;
  }
};

template <typename F>
void describe(const Composition*, F&& f) {
  using T = Composition;
  const auto of_marks = [](std::string_view count, std::string_view text) {
    return number("1", count, "marks", "compositions", text);
  };
  const auto ratio = [](std::string_view text) {
    return number("fraction", "steps", "model gpus marks kernels", "compositions.ratio", text);
  };
  f("stage", &T::stage, names_row("the stage"));
  f("sequences", &T::sequences, names_row("how many share a step, up to a power of two", 2));
  f("least_sequences", &T::least_sequences, of_marks("", "the fewest in this row"));
  f("most_sequences", &T::most_sequences, of_marks("", "the most in this row"));
  f("steps", &T::num_steps, of_marks("", "steps that ended"));
  f("tokens", &T::tokens, of_marks("steps", "tokens computed in them"));
  f("mean_context", &T::mean_context,
    of_marks("steps", "tokens a request attends to, those of the step included"));
  f("period_median_ns", &T::period_median_ns,
    number("ns", "steps", "marks calls kernels graphs", "steps.gpu",
           "from the first kernel of a step to that of the next, median"));
  f("mfu_fraction", &T::mfu_fraction, ratio("flops / peak / GPUs / periods"));
  f("mbu_fraction", &T::mbu_fraction, ratio("bytes / bandwidth / GPUs / periods"));
}

}  // namespace gpuwhy
