// SPDX-License-Identifier: Apache-2.0
//
// Rows that a reader left out because their numbers cannot be right.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "results/diagnostic.h"

namespace gpuwhy {

// Why a row is left out.
enum class Unusable : std::uint8_t { kNoNumber, kEndsFirst, kFarAway };

struct EventCounts {
  std::int64_t kernels = 0;
  std::int64_t others = 0;

  void add(bool is_kernel, std::int64_t count = 1) { (is_kernel ? kernels : others) += count; }
  std::int64_t sum() const { return kernels + others; }
};

// By reason.
using LeftOut = std::array<EventCounts, 3>;
EventCounts sum_of(const LeftOut& rows);

// One diagnostic per reason, with the words of the format for it. No figure holds if more than a
// hundredth of all kernels, or of all other events, was left out.
void add_left_out(const LeftOut& rows, const EventCounts& all,
                  const std::array<std::string_view, 3>& whys, Diagnostics& diagnostics);
bool is_large_part(std::int64_t part, std::int64_t whole);

}  // namespace gpuwhy
