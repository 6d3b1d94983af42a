// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "trace/trace.h"

namespace llmprof {

// Which part of a recording is looked at; empty: all of it.
struct TraceFilter {
  std::optional<std::uint32_t> device;  // as CUDA numbers it
  std::optional<std::uint32_t> pid;

  bool is_empty() const { return !device && !pid; }
};

// Drops the work of other GPUs and all that other processes did. Calls of the same process stay:
// they may have launched what stays.
void apply_filter(const TraceFilter& filter, Trace& trace);

}  // namespace llmprof
