// SPDX-License-Identifier: Apache-2.0
//
// One pass over the kernels that adds up equal launches, by a hash of what they have in common.
#include "analysis/kernels/launch_tally.h"

#include <algorithm>

#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "results/duration_histogram.h"

namespace gpuwhy {
namespace {

// Two words multiplied by odd numbers (2^64 over the golden ratio, and a prime of xxHash), which
// spreads differences in few bits.
std::size_t hash_of(const LaunchKey& key) {
  const std::uint64_t names =
      static_cast<std::uint64_t>(key.name) | static_cast<std::uint64_t>(key.mangled_name) << 32;
  const std::uint64_t rest = std::uint64_t{key.shape} ^ std::uint64_t{key.stage} << 32 ^
                             std::uint64_t{key.device} << 20 ^ std::uint64_t{key.process} << 44;
  const std::uint64_t hash = names * 0x9e3779b97f4a7c15 ^ rest * 0xc2b2ae3d27d4eb4f;
  return hash ^ hash >> 32;
}

// Tallies by key, with open addressing: one lookup per launch, at most half full.
class TallyTable {
 public:
  LaunchTally& operator[](const LaunchKey& key) {
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

  LaunchTallies take() { return std::move(entries_); }

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
  LaunchTallies entries_;
};

}  // namespace

void LaunchTally::add(std::int64_t start_ns, std::int64_t duration_ns) {
  sums_.add({1, duration_ns, duration_ns, duration_ns});
  first_ns_ = std::min(first_ns_, start_ns);
  const int bin = bin_of(duration_ns);
  if (window_start_ == INT32_MIN) {
    window_start_ = bin - kWindow / 2;
  }
  if (bin >= window_start_ && bin < window_start_ + kWindow) {
    ++window_[static_cast<std::size_t>(bin - window_start_)];
  } else {
    add_other(bin);
  }
}

void LaunchTally::add_other(int bin) {
  const auto place =
      std::lower_bound(others_.begin(), others_.end(), bin,
                       [](const auto& other, int number) { return other.first < number; });
  if (place != others_.end() && place->first == bin) {
    ++place->second;
  } else {
    others_.emplace(place, bin, 1);
  }
}

LaunchTallies tally_launches(const Trace& trace, const Stages& stages,
                             const Attribution& attribution) {
  const Kernels& kernels = trace.kernels;
  TallyTable tallies;
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    const std::uint32_t instance = attribution.kernels.instance[row];
    const LaunchKey key{instance == kNone ? kNone : stages.instances[instance].stage,
                        kernels.name[row],
                        kernels.mangled_name[row],
                        kernels.shape[row],
                        kernels.device[row],
                        kernels.process[row]};
    tallies[key].add(kernels.start_ns[row], kernels.end_ns[row] - kernels.start_ns[row]);
  }
  return tallies.take();
}

}  // namespace gpuwhy
