// SPDX-License-Identifier: Apache-2.0
//
// Check of kernel times: the kernels of one stream run one after the other.
//
// From compute capability 9.0 on, a kernel may begin before the one before it in its stream has
// ended (programmatic dependent launch), but not before the one before that. Kernels of one launch
// of a CUDA graph may run side by side, and count as one. A few nanoseconds of overlap are the
// clock's; old traces count in microseconds.
//
// What this misses: times that are wrong without overlap, and durations up to twice too long on
// GPUs of 9.0 and later, of AMD, and without a name.
#include "analysis/kernels/stream_overlap.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/stages/capture_summary.h"
#include "base/units.h"
#include "trace/left_out.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kClockNs = 2'000;

// What came last in a stream, in order of start.
struct StreamState {
  std::int64_t start_ns = INT64_MIN;
  std::int64_t end_ns = INT64_MIN;       // of the last launch
  std::int64_t before_ns = INT64_MIN;    // of the launch before it
  std::int64_t must_end_ns = INT64_MIN;  // the latest of all others
  std::uint32_t graph_launch = kNone;
  bool is_in_order = true;
  bool may_begin_early = true;

  // The time in which a kernel runs beside others that must have ended before it began.
  std::int64_t add(const Kernels& kernels, std::size_t row) {
    const std::int64_t begin_ns = kernels.start_ns[row];
    is_in_order = is_in_order && begin_ns >= start_ns;
    start_ns = begin_ns;
    const std::uint32_t launch = kernels.is_graph_node(row) ? kernels.correlation[row] : kNone;
    if (launch == kNone || launch != graph_launch) {
      must_end_ns = std::max(must_end_ns, before_ns);
      before_ns = end_ns;
      end_ns = INT64_MIN;
      graph_launch = launch;
    }
    end_ns = std::max(end_ns, kernels.end_ns[row]);
    const std::int64_t others_ns = may_begin_early ? must_end_ns : std::max(must_end_ns, before_ns);
    if (others_ns <= begin_ns) {
      return 0;
    }
    const std::int64_t both_ns = std::min(others_ns, kernels.end_ns[row]) - begin_ns;
    return both_ns > kClockNs ? both_ns : 0;
  }
};

struct Overlaps {
  std::int64_t num_kernels = 0;
  std::int64_t time_ns = 0;
  std::int64_t all_ns = 0;  // of all kernels
};

}  // namespace

void add_overlaps(const Trace& trace, Diagnostics& diagnostics) {
  constexpr std::uint32_t kEarlyStartMajor = 9;
  const Kernels& kernels = trace.kernels;
  std::vector<StreamState> fresh(trace.streams.size());
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const DeviceInfo& device = trace.devices[trace.streams[i].device];
    fresh[i].may_begin_early = device.runtime != GpuRuntime::kCuda || device.compute_major == 0 ||
                               device.compute_major >= kEarlyStartMajor;
  }
  const auto overlaps_in = [&](auto row_at) {
    std::vector<StreamState> streams = fresh;
    Overlaps found;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const std::size_t row = row_at(i);
      const std::int64_t both_ns = streams[kernels.stream[row]].add(kernels, row);
      found.num_kernels += both_ns > 0 ? 1 : 0;
      found.time_ns += both_ns;
      found.all_ns += kernels.end_ns[row] - kernels.start_ns[row];
    }
    return std::pair(found, std::ranges::all_of(streams, &StreamState::is_in_order));
  };
  auto [found, is_in_order] = overlaps_in([](std::size_t i) { return i; });
  if (!is_in_order) {
    std::vector<std::uint32_t> rows(kernels.size());
    std::iota(rows.begin(), rows.end(), 0U);
    std::ranges::sort(rows, {}, [&](std::uint32_t row) {
      return std::pair(kernels.start_ns[row], kernels.end_ns[row]);
    });
    found = overlaps_in([&](std::size_t i) { return rows[i]; }).first;
  }
  // Ranks in one PyTorch trace share the numbers of GPUs and streams.
  if (is_large_part(found.time_ns, found.all_ns) &&
      !has_diagnostic(diagnostics, "several_processes")) {
    diagnostics.push_back(
        {"kernels_overlap", Severity::kImpossible, found.num_kernels,
         fmt::format("{} of {} begin while an earlier kernel of the same stream still runs, for {} "
                     "in total: kernels of one stream run one after the other",
                     found.num_kernels,
                     count_of(static_cast<std::int64_t>(kernels.size()), "kernel"),
                     format_duration_ns(found.time_ns))});
  }
}

}  // namespace gpuwhy
