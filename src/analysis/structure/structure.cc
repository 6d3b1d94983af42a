// SPDX-License-Identifier: Apache-2.0
//
// Passes and layers of a model, read out of the order of its kernels.
//
// layer_runs finds a kernel that occurs once per layer. The stretch between two passes holds more
// than a layer does: embedding, lm_head, sampling. pass_phase finds where layers begin.
#include "analysis/structure/structure.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/steps/pass_phase.h"
#include "analysis/structure/layer_runs.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kPauseNs = 1'000'000;
constexpr std::size_t kLongRun = 8;  // layers: no chance
constexpr std::int64_t kClearGapNs = 5'000;

// Layers of one pass, as indexes into LayerRun::positions.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
};

// The order of kernels that start together. By name where all else is equal: the order of rows in a
// file is arbitrary.
[[gnu::noinline]] bool is_before_at_start(const Trace& trace, std::uint32_t a, std::uint32_t b) {
  const auto key = [&](std::uint32_t row) {
    return std::tuple(trace.kernels.end_ns[row], trace.kernels.correlation[row],
                      trace.strings[trace.kernels.name[row]]);
  };
  return key(a) < key(b);
}

std::vector<KernelStream> streams_of(const Trace& trace, const KernelSymbols& symbols) {
  const Kernels& kernels = trace.kernels;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::size_t> indexes;
  std::vector<KernelStream> streams;
  // Rows of one stream mostly follow each other, as the files of a job do.
  for (std::uint32_t row = 0; row < kernels.size();) {
    const std::pair key(kernels.device[row], kernels.process[row]);
    std::uint32_t end = row + 1;
    while (end < kernels.size() && kernels.device[end] == key.first &&
           kernels.process[end] == key.second) {
      ++end;
    }
    const auto [at, is_new] = indexes.try_emplace(key, streams.size());
    if (is_new) {
      streams.push_back({key.first, key.second, {}, {}, {}});
    }
    std::vector<std::uint32_t>& rows = streams[at->second].kernels;
    rows.resize(rows.size() + (end - row));
    std::iota(rows.end() - static_cast<std::ptrdiff_t>(end - row), rows.end(), row);
    row = end;
  }
  for (KernelStream& stream : streams) {
    const auto order = [&](std::uint32_t a, std::uint32_t b) {
      return kernels.start_ns[a] != kernels.start_ns[b] ? kernels.start_ns[a] < kernels.start_ns[b]
                                                        : is_before_at_start(trace, a, b);
    };
    if (!std::ranges::is_sorted(stream.kernels, order)) {
      std::ranges::sort(stream.kernels, order);
    }
    stream.symbols.resize(stream.kernels.size());
    std::transform(stream.kernels.begin(), stream.kernels.end(), stream.symbols.begin(),
                   [&](std::uint32_t row) {
                     return symbols.of_name[static_cast<std::size_t>(kernels.name[row])];
                   });
  }
  const auto number = [&](const KernelStream& stream) {
    return std::tuple(trace.devices[stream.device].ordinal, trace.processes[stream.process].pid,
                      trace.processes[stream.process].global_id);
  };
  std::ranges::sort(streams, {}, [&](const KernelStream& one) { return number(one); });
  return streams;
}

// A run of layers with bag_of() from each position to the next.
struct BaggedRun {
  const LayerRun& run;
  std::vector<std::uint64_t> bags;

  BaggedRun(SymbolStream stream, const KernelSymbols& symbols, const LayerRun& of) : run(of) {
    bags.reserve(run.positions.size() - 1);
    for (std::size_t i = 0; i + 1 < run.positions.size(); ++i) {
      bags.push_back(bag_of(stream, symbols, run.positions[i], run.positions[i + 1]));
    }
  }

  PassAnchors anchors(const Piece& piece) const {
    return {std::span(run.positions).subspan(piece.begin, piece.size()),
            std::span(bags).subspan(piece.begin, piece.size() - 1)};
  }
};

// Whether a pass ends in stretch `i`: it holds more than a layer nearby does, and among that a
// product or an embedding. Kinds of layers that alternate are compared with their like.
class Seams {
 public:
  Seams(SymbolStream stream, const KernelSymbols& symbols, const BaggedRun& layers)
      : positions_(layers.run.positions),
        period_(layers.run.period),
        bags_(layers.bags),
        stretches_(stream, symbols) {}

  bool is_seam(std::size_t i) {
    if (is_far_away(i)) {
      return true;
    }
    const std::size_t first = i < kReach ? 0 : i - kReach;
    const std::size_t last = std::min(bags_.size(), i + kReach + 1);
    std::optional<Extras> least;
    for (std::size_t other = first; other < last; ++other) {
      if (other == i || is_far_away(other)) {
        continue;
      }
      if (bags_[other] == bags_[i]) {
        return false;
      }
      const Extras extras = stretches_.extras(positions_[i], positions_[i + 1], positions_[other],
                                              positions_[other + 1]);
      if (!least || extras.count < least->count) {
        least = extras;
      }
    }
    return least && least->count > 0 &&
           (least->has_embedding || (least->has_gemm && least->count > 1));
  }

 private:
  static constexpr std::size_t kReach = 3;

  bool is_far_away(std::size_t i) const {
    return is_far(positions_[i + 1] - positions_[i], period_);
  }

  const std::vector<std::uint32_t>& positions_;
  std::uint32_t period_;
  const std::vector<std::uint64_t>& bags_;
  Stretches stretches_;
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

std::vector<Piece> pieces_of(SymbolStream stream, const KernelSymbols& symbols,
                             const BaggedRun& layers) {
  Seams seams(stream, symbols, layers);
  std::vector<Piece> pieces;
  Piece piece;
  for (std::size_t i = 0; i < layers.bags.size(); ++i) {
    if (seams.is_seam(i)) {
      piece.end = i + 1;
      pieces.push_back(piece);
      piece.begin = i + 1;
    }
  }
  piece.end = layers.run.positions.size();
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

// The phase that most passes have.
Phase usual_phase(SymbolStream stream, const KernelSymbols& symbols, const BaggedRun& layers,
                  const std::vector<Piece>& pieces, std::size_t num_layers) {
  std::map<std::uint32_t, std::pair<int, Phase>> votes;
  int num_passes = 0;
  for (const Piece& piece : pieces) {
    if (piece.size() == num_layers && num_passes < 16) {
      const Phase phase = phase_of(stream, symbols, layers.anchors(piece));
      votes.try_emplace(phase.before, 0, phase).first->second.first += phase.has_norm ? 2 : 1;
      ++num_passes;
    }
  }
  return std::ranges::max_element(
             votes, {}, [](const auto& one) -> const auto& { return one.second.first; })
      ->second.second;
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

bool is_backward(SymbolStream stream, const KernelSymbols& symbols, const ModelPass& pass) {
  return std::any_of(stream.begin() + pass.layers[1], stream.begin() + pass.layers[2],
                     [&](std::uint32_t symbol) { return symbols.is_backward[symbol]; });
}

// Where kernels are that no layer has: embedding, lm_head, sampling. Without them a loop of equal
// blocks could be anything. Empty: nowhere.
std::string ends_text(SymbolStream stream, const KernelSymbols& symbols, const ModelPass& pass) {
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
  return fmt::format("other kernels come {}{}{}", before ? "before the first layer" : "",
                     before && after ? " and " : "", after ? "after the last one" : "");
}

RunPasses passes_of(SymbolStream stream, const KernelSymbols& symbols, const LayerRun& run) {
  RunPasses result;
  const BaggedRun layers(stream, symbols, run);
  const std::vector<Piece> pieces = pieces_of(stream, symbols, layers);
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
  const Phase phase = usual_phase(stream, symbols, layers, pieces, num_layers);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool is_edge = i == 0 || i + 1 == pieces.size();
    if (pieces[i].size() == num_layers ||
        (is_edge && pieces[i].size() < num_layers && pieces[i].size() >= 2)) {
      ModelPass& pass = result.passes.emplace_back();
      pass.layers = layers_of(stream, symbols, layers.anchors(pieces[i]), phase);
      pass.is_whole = pieces[i].size() == num_layers;
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
  const auto& example =
      *std::ranges::find_if(result.passes, [](const ModelPass& pass) { return pass.is_whole; });
  const std::string ends = ends_text(stream, symbols, example);
  if (pieces.size() == 1 && ends.empty()) {
    result.passes.clear();
    result.reason = "a loop of equal blocks without beginning or end";
    return result;
  }
  result.kind.num_layers = static_cast<std::uint32_t>(num_layers);
  result.kind.num_passes = static_cast<std::uint32_t>(num_whole);
  result.kind.layer_kernels = run.period;
  result.kind.is_backward = is_backward(stream, symbols, example);
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
  std::ranges::sort(stream.passes, {},
                    [](const ModelPass& one) { return std::pair(one.layers.front(), one.kind); });
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

// A stream without communication, whose kernels run beside others at any time. A view of the
// stream where it has none.
class ComputeStream {
 public:
  ComputeStream(const KernelStream& stream, const KernelSymbols& known) : stream_(stream) {
    const auto is_comm = [&](std::uint32_t symbol) {
      return known.roles[symbol] == KernelRole::kComm;
    };
    if (std::ranges::none_of(stream.symbols, is_comm)) {
      return;
    }
    // Each is written, and stays where the next is not written over it: no branch to mispredict.
    const auto size = static_cast<std::uint32_t>(stream.symbols.size());
    symbols_ = Column<std::uint32_t>(size);
    positions_ = Column<std::uint32_t>(size + 1);
    for (std::uint32_t i = 0; i < size; ++i) {
      symbols_[size_] = stream.symbols[i];
      positions_[size_] = i;
      size_ += is_comm(stream.symbols[i]) ? 0 : 1;
    }
    positions_[size_] = size;
  }

  SymbolStream symbols() const {
    return positions_.empty() ? SymbolStream(stream_.symbols) : symbols_.span().first(size_);
  }

  // A pass as positions in the whole stream. Communication belongs to the kernels before it.
  void widen(ModelPass& pass) const {
    for (std::uint32_t& layer : pass.layers) {
      layer = positions_.empty() ? layer : positions_[layer];
    }
    pass.begin = pass.layers.front();
    pass.end = pass.layers.back();
  }

 private:
  const KernelStream& stream_;
  Column<std::uint32_t> symbols_;
  Column<std::uint32_t> positions_;  // in the whole stream, and its size at the end
  std::size_t size_ = 0;             // of both
};

// Collects the passes of all streams.
class Finder {
 public:
  Finder(const Trace& trace, Structure& structure) : trace_(trace), structure_(structure) {}

  void find(KernelStream& stream) {
    const ComputeStream compute(stream, structure_.symbols);
    const LayerRuns runs = find_layer_runs(compute.symbols(), structure_.symbols);
    for (const LayerRun& run : runs.with_attention) {
      RunPasses found = passes_of(compute.symbols(), structure_.symbols, run);
      if (!found.passes.empty() && found.kind.signs.size() >= 2) {
        add(std::move(found), stream);
      } else if (structure_.reason.empty()) {
        structure_.reason =
            found.reason.empty() ? "only one sign of layers: two are needed" : found.reason;
      }
    }
    if (!stream.passes.empty()) {
      for (const LayerRun& run : runs.without_attention) {
        add_backward(passes_of(compute.symbols(), structure_.symbols, run), stream);
      }
    }
    for (ModelPass& pass : stream.passes) {
      compute.widen(pass);
    }
    order_passes(stream);
    Cutter(trace_, structure_.symbols, stream).cut();
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

Structure find_structure(const Trace& trace, const KernelFamilies& families) {
  Structure structure;
  structure.symbols = find_symbols(trace, families);
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

}  // namespace gpuwhy
