// SPDX-License-Identifier: Apache-2.0
//
// Worth of a saving: GPU-hours of a day, and money where a price is given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

struct Finding;
struct Results;

// What one GPU costs per hour.
struct GpuPrice {
  double per_hour = 0;
  std::string unit;  // as given, "EUR"; empty: the number alone was given
};

// "2.50" or "2.50 EUR"; nullopt if it is neither.
std::optional<GpuPrice> parse_gpu_price(std::string_view text);

// "12.30 EUR"; below 1 three digits: "0.0105 EUR".
std::string money_text(double amount, const GpuPrice& price);

// What a saving is worth if the program runs all day as it was recorded.
struct DayWorth {
  double share = 0;               // of the day
  std::int64_t num_gpus = 0;      // a shorter job frees all of its GPUs
  std::int64_t num_recorded = 0;  // of them
  std::string basis;              // "6 steps, 929 ms"
  std::string assumption;         // what one step or one GPU of many stands for; empty: nothing

  double day_h() const { return 24.0 * static_cast<double>(num_gpus); }
  double saved_h() const { return share * day_h(); }
};

// Less than this does not show how a day goes on.
inline constexpr std::int64_t kLeastBasisNs = 100'000'000;

// A share of the whole recording, of its steady phase or of the only stage there is, is a share of
// a day that goes on like it; a share of one stage among others is not, nor one of a few
// milliseconds. Nullopt then.
std::optional<DayWorth> worth_of_day(const Results& metrics, const Finding& finding);

// "worth up to 14.20 EUR per day at 2.50 EUR per GPU-hour (from 6 steps, 929 ms)"; empty: it has
// none.
std::string day_worth_words(const Results& metrics, const Finding& finding, const GpuPrice& price);

// Whether there is no worth because too little was recorded.
bool is_too_short_for_a_day(const Results& metrics, const Finding& finding);

}  // namespace gpuwhy
