// SPDX-License-Identifier: Apache-2.0
//
// Diagnostics about rows whose numbers cannot be right.
#include "trace/left_out.h"

#include <fmt/format.h>

#include "base/units.h"

namespace gpuwhy {
bool is_large_part(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t kHundredth = 100;
  return part > whole / kHundredth;
}

EventCounts sum_of(const LeftOut& rows) {
  EventCounts sum;
  for (const EventCounts& of_reason : rows) {
    sum.kernels += of_reason.kernels;
    sum.others += of_reason.others;
  }
  return sum;
}

void add_left_out(const LeftOut& rows, const EventCounts& all,
                  const std::array<std::string_view, 3>& whys, Diagnostics& diagnostics) {
  const auto words = [](std::int64_t count, std::int64_t whole, const char* noun) {
    return count == 0 ? "" : fmt::format("{} of {}", count, count_of(whole, noun));
  };
  constexpr std::array kKinds = {"unusable_event", "ends_before_start", "implausible_event"};
  const EventCounts sum = sum_of(rows);
  const bool is_large =
      is_large_part(sum.kernels, all.kernels) || is_large_part(sum.others, all.others);
  for (std::size_t why = 0; why < rows.size(); ++why) {
    const auto& [kernels, others] = rows[why];
    if (rows[why].sum() > 0) {
      diagnostics.push_back(
          {kKinds[why], is_large ? Severity::kImpossible : Severity::kWarning, rows[why].sum(),
           fmt::format("left out {}{}{}: {}", words(kernels, all.kernels, "kernel"),
                       kernels > 0 && others > 0 ? " and " : "",
                       words(others, all.others, "other event"), whys[why])});
    }
  }
}

}  // namespace gpuwhy
