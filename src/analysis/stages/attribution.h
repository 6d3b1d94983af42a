// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analysis/stages/stages.h"
#include "trace/trace.h"

namespace gpuwhy {

// Origin of GPU work: the API call that launched it, the stage instance in which that call began,
// and the nested one (decode_step). kNone if not recorded, or in none.
struct Origins {
  Column<std::uint32_t> call;
  Column<std::uint32_t> instance;
  Column<std::uint32_t> nested;
};

// Origins of all GPU work, by row of each table.
struct Attribution {
  Origins kernels;
  Origins copies;
  Origins graphs;
  // Kernels and graphs launched after a step's mark had ended, and their time.
  std::int64_t num_after_mark = 0;
  std::int64_t after_mark_ns = 0;
};

// The origin of every kernel, copy and graph, by correlation with the API calls of its process.
Attribution attribute(const Trace& trace, const Stages& stages);

}  // namespace gpuwhy
