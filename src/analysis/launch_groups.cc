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
#include <map>
#include <tuple>
#include <unordered_map>

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

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    // Each step multiplies by 2^64 divided by the golden ratio, which spreads what differs in few
    // bits (Knuth, The Art of Computer Programming 3, 6.4).
    std::uint64_t hash = 0;
    for (const std::uint64_t part :
         {std::uint64_t{key.stage}, static_cast<std::uint64_t>(key.name),
          static_cast<std::uint64_t>(key.mangled_name), std::uint64_t{key.shape},
          std::uint64_t{key.device}, std::uint64_t{key.process}}) {
      hash = (hash ^ part) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

struct Tally {
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  std::int64_t min_ns = INT64_MAX;
  std::int64_t max_ns = 0;
  std::int64_t first_ns = INT64_MAX;
  std::map<int, std::int64_t> steps;

  void add(std::int64_t start_ns, std::int64_t duration_ns) {
    total_ns += duration_ns;
    ++calls;
    min_ns = std::min(min_ns, duration_ns);
    max_ns = std::max(max_ns, duration_ns);
    first_ns = std::min(first_ns, start_ns);
    ++steps[step_of(duration_ns)];
  }

  std::int64_t median_ns() const {
    std::int64_t seen = 0;
    for (const auto& [step, launches] : steps) {
      seen += launches;
      if (2 * seen >= calls) {
        return std::clamp(last_of(step), min_ns, max_ns);
      }
    }
    return max_ns;
  }
};

}  // namespace

std::vector<LaunchGroup> group_launches(const Trace& trace, const Rules& rules,
                                        const Stages& stages, const Attribution& attribution) {
  const Kernels& kernels = trace.kernels;
  std::unordered_map<Key, Tally, KeyHash> tallies;
  std::pair<const Key, Tally>* last = nullptr;  // launches alike often follow each other
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    const std::uint32_t instance = attribution.kernels.instance[row];
    const Key key{instance == kNone ? kNone : stages.instances[instance].stage,
                  kernels.name[row],
                  kernels.mangled_name[row],
                  kernels.shape[row],
                  kernels.device[row],
                  kernels.process[row]};
    if (last == nullptr || !(last->first == key)) {
      last = &*tallies.try_emplace(key).first;
    }
    last->second.add(kernels.start_ns[row], kernels.end_ns[row] - kernels.start_ns[row]);
  }
  std::unordered_map<StringId, std::string_view> families;
  std::vector<LaunchGroup> groups;
  groups.reserve(tallies.size());
  for (const auto& [key, tally] : tallies) {
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
