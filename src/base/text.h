// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof {

// Without the blanks around it. Views into `text`, as those of split(): it must outlive them, so a
// temporary string does not compile.
std::string_view trim(std::string_view text);
template <std::same_as<std::string> T>
std::string_view trim(T&& text) = delete;

// "a,b,,c" at ',' is {"a", "b", "", "c"}; an empty text is one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);
template <std::same_as<std::string> T>
std::vector<std::string_view> split(T&& text, char separator) = delete;

std::string to_lower(std::string_view text);

// The candidate a person who typed `word` most likely meant, or nothing when none is near. Ties go
// to the candidate that comes first.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// Where a text stops being UTF-8; npos: nowhere.
std::size_t find_not_utf8(std::string_view text);

// `text` made safe to show on a terminal: control characters, escape sequences, line breaks,
// direction overrides and invalid UTF-8 become visible escapes such as \x1b or \u202e.
std::string printable(std::string_view text);

// The last line that is not blank, without the blanks at its end. A carriage return ends a line
// too: progress bars are drawn with it.
std::string_view last_line(std::string_view text);
template <std::same_as<std::string> T>
std::string_view last_line(T&& text) = delete;

// Columns a terminal needs for `text`, one a code point. Wide scripts are not told apart.
std::size_t display_width(std::string_view text);

}  // namespace llmprof
