// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuwhy {

// Parses a number, from the first character to the last. nullopt if it does not fit.
template <typename Number>
std::optional<Number> parse_all(std::string_view text) {
  Number value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_all = failure == std::errc() && end == text.data() + text.size();
  return is_all ? std::optional(value) : std::nullopt;
}
inline std::optional<std::int64_t> parse_whole(std::string_view text) {
  return parse_all<std::int64_t>(text);
}

// Parses "2", "2%" or "2 %" as the fraction 0.02. nullopt if it is not between 0 % and 1000 %.
std::optional<double> parse_percent(std::string_view text);

// Parses "2", "2.5" or "2.50" as an amount above 0 and below a million.
std::optional<double> parse_price(std::string_view text);

}  // namespace gpuwhy
