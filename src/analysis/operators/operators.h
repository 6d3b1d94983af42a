// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "results/operator.h"
#include "trace/trace.h"

namespace gpuwhy {

// Says what the times are of, and the share of each row in them. When all rows are there.
void finish_operators(bool are_of_gpu, Operators& operators);

// The operators behind the kernels; `whole_ns` is the time of all kernels. nullopt if the recording
// has no kernels or names no operators.
std::optional<Operators> summarise_operators(const Trace& trace, const Stages& stages,
                                             const Attribution& attribution, std::int64_t whole_ns);

}  // namespace gpuwhy
