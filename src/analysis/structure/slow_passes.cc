// SPDX-License-Identifier: Apache-2.0
//
// Slow passes against the median pass, part by part and layer by layer, gaps included.
//
// The length of a pass is from the end of the one before it to its own end, and is divided without
// rest: each kernel has the time in which no kernel before it still ran, and the idle time before
// it. Each is compared with the median at the same place of all passes; of many passes, some that
// are evenly spread give the median.
#include "analysis/structure/slow_passes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/list_of.h"
#include "base/median.h"
#include "base/units.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kLeastPasses = 4;     // of a kind: fewer have no median worth the name
constexpr std::size_t kMostSlow = 3;        // of a kind
constexpr std::size_t kMostSampled = 256;   // passes, for the median at a place
constexpr std::size_t kMostSamples = 4096;  // of all layers of them
constexpr std::size_t kMostCauses = 3;

// One pass of a stream with its length.
struct TimedPass {
  const KernelStream* stream;
  const ModelPass* pass;
  std::size_t number;    // in its stream, from 0
  std::int64_t from_ns;  // the end of the pass before
  std::int64_t length_ns;
};

// Calls visit(position, idle_ns, own_ns) for each kernel; the times sum to the pass's length.
template <typename Visit>
void for_each_time(const Trace& trace, const TimedPass& timed, Visit&& visit) {
  std::int64_t reach_ns = timed.from_ns;
  for (std::uint32_t i = timed.pass->begin; i < timed.pass->end; ++i) {
    const std::uint32_t row = timed.stream->kernels[i];
    const std::int64_t start_ns = trace.kernels.start_ns[row];
    const std::int64_t end_ns = trace.kernels.end_ns[row];
    const std::int64_t begin_ns = std::max(reach_ns, start_ns);
    visit(i, begin_ns - reach_ns, std::max<std::int64_t>(0, end_ns - begin_ns));
    reach_ns = std::max({reach_ns, begin_ns, end_ns});
  }
}

std::vector<TimedPass> timed_passes(const Structure& structure, std::uint32_t kind) {
  std::vector<TimedPass> timed;
  for (const KernelStream& stream : structure.streams) {
    for (std::size_t i = 0; i < stream.passes.size(); ++i) {
      const ModelPass& pass = stream.passes[i];
      if (pass.kind != kind || !pass.is_whole) {
        continue;
      }
      const bool has_before = i > 0 && stream.passes[i - 1].end == pass.begin;
      const std::int64_t from_ns =
          has_before ? std::min(stream.passes[i - 1].end_ns, pass.start_ns) : pass.start_ns;
      timed.push_back({&stream, &pass, i, from_ns, std::max(pass.end_ns, from_ns) - from_ns});
    }
  }
  return timed;
}

// Medians at one place.
struct PlaceTimes {
  std::vector<std::int64_t> idle_ns;
  std::vector<std::int64_t> own_ns;
};

std::string layers_text(int first, int last, int num_layers) {
  if (first < 0) {
    return "before the first layer";
  }
  if (first >= num_layers) {
    return "after the last layer";
  }
  return first == last ? fmt::format("layer {}", first) : fmt::format("layers {}-{}", first, last);
}

std::string text_of(const SlowCause& cause, int num_layers) {
  const std::string where = layers_text(static_cast<int>(cause.first_layer),
                                        static_cast<int>(cause.last_layer), num_layers);
  const std::string time = format_duration_ns(cause.extra_ns);
  const bool is_outside = cause.first_layer < 0 || cause.first_layer >= num_layers;
  if (cause.part.empty()) {
    return fmt::format("{} idle {}{}", time, is_outside ? "" : "in ", where);
  }
  return fmt::format("{} in {} {}{}", time, cause.part, is_outside ? "" : "of ", where);
}

class SlowFinder {
 public:
  SlowFinder(const Trace& trace, const StructureSummary& summary,
             const std::vector<std::uint32_t>& parts, std::vector<TimedPass> passes)
      : trace_(trace), summary_(summary), parts_(parts), passes_(std::move(passes)) {
    std::vector<PlaceTimes> times(summary.parts.size());
    const std::size_t step = (passes_.size() + kMostSampled - 1) / kMostSampled;
    std::size_t num_sampled = 0;
    for (std::size_t p = 0; p < passes_.size(); p += step, ++num_sampled) {
      const TimedPass& timed = passes_[p];
      for_each_time(trace, timed, [&](std::uint32_t i, std::int64_t idle_ns, std::int64_t own_ns) {
        const std::uint32_t part = parts[timed.stream->kernels[i]];
        if (part != kNone && times[part].own_ns.size() < kMostSamples) {
          times[part].idle_ns.push_back(idle_ns);
          times[part].own_ns.push_back(own_ns);
        }
      });
    }
    for (PlaceTimes& one : times) {
      if (2 * one.own_ns.size() < num_sampled) {
        medians_.emplace_back(0, 0);  // most passes do without
        continue;
      }
      medians_.emplace_back(lower_median(std::move(one.idle_ns)).value_or(0),
                            lower_median(std::move(one.own_ns)).value_or(0));
    }
  }

  void add(std::vector<SlowPass>& slow) const {
    const auto lengths = list_of<std::int64_t>(passes_, &TimedPass::length_ns);
    const std::int64_t median_ns = lower_median(lengths).value_or(0);
    std::vector<const TimedPass*> longest;
    for (const TimedPass& timed : passes_) {
      if (10 * timed.length_ns >= 11 * median_ns && timed.length_ns > median_ns) {
        longest.push_back(&timed);
      }
    }
    std::ranges::sort(longest, {}, [](const TimedPass* one) {
      return std::pair(-one->length_ns, one->pass->start_ns);
    });
    longest.resize(std::min(longest.size(), kMostSlow));
    for (const TimedPass* timed : longest) {
      slow.push_back(explained(*timed, median_ns));
    }
  }

 private:
  SlowPass explained(const TimedPass& timed, std::int64_t median_ns) const {
    SlowPass slow;
    slow.pass = summary_.passes[timed.pass->kind].pass;
    slow.device = device_label(trace_.devices[timed.stream->device]);
    slow.number = static_cast<std::int64_t>(timed.number);
    slow.start_ns = timed.from_ns;
    slow.duration_ns = timed.length_ns;
    slow.median_ns = median_ns;
    slow.causes = causes_of(timed);
    const int num_layers = timed.pass->num_layers();
    const auto texts = list_of<std::string>(
        slow.causes, [&](const SlowCause& cause) { return text_of(cause, num_layers); });
    slow.why = fmt::format("{}", fmt::join(texts, ", "));
    return slow;
  }

  // The largest differences from the median; neighbouring layers with the same one are joined.
  std::vector<SlowCause> causes_of(const TimedPass& timed) const {
    std::map<std::tuple<std::string, int>, std::int64_t> extra_ns;  // part (empty: idle), layer
    for_each_time(trace_, timed, [&](std::uint32_t i, std::int64_t idle_ns, std::int64_t own_ns) {
      const std::uint32_t part = parts_[timed.stream->kernels[i]];
      const auto [usual_idle_ns, usual_own_ns] =
          part == kNone ? std::pair<std::int64_t, std::int64_t>() : medians_[part];
      const int layer = timed.pass->layer_at(i);
      extra_ns[{"", layer}] += idle_ns - usual_idle_ns;
      extra_ns[{part == kNone ? "stray kernels" : summary_.parts[part].part, layer}] +=
          own_ns - usual_own_ns;
    });
    std::int64_t sum_ns = 0;
    for (const auto& [key, time_ns] : extra_ns) {
      sum_ns += std::max<std::int64_t>(0, time_ns);
    }
    std::vector<SlowCause> causes;
    const std::int64_t least_ns = std::max<std::int64_t>(1, sum_ns / 50);
    const int num_layers = timed.pass->num_layers();
    for (const auto& [key, time_ns] : extra_ns) {
      const auto& [part, layer] = key;
      if (time_ns < least_ns) {
        continue;
      }
      SlowCause* last = causes.empty() ? nullptr : &causes.back();
      const bool follows = last != nullptr && last->part == part && last->last_layer + 1 == layer &&
                           last->first_layer >= 0 && layer < num_layers;
      if (follows) {
        last->last_layer = layer;
        last->extra_ns += time_ns;
      } else {
        causes.push_back({part, layer, layer, time_ns});
      }
    }
    std::ranges::sort(causes, {}, [](const SlowCause& one) {
      return std::tuple(-one.extra_ns, one.first_layer, one.part);
    });
    causes.resize(std::min(causes.size(), kMostCauses));
    std::erase_if(causes, [&](const SlowCause& cause) { return 10 * cause.extra_ns < sum_ns; });
    return causes;
  }

  const Trace& trace_;
  const StructureSummary& summary_;
  const std::vector<std::uint32_t>& parts_;
  std::vector<TimedPass> passes_;
  std::vector<std::pair<std::int64_t, std::int64_t>> medians_;  // by part: idle, own
};

}  // namespace

std::vector<SlowPass> find_slow_passes(const Trace& trace, const Structure& structure,
                                       const StructureSummary& summary,
                                       const std::vector<std::uint32_t>& parts) {
  std::vector<SlowPass> slow;
  for (std::uint32_t kind = 0; kind < structure.kinds.size(); ++kind) {
    std::vector<TimedPass> passes = timed_passes(structure, kind);
    if (passes.size() >= kLeastPasses) {
      SlowFinder(trace, summary, parts, std::move(passes)).add(slow);
    }
  }
  return slow;
}

}  // namespace gpuwhy
