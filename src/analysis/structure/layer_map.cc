// SPDX-License-Identifier: Apache-2.0
//
// Durations of layers pass by pass, for a picture of layers against passes.
//
// A quarter of the columns are the slowest passes, the others are evenly chosen: a picture of a
// long recording shows both what is usual and what is not.
#include "analysis/structure/layer_map.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/median.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

// One kind of pass: its kinds of layers, and the durations in them.
class LayerMapMaker {
 public:
  LayerMapMaker(const Trace& trace, const Structure& structure, const StructureSummary& summary,
                const std::vector<std::uint32_t>& parts, std::uint32_t kind)
      : trace_(trace), structure_(structure), summary_(summary), parts_(parts), kind_(kind) {
    std::vector<std::vector<std::int64_t>> lengths_ns;
    for (const KernelStream& stream : structure.streams) {
      for (const ModelPass& pass : stream.passes) {
        if (!is_mine(pass)) {
          continue;
        }
        for (std::size_t layer = 0; layer + 1 < pass.layers.size(); ++layer) {
          const std::uint8_t block = block_of(stream, pass, layer);
          lengths_ns.resize(std::max<std::size_t>(lengths_ns.size(), std::size_t{block} + 1));
          lengths_ns[block].push_back(length_ns(stream, pass, layer));
        }
      }
    }
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].median_ns = lower_median(std::move(lengths_ns[i])).value_or(0);
    }
  }

  bool is_mine(const ModelPass& pass) const {
    return pass.kind == kind_ && pass.is_whole &&
           pass.num_layers() == static_cast<int>(structure_.kinds[kind_].num_layers);
  }

  bool has_passes(const KernelStream& stream) const {
    return std::ranges::any_of(stream.passes, [&](const ModelPass& pass) { return is_mine(pass); });
  }

  LayerMap map(const KernelStream& stream, std::int64_t capture_start_ns,
               std::size_t most_columns) {
    LayerMap made;
    made.pass = summary_.passes[kind_].pass;
    made.device = device_label(trace_.devices[stream.device]);
    made.num_layers = structure_.kinds[kind_].num_layers;
    made.blocks = blocks_;
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < stream.passes.size(); ++i) {
      if (is_mine(stream.passes[i])) {
        numbers.push_back(i);
      }
    }
    made.num_passes = static_cast<std::int64_t>(numbers.size());
    for (const std::size_t number : chosen(stream, numbers, most_columns)) {
      const ModelPass& pass = stream.passes[number];
      LayerColumn& column = made.columns.emplace_back();
      column.number = static_cast<std::int64_t>(number);
      column.start_ns = std::max<std::int64_t>(0, start_ns(stream, pass, 0) - capture_start_ns);
      for (std::size_t layer = 0; layer + 1 < pass.layers.size(); ++layer) {
        column.layers_ns.push_back(length_ns(stream, pass, layer));
        column.blocks.push_back(block_of(stream, pass, layer));
      }
    }
    return made;
  }

 private:
  // Of a layer's first kernel; after the last layer, of what follows it.
  std::int64_t start_ns(const KernelStream& stream, const ModelPass& pass,
                        std::size_t layer) const {
    const std::uint32_t position = pass.layers[layer];
    return position < pass.end ? trace_.kernels.start_ns[stream.kernels[position]] : pass.end_ns;
  }

  std::int64_t length_ns(const KernelStream& stream, const ModelPass& pass,
                         std::size_t layer) const {
    return std::max<std::int64_t>(
        0, start_ns(stream, pass, layer + 1) - start_ns(stream, pass, layer));
  }

  // The kind of a layer, by its first kernel that has a part.
  std::uint8_t block_of(const KernelStream& stream, const ModelPass& pass, std::size_t layer) {
    for (std::uint32_t i = pass.layers[layer]; i < pass.layers[layer + 1]; ++i) {
      const std::uint32_t part = parts_[stream.kernels[i]];
      if (part == kNone) {
        continue;
      }
      const auto [at, is_new] =
          numbers_.try_emplace(std::string(summary_.parts[part].block()), std::uint8_t{0});
      if (is_new) {
        at->second = static_cast<std::uint8_t>(blocks_.size());
        blocks_.push_back({at->first, 0});
      }
      return at->second;
    }
    return 0;
  }

  std::vector<std::size_t> chosen(const KernelStream& stream,
                                  const std::vector<std::size_t>& numbers,
                                  std::size_t most_columns) const {
    if (numbers.size() <= most_columns) {
      return numbers;
    }
    const auto whole_ns = [&](std::size_t number) {
      const ModelPass& pass = stream.passes[number];
      return start_ns(stream, pass, pass.layers.size() - 1) - start_ns(stream, pass, 0);
    };
    std::vector<std::size_t> slowest = numbers;
    const std::size_t num_slowest = most_columns / 4;
    std::partial_sort(slowest.begin(), slowest.begin() + static_cast<std::ptrdiff_t>(num_slowest),
                      slowest.end(), [&](std::size_t a, std::size_t b) {
                        return std::pair(-whole_ns(a), a) < std::pair(-whole_ns(b), b);
                      });
    std::set<std::size_t> kept(slowest.begin(),
                               slowest.begin() + static_cast<std::ptrdiff_t>(num_slowest));
    const std::size_t num_even = most_columns - num_slowest;
    for (std::size_t i = 0; i < num_even; ++i) {
      kept.insert(numbers[i * numbers.size() / num_even]);
    }
    return {kept.begin(), kept.end()};
  }

  const Trace& trace_;
  const Structure& structure_;
  const StructureSummary& summary_;
  const std::vector<std::uint32_t>& parts_;
  std::uint32_t kind_;
  std::vector<LayerBlock> blocks_;
  std::map<std::string, std::uint8_t> numbers_;
};

}  // namespace

std::vector<LayerMap> map_layers(const Trace& trace, const Structure& structure,
                                 const StructureSummary& summary,
                                 const std::vector<std::uint32_t>& parts,
                                 std::int64_t capture_start_ns, const LayerMapLimits& limits) {
  std::vector<LayerMapMaker> makers;
  std::vector<std::pair<std::size_t, const KernelStream*>> wanted;
  std::size_t rows = 0;  // of all maps together
  makers.reserve(structure.kinds.size());
  for (std::uint32_t kind = 0; kind < structure.kinds.size(); ++kind) {
    makers.emplace_back(trace, structure, summary, parts, kind);
    for (const KernelStream& stream : structure.streams) {
      if (wanted.size() < limits.most_maps && makers.back().has_passes(stream)) {
        wanted.emplace_back(kind, &stream);
        rows += structure.kinds[kind].num_layers;
      }
    }
  }
  const std::size_t most_columns =
      std::min(limits.most_columns, limits.most_cells / std::max<std::size_t>(1, rows));
  std::vector<LayerMap> maps;
  for (const auto& [kind, stream] : wanted) {
    if (most_columns > 0) {
      maps.push_back(makers[kind].map(*stream, capture_start_ns, most_columns));
    }
  }
  return maps;
}

}  // namespace gpuwhy
