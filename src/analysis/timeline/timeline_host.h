// SPDX-License-Identifier: Apache-2.0
//
// The host's part of the picture: ranges, operators and CUDA calls of each thread, in lanes whose
// slices do not overlap.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/stages/attribution.h"
#include "trace/trace.h"

namespace gpuwhy {

// One lane: a level of nesting of the ranges and operators of a thread, or of its CUDA calls.
struct HostLane {
  bool is_calls = false;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t level = 0;  // 0: the outermost
};

// What the host did, by lane and then by start.
struct HostSlices {
  std::vector<std::uint16_t> lane;
  std::vector<std::int64_t> start_ns;  // from the start of the capture
  std::vector<std::int64_t> duration_ns;
  std::vector<std::uint32_t> name;  // into HostTimeline::names; kNone: left out

  std::size_t size() const { return lane.size(); }
};

struct HostTimeline {
  std::vector<HostLane> lanes;  // of a thread: its scopes, then its calls
  std::vector<std::string> names;
  HostSlices slices;
  std::int64_t num_threads = 0;  // that did anything
  std::int64_t num_kept_threads = 0;
  std::int64_t num_slices = 0;  // of the kept threads
  // Outside the windows, what is shorter is left out. 0: nothing is.
  std::int64_t least_call_ns = 0;
  std::int64_t least_scope_ns = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> slice_of_call;  // row of api_calls -> slice
};

// A time range whose slices are kept even if short, on the recording's clock.
struct KeptTime {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// The threads that launch most, the longest `most_slices` of their calls and as many scopes, and
// half as many again in the windows. Times are those of [start_ns, end_ns).
HostTimeline make_host_timeline(const Trace& trace, const Attribution& attribution,
                                const std::vector<KeptTime>& windows, std::int64_t start_ns,
                                std::int64_t end_ns, std::int64_t most_slices);

}  // namespace gpuwhy
