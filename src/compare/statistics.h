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

namespace llmprof {

// What the other side of a hypothesis says of the second sample.
enum class Tail {
  kTwoSided,
  kGreater,  // the second is the larger
  kLess,
};

// Mann-Whitney. `u` counts the pairs in which the value of the second sample is larger, ties half.
// Exact without ties up to kMostExact values a side, else the normal approximation with corrections
// for ties and continuity. Samples must be independent of each other. None is empty.
struct RankTest {
  double u = 0;
  double p = 1;
  bool is_exact = false;
};
inline constexpr std::size_t kMostExact = 50;
RankTest mann_whitney(std::span<const double> first, std::span<const double> second, Tail tail);

// The exact permutation test of the difference of means; on ranks it is Mann-Whitney, exact also
// with ties. Two-sided: twice the smaller tail. Nothing when there are more than
// kMostArrangements ways to deal the values out.
inline constexpr std::uint64_t kMostArrangements = 50'000;
std::optional<double> exact_permutation_p(std::span<const double> first,
                                          std::span<const double> second, Tail tail);

// Ranks of all values from 1, those of the first sample before those of the second; ties share the
// mean of theirs.
std::vector<double> midranks(std::span<const double> first, std::span<const double> second);

// The test of two samples that the rest of the program uses: Mann-Whitney, by the exact permutation
// of ranks where there are ties and few enough values.
RankTest rank_test(std::span<const double> first, std::span<const double> second, Tail tail);

// How much larger the second sample is: the median of all pairwise differences (Hodges-Lehmann),
// and the shifts that a Mann-Whitney test of level (1 - confidence) / 2 a side does not reject. A
// limit that so few values cannot give is infinite.
struct Shift {
  double estimate = 0;
  double low = 0;
  double high = 0;
};
Shift shift_of(std::span<const double> first, std::span<const double> second, double confidence);

// Ratio of the means of two series of steps in time order, with the percentile interval of a
// circular block bootstrap: blocks keep neighbours together, because steps resemble the ones before
// them. Block length is the cube root of the series' length, rounded up. Nothing below kLeastSteps
// a side or where a mean is not positive.
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

// p-values adjusted so that calling all below q leaves at most the share q of false calls
// (Benjamini-Hochberg), in the order given.
std::vector<double> benjamini_hochberg(std::span<const double> p);

// The point below which a standard normal variable lies with that probability, 0 < p < 1.
double normal_quantile(double p);

double median_of(std::vector<double> values);  // none is empty

// Spread of values around their middle that outliers do not widen: 1.4826 x the median absolute
// deviation, which is the standard deviation of a normal distribution.
double robust_deviation(std::span<const double> values);

// Random numbers that are the same everywhere, which those of <random>'s distributions are not.
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

}  // namespace llmprof
