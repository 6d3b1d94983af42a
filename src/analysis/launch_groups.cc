// SPDX-License-Identifier: Apache-2.0
//
// Groups of equal launches: same kernel, shape, stage, GPU and process.
//
// The kernel table adds up everything with one name, but a GEMM of prefill and one of a decode step
// share the name and nothing else. What a profiler measures on one launch is valid for launches of
// the same kernel with the same grid and block in the same stage.
//
// One pass and a hash, as for the kernel table. There are more groups than rows of that table, so
// each keeps only the few bins that occur, not the whole histogram. Grid and block are not
// everything: one shape may be launched on long and on short sequences. The spread between min and
// max shows it.
#include "analysis/launch_groups.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "analysis/attribution.h"
#include "analysis/duration_histogram.h"
#include "analysis/kernels.h"
#include "analysis/stages.h"
#include "trace/device_label.h"

namespace llmprof {
namespace {

struct Key {
  std::uint32_t stage;  // of Stages, or kNone
  StringId name;
  StringId mangled_name;
  std::uint32_t shape;
  std::uint16_t device;
  std::uint16_t process;

  bool operator==(const Key&) const = default;
};

// Two words multiplied by odd numbers (2^64 over the golden ratio, and a prime of xxHash), which
// spreads differences in few bits.
std::size_t hash_of(const Key& key) {
  const std::uint64_t names =
      static_cast<std::uint64_t>(key.name) | static_cast<std::uint64_t>(key.mangled_name) << 32;
  const std::uint64_t rest = std::uint64_t{key.shape} ^ std::uint64_t{key.stage} << 32 ^
                             std::uint64_t{key.device} << 20 ^ std::uint64_t{key.process} << 44;
  const std::uint64_t hash = names * 0x9e3779b97f4a7c15 ^ rest * 0xc2b2ae3d27d4eb4f;
  return hash ^ hash >> 32;
}

constexpr int kWindow = 32;

// Running totals of one group.
struct Tally {
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  std::int64_t min_ns = INT64_MAX;
  std::int64_t max_ns = 0;
  std::int64_t first_ns = INT64_MAX;
  // Launches by bin. Equal launches are near the first one, within a window of four octaves; the
  // few others are listed.
  std::int32_t window_start = INT32_MIN;
  std::array<std::uint32_t, kWindow> window{};
  std::vector<std::pair<std::int32_t, std::int64_t>> others;

  void add(std::int64_t start_ns, std::int64_t duration_ns) {
    total_ns += duration_ns;
    ++calls;
    min_ns = std::min(min_ns, duration_ns);
    max_ns = std::max(max_ns, duration_ns);
    first_ns = std::min(first_ns, start_ns);
    const int bin = bin_of(duration_ns);
    if (window_start == INT32_MIN) {
      window_start = bin - kWindow / 2;
    }
    if (bin >= window_start && bin < window_start + kWindow) {
      ++window[static_cast<std::size_t>(bin - window_start)];
    } else {
      add_other(bin);
    }
  }

  void add_other(int bin) {
    const auto found = std::find_if(others.begin(), others.end(),
                                    [&](const auto& other) { return other.first == bin; });
    if (found == others.end()) {
      others.emplace_back(bin, 1);
    } else {
      ++found->second;
    }
  }

  // Counts up from the shortest: bins below the window, the window, bins above it.
  std::int64_t median_ns() {
    std::sort(others.begin(), others.end());
    const auto above =
        std::lower_bound(others.begin(), others.end(), std::pair{window_start, std::int64_t{0}});
    std::int64_t seen = 0;
    const auto is_middle = [&](std::int64_t launches) {
      seen += launches;
      return 2 * seen >= calls;
    };
    const auto bounded = [&](int bin) { return std::clamp(bin_upper_ns(bin), min_ns, max_ns); };
    for (auto bin = others.begin(); bin != above; ++bin) {
      if (is_middle(bin->second)) {
        return bounded(bin->first);
      }
    }
    for (int i = 0; i < kWindow; ++i) {
      if (is_middle(window[static_cast<std::size_t>(i)])) {
        return bounded(window_start + i);
      }
    }
    for (auto bin = above; bin != others.end(); ++bin) {
      if (is_middle(bin->second)) {
        return bounded(bin->first);
      }
    }
    return max_ns;
  }
};

// Groups by key, with open addressing: one lookup per launch, at most half full.
class TallyTable {
 public:
  Tally& operator[](const Key& key) {
    if (2 * entries_.size() >= slots_.size()) {
      grow();
    }
    for (std::size_t slot = hash_of(key) & (slots_.size() - 1);;
         slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot] == 0) {
        entries_.push_back({key, {}});
        slots_[slot] = static_cast<std::uint32_t>(entries_.size());
        return entries_.back().second;
      }
      if (entries_[slots_[slot] - 1].first == key) {
        return entries_[slots_[slot] - 1].second;
      }
    }
  }

  std::vector<std::pair<Key, Tally>>& entries() { return entries_; }

 private:
  void grow() {
    slots_.assign(std::max<std::size_t>(1024, 2 * slots_.size()), 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      std::size_t slot = hash_of(entries_[i].first) & (slots_.size() - 1);
      while (slots_[slot] != 0) {
        slot = (slot + 1) & (slots_.size() - 1);
      }
      slots_[slot] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<std::uint32_t> slots_;  // number of an entry, from 1; 0: free
  std::vector<std::pair<Key, Tally>> entries_;
};

}  // namespace

std::vector<LaunchGroup> group_launches(const Trace& trace, const KernelFamilies& families,
                                        const Stages& stages, const Attribution& attribution) {
  const Kernels& kernels = trace.kernels;
  TallyTable tallies;
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    const std::uint32_t instance = attribution.kernels.instance[row];
    const Key key{instance == kNone ? kNone : stages.instances[instance].stage,
                  kernels.name[row],
                  kernels.mangled_name[row],
                  kernels.shape[row],
                  kernels.device[row],
                  kernels.process[row]};
    tallies[key].add(kernels.start_ns[row], kernels.end_ns[row] - kernels.start_ns[row]);
  }
  std::vector<LaunchGroup> groups;
  groups.reserve(tallies.entries().size());
  for (auto& [key, tally] : tallies.entries()) {
    LaunchGroup& group = groups.emplace_back();
    group.kernel_name = trace.strings[key.name];
    group.mangled_name = trace.strings[key.mangled_name];
    group.family = families[key.name];
    group.stage = key.stage == kNone ? kOutsideStages : stages.names[key.stage];
    group.device = key.device;
    group.gpu = device_label(trace.devices[key.device]);
    group.process = key.process;
    group.shape = trace.shapes[key.shape];
    group.calls = tally.calls;
    group.total_ns = tally.total_ns;
    group.min_ns = tally.min_ns;
    group.median_ns = tally.median_ns();
    group.max_ns = tally.max_ns;
    group.first_ns = tally.first_ns;
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

}  // namespace llmprof
