// SPDX-License-Identifier: Apache-2.0
//
// Formatting of quantities for people.
//
// Three significant digits are what a reader compares; machines read the integers of the JSON
// outputs. The unit is chosen after rounding, so 999,999 ns is "1.00 ms" and never "1000 us".
#include "base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <span>

#include <fmt/format.h>

#include "base/text.h"

namespace gpuwhy {
namespace {

struct Scale {
  double size;
  const char* name;
};

// Decimals that leave three significant digits of a value below `limit`.
int decimals(double value) {
  if (value < 9.995) {
    return 2;
  }
  return value < 99.95 ? 1 : 0;
}

// `scales` go from the smallest unit, which is printed without decimals, to the largest.
std::string format_scaled(double value, std::span<const Scale> scales, double step_up) {
  std::size_t i = 0;
  double scaled = value;
  // Rounding may add half a unit of the last digit shown: 999.5 already prints as 1000.
  while (i + 1 < scales.size() && std::fabs(scaled) >= step_up - 0.5) {
    ++i;
    scaled = value / scales[i].size;
  }
  const int digits = i == 0 ? 0 : decimals(std::fabs(scaled));
  return fmt::format("{:.{}f} {}", scaled, digits, scales[i].name);
}

// "1.5 GiB" as 1.5 and "gib". nullopt if it does not begin with a plain number.
struct Quantity {
  double number = 0;
  std::string unit;  // lower case
};
std::optional<Quantity> parse_quantity(std::string_view text) {
  const std::string_view shown = trim(text);
  const std::size_t digits = std::min(shown.find_first_not_of("0123456789."), shown.size());
  Quantity quantity;
  const auto [end, failure] = std::from_chars(shown.data(), shown.data() + digits, quantity.number);
  if (digits == 0 || failure != std::errc() || end != shown.data() + digits) {
    return std::nullopt;
  }
  quantity.unit = to_lower(trim(shown.substr(digits)));
  return quantity;
}

constexpr std::array<Scale, 4> kDurations = {{{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}}};
constexpr std::array<Scale, 5> kSizes = {{{1, "B"},
                                          {static_cast<double>(kKiB), "KiB"},
                                          {static_cast<double>(kMiB), "MiB"},
                                          {static_cast<double>(kGiB), "GiB"},
                                          {static_cast<double>(kTiB), "TiB"}}};

}  // namespace

std::string format_duration_ns(std::int64_t duration_ns) {
  return format_scaled(static_cast<double>(duration_ns), kDurations, 1000);
}

std::optional<std::int64_t> parse_duration_ns(std::string_view text) {
  const auto quantity = parse_quantity(text);
  if (!quantity) {
    return std::nullopt;
  }
  const auto scale = std::ranges::find_if(kDurations, [&](const Scale& one) {
    return quantity->unit == one.name ||
           (quantity->unit.empty() && one.size == kDurations.back().size);
  });
  constexpr double kCenturyNs = 100.0 * 365.25 * 24 * 3600 * 1e9;
  if (scale == kDurations.end() || quantity->number * scale->size > kCenturyNs) {
    return std::nullopt;
  }
  return std::llround(quantity->number * scale->size);
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto quantity = parse_quantity(text);
  if (!quantity) {
    return std::nullopt;
  }
  const auto& [number, unit] = *quantity;
  double size = unit.empty() || unit == "b" ? 1 : 0;
  double binary = 1;
  double decimal = 1;
  // "kB" is decimal; "k" and "KiB" are binary, as command-line tools have it.
  for (const char letter : {'k', 'm', 'g', 't'}) {
    binary *= 1024;
    decimal *= 1000;
    if (unit == std::string{letter, 'b'}) {
      size = decimal;
    } else if (unit == std::string{letter} || unit == std::string{letter, 'i', 'b'}) {
      size = binary;
    }
  }
  constexpr double kMost = 9.2e18;
  const double bytes = number * size;
  return size == 0 || bytes > kMost ? std::nullopt
                                    : std::optional(static_cast<std::uint64_t>(bytes));
}

std::string format_bytes(std::uint64_t bytes) {
  return format_scaled(static_cast<double>(bytes), kSizes, 1024);
}

std::string format_fraction(double fraction) {
  const double percent = fraction * 100;
  std::string text = fmt::format("{:.{}f} %", percent, decimals(std::fabs(percent)));
  return text == "-0.00 %" ? text.substr(1) : text;
}

std::string format_speedup(double factor) {
  return fmt::format("{:.{}f}x", factor, factor < 9.995 ? 2 : 0);
}

std::string format_change(double fraction, int num_decimals) {
  std::string text = fmt::format("{:+.{}f} %", fraction * 100, num_decimals);
  const bool is_zero = text.find_first_of("123456789in") == std::string::npos;  // inf and nan
  return is_zero ? text.substr(1) : text;
}

std::string count_of(std::int64_t count, std::string_view noun) {
  if (count == 1) {
    return fmt::format("1 {}", noun);
  }
  const auto ends_in = [&](const auto... endings) { return (noun.ends_with(endings) || ...); };
  if (noun.ends_with('y') && !ends_in("ay", "ey", "oy")) {
    return fmt::format("{} {}ies", count, noun.substr(0, noun.size() - 1));
  }
  return fmt::format("{} {}{}", count, noun, ends_in("s", "x", "ch", "sh") ? "es" : "s");
}

}  // namespace gpuwhy
