// SPDX-License-Identifier: Apache-2.0
//
// Rank tests, intervals and resampling for two samples of measurements. Pure functions: the same
// numbers give the same answer on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpuwhy {

// The alternative hypothesis on the second sample.
enum class Tail {
  kTwoSided,
  kGreater,  // the second is the larger
  kLess,
};

// Mann-Whitney test. `u` counts the pairs in which the value of the second sample is larger, ties
// half. Exact without ties up to kMostExact values per side, else the normal approximation with
// corrections for ties and continuity. Samples must be independent and not empty.
struct RankTest {
  double u = 0;
  double p = 1;
  bool is_exact = false;
};
inline constexpr std::size_t kMostExact = 50;
RankTest mann_whitney(std::span<const double> first, std::span<const double> second, Tail tail);

// The exact permutation test of the difference of means; on ranks it is Mann-Whitney, exact even
// with ties. Two-sided: twice the smaller tail. nullopt if there are more than kMostArrangements
// permutations.
inline constexpr std::uint64_t kMostArrangements = 50'000;
std::optional<double> exact_permutation_p(std::span<const double> first,
                                          std::span<const double> second, Tail tail);

// Ranks of all values from 1, those of the first sample before those of the second; ties share
// their mean rank.
std::vector<double> midranks(std::span<const double> first, std::span<const double> second);

// The test that the rest of the program uses: Mann-Whitney, by exact permutation of ranks if there
// are ties and few enough values.
RankTest rank_test(std::span<const double> first, std::span<const double> second, Tail tail);

// How much larger the second sample is: the median of all pairwise differences (Hodges-Lehmann),
// and the shifts that a Mann-Whitney test of level (1 - confidence) / 2 per side does not reject. A
// limit is infinite if there are too few values for it.
struct Shift {
  double estimate = 0;
  double low = 0;
  double high = 0;
};
Shift shift_of(std::span<const double> first, std::span<const double> second, double confidence);

// Ratio of the medians of two series of steps in time order, with the percentile interval of a
// circular block bootstrap: blocks keep neighbours together, because successive steps are similar.
// Block length is the cube root of the series' length, rounded up. nullopt below kLeastSteps per
// side or if a step is not positive.
struct RatioInterval {
  double ratio = 1;
  double low = 0;
  double high = 0;
};
inline constexpr std::size_t kLeastSteps = 8;
std::optional<RatioInterval> block_bootstrap_ratio(std::span<const double> first,
                                                   std::span<const double> second,
                                                   double confidence, std::size_t resamples = 2000,
                                                   std::uint64_t seed = 1);

// p-values adjusted so that reporting all below q leaves at most the share q of false ones
// (Benjamini-Hochberg), in the order given.
std::vector<double> benjamini_hochberg(std::span<const double> p);

// The point below which a standard normal variable lies with probability p, 0 < p < 1.
double normal_quantile(double p);

double median_of(std::vector<double> values);  // none is empty

// Robust spread of values: 1.4826 x the median absolute deviation, which is the standard deviation
// of a normal distribution.
double robust_deviation(std::span<const double> values);

// Random numbers that are the same on every platform, unlike the distributions of <random>.
class SteadyRandom {
 public:
  explicit SteadyRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();                  // SplitMix64
  double uniform();                      // 0 <= x < 1
  double normal();                       // standard, by inversion
  std::size_t below(std::size_t limit);  // 0 <= x < limit
  bool flip(double probability) { return uniform() < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace gpuwhy
