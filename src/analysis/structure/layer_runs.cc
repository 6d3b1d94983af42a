// SPDX-License-Identifier: Apache-2.0
//
// Runs of layers: kernels that recur at nearly equal distances with nearly the same work between.
#include "analysis/structure/layer_runs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "analysis/kernels/kernel_stretches.h"
#include "trace/column.h"

namespace gpuwhy {
namespace {

constexpr std::uint32_t kLeastPeriod = 5;  // kernels in a layer
constexpr std::size_t kMostRuns = 8;       // kinds of pass in one stream
constexpr std::size_t kMostLayerTries = 64;
constexpr std::size_t kSamples = 64;  // neighbours compared per train

using Interval = std::pair<std::uint32_t, std::uint32_t>;  // begin, end

// Occurrences of one symbol at nearly equal distances.
struct Train {
  std::uint32_t symbol = 0;
  std::span<const std::uint32_t> positions;
  std::uint32_t period = 0;

  std::uint32_t begin() const { return positions.front(); }
  std::uint32_t end() const { return positions.back(); }
};

// Positions of each symbol, in order.
struct Occurrences {
  Column<std::uint32_t> positions;
  std::vector<std::size_t> starts;

  Occurrences(SymbolStream stream, std::size_t num_symbols)
      : positions(stream.size()), starts(num_symbols + 1) {
    for (const std::uint32_t symbol : stream) {
      ++starts[symbol + 1];
    }
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
    for (std::uint32_t i = 0; i < stream.size(); ++i) {
      positions[next[stream[i]]++] = i;
    }
  }

  std::span<const std::uint32_t> of(std::size_t symbol) const {
    return positions.span().subspan(starts[symbol], starts[symbol + 1] - starts[symbol]);
  }
};

std::uint32_t median_distance(std::span<const std::uint32_t> positions) {
  std::vector<std::uint32_t> distances(positions.size() - 1);
  for (std::size_t i = 1; i < positions.size(); ++i) {
    distances[i - 1] = positions[i] - positions[i - 1];
  }
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

// Splits the occurrences of a symbol into trains. The ends of a pass stretch one distance, other
// kinds of layer a few: no distance of a train is far from another.
void add_trains(std::uint32_t symbol, std::span<const std::uint32_t> positions,
                std::vector<Train>& trains) {
  std::size_t first = 0;
  while (first + kLeastLayers <= positions.size()) {
    std::uint64_t least = positions[first + 1] - positions[first];
    std::uint64_t most = least;
    std::size_t last = first + 1;
    for (; last + 1 < positions.size(); ++last) {
      const std::uint64_t distance = positions[last + 1] - positions[last];
      const std::uint64_t low = std::min(least, distance);
      const std::uint64_t high = std::max(most, distance);
      if (is_far(high, low)) {
        break;
      }
      least = low;
      most = high;
    }
    if (last - first + 1 < kLeastLayers) {
      ++first;
      continue;
    }
    const auto part = positions.subspan(first, last - first + 1);
    const std::uint32_t period = median_distance(part);
    if (period >= kLeastPeriod) {
      trains.push_back({symbol, part, period});
    }
    first = last;
  }
}

// Counts of the kernels that a layer must have.
class RoleCounts {
 public:
  RoleCounts(SymbolStream stream, const KernelSymbols& symbols) : before_(stream.size() + 1) {
    std::vector<std::uint64_t> steps(symbols.roles.size());
    for (std::size_t symbol = 0; symbol < steps.size(); ++symbol) {
      steps[symbol] = symbols.roles[symbol] == KernelRole::kGemm        ? kOneGemm
                      : symbols.roles[symbol] == KernelRole::kAttention ? 1
                                                                        : 0;
    }
    std::uint64_t count = 0;
    before_[0] = 0;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      count += steps[stream[i]];
      before_[i + 1] = count;
    }
  }

  // Nine in ten stretches of the train hold two products, and attention.
  bool fit(const Train& train, bool needs_attention) const {
    std::size_t num_fitting = 0;
    for (std::size_t i = 1; i < train.positions.size(); ++i) {
      const std::uint64_t count = before_[train.positions[i]] - before_[train.positions[i - 1]];
      const bool has_attention = !needs_attention || count % kOneGemm > 0;
      num_fitting += has_attention && count / kOneGemm >= 2 ? 1 : 0;
    }
    return 10 * num_fitting >= 9 * (train.positions.size() - 1);
  }

 private:
  static constexpr std::uint64_t kOneGemm = std::uint64_t{1} << 32;

  Column<std::uint64_t> before_;  // products, and attention in the lower half
};

// How much of two neighbouring stretches is the same, counted with multiplicity.
double likeness(std::uint32_t begin, std::uint32_t middle, std::uint32_t end,
                Stretches& stretches) {
  const std::uint32_t common = end - middle - stretches.extras(middle, end, begin, middle).count;
  return 2.0 * common / static_cast<double>(end - begin);
}

// Whether neighbouring stretches of a train are alike: four fifths of the kernels at the median,
// three quarters in seven of ten.
bool is_repeating(const Train& train, Stretches& stretches) {
  const std::size_t num_pairs = train.positions.size() - 2;
  const std::size_t step = std::max<std::size_t>(1, num_pairs / kSamples);
  std::vector<double> likes;
  for (std::size_t i = 0; i < num_pairs; i += step) {
    likes.push_back(
        likeness(train.positions[i], train.positions[i + 1], train.positions[i + 2], stretches));
  }
  std::ranges::sort(likes);
  return likes[likes.size() / 2] >= 0.8 && likes[likes.size() * 3 / 10] >= 0.75;
}

bool is_near_period(std::uint32_t period, std::uint32_t other) {
  const std::uint32_t distance = period > other ? period - other : other - period;
  return distance <= std::max<std::uint32_t>(1, other / 10);
}

// Kernels that no run covers yet. Covered ones are kept as intervals, of which there are about as
// many as passes: a mark for each kernel would be written again for every run.
class Free {
 public:
  bool has_most_of(const Train& train) const {
    const std::uint32_t length = train.end() - train.begin();
    const std::uint32_t taken = num_taken_before(train.end()) - num_taken_before(train.begin());
    return 5ULL * (length - taken) > 4ULL * length;
  }

  void take(const std::vector<Interval>& intervals) {
    std::vector<Interval> all = std::move(taken_);
    all.insert(all.end(), intervals.begin(), intervals.end());
    std::ranges::sort(all);
    taken_.clear();
    for (const Interval& one : all) {
      if (!taken_.empty() && one.first <= taken_.back().second) {
        taken_.back().second = std::max(taken_.back().second, one.second);
      } else {
        taken_.push_back(one);
      }
    }
    before_.assign(1, 0);
    for (const Interval& one : taken_) {
      before_.push_back(before_.back() + (one.second - one.first));
    }
  }

 private:
  std::uint32_t num_taken_before(std::uint32_t position) const {
    const auto after = std::ranges::upper_bound(taken_, position, {}, &Interval::first);
    if (after == taken_.begin()) {
      return 0;
    }
    const Interval& last = *std::prev(after);
    return before_[static_cast<std::size_t>(after - taken_.begin()) - 1] +
           (std::min(position, last.second) - last.first);
  }

  std::vector<Interval> taken_;        // by begin, apart from each other
  std::vector<std::uint32_t> before_;  // kernels in the intervals before each
};

// The shortest period among the candidates that cover most.
const Train* choose(const std::vector<const Train*>& candidates) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> covered;  // symbol, period
  std::uint64_t most = 0;
  for (const Train* train : candidates) {
    std::uint64_t& sum = covered[{train->symbol, train->period}];
    sum += train->end() - train->begin();
    most = std::max(most, sum);
  }
  const Train* best = nullptr;
  for (const Train* train : candidates) {
    const bool covers = 5 * covered[{train->symbol, train->period}] >= 3 * most;
    if (covers && (best == nullptr || std::pair(train->period, train->begin()) <
                                          std::pair(best->period, best->begin()))) {
      best = train;
    }
  }
  return best;
}

// Occurrences of one symbol in all trains of about a period that meet one of `like`.
std::map<std::uint32_t, std::vector<std::uint32_t>> agreeing(const std::vector<Train>& trains,
                                                             const std::vector<Train>& like) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> positions;
  for (const Train& train : trains) {
    const auto at = std::ranges::upper_bound(like, train.end(), {},
                                             [](const Train& other) { return other.begin(); });
    const bool meets = at != like.begin() && std::prev(at)->end() > train.begin() &&
                       is_near_period(train.period, std::prev(at)->period);
    if (meets) {
      std::vector<std::uint32_t>& all = positions[train.symbol];
      for (const std::uint32_t position : train.positions) {
        if (all.empty() || all.back() < position) {
          all.push_back(position);
        }
      }
    }
  }
  return positions;
}

// The run that most symbols agree on, anchored at attention where one of them is.
LayerRun run_of(const std::map<std::uint32_t, std::vector<std::uint32_t>>& agreed,
                const KernelSymbols& symbols) {
  std::map<std::size_t, std::uint32_t> votes;
  for (const auto& [symbol, positions] : agreed) {
    ++votes[positions.size()];
  }
  const auto most = std::ranges::max_element(
      votes, {}, [](const auto& one) -> const auto& { return one.second; });
  LayerRun run;
  run.num_agreeing = most->second;
  std::uint32_t anchor = 0;
  const auto rank = [&](std::uint32_t symbol, const std::vector<std::uint32_t>& positions) {
    return std::pair(symbols.roles[symbol] != KernelRole::kAttention, positions.front());
  };
  for (const auto& [symbol, positions] : agreed) {
    if (positions.size() == most->first &&
        (run.positions.empty() || rank(symbol, positions) < rank(anchor, run.positions))) {
      anchor = symbol;
      run.positions = positions;
    }
  }
  run.period = median_distance(run.positions);
  return run;
}

// Runs of one stream, found one after the other in what is left.
class RunFinder {
 public:
  RunFinder(SymbolStream kernels, const KernelSymbols& all)
      : symbols_(all),
        occurrences_(kernels, all.roles.size()),
        counts_(kernels, all),
        stretches_(kernels, all) {
    for (std::uint32_t symbol = 0; symbol < all.roles.size(); ++symbol) {
      if (all.roles[symbol] != KernelRole::kGemm) {
        add_trains(symbol, occurrences_.of(symbol), trains_);
      }
    }
  }

  std::vector<LayerRun> find(bool needs_attention) {
    std::vector<const Train*> candidates;
    for (const Train& train : trains_) {
      if (free_.has_most_of(train) && counts_.fit(train, needs_attention)) {
        candidates.push_back(&train);
      }
    }
    std::vector<LayerRun> runs;
    for (std::size_t tries = 0; !candidates.empty() && tries < kMostLayerTries; ++tries) {
      const std::vector<Train> same = take_like(*choose(candidates), candidates);
      if (same.empty()) {
        continue;
      }
      runs.push_back(run_of(agreeing(trains_, same), symbols_));
      cover(runs.back());
      std::erase_if(candidates, [&](const Train* train) { return !free_.has_most_of(*train); });
      if (runs.size() == kMostRuns) {
        break;
      }
    }
    return runs;
  }

 private:
  // Takes the trains of one symbol and period out of the candidates; those that repeat are kept.
  std::vector<Train> take_like(const Train& best, std::vector<const Train*>& candidates) {
    std::vector<Train> same;
    std::vector<const Train*> rest;
    for (const Train* train : candidates) {
      if (train->symbol != best.symbol || !is_near_period(train->period, best.period)) {
        rest.push_back(train);
      } else if (is_repeating(*train, stretches_)) {
        same.push_back(*train);
      }
    }
    candidates = std::move(rest);
    return same;
  }

  void cover(const LayerRun& run) {
    std::vector<Interval> intervals;
    for (std::size_t i = 1; i < run.positions.size(); ++i) {
      if (run.positions[i] - run.positions[i - 1] > 2 * run.period) {
        continue;
      }
      if (!intervals.empty() && intervals.back().second == run.positions[i - 1]) {
        intervals.back().second = run.positions[i];
      } else {
        intervals.emplace_back(run.positions[i - 1], run.positions[i]);
      }
    }
    free_.take(intervals);
  }

  const KernelSymbols& symbols_;
  Occurrences occurrences_;
  std::vector<Train> trains_;
  RoleCounts counts_;
  Stretches stretches_;
  Free free_;
};

}  // namespace

LayerRuns find_layer_runs(SymbolStream stream, const KernelSymbols& symbols) {
  RunFinder finder(stream, symbols);
  LayerRuns runs;
  runs.with_attention = finder.find(true);
  if (!runs.with_attention.empty()) {
    runs.without_attention = finder.find(false);
  }
  return runs;
}

}  // namespace gpuwhy
