// SPDX-License-Identifier: Apache-2.0
//
// How quantities look to a person. Three significant digits are what a reader compares; machines
// read the integers of the JSON outputs instead. The unit is chosen after rounding, so 999,999 ns
// is "1.00 ms" and never "1000 us".
#include "base/units.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <span>

#include <fmt/format.h>

namespace llmprof {
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
  // Half a unit of the last digit shown is what rounding may add: 999.5 of a unit already prints as
  // 1000.
  while (i + 1 < scales.size() && std::fabs(scaled) >= step_up - 0.5) {
    ++i;
    scaled = value / scales[i].size;
  }
  const int digits = i == 0 ? 0 : decimals(std::fabs(scaled));
  return fmt::format("{:.{}f} {}", scaled, digits, scales[i].name);
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

std::string format_bytes(std::uint64_t bytes) {
  return format_scaled(static_cast<double>(bytes), kSizes, 1024);
}

std::string format_fraction(double fraction) {
  const double percent = fraction * 100;
  return fmt::format("{:.{}f} %", percent, decimals(std::fabs(percent)));
}

}  // namespace llmprof
