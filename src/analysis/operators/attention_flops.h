// SPDX-License-Identifier: Apache-2.0
//
// FLOP of an attention operator, from the inputs that PyTorch's profiler wrote.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "trace/op_inputs.h"

namespace gpuwhy {

struct AttentionWork {
  std::string dims;  // "16x559x16x64 x 16x559x16x64, causal"
  std::string type;  // of the query, as PyTorch writes it
  double flops = 0;
};

// Nullopt of other operators, and where the recording does not say which keys a query sees.
std::optional<AttentionWork> attention_work(std::string_view op, const ProductInputs& inputs);

}  // namespace gpuwhy
