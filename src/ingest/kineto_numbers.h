// SPDX-License-Identifier: Apache-2.0
//
// Numbers of a trace, from their text in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace llmprof {

// A token of the text without blanks behind it and quotes around it.
std::string_view bare_token(std::string_view token);

// Also of "stream 7" and of numbers in quotes, as traces of 2021 have them.
std::optional<std::int64_t> integer_of(std::string_view token);

// "1365627862757.064" microseconds are 1365627862757064 ns: exactly, since a double does not hold
// the times of day that older traces count in. Nothing for what is no number or beyond the year
// 2096.
std::optional<std::int64_t> ns_of_microseconds(std::string_view text);

}  // namespace llmprof
