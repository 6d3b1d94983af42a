// SPDX-License-Identifier: Apache-2.0
//
// Beginnings of the layers of a pass.
//
// A pure repeat has no beginning. The ends of a pass have one: the first and the last layer stand
// beside kernels that no layer has.
#include "analysis/steps/pass_phase.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace gpuwhy {
namespace {

// How far two stretches agree from a kernel onwards, or backwards. Element k is how many kernels of
// the first match k of the second.
class Agreement {
 public:
  // The first stretch may have `most_extra` kernels more in one place.
  Agreement(SymbolStream stream, const KernelSymbols& symbols, std::uint32_t first,
            std::uint32_t second, int direction, std::uint32_t limit, std::uint32_t most_extra = 0)
      : stream_(stream), symbols_(symbols), direction_(direction), first_(first), second_(second) {
    std::uint32_t a = 0;
    while (taken_.size() <= limit) {
      const auto b = static_cast<std::uint32_t>(taken_.size() - 1);
      if (is_equal(a, b)) {
        taken_.push_back(++a);
      } else if (is_equal(a, b + 1) && (is_norm(a) || is_equal(a + 1, b + 2))) {
        taken_.push_back(a);  // the second has one more
      } else if (is_equal(a + 1, b) && (is_norm(a + 1) || is_equal(a + 2, b + 1))) {
        ++a;
      } else if (const std::uint32_t extra = extra_at(a, b, most_extra); extra > 0) {
        a += extra;
        most_extra = 0;
      } else {
        break;
      }
    }
  }

  std::uint32_t length() const { return static_cast<std::uint32_t>(taken_.size() - 1); }
  std::uint32_t of_first(std::uint32_t of_second) const {
    return taken_[std::min<std::size_t>(of_second, taken_.size() - 1)];
  }

 private:
  std::optional<std::uint32_t> at(std::uint32_t origin, std::uint32_t steps) const {
    const std::int64_t place = std::int64_t{origin} + direction_ * (std::int64_t{steps} + 1);
    const bool is_inside = place >= 0 && place < static_cast<std::int64_t>(stream_.size());
    return is_inside ? std::optional(stream_[static_cast<std::size_t>(place)]) : std::nullopt;
  }
  // Kernels to leave out of the first stretch so that four agree again; 0: none.
  std::uint32_t extra_at(std::uint32_t a, std::uint32_t b, std::uint32_t most) const {
    for (std::uint32_t extra = 2; extra <= most; ++extra) {
      std::uint32_t same = 0;
      while (same < 4 && is_equal(a + extra + same, b + same)) {
        ++same;
      }
      if (same == 4) {
        return extra;
      }
    }
    return 0;
  }
  // Of the first stretch.
  bool is_norm(std::uint32_t steps) const {
    const auto symbol = at(first_, steps);
    return symbol && symbols_.get().roles[*symbol] == KernelRole::kNorm;
  }
  // The same symbol, or two norms: the first layer has none to add to.
  bool is_equal(std::uint32_t a, std::uint32_t b) const {
    const auto one = at(first_, a);
    const auto other = at(second_, b);
    return one && other &&
           (*one == *other || (symbols_.get().roles[*one] == KernelRole::kNorm &&
                               symbols_.get().roles[*other] == KernelRole::kNorm));
  }

  SymbolStream stream_;
  std::reference_wrapper<const KernelSymbols> symbols_;
  std::int64_t direction_;
  std::uint32_t first_;
  std::uint32_t second_;
  std::vector<std::uint32_t> taken_ = {0};
};

// The smallest distance at which most layers are alike.
std::size_t stride_of(std::span<const std::uint64_t> bags) {
  for (std::size_t stride = 1; stride <= 8 && stride < bags.size(); ++stride) {
    std::size_t num_same = 0;
    for (std::size_t i = 0; i + stride < bags.size(); ++i) {
      num_same += bags[i] == bags[i + stride] ? 1 : 0;
    }
    if (2 * num_same >= bags.size() - stride) {
      return stride;
    }
  }
  return 1;
}

// Of the stretches first, first + stride, ...: one like most others.
std::size_t usual_stretch(std::span<const std::uint64_t> bags, std::size_t first,
                          std::size_t stride) {
  std::map<std::uint64_t, std::pair<int, std::size_t>> counts;  // how many, the first of them
  for (std::size_t i = first; i < bags.size(); i += stride) {
    ++counts.try_emplace(bags[i], 0, i).first->second.first;
  }
  std::pair<int, std::size_t> best(0, first);
  for (const auto& [bag, count] : counts) {
    if (count.first > best.first || (count.first == best.first && count.second < best.second)) {
      best = count;
    }
  }
  return best.second;
}

// How far the ends of a pass agree with a layer of their kind.
struct Ends {
  std::uint32_t like_first;   // anchor of a layer like the first
  std::uint32_t length;       // to it from the anchor before
  std::uint32_t last_length;  // of a layer like the last, to the anchor after it
  Agreement before;
  Agreement after;
};

Ends ends_of(SymbolStream stream, const KernelSymbols& symbols, const PassAnchors& anchors,
             std::size_t stride) {
  const auto [positions, bags] = anchors;
  const std::size_t before = usual_stretch(bags, stride - 1, stride);
  const std::size_t after = usual_stretch(bags, (bags.size() - stride) % stride, stride);
  const std::uint32_t like_first = positions[before + 1];
  const std::uint32_t length = like_first - positions[before];
  const std::uint32_t last_length = positions[after + 1] - positions[after];
  Ends ends{like_first, length, last_length,
            Agreement(stream, symbols, positions.front(), like_first, -1, length - 1),
            Agreement(stream, symbols, positions.back(), positions[after], 1, last_length - 1)};
  // A first layer may do work for all others, as the position bias of T5.
  if (ends.before.length() + ends.after.length() + 1 < length) {
    ends.before =
        Agreement(stream, symbols, positions.front(), like_first, -1, length - 1, 2 * length);
  }
  return ends;
}

}  // namespace

// Both ends agree with a layer for longer than it is where a pass ends with a kernel that layers
// begin with. A layer begins with its norm.
Phase phase_of(SymbolStream stream, const KernelSymbols& symbols, const PassAnchors& anchors) {
  const std::size_t stride = stride_of(anchors.bags);
  const Ends ends = ends_of(stream, symbols, anchors, stride);
  const std::uint32_t most = ends.before.length();
  const std::uint32_t least = ends.length - 1 - std::min(ends.length - 1, ends.after.length());
  for (std::uint32_t count = most; count > 0 && count >= least; --count) {
    const std::uint32_t symbol = stream[ends.like_first - count];
    if (symbols.roles[symbol] == KernelRole::kNorm) {
      return {count, stride, symbol, true};
    }
  }
  return {most, stride, stream[ends.like_first - most], false};
}

std::vector<std::uint32_t> layers_of(SymbolStream stream, const KernelSymbols& symbols,
                                     const PassAnchors& anchors, const Phase& phase) {
  const auto size = static_cast<std::uint32_t>(stream.size());
  const std::size_t stride = phase.stride < anchors.positions.size() ? phase.stride : 1;
  const Ends ends = ends_of(stream, symbols, anchors, stride);
  std::vector<std::uint32_t> layers = {anchors.positions.front() -
                                       ends.before.of_first(phase.before)};
  for (const std::uint32_t anchor : anchors.positions.subspan(1)) {
    std::uint32_t start = anchor - std::min(anchor, phase.before);
    for (const int offset : {0, -1, 1, -2, 2}) {
      const std::int64_t place = std::int64_t{start} + offset;
      if (place <= anchor && place > layers.back() &&
          stream[static_cast<std::size_t>(place)] == phase.symbol) {
        start = static_cast<std::uint32_t>(place);
        break;
      }
    }
    layers.push_back(std::max(start, layers.back() + 1));
  }
  const std::uint32_t rest =
      ends.last_length > phase.before ? ends.last_length - 1 - phase.before : 0;
  layers.push_back(std::clamp(anchors.positions.back() + 1 + ends.after.of_first(rest),
                              layers.back() + 1, size));
  return layers;
}

}  // namespace gpuwhy
