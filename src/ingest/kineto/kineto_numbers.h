// SPDX-License-Identifier: Apache-2.0
//
// Parsing of the numbers in a PyTorch trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuwhy {

// A token without trailing blanks and surrounding quotes.
std::string_view bare_token(std::string_view token);

// Also accepts "stream 7" and quoted numbers, as in traces of 2021.
std::optional<std::int64_t> integer_of(std::string_view token);

// "1365627862757.064" microseconds are exactly 1365627862757064 ns: a double cannot hold the
// timestamps of older traces. nullopt if it is not a number or beyond the year 2096.
std::optional<std::int64_t> ns_of_microseconds(std::string_view text);

}  // namespace gpuwhy
