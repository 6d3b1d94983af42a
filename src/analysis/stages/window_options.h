// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuwhy {

// Steps by number, counted from 0; both ends are included.
struct StepSpan {
  std::int64_t first = 0;
  std::int64_t last = INT64_MAX;
};

// "10..20", "10.." or "10", as --steps takes it; nullopt for anything else.
std::optional<StepSpan> parse_steps(std::string_view text);

// The part of a recording that is wanted. At most one of: times, steps, trimming.
struct WindowOptions {
  std::optional<std::chrono::nanoseconds> from;  // after the start of the capture
  std::optional<std::chrono::nanoseconds> to;
  std::optional<StepSpan> steps;
  bool is_trimmed = false;

  bool is_empty() const { return !from && !to && !steps && !is_trimmed; }
};

}  // namespace gpuwhy
