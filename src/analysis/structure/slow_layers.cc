// SPDX-License-Identifier: Apache-2.0
//
// Layers that take longer than others of their kind, and the part that makes the difference.
//
// A median over passes does not see a single slow pass; slow_passes.cc does. Kernel times are
// compared, not spans, so that a pause before a kernel does not count for its layer.
#include "analysis/structure/slow_layers.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/median.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kLeastLayerPasses = 5;
constexpr std::size_t kMostSlowLayers = 10;  // of a kind of pass

using PassRef = std::pair<const KernelStream*, const ModelPass*>;

class SlowLayerFinder {
 public:
  SlowLayerFinder(const Trace& trace, const StructureSummary& summary,
                  const std::vector<std::uint32_t>& parts, std::vector<PassRef> passes)
      : trace_(trace), summary_(summary), parts_(parts), passes_(std::move(passes)) {}

  std::vector<SlowLayer> find(const std::string& pass) const {
    const auto num_layers = static_cast<std::size_t>(passes_.front().second->num_layers());
    std::vector<std::vector<std::int64_t>> by_layer(num_layers);
    std::map<std::string_view, std::vector<std::int64_t>> by_block;
    std::vector<std::string_view> blocks(num_layers);
    for (std::size_t layer = 0; layer < num_layers; ++layer) {
      blocks[layer] = block_of_layer(layer);
      for (const PassRef& one : passes_) {
        by_layer[layer].push_back(kernels_ns(one, layer));
      }
      std::vector<std::int64_t>& same = by_block[blocks[layer]];
      same.insert(same.end(), by_layer[layer].begin(), by_layer[layer].end());
    }
    std::map<std::string_view, std::int64_t> medians_ns;
    for (auto& [block, times_ns] : by_block) {
      medians_ns[block] = lower_median(std::move(times_ns)).value_or(0);
    }
    std::vector<SlowLayer> slow;
    for (std::size_t layer = 0; layer < num_layers; ++layer) {
      const std::int64_t median_ns = lower_median(std::move(by_layer[layer])).value_or(0);
      const std::int64_t usual_ns = medians_ns[blocks[layer]];
      if (blocks[layer].empty() || median_ns - usual_ns <= usual_ns / 10) {
        continue;
      }
      SlowLayer& found = slow.emplace_back();
      found.pass = pass;
      found.layer = static_cast<std::int64_t>(layer);
      found.block = blocks[layer];
      found.median_ns = median_ns;
      found.kind_median_ns = usual_ns;
    }
    std::ranges::sort(slow, {}, [](const SlowLayer& one) {
      return std::pair(one.kind_median_ns - one.median_ns, one.layer);
    });
    slow.resize(std::min(slow.size(), kMostSlowLayers));
    for (SlowLayer& one : slow) {
      add_part(one);
    }
    return slow;
  }

 private:
  template <typename Visit>
  void for_each_kernel(const PassRef& one, std::size_t layer, Visit&& visit) const {
    for (std::uint32_t i = one.second->layers[layer]; i < one.second->layers[layer + 1]; ++i) {
      const std::uint32_t row = one.first->kernels[i];
      visit(parts_[row], trace_.kernels.end_ns[row] - trace_.kernels.start_ns[row]);
    }
  }

  std::int64_t kernels_ns(const PassRef& one, std::size_t layer) const {
    std::int64_t sum_ns = 0;
    for_each_kernel(one, layer, [&](std::uint32_t, std::int64_t time_ns) { sum_ns += time_ns; });
    return sum_ns;
  }

  // The kind that a layer is of in the first pass that says it.
  std::string_view block_of_layer(std::size_t layer) const {
    std::string_view block;
    for (const PassRef& one : passes_) {
      for_each_kernel(one, layer, [&](std::uint32_t part, std::int64_t) {
        if (block.empty() && part != kNone) {
          block = summary_.parts[part].block();
        }
      });
      if (!block.empty()) {
        break;
      }
    }
    return block;
  }

  // The part whose median in this layer is most above its median in all.
  void add_part(SlowLayer& slow) const {
    std::map<std::uint32_t, std::vector<std::int64_t>> times_ns;
    for (const PassRef& one : passes_) {
      for_each_kernel(one, static_cast<std::size_t>(slow.layer),
                      [&](std::uint32_t part, std::int64_t time_ns) {
                        if (part != kNone) {
                          times_ns[part].push_back(time_ns);
                        }
                      });
    }
    for (auto& [part, times] : times_ns) {
      const std::int64_t extra_ns =
          lower_median(std::move(times)).value_or(0) - summary_.parts[part].median_ns;
      if (extra_ns > slow.part_extra_ns) {
        slow.part = summary_.parts[part].part;
        slow.part_extra_ns = extra_ns;
      }
    }
  }

  const Trace& trace_;
  const StructureSummary& summary_;
  const std::vector<std::uint32_t>& parts_;
  std::vector<PassRef> passes_;
};

}  // namespace

std::vector<SlowLayer> find_slow_layers(const Trace& trace, const Structure& structure,
                                        const StructureSummary& summary,
                                        const std::vector<std::uint32_t>& parts) {
  std::vector<SlowLayer> slow;
  for (std::uint32_t kind = 0; kind < structure.kinds.size(); ++kind) {
    std::vector<PassRef> passes;
    for (const KernelStream& stream : structure.streams) {
      for (const ModelPass& pass : stream.passes) {
        if (pass.kind == kind && pass.is_whole &&
            pass.num_layers() == static_cast<int>(structure.kinds[kind].num_layers)) {
          passes.emplace_back(&stream, &pass);
        }
      }
    }
    if (passes.size() >= kLeastLayerPasses) {
      const std::vector<SlowLayer> found =
          SlowLayerFinder(trace, summary, parts, std::move(passes)).find(summary.passes[kind].pass);
      slow.insert(slow.end(), found.begin(), found.end());
    }
  }
  return slow;
}

}  // namespace gpuwhy
