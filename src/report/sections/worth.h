// SPDX-License-Identifier: Apache-2.0
//
// Worth of a saving: GPU-hours of a day, and money where a price is given.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

struct DayWorth;
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

// "6 steps, 929 ms": what the worth of a finding rests on, and "if every step is like ..."; empty:
// one step or one GPU stands for no other.
std::string basis_words(const Results& metrics, const Finding& finding);
std::string assumption_words(const DayWorth& worth);

// "worth up to 14.20 EUR per day at 2.50 EUR per GPU-hour (from 6 steps, 929 ms)"; empty: it has
// none.
std::string day_worth_words(const Results& metrics, const Finding& finding, const GpuPrice& price);

}  // namespace gpuwhy
