// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace gpuwhy {

// A point in the execution of a host thread.
struct HostPlace {
  std::uint32_t thread = 0;
  std::int64_t time_ns = 0;

  auto operator<=>(const HostPlace&) const = default;
};

// For each place the innermost operator, module or push/pop range of `source` around it, as a
// number in target.host_scopes, with its parents; kNone if there is none. Places are sorted. The
// two may be one trace. Operators of a framework's profiler are used where there are any, else
// NVTX ranges.
std::vector<std::uint32_t> add_scopes_at(const std::vector<HostPlace>& places, const Trace& source,
                                         Trace& target);

// For each scope of a trace the nearest operator and module: itself or around it. The layer is the
// outermost module that names one. kNone if there is none.
struct ScopeNames {
  std::vector<std::uint32_t> op;
  std::vector<std::uint32_t> module;
  std::vector<std::uint32_t> layer;

  explicit ScopeNames(const Trace& trace);
};

}  // namespace gpuwhy
