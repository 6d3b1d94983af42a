// SPDX-License-Identifier: Apache-2.0
//
// Passes and layers of a model, read out of the order of its kernels.
//
// layer_runs finds a kernel that occurs once per layer. The stretch between two passes holds more
// than a layer does: embedding, lm_head, sampling. Where a layer begins follows from the ends of a
// pass, which the first and the last layer share with no other.
#include "analysis/structure.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/layer_runs.h"

namespace llmprof {
namespace {

constexpr std::int64_t kPauseNs = 1'000'000;
constexpr std::size_t kLongRun = 8;  // layers: no chance
constexpr std::int64_t kClearGapNs = 5'000;

using Stream = std::span<const std::uint32_t>;

// Layers of one pass, as indexes into LayerRun::positions.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
};

std::span<const std::uint32_t> anchors_of(const LayerRun& run, const Piece& piece) {
  return std::span(run.positions).subspan(piece.begin, piece.size());
}

std::vector<KernelStream> streams_of(const Trace& trace, const KernelSymbols& symbols) {
  const Kernels& kernels = trace.kernels;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::size_t> indexes;
  std::vector<KernelStream> streams;
  std::vector<std::size_t> sizes;
  std::size_t current = 0;
  // Rows of one stream are mostly adjacent.
  const auto find = [&](std::uint32_t row) {
    if (streams.empty() || streams[current].device != kernels.device[row] ||
        streams[current].process != kernels.process[row]) {
      const auto [at, is_new] =
          indexes.try_emplace({kernels.device[row], kernels.process[row]}, streams.size());
      if (is_new) {
        streams.push_back({kernels.device[row], kernels.process[row], {}, {}, {}, 0});
        sizes.push_back(0);
      }
      current = at->second;
    }
    return current;
  };
  for (std::uint32_t row = 0; row < kernels.size(); ++row) {
    ++sizes[find(row)];
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams[i].kernels.reserve(sizes[i]);
  }
  for (std::uint32_t row = 0; row < kernels.size(); ++row) {
    streams[find(row)].kernels.push_back(row);
  }
  for (KernelStream& stream : streams) {
    // By name where all else is equal: the order of rows in a file is arbitrary.
    const auto order = [&](std::uint32_t a, std::uint32_t b) {
      const auto key = [&](std::uint32_t row) {
        return std::tuple(kernels.start_ns[row], kernels.end_ns[row], kernels.correlation[row]);
      };
      return key(a) != key(b) ? key(a) < key(b)
                              : trace.strings[kernels.name[a]] < trace.strings[kernels.name[b]];
    };
    if (!std::is_sorted(stream.kernels.begin(), stream.kernels.end(), order)) {
      std::sort(stream.kernels.begin(), stream.kernels.end(), order);
    }
    stream.symbols.reserve(stream.kernels.size());
    for (const std::uint32_t row : stream.kernels) {
      stream.symbols.push_back(symbols.of_name[static_cast<std::size_t>(kernels.name[row])]);
    }
  }
  const auto number = [&](const KernelStream& stream) {
    return std::tuple(trace.devices[stream.device].ordinal, trace.processes[stream.process].pid,
                      trace.processes[stream.process].global_id);
  };
  std::sort(streams.begin(), streams.end(),
            [&](const KernelStream& a, const KernelStream& b) { return number(a) < number(b); });
  return streams;
}

// Kernels of a stretch that another lacks.
struct Extras {
  std::uint32_t count = 0;
  bool has_gemm = false;
  bool has_embedding = false;
};

// Compares stretches of one stream.
class Stretches {
 public:
  Stretches(Stream stream, const KernelSymbols& symbols)
      : stream_(stream), symbols_(symbols), counts_(symbols.roles.size()) {}

  Extras extras(std::uint32_t begin, std::uint32_t end, std::uint32_t other_begin,
                std::uint32_t other_end) {
    for (std::uint32_t i = other_begin; i < other_end; ++i) {
      ++counts_[stream_[i]];
    }
    Extras extras;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (--counts_[stream_[i]] < 0) {
        const KernelRole role = symbols_.roles[stream_[i]];
        ++extras.count;
        extras.has_gemm |= role == KernelRole::kGemm;
        extras.has_embedding |= role == KernelRole::kEmbedding;
      }
    }
    for (std::uint32_t i = other_begin; i < other_end; ++i) {
      counts_[stream_[i]] = 0;
    }
    for (std::uint32_t i = begin; i < end; ++i) {
      counts_[stream_[i]] = 0;
    }
    return extras;
  }

 private:
  Stream stream_;
  const KernelSymbols& symbols_;
  std::vector<std::int32_t> counts_;
};

// Whether a pass ends in stretch `i`: it holds more than a layer nearby does, and among that a
// product or an embedding. Kinds of layers that alternate are compared with their like.
class Seams {
 public:
  Seams(Stream stream, const KernelSymbols& symbols, const LayerRun& run)
      : run_(run), stretches_(stream, symbols) {
    for (std::size_t i = 0; i + 1 < run.positions.size(); ++i) {
      bags_.push_back(is_far(i) ? 0 : bag_of(stream, run.positions[i], run.positions[i + 1]));
    }
  }

  bool is_seam(std::size_t i) {
    if (is_far(i)) {
      return true;
    }
    const std::size_t first = i < kReach ? 0 : i - kReach;
    const std::size_t last = std::min(bags_.size(), i + kReach + 1);
    std::optional<Extras> least;
    for (std::size_t other = first; other < last; ++other) {
      if (other == i || is_far(other)) {
        continue;
      }
      if (bags_[other] == bags_[i]) {
        return false;
      }
      const Extras extras = stretches_.extras(run_.positions[i], run_.positions[i + 1],
                                              run_.positions[other], run_.positions[other + 1]);
      if (!least || extras.count < least->count) {
        least = extras;
      }
    }
    return least && least->count > 0 &&
           (least->has_embedding || (least->has_gemm && least->count > 1));
  }

 private:
  static constexpr std::size_t kReach = 3;

  bool is_far(std::size_t i) const {
    return 4 * std::uint64_t{run_.positions[i + 1] - run_.positions[i]} >
           7 * std::uint64_t{run_.period} + 4;
  }

  const LayerRun& run_;
  Stretches stretches_;
  std::vector<std::uint64_t> bags_;
};

// The number of layers that accounts for most of them. The longest wins among equals.
std::size_t usual_size(const std::vector<Piece>& pieces) {
  std::map<std::size_t, std::size_t> layers;
  for (const Piece& piece : pieces) {
    layers[piece.size()] += piece.size();
  }
  std::size_t usual = 0;
  for (const auto& [size, sum] : layers) {
    usual = layers.contains(usual) && layers[usual] > sum ? usual : size;
  }
  return usual;
}

std::vector<Piece> pieces_of(Stream stream, const KernelSymbols& symbols, const LayerRun& run) {
  Seams seams(stream, symbols, run);
  std::vector<Piece> pieces;
  Piece piece;
  for (std::size_t i = 0; i + 1 < run.positions.size(); ++i) {
    if (seams.is_seam(i)) {
      piece.end = i + 1;
      pieces.push_back(piece);
      piece.begin = i + 1;
    }
  }
  piece.end = run.positions.size();
  pieces.push_back(piece);

  // A stray kernel can look like the end of a pass: two parts of one are put together again.
  const std::size_t usual = usual_size(pieces);
  std::vector<Piece> joined;
  for (const Piece& one : pieces) {
    if (!joined.empty() && joined.back().size() < usual &&
        joined.back().size() + one.size() == usual) {
      joined.back().end = one.end;
    } else {
      joined.push_back(one);
    }
  }
  return joined;
}

// How far two stretches agree from a kernel onwards, or backwards. Element k is how many kernels of
// the first match k of the second.
class Agreement {
 public:
  // The first stretch may have `most_extra` kernels more in one place.
  Agreement(Stream stream, const KernelSymbols& symbols, std::uint32_t first, std::uint32_t second,
            int direction, std::uint32_t limit, std::uint32_t most_extra = 0)
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

  Stream stream_;
  std::reference_wrapper<const KernelSymbols> symbols_;
  std::int64_t direction_;
  std::uint32_t first_;
  std::uint32_t second_;
  std::vector<std::uint32_t> taken_ = {0};
};

// Where layers begin, seen from their anchors.
struct Phase {
  std::uint32_t before = 0;  // kernels of a layer before its anchor
  std::size_t stride = 1;    // layers apart that are of one kind: 2 where two kinds alternate
  std::uint32_t symbol = 0;  // of the kernel that a layer begins with
  bool has_norm = false;     // that is a norm
};

// The kernels from one anchor of a pass to the next, as numbers to compare.
std::vector<std::uint64_t> bags_of(Stream stream, std::span<const std::uint32_t> anchors) {
  std::vector<std::uint64_t> bags;
  for (std::size_t i = 0; i + 1 < anchors.size(); ++i) {
    bags.push_back(bag_of(stream, anchors[i], anchors[i + 1]));
  }
  return bags;
}

// The smallest distance at which most layers are alike.
std::size_t stride_of(const std::vector<std::uint64_t>& bags) {
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
std::size_t usual_stretch(const std::vector<std::uint64_t>& bags, std::size_t first,
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

Ends ends_of(Stream stream, const KernelSymbols& symbols, std::span<const std::uint32_t> anchors,
             std::size_t stride) {
  const std::vector<std::uint64_t> bags = bags_of(stream, anchors);
  const std::size_t before = usual_stretch(bags, stride - 1, stride);
  const std::size_t after = usual_stretch(bags, (bags.size() - stride) % stride, stride);
  const std::uint32_t like_first = anchors[before + 1];
  const std::uint32_t length = like_first - anchors[before];
  const std::uint32_t last_length = anchors[after + 1] - anchors[after];
  return {like_first, length, last_length,
          Agreement(stream, symbols, anchors.front(), like_first, -1, length - 1),
          Agreement(stream, symbols, anchors.back(), anchors[after], 1, last_length - 1)};
}

// The same for a first layer that does work for all others, as the position bias of T5.
Ends with_extra_work(Stream stream, const KernelSymbols& symbols, std::uint32_t first, Ends ends) {
  if (ends.before.length() + ends.after.length() + 1 < ends.length) {
    ends.before =
        Agreement(stream, symbols, first, ends.like_first, -1, ends.length - 1, 2 * ends.length);
  }
  return ends;
}

// Both ends agree with a layer for longer than it is where a pass ends with a kernel that layers
// begin with. A layer begins with its norm.
Phase phase_of(Stream stream, const KernelSymbols& symbols,
               std::span<const std::uint32_t> anchors) {
  const std::size_t stride = stride_of(bags_of(stream, anchors));
  const Ends ends =
      with_extra_work(stream, symbols, anchors.front(), ends_of(stream, symbols, anchors, stride));
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

// The phase that most passes have.
Phase usual_phase(Stream stream, const KernelSymbols& symbols, const LayerRun& run,
                  const std::vector<Piece>& pieces, std::size_t num_layers) {
  std::map<std::uint32_t, std::pair<int, Phase>> votes;
  int num_passes = 0;
  for (const Piece& piece : pieces) {
    if (piece.size() == num_layers && num_passes < 16) {
      const Phase phase = phase_of(stream, symbols, anchors_of(run, piece));
      votes.try_emplace(phase.before, 0, phase).first->second.first += phase.has_norm ? 2 : 1;
      ++num_passes;
    }
  }
  return std::max_element(
             votes.begin(), votes.end(),
             [](const auto& a, const auto& b) { return a.second.first < b.second.first; })
      ->second.second;
}

// Layers of one piece. Where a layer has a kernel more or less before its anchor, it begins with
// the same kernel as the others.
ModelPass pass_of(Stream stream, const KernelSymbols& symbols,
                  std::span<const std::uint32_t> anchors, const Phase& phase) {
  ModelPass pass;
  const auto size = static_cast<std::uint32_t>(stream.size());
  const std::size_t stride = phase.stride < anchors.size() ? phase.stride : 1;
  const Ends ends =
      with_extra_work(stream, symbols, anchors.front(), ends_of(stream, symbols, anchors, stride));
  for (const std::uint32_t anchor : anchors) {
    if (pass.layers.empty()) {
      pass.layers.push_back(anchor - ends.before.of_first(phase.before));
      continue;
    }
    std::uint32_t start = anchor - std::min(anchor, phase.before);
    for (const int offset : {0, -1, 1, -2, 2}) {
      const std::int64_t place = std::int64_t{start} + offset;
      if (place <= anchor && place > pass.layers.back() &&
          stream[static_cast<std::size_t>(place)] == phase.symbol) {
        start = static_cast<std::uint32_t>(place);
        break;
      }
    }
    pass.layers.push_back(std::max(start, pass.layers.back() + 1));
  }
  const std::uint32_t rest =
      ends.last_length > phase.before ? ends.last_length - 1 - phase.before : 0;
  pass.layers.push_back(
      std::clamp(anchors.back() + 1 + ends.after.of_first(rest), pass.layers.back() + 1, size));
  pass.begin = pass.layers.front();
  pass.end = pass.layers.back();
  return pass;
}

// Cuts the stretches between passes into the epilogue of one and the prologue of the next.
class Cutter {
 public:
  Cutter(const Trace& trace, const KernelSymbols& symbols, KernelStream& stream)
      : trace_(trace), symbols_(symbols), stream_(stream) {}

  void cut() {
    std::vector<ModelPass>& passes = stream_.passes;
    for (std::size_t i = 0; i + 1 < passes.size(); ++i) {
      const std::uint32_t at = cut_between(passes[i].layers.back(), passes[i + 1].layers.front());
      // What stands further away is other work.
      passes[i].end = std::min(at, passes[i].layers.back() + most_beside(passes[i]));
      passes[i + 1].begin =
          std::max(at, passes[i + 1].layers.front() -
                           std::min(passes[i + 1].layers.front(), most_beside(passes[i + 1])));
    }
    if (!passes.empty()) {
      reach_back(passes.front());
      reach_on(passes.back());
    }
    for (ModelPass& pass : passes) {
      pass.start_ns = trace_.kernels.start_ns[stream_.kernels[pass.begin]];
      pass.end_ns = pass.start_ns;
      for (std::uint32_t i = pass.begin; i < pass.end; ++i) {
        pass.end_ns = std::max(pass.end_ns, trace_.kernels.end_ns[stream_.kernels[i]]);
      }
    }
  }

 private:
  // Kernels of a prologue or epilogue, at most: an optimizer has more than a layer.
  static std::uint32_t most_beside(const ModelPass& pass) {
    return 512 + 4 * (pass.layers[1] - pass.layers[0]);
  }

  std::int64_t gap_before(std::uint32_t position) const {
    return trace_.kernels.start_ns[stream_.kernels[position]] -
           trace_.kernels.end_ns[stream_.kernels[position - 1]];
  }

  // After the last product of the stretch, which is lm_head: at a gap that stands out, else where
  // the embedding begins, else at the longest gap.
  std::uint32_t cut_between(std::uint32_t begin, std::uint32_t end) const {
    std::uint32_t after = begin;
    for (std::uint32_t i = begin; i < end; ++i) {
      if (symbols_.roles[stream_.symbols[i]] == KernelRole::kGemm) {
        after = i + 1;
      }
    }
    std::uint32_t longest = after;
    std::int64_t longest_ns = 0;
    std::int64_t second_ns = 0;
    std::uint32_t embedding = end;
    for (std::uint32_t i = std::max(after, 1U); i <= end && i < stream_.kernels.size(); ++i) {
      const std::int64_t gap_ns = gap_before(i);
      if (gap_ns > longest_ns) {
        second_ns = std::exchange(longest_ns, gap_ns);
        longest = i;
      } else {
        second_ns = std::max(second_ns, gap_ns);
      }
      if (embedding == end && symbols_.roles[stream_.symbols[i]] == KernelRole::kEmbedding) {
        embedding = i;
      }
    }
    const bool stands_out = longest_ns > 3 * second_ns && longest_ns > kClearGapNs;
    return stands_out || embedding == end ? longest : embedding;
  }

  // The prologue of the first pass: as long as that of the others, or up to a layer of kernels
  // without a pause.
  void reach_back(ModelPass& first) const {
    const std::uint32_t start = first.layers.front();
    std::uint32_t most = first.layers[1] - first.layers[0];
    if (stream_.passes.size() > 1) {
      most = stream_.passes[1].layers.front() - stream_.passes[1].begin;
    }
    std::uint32_t begin = start;
    while (begin > 0 && start - begin < most && gap_before(begin) < kPauseNs) {
      --begin;
    }
    first.begin = begin;
  }

  void reach_on(ModelPass& last) const {
    const std::uint32_t stop = last.layers.back();
    std::uint32_t most = last.layers[1] - last.layers[0];
    if (stream_.passes.size() > 1) {
      const ModelPass& other = stream_.passes[stream_.passes.size() - 2];
      most = other.end - other.layers.back();
    }
    std::uint32_t end = stop;
    while (end < stream_.kernels.size() && end - stop < most &&
           (end == 0 || gap_before(end) < kPauseNs)) {
      ++end;
    }
    last.end = end;
  }

  const Trace& trace_;
  const KernelSymbols& symbols_;
  KernelStream& stream_;
};

// What a run of layers came to.
struct RunPasses {
  ModelPassKind kind;
  std::vector<ModelPass> passes;
  std::string reason;  // why there are none
};

bool is_mostly_backward(Stream stream, const KernelSymbols& symbols, const ModelPass& pass) {
  std::size_t backward = 0;
  const std::uint32_t begin = pass.layers[1];
  const std::uint32_t end = pass.layers[2];
  for (std::uint32_t i = begin; i < end; ++i) {
    backward += symbols.is_backward[stream[i]] ? 1 : 0;
  }
  return backward > 0;
}

// Where kernels stand that no layer has: embedding, lm_head, sampling. Without them a loop of equal
// blocks could be anything. Empty: nowhere.
std::string ends_text(Stream stream, const KernelSymbols& symbols, const ModelPass& pass) {
  Stretches stretches(stream, symbols);
  const std::uint32_t begin = pass.layers[1];
  const std::uint32_t end = pass.layers[2];
  const std::uint32_t reach = end - begin;
  const std::uint32_t first = pass.layers.front();
  const std::uint32_t last = pass.layers.back();
  const auto size = static_cast<std::uint32_t>(stream.size());
  const bool before = stretches.extras(first - std::min(first, reach), first, begin, end).count > 0;
  const bool after = stretches.extras(last, std::min(size, last + reach), begin, end).count > 0;
  if (!before && !after) {
    return {};
  }
  return fmt::format("other kernels stand {}{}{}", before ? "before the first layer" : "",
                     before && after ? " and " : "", after ? "after the last one" : "");
}

RunPasses passes_of(Stream stream, const KernelSymbols& symbols, const LayerRun& run) {
  RunPasses result;
  const std::vector<Piece> pieces = pieces_of(stream, symbols, run);
  const std::size_t num_layers = usual_size(pieces);
  std::size_t num_whole = 0;
  std::size_t num_cut = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool is_edge = i == 0 || i + 1 == pieces.size();
    num_whole += pieces[i].size() == num_layers ? 1 : 0;
    num_cut += pieces[i].size() < num_layers && is_edge ? 1 : 0;
  }
  if (num_layers < kLeastLayers) {
    result.reason = "fewer than four layers in a row";
    return result;
  }
  if (5 * num_whole < 3 * (pieces.size() - num_cut)) {
    result.reason = "runs of different lengths";
    return result;
  }
  const Phase phase = usual_phase(stream, symbols, run, pieces, num_layers);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool is_edge = i == 0 || i + 1 == pieces.size();
    if (pieces[i].size() == num_layers ||
        (is_edge && pieces[i].size() < num_layers && pieces[i].size() >= 2)) {
      ModelPass pass = pass_of(stream, symbols, anchors_of(run, pieces[i]), phase);
      pass.is_whole = pieces[i].size() == num_layers;
      result.passes.push_back(std::move(pass));
    }
  }
  // Chance makes short runs too: one kernel that recurs evenly, a few times, here and there.
  std::size_t num_in_layers = 0;
  for (const ModelPass& pass : result.passes) {
    num_in_layers += pass.layers.back() - pass.layers.front();
  }
  const bool is_long = num_layers >= kLongRun;
  if ((run.num_agreeing < 2 && (!is_long || num_whole < 3)) ||
      (!is_long && 2 * num_in_layers < stream.size()) ||
      (run.num_agreeing < 3 && 10 * num_in_layers < stream.size())) {
    result.passes.clear();
    result.reason = "what repeats is too short, or too little of the recording";
    return result;
  }
  const auto& example = *std::find_if(result.passes.begin(), result.passes.end(),
                                      [](const ModelPass& pass) { return pass.is_whole; });
  const std::string ends = ends_text(stream, symbols, example);
  if (pieces.size() == 1 && ends.empty()) {
    result.passes.clear();
    result.reason = "a loop of equal blocks without beginning or end";
    return result;
  }
  result.kind.num_layers = static_cast<std::uint32_t>(num_layers);
  result.kind.num_passes = static_cast<std::uint32_t>(num_whole);
  result.kind.layer_kernels = run.period;
  result.kind.is_backward = is_mostly_backward(stream, symbols, example);
  if (run.num_agreeing > 1) {
    result.kind.signs.push_back(
        fmt::format("{} kernels occur once in each layer", run.num_agreeing));
  }
  if (num_whole > 1) {
    result.kind.signs.push_back(
        fmt::format("{} passes have {} layers each", num_whole, num_layers));
  }
  if (!ends.empty()) {
    result.kind.signs.push_back(ends);
  }
  return result;
}

// By start, without overlap: where one ends a little late, the next begins.
void order_passes(KernelStream& stream) {
  std::sort(stream.passes.begin(), stream.passes.end(), [](const ModelPass& a, const ModelPass& b) {
    return std::pair(a.layers.front(), a.kind) < std::pair(b.layers.front(), b.kind);
  });
  std::vector<ModelPass> passes;
  for (ModelPass& pass : stream.passes) {
    if (!passes.empty() && passes.back().layers.back() > pass.layers.front()) {
      std::vector<std::uint32_t>& before = passes.back().layers;
      if (before[before.size() - 2] >= pass.layers.front()) {
        continue;
      }
      before.back() = pass.layers.front();
    }
    passes.push_back(std::move(pass));
  }
  stream.passes = std::move(passes);
}

// A stream without communication, whose kernels run beside others at any time.
struct ComputeStream {
  std::vector<std::uint32_t> symbols;
  std::vector<std::uint32_t> positions;  // in the whole stream, and its size at the end

  ComputeStream(const KernelStream& stream, const KernelSymbols& known) {
    symbols.reserve(stream.symbols.size());
    positions.reserve(stream.symbols.size() + 1);
    for (std::uint32_t i = 0; i < stream.symbols.size(); ++i) {
      if (known.roles[stream.symbols[i]] != KernelRole::kComm) {
        symbols.push_back(stream.symbols[i]);
        positions.push_back(i);
      }
    }
    positions.push_back(static_cast<std::uint32_t>(stream.symbols.size()));
  }

  // A pass as positions in the whole stream. Communication belongs to the kernels before it.
  void widen(ModelPass& pass) const {
    for (std::uint32_t& layer : pass.layers) {
      layer = positions[layer];
    }
    pass.begin = pass.layers.front();
    pass.end = pass.layers.back();
  }
};

// Collects the passes of all streams.
class Finder {
 public:
  Finder(const Trace& trace, Structure& structure) : trace_(trace), structure_(structure) {}

  void find(KernelStream& stream) {
    const ComputeStream compute(stream, structure_.symbols);
    const LayerRuns runs = find_layer_runs(compute.symbols, structure_.symbols);
    for (const LayerRun& run : runs.with_attention) {
      RunPasses found = passes_of(compute.symbols, structure_.symbols, run);
      if (!found.passes.empty() && found.kind.signs.size() >= 2) {
        add(std::move(found), stream);
      } else if (structure_.reason.empty()) {
        structure_.reason =
            found.reason.empty() ? "only one sign of layers: two are needed" : found.reason;
      }
    }
    if (!stream.passes.empty()) {
      for (const LayerRun& run : runs.without_attention) {
        add_backward(passes_of(compute.symbols, structure_.symbols, run), stream);
      }
    }
    for (ModelPass& pass : stream.passes) {
      compute.widen(pass);
    }
    order_passes(stream);
    Cutter(trace_, structure_.symbols, stream).cut();
    for (const ModelPass& pass : stream.passes) {
      stream.num_in_passes += pass.end - pass.begin;
    }
  }

 private:
  void add(RunPasses found, KernelStream& stream) {
    const auto [at, is_new] = kinds_.try_emplace(
        {found.kind.num_layers, found.kind.layer_kernels, found.kind.is_backward},
        static_cast<std::uint32_t>(structure_.kinds.size()));
    if (is_new) {
      structure_.kinds.push_back(found.kind);
    } else {
      structure_.kinds[at->second].num_passes += found.kind.num_passes;
    }
    for (ModelPass& pass : found.passes) {
      pass.kind = at->second;
      stream.passes.push_back(std::move(pass));
    }
  }

  // Passes without attention are a backward pass where each follows a forward one of as many
  // layers.
  void add_backward(RunPasses found, KernelStream& stream) {
    if (found.passes.empty()) {
      return;
    }
    std::map<std::uint32_t, const ModelPass*> forward;  // by the end of the last layer
    for (const ModelPass& pass : stream.passes) {
      forward.emplace(pass.layers.back(), &pass);
    }
    for (const ModelPass& pass : found.passes) {
      const auto after = forward.upper_bound(pass.layers.front());
      if (after == forward.begin() || std::prev(after)->second->num_layers() != pass.num_layers()) {
        return;
      }
      forward.erase(std::prev(after));  // followed by one only
    }
    if (found.kind.signs.size() < 2) {
      return;
    }
    found.kind.is_backward = true;
    found.kind.signs.insert(found.kind.signs.begin(),
                            "each follows a forward pass of as many layers");
    add(std::move(found), stream);
  }

  const Trace& trace_;
  Structure& structure_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, std::uint32_t> kinds_;
};

}  // namespace

Structure find_structure(const Trace& trace, const Rules& rules) {
  Structure structure;
  structure.symbols = find_symbols(trace, rules);
  structure.streams = streams_of(trace, structure.symbols);
  Finder finder(trace, structure);
  for (KernelStream& stream : structure.streams) {
    finder.find(stream);
  }
  if (structure.is_found()) {
    structure.reason.clear();
  } else if (structure.reason.empty()) {
    structure.reason = "no block of kernels with attention and matrix products repeats";
  }
  return structure;
}

}  // namespace llmprof
