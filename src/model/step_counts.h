// SPDX-License-Identifier: Apache-2.0
//
// Token counts of one forward pass, as engines mark them: sums over the requests of a step.
#pragma once

#include <cstdint>
#include <optional>

namespace gpuwhy {

// The requests of one phase. q: tokens a request computes in this step; k: tokens it attends to,
// those q included. A sum that the marker does not tell is absent; without requests all are zero.
struct PhaseCounts {
  std::int64_t requests = 0;
  std::optional<std::int64_t> queries;             // Σ q
  std::optional<std::int64_t> keys;                // Σ k
  std::optional<std::int64_t> queries_squared;     // Σ q²
  std::optional<std::int64_t> queries_times_keys;  // Σ q·k

  bool is_complete() const { return queries && keys && queries_squared && queries_times_keys; }
  bool operator==(const PhaseCounts&) const = default;
};

// One step: requests that read their prompt, and requests that make tokens.
struct StepCounts {
  PhaseCounts context;
  PhaseCounts generation;

  bool is_complete() const { return context.is_complete() && generation.is_complete(); }
  bool operator==(const StepCounts&) const = default;
};

}  // namespace gpuwhy
