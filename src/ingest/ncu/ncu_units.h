// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

// Meaning of a printed unit: value * factor is in `base`.
struct UnitScale {
  std::string base;  // as ncu 2022 spells it: nsecond, byte, byte/second, cycle/second
  double factor = 1;
};

// "usecond" and "us" are 1000 nsecond, "Gbyte/s" is 1e9 byte/second, "Ghz" is 1e9 cycle/second. An
// unknown unit is its own base.
UnitScale unit_scale(std::string_view unit);

// A number as ncu prints it, with or without thousands separators. nullopt for text and non-finite
// values.
std::optional<double> parse_number(std::string_view text);

// The base unit of a metric according to its name; empty if unknown.
std::string_view unit_of_metric(std::string_view metric);

}  // namespace gpuwhy
