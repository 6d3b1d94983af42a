// SPDX-License-Identifier: Apache-2.0
//
// Estimate of the offset between a client's clock and a recording's, from patterns alone.
//
// Tokens arrive shortly after the steps that made them end. Steps differ in length and in the
// number of their sequences, so arrivals, shifted by the right offset, fall on the ends of steps
// that made many tokens, and shifted by another one they do not. The fit of an offset is the
// correlation of both: arrivals per bin against tokens made per bin, less the mean of the
// neighbourhood, so that only the pattern counts and not that there was more load at one time.
//
// A monotonic clock may be off by anything, so all offsets are tried, by a Fourier transform; then
// finer bins near the best. Steps that are all alike fit at every period: the second best fit says
// so.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "analysis/requests/request_join.h"
#include "base/list_of.h"
#include "base/median.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kFineBinNs = 250'000;
constexpr std::size_t kMostBins = std::size_t{1} << 22;
constexpr std::size_t kMostArrivals = 20'000;  // enough for a pattern; evenly spread over all
constexpr std::int64_t kSmoothNs = 128'000'000;
constexpr double kClearRatio = 0.9;

using Complex = std::complex<double>;

// Fourier transform in place; the size is a power of two.
void transform(std::vector<Complex>& values, bool is_inverse) {
  const std::size_t size = values.size();
  for (std::size_t i = 1, j = 0; i < size; ++i) {
    std::size_t bit = size >> 1U;
    for (; (j & bit) != 0; bit >>= 1U) {
      j ^= bit;
    }
    j ^= bit;
    if (i < j) {
      std::swap(values[i], values[j]);
    }
  }
  for (std::size_t length = 2; length <= size; length <<= 1U) {
    const double angle = 2 * std::numbers::pi / static_cast<double>(length) * (is_inverse ? -1 : 1);
    std::vector<Complex> roots(length / 2);
    for (std::size_t i = 0; i < roots.size(); ++i) {
      roots[i] = std::polar(1.0, angle * static_cast<double>(i));
    }
    for (std::size_t from = 0; from < size; from += length) {
      for (std::size_t i = 0; i < length / 2; ++i) {
        const Complex odd = values[from + i + length / 2] * roots[i];
        values[from + i + length / 2] = values[from + i] - odd;
        values[from + i] += odd;
      }
    }
  }
}

// Subtracts the mean of the neighbourhood.
void sharpen(std::vector<double>& values, std::int64_t bin_ns) {
  const auto reach = static_cast<std::size_t>(std::max<std::int64_t>(kSmoothNs / bin_ns / 2, 2));
  std::vector<double> sums(values.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[i + 1] = sums[i] + values[i];
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t from = i > reach ? i - reach : 0;
    const std::size_t to = std::min(values.size(), i + reach + 1);
    values[i] -= (sums[to] - sums[from]) / static_cast<double>(to - from);
  }
}

std::size_t bins_of(std::int64_t length_ns, std::int64_t bin_ns) {
  return static_cast<std::size_t>(length_ns / bin_ns) + 1;
}

class OffsetSearch {
 public:
  OffsetSearch(const Requests& requests, const EngineLoop& loop) : loop_(loop) {
    const bool has_tokens = !requests.token_ns.empty();
    const auto& all = has_tokens ? requests.token_ns : requests.first_token_ns;
    const std::size_t stride = all.size() / kMostArrivals + 1;
    std::vector<std::int64_t> sorted;
    for (const std::int64_t time : all) {
      if (time != kNoTime) {
        sorted.push_back(time);
      }
    }
    std::ranges::sort(sorted);  // rows may be in any order
    for (std::size_t i = 0; i < sorted.size(); i += stride) {
      arrivals_.push_back(sorted[i]);
    }
    auto lengths = list_of<std::int64_t>(loop.steps, &LoopStep::length_ns);
    step_ns_ = std::max<std::int64_t>(lower_median(std::move(lengths)).value_or(0), 1);
  }

  bool is_empty() const { return arrivals_.size() < 2 || loop_.steps.size() < 2; }

  RoughOffset run(std::int64_t least_ns, std::int64_t most_ns) const {
    constexpr std::int64_t kWideNs = 2'000'000'000;
    std::int64_t from_ns = least_ns;
    std::int64_t to_ns = most_ns;
    RoughOffset wide;
    const bool is_wide = most_ns - least_ns > kWideNs;
    if (is_wide) {
      wide = search_all(least_ns, most_ns);
      from_ns = wide.offset_ns - kSmoothNs;
      to_ns = wide.offset_ns + kSmoothNs;
    }
    RoughOffset fine = search_near(from_ns, to_ns);
    fine.ratio = std::max(fine.ratio, is_wide ? wide.ratio : 0);
    fine.is_clear = fine.ratio < kClearRatio;
    fine.offset_ns -= early_delay_ns(fine.offset_ns);
    return fine;
  }

 private:
  std::int64_t loop_ns() const { return loop_.steps.back().end_ns - loop_.steps.front().begin_ns; }

  std::vector<double> ends(std::int64_t bin_ns) const {
    std::vector<double> values(bins_of(loop_ns(), bin_ns));
    for (const LoopStep& step : loop_.steps) {
      values[bins_of(step.end_ns - loop_.steps.front().begin_ns, bin_ns) - 1] +=
          static_cast<double>(std::max<std::int64_t>(step.sequences, 1));
    }
    sharpen(values, bin_ns);
    return values;
  }

  // Best and second best of fits at offsets `bin_ns` apart. Near ones are the same peak.
  RoughOffset best_of(const std::vector<double>& fits, std::int64_t first_ns,
                      std::int64_t bin_ns) const {
    RoughOffset best;
    const auto top = std::max_element(fits.begin(), fits.end());
    const auto at = static_cast<std::size_t>(top - fits.begin());
    const auto reach = static_cast<std::size_t>(std::max<std::int64_t>(step_ns_ / bin_ns / 2, 3));
    double second = 0;
    for (std::size_t i = 0; i < fits.size(); ++i) {
      if (i + reach < at || i > at + reach) {
        second = std::max(second, fits[i]);
      }
    }
    best.offset_ns = first_ns + static_cast<std::int64_t>(at) * bin_ns;
    best.ratio = *top > 0 ? second / *top : 1;
    return best;
  }

  // Every offset, by a Fourier transform.
  RoughOffset search_all(std::int64_t least_ns, std::int64_t most_ns) const {
    const std::int64_t span_ns = arrivals_.back() - arrivals_.front();
    std::int64_t bin_ns = 1'000'000;
    while (bins_of(loop_ns() + span_ns, bin_ns) > kMostBins) {
      bin_ns *= 2;
    }
    std::size_t size = 2;
    while (size < bins_of(loop_ns() + span_ns, bin_ns) + 2) {
      size *= 2;
    }
    std::vector<double> hits(bins_of(span_ns, bin_ns));
    for (const std::int64_t time : arrivals_) {
      hits[bins_of(time - arrivals_.front(), bin_ns) - 1] += 1;
    }
    sharpen(hits, bin_ns);
    const std::vector<double> made = ends(bin_ns);
    std::vector<Complex> a(size);
    std::vector<Complex> b(size);
    std::copy(made.begin(), made.end(), a.begin());
    std::copy(hits.begin(), hits.end(), b.begin());
    transform(a, false);
    transform(b, false);
    for (std::size_t i = 0; i < size; ++i) {
      a[i] *= std::conj(b[i]);
    }
    transform(a, true);
    // Place i: arrivals moved by i bins, where places of the upper half are moves back.
    const auto num_back = static_cast<std::int64_t>(hits.size()) - 1;
    const std::int64_t zero_ns = loop_.steps.front().begin_ns - arrivals_.front();
    std::vector<double> fits;
    for (std::int64_t i = -num_back; i < static_cast<std::int64_t>(made.size()); ++i) {
      const std::int64_t offset_ns = zero_ns + i * bin_ns;
      const auto place = static_cast<std::size_t>(i < 0 ? i + static_cast<std::int64_t>(size) : i);
      fits.push_back(offset_ns >= least_ns && offset_ns <= most_ns ? a[place].real() : 0);
    }
    return best_of(fits, zero_ns - num_back * bin_ns, bin_ns);
  }

  // Offsets of a small range, one by one.
  RoughOffset search_near(std::int64_t from_ns, std::int64_t to_ns) const {
    std::int64_t bin_ns = kFineBinNs;
    while (bins_of(loop_ns(), bin_ns) > 4 * kMostBins ||
           bins_of(to_ns - from_ns, bin_ns) > 20'000) {
      bin_ns *= 2;
    }
    const std::vector<double> made = ends(bin_ns);
    const std::int64_t zero_ns = loop_.steps.front().begin_ns;
    std::vector<double> fits(bins_of(to_ns - from_ns, bin_ns));
    for (const std::int64_t time : arrivals_) {
      const std::int64_t place_ns = time + from_ns - zero_ns;
      const std::int64_t first = place_ns / bin_ns - (place_ns % bin_ns < 0 ? 1 : 0);
      for (std::size_t i = 0; i < fits.size(); ++i) {
        const std::int64_t place = first + static_cast<std::int64_t>(i);
        if (place >= 0 && place < static_cast<std::int64_t>(made.size())) {
          fits[i] += made[static_cast<std::size_t>(place)];
        }
      }
    }
    return best_of(fits, from_ns, bin_ns);
  }

  // How long after the end of a step early tokens arrive: one in fifty is earlier.
  std::int64_t early_delay_ns(std::int64_t offset_ns) const {
    std::vector<std::int64_t> delays;
    for (const std::int64_t time : arrivals_) {
      const std::uint32_t next = loop_.last_ended(time + offset_ns + step_ns_ / 2);
      if (next != kNone) {
        const std::int64_t delay_ns = time + offset_ns - loop_.steps[next].end_ns;
        if (delay_ns <= step_ns_ / 2) {
          delays.push_back(delay_ns);
        }
      }
    }
    if (delays.empty()) {
      return 0;
    }
    const auto early = delays.begin() + static_cast<std::ptrdiff_t>(delays.size() / 50);
    std::nth_element(delays.begin(), early, delays.end());
    return *early;
  }

  const EngineLoop& loop_;
  std::vector<std::int64_t> arrivals_;  // by time
  std::int64_t step_ns_ = 1;            // median length
};

}  // namespace

RoughOffset rough_offset(const Requests& requests, const EngineLoop& loop, std::int64_t least_ns,
                         std::int64_t most_ns) {
  const OffsetSearch search(requests, loop);
  return search.is_empty() || most_ns < least_ns ? RoughOffset{0, false, 1}
                                                 : search.run(least_ns, most_ns);
}

}  // namespace gpuwhy
