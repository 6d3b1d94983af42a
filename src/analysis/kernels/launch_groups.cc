// SPDX-License-Identifier: Apache-2.0
//
// Groups of equal launches: same kernel, shape, stage, GPU and process.
//
// The kernel table adds up everything with one name, but a GEMM of prefill and one of a decode step
// share the name and nothing else. What a profiler measures on one launch is valid for launches of
// the same kernel with the same grid and block in the same stage.
//
// Grid and block are not everything: one shape may be launched on long and on short sequences. The
// spread between min and max shows it.
#include "analysis/kernels/launch_groups.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analysis/stages/stages.h"
#include "results/duration_histogram.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

// The middle launch, rounded up to its bin, but never beyond the measured range.
std::int64_t median_ns(const LaunchTally& tally) {
  const LaunchSums& sums = tally.sums();
  std::int64_t seen = 0;
  std::int64_t median_ns = sums.max_ns;
  tally.each_bin([&](int bin, std::int64_t launches) {
    const bool is_middle = 2 * seen < sums.calls && 2 * (seen + launches) >= sums.calls;
    seen += launches;
    if (is_middle) {
      median_ns = std::clamp(bin_upper_ns(bin), sums.min_ns, sums.max_ns);
    }
  });
  return median_ns;
}

}  // namespace

std::vector<LaunchGroup> group_launches(const Trace& trace, const KernelFamilies& families,
                                        const Stages& stages, const LaunchTallies& tallies) {
  std::vector<LaunchGroup> groups;
  groups.reserve(tallies.size());
  for (const auto& [key, tally] : tallies) {
    LaunchGroup& group = groups.emplace_back();
    group.kernel_name = trace.strings[key.name];
    group.mangled_name = trace.strings[key.mangled_name];
    group.family = families[key.name];
    group.stage = stages.name_of(key.stage);
    group.device = key.device;
    group.gpu = device_label(trace.devices[key.device]);
    group.process = key.process;
    group.shape = trace.shapes[key.shape];
    static_cast<LaunchSums&>(group) = tally.sums();
    group.median_ns = median_ns(tally);
    group.first_ns = tally.first_ns();
  }
  std::sort(groups.begin(), groups.end(), [](const LaunchGroup& a, const LaunchGroup& b) {
    if (a.total_ns != b.total_ns) {
      return a.total_ns > b.total_ns;
    }
    return std::tie(a.kernel_name, a.mangled_name, a.stage, a.device, a.process, a.shape) <
           std::tie(b.kernel_name, b.mangled_name, b.stage, b.device, b.process, b.shape);
  });
  return groups;
}

}  // namespace gpuwhy
