// SPDX-License-Identifier: Apache-2.0
//
// Rank tests, intervals and resampling for two samples of measurements.
//
// Times of runs are skewed, have outliers, and there are few of them: a t-test relies on a mean
// that one bad run moves and on a normal distribution that is not there. Ranks need neither, and
// with few runs their distribution can be counted instead of approximated. The interval is based on
// the same ranks, so that test and interval never contradict each other. Steps inside one run are
// not independent; they are resampled in blocks.
//
// What this gets wrong: ranks detect a shift of the whole distribution; a change that only
// lengthens the tail shows in its p99 and nowhere else. Runs of a side must be exchangeable: a
// clock that drifts while one side runs after the other looks like a difference.
#include "compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace gpuwhy {
namespace {

double normal_above(double z) {
  return 0.5 * std::erfc(z / std::numbers::sqrt2);
}

// The number of arrangements of m and n values for each u, as doubles: C(100, 50) fits, with enough
// digits for a p-value.
std::vector<double> u_counts(std::size_t m, std::size_t n) {
  // Coefficients of the Gaussian binomial: multiply by (1 - q^(n+i)), divide by (1 - q^i).
  std::vector<double> counts(m * n + 1, 0.0);
  counts[0] = 1;
  for (std::size_t i = 1; i <= m; ++i) {
    for (std::size_t u = counts.size(); u-- > n + i;) {
      counts[u] -= counts[u - n - i];
    }
    for (std::size_t u = i; u < counts.size(); ++u) {
      counts[u] += counts[u - i];
    }
  }
  // Rounding errors accumulate towards large u; the distribution is symmetric.
  for (std::size_t u = 0; u < counts.size() / 2; ++u) {
    counts[counts.size() - 1 - u] = counts[u];
  }
  return counts;
}

// Probability of at most `u`, by counting.
double exact_at_most(const std::vector<double>& counts, double u) {
  double sum = 0;
  double all = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    all += counts[i];
    sum += static_cast<double>(i) <= u ? counts[i] : 0;
  }
  return sum / all;
}

double doubled(double at_most, double at_least) {
  return std::min(1.0, 2 * std::min(at_most, at_least));
}

double of_tail(double at_most, double at_least, Tail tail) {
  return tail == Tail::kTwoSided  ? doubled(at_most, at_least)
         : tail == Tail::kGreater ? at_least
                                  : at_most;
}

// Sum over groups of equal values of t^3 - t.
double tie_term(std::span<const double> first, std::span<const double> second) {
  std::vector<double> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  std::sort(all.begin(), all.end());
  double term = 0;
  for (std::size_t i = 0; i < all.size();) {
    const auto same =
        std::upper_bound(all.begin() + static_cast<std::ptrdiff_t>(i), all.end(), all[i]) -
        all.begin();
    const double t = static_cast<double>(same) - static_cast<double>(i);
    term += t * t * t - t;
    i = static_cast<std::size_t>(same);
  }
  return term;
}

double approximate_p(double u, double m, double n, double ties, Tail tail) {
  const double all = m + n;
  const double variance = m * n / 12 * (all + 1 - ties / (all * (all - 1)));
  if (!(variance > 0)) {
    return 1;
  }
  const double deviation = std::sqrt(variance);
  const double middle = m * n / 2;
  const auto above = [&](double count) { return normal_above((count - middle - 0.5) / deviation); };
  const double at_least = above(u);
  const double at_most = above(m * n - u);
  return std::min(1.0, of_tail(at_most, at_least, tail));
}

std::uint64_t arrangements(std::size_t m, std::size_t n) {
  std::uint64_t count = 1;
  for (std::size_t i = 1; i <= m; ++i) {
    count = count * (n + i) / i;  // exact: the product of i neighbours is divisible by i!
    if (count > kMostArrangements) {
      return count;
    }
  }
  return count;
}

// The next choice of `chosen.size()` of `all` places, in order; false after the last.
bool next_choice(std::vector<std::size_t>& chosen, std::size_t all) {
  for (std::size_t i = chosen.size(); i-- > 0;) {
    if (chosen[i] < all - chosen.size() + i) {
      ++chosen[i];
      for (std::size_t k = i + 1; k < chosen.size(); ++k) {
        chosen[k] = chosen[k - 1] + 1;
      }
      return true;
    }
  }
  return false;
}

// Medians of resampled series: blocks drawn with replacement, with the series closed to a ring.
class BlockResampler {
 public:
  explicit BlockResampler(std::span<const double> series)
      : series_(series),
        block_(static_cast<std::size_t>(std::ceil(std::cbrt(static_cast<double>(series.size()))))),
        drawn_(series.begin(), series.end()) {}

  // Of the series itself, before anything is drawn.
  double median() { return median_of_drawn(); }

  double resampled_median(SteadyRandom& random) {
    const std::size_t n = series_.size();
    for (std::size_t at = 0; at < n;) {
      const std::size_t length = std::min(n - at, block_);
      const std::size_t start = random.below(n);
      for (std::size_t i = 0; i < length; ++i) {
        drawn_[at++] = series_[(start + i) % n];
      }
    }
    return median_of_drawn();
  }

 private:
  // The lower one of two, as in metrics.json.
  double median_of_drawn() {
    const auto middle = drawn_.begin() + static_cast<std::ptrdiff_t>((drawn_.size() - 1) / 2);
    std::nth_element(drawn_.begin(), middle, drawn_.end());
    return *middle;
  }

  std::span<const double> series_;
  std::size_t block_;
  std::vector<double> drawn_;
};

double quantile_of(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

// The largest k with P(U < k) <= level: the limits of an interval are the k-th differences from
// either end. 0 if there is none.
std::size_t limit_rank(std::size_t m, std::size_t n, double level) {
  if (m <= kMostExact && n <= kMostExact) {
    const std::vector<double> counts = u_counts(m, n);
    const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
    double sum = 0;
    std::size_t k = 0;
    while (k < counts.size() && (sum + counts[k]) / all <= level) {
      sum += counts[k++];
    }
    return k;
  }
  const auto pairs = static_cast<double>(m) * static_cast<double>(n);
  const double deviation = std::sqrt(pairs * static_cast<double>(m + n + 1) / 12);
  const double k = std::floor(pairs / 2 + 0.5 + normal_quantile(level) * deviation);
  return k < 1 ? 0 : static_cast<std::size_t>(k);
}

}  // namespace

// Ranks of both samples together, from 1. Equal values share the mean of their ranks.
std::vector<double> midranks(std::span<const double> first, std::span<const double> second) {
  std::vector<double> values(first.begin(), first.end());
  values.insert(values.end(), second.begin(), second.end());
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) {
      ++end;
    }
    for (std::size_t k = i; k < end; ++k) {
      ranks[order[k]] = (static_cast<double>(i) + static_cast<double>(end) + 1) / 2;
    }
    i = end;
  }
  return ranks;
}

RankTest mann_whitney(std::span<const double> first, std::span<const double> second, Tail tail) {
  const auto m = static_cast<double>(first.size());
  const auto n = static_cast<double>(second.size());
  const std::vector<double> ranks = midranks(first, second);
  const double sum =
      std::accumulate(ranks.begin() + static_cast<std::ptrdiff_t>(first.size()), ranks.end(), 0.0);
  RankTest test;
  test.u = sum - n * (n + 1) / 2;
  const double ties = tie_term(first, second);
  test.is_exact = ties == 0 && first.size() <= kMostExact && second.size() <= kMostExact;
  if (!test.is_exact) {
    test.p = approximate_p(test.u, m, n, ties, tail);
    return test;
  }
  const std::vector<double> counts = u_counts(first.size(), second.size());
  // The distribution is symmetric: at least u is at most what is left.
  test.p = of_tail(exact_at_most(counts, test.u), exact_at_most(counts, m * n - test.u), tail);
  return test;
}

std::optional<double> exact_permutation_p(std::span<const double> first,
                                          std::span<const double> second, Tail tail) {
  const std::uint64_t num = arrangements(first.size(), second.size());
  if (num > kMostArrangements) {
    return std::nullopt;
  }
  std::vector<double> values(first.begin(), first.end());
  values.insert(values.end(), second.begin(), second.end());
  const double whole = std::accumulate(values.begin(), values.end(), 0.0);
  const auto m = static_cast<double>(first.size());
  const auto n = static_cast<double>(second.size());
  const auto difference = [&](double sum_of_first) {
    return (whole - sum_of_first) / n - sum_of_first / m;
  };
  std::vector<std::size_t> chosen(first.size());
  std::iota(chosen.begin(), chosen.end(), std::size_t{0});
  const auto chosen_sum = [&] {
    return std::accumulate(chosen.begin(), chosen.end(), 0.0,
                           [&](double sum, std::size_t place) { return sum + values[place]; });
  };
  const double observed = difference(chosen_sum());
  // Sums of the same values in another order differ in their last digits; they count as equal.
  const double slack = 1e-12 * std::max(std::abs(observed), std::abs(whole) / (m + n));
  std::uint64_t at_most = 0;
  std::uint64_t at_least = 0;
  do {
    const double here = difference(chosen_sum());
    at_most += here <= observed + slack ? 1 : 0;
    at_least += here >= observed - slack ? 1 : 0;
  } while (next_choice(chosen, values.size()));
  const auto all = static_cast<double>(num);
  return of_tail(static_cast<double>(at_most) / all, static_cast<double>(at_least) / all, tail);
}

RankTest rank_test(std::span<const double> first, std::span<const double> second, Tail tail) {
  RankTest test = mann_whitney(first, second, tail);
  if (!test.is_exact) {
    const std::vector<double> ranks = midranks(first, second);
    const std::span<const double> all(ranks);
    if (const auto p =
            exact_permutation_p(all.first(first.size()), all.subspan(first.size()), tail)) {
      test.p = *p;
      test.is_exact = true;
    }
  }
  return test;
}

Shift shift_of(std::span<const double> first, std::span<const double> second, double confidence) {
  std::vector<double> differences;
  differences.reserve(first.size() * second.size());
  for (const double a : first) {
    for (const double b : second) {
      differences.push_back(b - a);
    }
  }
  std::sort(differences.begin(), differences.end());
  Shift shift;
  shift.estimate = median_of(differences);
  const std::size_t k = limit_rank(first.size(), second.size(), (1 - confidence) / 2);
  constexpr double kEndless = std::numeric_limits<double>::infinity();
  // Too few values for this confidence: the limits are infinite.
  if (k == 0) {
    shift.low = -kEndless;
    shift.high = kEndless;
  } else {
    shift.low = differences[k - 1];
    shift.high = differences[differences.size() - k];
  }
  return shift;
}

std::optional<RatioInterval> block_bootstrap_ratio(std::span<const double> first,
                                                   std::span<const double> second,
                                                   double confidence, std::size_t resamples,
                                                   std::uint64_t seed) {
  if (first.size() < kLeastSteps || second.size() < kLeastSteps || resamples == 0) {
    return std::nullopt;
  }
  if (!std::ranges::all_of(first, [](double step) { return step > 0; }) ||
      !std::ranges::all_of(second, [](double step) { return step > 0; })) {
    return std::nullopt;
  }
  BlockResampler before(first);
  BlockResampler after(second);
  const double ratio = after.median() / before.median();
  SteadyRandom random(seed);
  std::vector<double> ratios;
  ratios.reserve(resamples);
  for (std::size_t i = 0; i < resamples; ++i) {
    const double base = before.resampled_median(random);
    ratios.push_back(after.resampled_median(random) / base);
  }
  std::sort(ratios.begin(), ratios.end());
  return RatioInterval{ratio, quantile_of(ratios, (1 - confidence) / 2),
                       quantile_of(ratios, (1 + confidence) / 2)};
}

std::vector<double> benjamini_hochberg(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double least = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const double scaled = p[order[i]] * static_cast<double>(p.size()) / static_cast<double>(i + 1);
    least = std::min(least, scaled);
    adjusted[order[i]] = least;
  }
  return adjusted;
}

double normal_quantile(double p) {
  // Bisection: 60 steps give every digit, and this is not called often enough to need more.
  double low = -40;
  double high = 40;
  for (int i = 0; i < 64; ++i) {
    const double middle = (low + high) / 2;
    (normal_above(-middle) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) {
    return *middle;
  }
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

double robust_deviation(std::span<const double> values) {
  const double middle = median_of({values.begin(), values.end()});
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) {
    distances.push_back(std::abs(value - middle));
  }
  constexpr double kOfNormal = 1.482602218505602;  // 1 / the normal distribution's third quartile
  return kOfNormal * median_of(std::move(distances));
}

std::uint64_t SteadyRandom::next() {
  // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014.
  state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

double SteadyRandom::uniform() {
  return static_cast<double>(next() >> 11U) * 0x1.0p-53;
}

double SteadyRandom::normal() {
  return normal_quantile(std::max(uniform(), 0x1.0p-54));
}

std::size_t SteadyRandom::below(std::size_t limit) {
  return static_cast<std::size_t>(uniform() * static_cast<double>(limit));
}

}  // namespace gpuwhy
