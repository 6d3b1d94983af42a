// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/attribution.h"
#include "analysis/operator_rates.h"
#include "analysis/stages.h"
#include "results/row.h"
#include "trace/trace.h"

namespace gpuwhy {

// One operator of a framework in one stage.
struct OperatorRecord {
  std::string name;              // normalised: without ids, sequence numbers and shapes
  RowName stage;                 // without a name if the source does not say
  std::int64_t total_ns = 0;     // its own, operators inside it left out: rows do not overlap
  std::int64_t calls = 0;        // that launched kernels themselves
  std::int64_t num_kernels = 0;  // it launched itself
  std::optional<std::int64_t> flops;
  std::optional<std::int64_t> bytes;

  double total_ms() const { return static_cast<double>(total_ns) / 1e6; }
};

// Time of one layer of the model.
struct LayerTotal {
  std::string layer;  // "3", or a module's path
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
};

// Operators behind the kernels, or behind a program's own timing.
struct Operators {
  std::string source;                // where the names come from, in words
  bool is_gpu_time = false;          // total_ns is of the kernels launched; else time on the host
  std::int64_t covered_ns = 0;       // the sum of the rows
  std::int64_t whole_ns = 0;         // what they are a part of: kernel time, or time of the steps
  std::vector<OperatorRecord> rows;  // by total time, then by name and stage
  std::vector<LayerTotal> layers;    // in the order of the model; empty if none are known
  OperatorRates rates;               // of those whose inputs were recorded
};

// The operators behind the kernels; `whole_ns` is the time of all kernels. nullopt if the recording
// has no kernels or names no operators.
std::optional<Operators> summarise_operators(const Trace& trace, const Stages& stages,
                                             const Attribution& attribution, std::int64_t whole_ns);

}  // namespace gpuwhy
