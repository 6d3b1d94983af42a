// SPDX-License-Identifier: Apache-2.0
//
// Which launches are alike? A kernel table adds up whatever carries one name, but a GEMM of a
// prefill and one of a decode step share the name and nothing else. What a profiler measures on one
// launch holds for launches of the same kernel with the same grid and block in the same stage.
//
// One pass and a hash, as for the kernel table. There are more groups than rows of that table, so
// each keeps its durations as the few steps of the scale that occur, not as the whole scale. Grid
// and block do not tell everything: one shape may be launched on long and on short sequences. The
// spread between min and max shows it.
#include "analysis/launch_groups.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "analysis/attribution.h"
#include "analysis/duration_steps.h"
#include "analysis/kernels.h"
#include "analysis/stages.h"

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

std::uint64_t hash_of(const Key& key) {
  // Multiplied by 2^64 divided by the golden ratio, which spreads what differs in few bits (Knuth,
  // The Art of Computer Programming 3, 6.4), and by two primes of that size.
  const std::uint64_t names =
      static_cast<std::uint64_t>(key.name) << 32 | static_cast<std::uint64_t>(key.mangled_name);
  const std::uint64_t place = std::uint64_t{key.shape} << 32 | key.stage;
  const std::uint64_t owner = std::uint64_t{key.device} << 16 | key.process;
  const std::uint64_t hash = names * 0x9e3779b97f4a7c15 ^
                             std::rotl(place * 0xc2b2ae3d27d4eb4f, 31) ^ owner * 0x165667b19e3779f9;
  return hash ^ hash >> 32;
}

struct KeyHash {
  std::size_t operator()(const Key& key) const { return hash_of(key); }
};

// How many launches fell on each step of the scale. Mostly a few steps, found by looking through
// them; where they become many, the whole scale.
class StepCounts {
 public:
  void add(int step) {
    if (!dense_.empty()) {
      ++dense_[static_cast<std::size_t>(step)];
      return;
    }
    for (auto& [known, launches] : sparse_) {
      if (known == step) {
        ++launches;
        return;
      }
    }
    sparse_.emplace_back(step, 1);
    if (sparse_.size() > kMostSparse) {
      dense_.resize(kNumDurationSteps);
      for (const auto& [known, launches] : sparse_) {
        dense_[static_cast<std::size_t>(known)] = launches;
      }
    }
  }

  // By step.
  std::vector<std::pair<int, std::int64_t>> sorted() const {
    std::vector<std::pair<int, std::int64_t>> counts = sparse_;
    if (!dense_.empty()) {
      counts.clear();
      for (std::size_t step = 0; step < dense_.size(); ++step) {
        counts.emplace_back(static_cast<int>(step), dense_[step]);
      }
    }
    std::sort(counts.begin(), counts.end());
    return counts;
  }

 private:
  static constexpr std::size_t kMostSparse = 16;

  std::vector<std::pair<int, std::int64_t>> sparse_;
  std::vector<std::int64_t> dense_;
};

struct Tally {
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  std::int64_t min_ns = INT64_MAX;
  std::int64_t max_ns = 0;
  std::int64_t first_ns = INT64_MAX;
  StepCounts steps;

  void add(std::int64_t start_ns, std::int64_t duration_ns) {
    total_ns += duration_ns;
    ++calls;
    min_ns = std::min(min_ns, duration_ns);
    max_ns = std::max(max_ns, duration_ns);
    first_ns = std::min(first_ns, start_ns);
    steps.add(step_of(duration_ns));
  }

  std::int64_t median_ns() const {
    std::int64_t seen = 0;
    for (const auto& [step, launches] : steps.sorted()) {
      seen += launches;
      if (2 * seen >= calls) {
        return std::clamp(last_of(step), min_ns, max_ns);
      }
    }
    return max_ns;
  }
};

// Tallies by key. A program launches the same few hundred groups over and over: the last one of
// each slot is remembered, and the table is asked only for the others.
class Tallies {
 public:
  Tally& operator[](const Key& key) {
    std::pair<const Key, Tally>*& recent = recent_[hash_of(key) % kNumRecent];
    if (recent == nullptr || !(recent->first == key)) {
      recent = &*all_.try_emplace(key).first;
    }
    return recent->second;
  }

  const std::unordered_map<Key, Tally, KeyHash>& all() const { return all_; }

 private:
  static constexpr std::size_t kNumRecent = 1024;

  std::unordered_map<Key, Tally, KeyHash> all_;
  std::vector<std::pair<const Key, Tally>*> recent_ =
      std::vector<std::pair<const Key, Tally>*>(kNumRecent);
};

}  // namespace

std::vector<LaunchGroup> group_launches(const Trace& trace, const Rules& rules,
                                        const Stages& stages, const Attribution& attribution) {
  const Kernels& kernels = trace.kernels;
  Tallies tallies;
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
  std::unordered_map<StringId, std::string_view> families;
  std::vector<LaunchGroup> groups;
  groups.reserve(tallies.all().size());
  for (const auto& [key, tally] : tallies.all()) {
    LaunchGroup& group = groups.emplace_back();
    group.kernel_name = trace.strings[key.name];
    group.mangled_name = trace.strings[key.mangled_name];
    const auto [family, is_new] = families.try_emplace(key.name);
    if (is_new) {
      family->second = family_of(rules, group.kernel_name);
    }
    group.family = family->second;
    group.stage = key.stage == kNone ? kOutsideStages : stages.names[key.stage];
    group.device = key.device;
    group.ordinal = trace.devices[key.device].ordinal;
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
