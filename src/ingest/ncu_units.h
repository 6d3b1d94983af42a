// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace llmprof {

// What a printed unit means: value * factor is in `base`.
struct UnitScale {
  std::string base;  // as ncu 2022 spells it: nsecond, byte, byte/second, cycle/second
  double factor = 1;
};

// "usecond" and "us" are 1000 nsecond, "Gbyte/s" is 1e9 byte/second, "Ghz" 1e9 cycle/second. A unit
// that is not known is its own base.
UnitScale unit_scale(std::string_view unit);

// A number as ncu prints it, with or without thousands separators. Nothing for text and for what is
// not finite.
std::optional<double> parse_number(std::string_view text);

// The base unit of a metric as its name tells it; empty where the name does not.
std::string_view unit_of_metric(std::string_view metric);

}  // namespace llmprof
