// SPDX-License-Identifier: Apache-2.0
//
// Rates of matrix products, of attention and of collectives, from the inputs of operators.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/gpu.h"
#include "results/operator.h"
#include "trace/trace.h"

namespace gpuwhy {

// A kernel and the operator with inputs that launched it: the innermost one.
struct OpKernel {
  std::uint32_t op = 0;  // row of Trace::ops
  std::uint32_t kernel = 0;
  std::uint32_t stage = kNone;  // into Stages::names
};

// Rates of the operators whose inputs were recorded. Without shares of a peak.
OperatorRates operator_rates(const Trace& trace, const std::vector<RowName>& stages,
                             std::vector<OpKernel> launched);

// Adds the share of the GPU's peak, or the reason why there is none.
void add_peak_fractions(const GpuMatch& match, std::vector<GemmRate>& products);

}  // namespace gpuwhy
