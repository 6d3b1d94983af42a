// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analysis/stages.h"
#include "trace/trace.h"

namespace llmprof {

// Where a piece of GPU work came from: the API call that launched it, the stage instance that call
// began in, and the nested one (decode_step). kNone: not recorded, or in none.
struct Origins {
  Column<std::uint32_t> call;
  Column<std::uint32_t> instance;
  Column<std::uint32_t> nested;
};

struct Attribution {
  Origins kernels;
  Origins copies;
  Origins graphs;
};

Attribution attribute(const Trace& trace, const Stages& stages);

}  // namespace llmprof
