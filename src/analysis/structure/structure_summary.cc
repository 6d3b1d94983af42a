// SPDX-License-Identifier: Apache-2.0
//
// Times of passes, layers and parts.
//
// Layers of one kind hold the same kernels. A kernel's position is that of the same kernel, counted
// by occurrence, in an example of its kind, so a stray kernel moves no other.
#include "analysis/structure/structure_summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "analysis/kernels/kernel_stretches.h"
#include "analysis/names/kernel_names.h"
#include "analysis/structure/model_parts.h"
#include "base/median.h"

namespace gpuwhy {
namespace {

// [begin, end) of a stream's kernels.
struct Stretch {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// Launches at one position.
struct Slot {
  std::uint32_t symbol = 0;
  std::int64_t launches = 0;
  std::int64_t total_ns = 0;
  std::unordered_map<StringId, std::int64_t> names_ns;
  std::int64_t* last_ns = nullptr;  // in names_ns: mostly the same kernel again
  StringId last_name{};

  void add(StringId name, std::int64_t time_ns) {
    ++launches;
    total_ns += time_ns;
    if (last_ns == nullptr || last_name != name) {
      last_ns = &names_ns[name];
      last_name = name;
    }
    *last_ns += time_ns;
  }
};

// Stretches that hold the same kernels, and the sums of their positions.
class Block {
 public:
  Block(const Trace& trace, const KernelStream& stream, Stretch example) : trace_(&trace) {
    for (std::uint32_t i = example.begin; i < example.end; ++i) {
      const std::uint32_t symbol = stream.symbols[i];
      places_.emplace(std::pair(symbol, counts_[symbol]++), slots_.size());
      slots_.push_back({symbol, 0, 0, {}, nullptr, {}});
    }
    counts_.clear();
  }

  // Adds the launches of a stretch and notes the position of each in `slots`, by kernel row.
  // Returns their time, with that of stray kernels.
  std::int64_t add(const KernelStream& stream, Stretch stretch, std::uint32_t first_slot,
                   std::vector<std::uint32_t>& slots) {
    const bool is_equal =
        stretch.end - stretch.begin == slots_.size() &&
        std::equal(slots_.begin(), slots_.end(), stream.symbols.begin() + stretch.begin,
                   [](const Slot& slot, std::uint32_t symbol) { return slot.symbol == symbol; });
    const Kernels& kernels = trace_->kernels;
    std::int64_t sum_ns = 0;
    if (is_equal) {
      std::uint32_t i = stretch.begin;
      for (Slot& slot : slots_) {
        const std::uint32_t row = stream.kernels[i++];
        const std::int64_t time_ns = kernels.end_ns[row] - kernels.start_ns[row];
        sum_ns += time_ns;
        slot.add(kernels.name[row], time_ns);
        slots[row] = first_slot++;
      }
      return sum_ns;
    }
    for (std::uint32_t i = stretch.begin; i < stretch.end; ++i) {
      const std::uint32_t row = stream.kernels[i];
      const std::int64_t time_ns = kernels.end_ns[row] - kernels.start_ns[row];
      sum_ns += time_ns;
      if (const std::size_t slot = slot_of(stream.symbols[i]); slot < slots_.size()) {
        slots_[slot].add(kernels.name[row], time_ns);
        slots[row] = first_slot + static_cast<std::uint32_t>(slot);
      }
    }
    counts_.clear();
    return sum_ns;
  }

  const std::vector<Slot>& slots() const { return slots_; }

  // Kernels of a stretch that have a position here.
  std::int64_t num_common(const KernelStream& stream, Stretch stretch) {
    std::int64_t common = 0;
    for (std::uint32_t i = stretch.begin; i < stretch.end; ++i) {
      const std::uint32_t symbol = stream.symbols[i];
      common += slot_of(symbol) < slots_.size() ? 1 : 0;
    }
    counts_.clear();
    return common;
  }

 private:
  // The position of the next kernel of a stretch; beyond all of them for a stray one.
  std::size_t slot_of(std::uint32_t symbol) {
    const auto at = places_.find(std::pair(symbol, counts_[symbol]++));
    return at == places_.end() ? slots_.size() : at->second;
  }

  const Trace* trace_;
  std::vector<Slot> slots_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> places_;
  std::unordered_map<std::uint32_t, std::uint32_t> counts_;
};

// Kinds of one part of a pass, by the kernels that they hold.
class Blocks {
 public:
  void count(const KernelStream& stream, Stretch stretch, std::uint64_t bag) {
    Kind& kind = kinds_[bag];
    if (kind.count++ == 0) {
      kind.stream = &stream;
      kind.example = stretch;
      kind.order = kinds_.size();
    }
    ++total_;
  }

  // Keeps the most frequent kind, of layers all kinds that are a sixth or more. Among equals the
  // one with the fewest kernels.
  void choose(const Trace& trace, bool has_kinds) {
    std::vector<const Kind*> chosen;
    const auto rank = [](const Kind& kind) {
      return std::tuple(-static_cast<std::int64_t>(kind.count),
                        kind.example.end - kind.example.begin, kind.order);
    };
    const Kind* most = nullptr;
    for (const auto& [bag, kind] : kinds_) {
      if (has_kinds && 6 * kind.count >= total_) {
        chosen.push_back(&kind);
      }
      most = most == nullptr || rank(kind) < rank(*most) ? &kind : most;
    }
    if (chosen.empty() && most != nullptr) {
      chosen.push_back(most);
    }
    std::ranges::sort(chosen, {}, &Kind::order);
    for (const Kind* kind : chosen) {
      blocks_.emplace_back(trace, *kind->stream, kind->example);
      counts_.push_back(0);
    }
  }

  // Positions are numbered through all kinds, from `first_slot` on. Every stretch was counted.
  // Returns the time of its kernels.
  std::int64_t add(const KernelStream& stream, Stretch stretch, std::uint64_t bag,
                   std::uint32_t first_slot, std::vector<std::uint32_t>& slots) {
    // The one with the most kernels in common, and the fewest others.
    const auto [at, is_new] = bags_.try_emplace(bag, 0);
    if (is_new) {
      std::int64_t most = INT64_MIN;
      for (std::size_t i = 0; i < blocks_.size(); ++i) {
        const auto size = static_cast<std::int64_t>(blocks_[i].slots().size());
        const std::int64_t likeness = 2 * blocks_[i].num_common(stream, stretch) - size;
        if (likeness > most) {
          most = likeness;
          at->second = i;
        }
      }
    }
    const std::size_t best = at->second;
    ++counts_[best];
    for (std::size_t i = 0; i < best; ++i) {
      first_slot += static_cast<std::uint32_t>(blocks_[i].slots().size());
    }
    return blocks_[best].add(stream, stretch, first_slot, slots);
  }

  std::uint32_t num_slots() const {
    std::size_t sum = 0;
    for (const Block& block : blocks_) {
      sum += block.slots().size();
    }
    return static_cast<std::uint32_t>(sum);
  }

  const std::vector<Block>& blocks() const { return blocks_; }
  const std::vector<std::int64_t>& counts() const { return counts_; }

 private:
  struct Kind {
    std::uint64_t count = 0;
    std::size_t order = 0;
    const KernelStream* stream = nullptr;
    Stretch example;
  };

  std::map<std::uint64_t, Kind> kinds_;
  std::uint64_t total_ = 0;
  std::vector<Block> blocks_;
  std::vector<std::int64_t> counts_;
  std::unordered_map<std::uint64_t, std::size_t> bags_;
};

enum class Where { kPrologue, kLayer, kEpilogue };

// Calls visit(where, stretch) for the prologue, each layer, and the epilogue.
template <typename Visit>
void for_each_stretch(const ModelPass& pass, Visit&& visit) {
  visit(Where::kPrologue, Stretch{pass.begin, pass.layers.front()});
  for (std::size_t i = 0; i + 1 < pass.layers.size(); ++i) {
    visit(Where::kLayer, Stretch{pass.layers[i], pass.layers[i + 1]});
  }
  visit(Where::kEpilogue, Stretch{pass.layers.back(), pass.end});
}

// Everything about the passes of one kind.
class KindSummary {
 public:
  // `parts` learns the part of each kernel, numbered from `first_part` on.
  KindSummary(const Trace& trace, const KernelFamilies& families, const Structure& structure,
              std::uint32_t kind, std::uint32_t first_part, std::vector<std::uint32_t>& parts)
      : trace_(trace), families_(families), structure_(structure), kind_(kind) {
    std::vector<std::uint64_t> bags;  // of all stretches, in order
    for_each_pass([&](const KernelStream& stream, const ModelPass& pass) {
      for_each_stretch(pass, [&](Where where, Stretch stretch) {
        bags.push_back(bag_of(stream.symbols, structure.symbols, stretch.begin, stretch.end));
        blocks(where).count(stream, stretch, bags.back());
      });
    });
    std::array<std::uint32_t, 3> first = {first_part, 0, 0};
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].choose(trace, i == static_cast<std::size_t>(Where::kLayer));
      if (i + 1 < blocks_.size()) {
        first[i + 1] = first[i] + blocks_[i].num_slots();
      }
    }
    auto bag = bags.begin();
    for_each_pass([&](const KernelStream& stream, const ModelPass& pass) {
      pass_ns_.push_back(pass.end_ns - pass.start_ns);
      std::int64_t pass_work_ns = 0;
      for_each_stretch(pass, [&](Where where, Stretch stretch) {
        const std::int64_t work_ns = blocks(where).add(
            stream, stretch, *bag++, first[static_cast<std::size_t>(where)], parts);
        pass_work_ns += work_ns;
        if (where == Where::kLayer) {
          layer_ns_.push_back(work_ns);
        }
      });
      work_ns_.push_back(pass_work_ns);
      kernel_ns_ += pass_work_ns;
    });
  }

  PassRow pass(const std::string& name) const {
    const ModelPassKind& kind = structure_.kinds[kind_];
    PassRow summary;
    summary.pass = name;
    summary.num_passes = static_cast<std::int64_t>(pass_ns_.size());
    for (const KernelStream& stream : structure_.streams) {
      summary.num_cut += std::ranges::count_if(
          stream.passes, [&](const ModelPass& one) { return one.kind == kind_ && !one.is_whole; });
    }
    summary.num_layers = kind.num_layers;
    summary.is_backward = kind.is_backward;
    summary.layer_kernels = kind.layer_kernels;
    const Blocks& layers = blocks_[static_cast<std::size_t>(Where::kLayer)];
    if (layers.blocks().size() > 1) {
      for (std::size_t i = 0; i < layers.blocks().size(); ++i) {
        summary.layer_kinds +=
            fmt::format("{}{} of {} kernels", i == 0 ? "" : ", ",
                        layers.counts()[i] / std::max<std::int64_t>(1, summary.num_passes),
                        layers.blocks()[i].slots().size());
      }
    }
    summary.kernel_ns = kernel_ns_;
    summary.pass_ns = lower_median(pass_ns_);
    summary.period_ns = lower_median(periods_of_passes());
    summary.work_ns = lower_median(work_ns_);
    summary.layer_ns = lower_median(layer_ns_);
    summary.signs = fmt::format("{}", fmt::join(kind.signs, "; "));
    return summary;
  }

  void add_parts(const std::string& name, std::vector<LayerPartRow>& parts) const {
    for (const Where where : {Where::kPrologue, Where::kLayer, Where::kEpilogue}) {
      const std::vector<Block>& all = blocks_[static_cast<std::size_t>(where)].blocks();
      for (std::size_t i = 0; i < all.size(); ++i) {
        add_parts(name, where, all.size() > 1 ? std::optional(i) : std::nullopt, all[i], parts);
      }
    }
  }

 private:
  template <typename Visit>
  void for_each_pass(Visit&& visit) const {
    for (const KernelStream& stream : structure_.streams) {
      for (const ModelPass& pass : stream.passes) {
        if (pass.kind == kind_ && pass.is_whole) {
          visit(stream, pass);
        }
      }
    }
  }

  std::vector<std::int64_t> periods_of_passes() const {
    std::vector<std::int64_t> periods_ns;
    for (const KernelStream& stream : structure_.streams) {
      for (std::size_t i = 0; i + 1 < stream.passes.size(); ++i) {
        const ModelPass& one = stream.passes[i];
        if (one.kind == kind_ && one.is_whole) {
          periods_ns.push_back(stream.passes[i + 1].start_ns - one.start_ns);
        }
      }
    }
    return periods_ns;
  }

  Blocks& blocks(Where where) { return blocks_[static_cast<std::size_t>(where)]; }

  static std::string name_of(Where where, std::optional<std::size_t> letter) {
    if (where != Where::kLayer) {
      return where == Where::kPrologue ? "prologue" : "epilogue";
    }
    const auto kind = static_cast<char>('A' + std::min<std::size_t>(letter.value_or(0), 25));
    return letter ? fmt::format("layer {}", kind) : "layer";
  }

  void add_parts(const std::string& name, Where where, std::optional<std::size_t> letter,
                 const Block& block, std::vector<LayerPartRow>& parts) const {
    std::vector<PartKernel> kernels;
    std::vector<LayerPartRow> rows;
    for (const Slot& slot : block.slots()) {
      LayerPartRow row;
      row.pass = name;
      row.family = kOtherFamily;
      row.place = fmt::format("{} {}", name_of(where, letter), rows.size() + 1);
      const auto most = std::ranges::max_element(slot.names_ns, [&](const auto& a, const auto& b) {
        return std::pair(a.second, trace_.strings[b.first]) <
               std::pair(b.second, trace_.strings[a.first]);
      });
      if (most != slot.names_ns.end()) {
        row.kernel_name = trace_.strings[most->first];
        row.family = families_[most->first];
      }
      row.launches = slot.launches;
      row.total_ns = slot.total_ns;
      row.pass_fraction =
          kernel_ns_ == 0 ? 0
                          : static_cast<double>(slot.total_ns) / static_cast<double>(kernel_ns_);
      kernels.push_back({structure_.symbols.roles[slot.symbol], row.family, {}});
      rows.push_back(std::move(row));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      kernels[i].name = rows[i].kernel_name;
    }
    std::vector<std::string> names;
    if (where == Where::kPrologue) {
      names = parts_of_prologue(kernels);
    } else if (where == Where::kEpilogue) {
      names = parts_of_epilogue(kernels);
    } else if (structure_.kinds[kind_].is_backward) {
      for (const PartKernel& kernel : kernels) {
        names.push_back(kernel.family);
      }
    } else {
      names = parts_of_layer(kernels);
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].part = std::move(names[i]);
      parts.push_back(std::move(rows[i]));
    }
  }

  const Trace& trace_;
  const KernelFamilies& families_;
  const Structure& structure_;
  std::uint32_t kind_;
  std::array<Blocks, 3> blocks_;
  std::vector<std::int64_t> pass_ns_;
  std::vector<std::int64_t> work_ns_;
  std::vector<std::int64_t> layer_ns_;
  std::int64_t kernel_ns_ = 0;
};

// "forward", or "forward 1" where several kinds are.
std::vector<std::string> names_of(const std::vector<ModelPassKind>& kinds) {
  std::vector<std::string> names;
  for (const ModelPassKind& kind : kinds) {
    const auto same = std::ranges::count_if(
        kinds, [&](const ModelPassKind& other) { return other.is_backward == kind.is_backward; });
    std::string name = kind.is_backward ? "backward" : "forward";
    if (same > 1) {
      const auto before = std::count_if(kinds.data(), &kind, [&](const ModelPassKind& other) {
        return other.is_backward == kind.is_backward;
      });
      name += fmt::format(" {}", before + 1);
    }
    names.push_back(std::move(name));
  }
  return names;
}

void add_short_names(std::vector<LayerPartRow>& parts) {
  std::set<std::string> names;
  for (const LayerPartRow& part : parts) {
    names.insert(part.kernel_name);
  }
  const std::map<std::string, std::string> short_names = short_names_of(names);
  for (LayerPartRow& part : parts) {
    part.short_name = short_names.at(part.kernel_name);
  }
}

// Durations are sorted by part in one array: as many numbers as launches, whatever the parts.
void add_medians(const Trace& trace, const std::vector<std::uint32_t>& part_of,
                 std::vector<LayerPartRow>& parts) {
  std::vector<std::size_t> ends(parts.size() + 1);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    ends[i + 1] = static_cast<std::size_t>(parts[i].launches);
  }
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  Column<std::int64_t> column(ends.back());
  const std::span<std::int64_t> times_ns = column.span();
  std::vector<std::size_t> next(ends.begin(), ends.end());
  for (std::size_t row = 0; row < part_of.size(); ++row) {
    if (part_of[row] != kNone) {
      times_ns[next[part_of[row]]++] = trace.kernels.end_ns[row] - trace.kernels.start_ns[row];
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto begin = times_ns.begin() + static_cast<std::ptrdiff_t>(ends[i]);
    const auto end = times_ns.begin() + static_cast<std::ptrdiff_t>(next[i]);
    if (begin != end) {
      const auto middle = begin + (end - begin - 1) / 2;
      std::nth_element(begin, middle, end);
      parts[i].median_ns = *middle;
    }
  }
}

}  // namespace

StructureSummary summarise_structure(const Trace& trace, const KernelFamilies& families,
                                     const Structure& structure,
                                     std::vector<std::uint32_t>& parts) {
  parts.assign(trace.kernels.size(), kNone);
  StructureSummary summary;
  summary.reason = structure.reason;
  for (const KernelStream& stream : structure.streams) {
    summary.num_kernels += static_cast<std::int64_t>(stream.kernels.size());
    for (const ModelPass& pass : stream.passes) {
      summary.num_in_passes += pass.end - pass.begin;
    }
  }
  const std::vector<std::string> names = names_of(structure.kinds);
  for (std::uint32_t kind = 0; kind < structure.kinds.size(); ++kind) {
    const KindSummary one(trace, families, structure, kind,
                          static_cast<std::uint32_t>(summary.parts.size()), parts);
    summary.passes.push_back(one.pass(names[kind]));
    one.add_parts(names[kind], summary.parts);
  }
  add_short_names(summary.parts);
  add_medians(trace, parts, summary.parts);
  return summary;
}

StructureSummary summarise_structure(const Trace& trace, const KernelFamilies& families,
                                     const Structure& structure) {
  std::vector<std::uint32_t> parts;
  return summarise_structure(trace, families, structure, parts);
}

}  // namespace gpuwhy
