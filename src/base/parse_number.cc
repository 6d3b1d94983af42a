// SPDX-License-Identifier: Apache-2.0
//
// Numbers that users type: all of the text counts, so that "10k" is not 10.
#include "base/parse_number.h"

#include <charconv>

#include "base/text.h"

namespace gpuwhy {

std::optional<double> parse_percent(std::string_view text) {
  double percent = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view unit = trim(std::string_view(end, text.data() + text.size()));
  const bool is_percent = failure == std::errc() && (unit.empty() || unit == "%");
  return is_percent && percent > 0 && percent < 1000 ? std::optional(percent / 100) : std::nullopt;
}

std::optional<double> parse_price(std::string_view text) {
  double price = 0;
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), price, std::chars_format::fixed);
  const bool is_whole = failure == std::errc() && end == text.data() + text.size();
  return is_whole && price > 0 && price < 1e6 ? std::optional(price) : std::nullopt;
}

}  // namespace gpuwhy
