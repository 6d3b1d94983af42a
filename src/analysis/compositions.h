// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/row.h"

namespace gpuwhy {

struct Analysis;
struct EfficiencySetup;

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

  std::string sequences() const;  // "5 to 8"
};

// The steps of engines that say how many sequences share one, by stage, then sequences. Ratios need
// a model, and analysis.efficiency.
std::vector<Composition> find_compositions(const Analysis& analysis, const EfficiencySetup* model);

}  // namespace gpuwhy
