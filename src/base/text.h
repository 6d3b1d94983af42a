// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// Removes surrounding blanks. Returns a view into `text`, like split(): the text must outlive it,
// so passing a temporary string does not compile.
std::string_view trim(std::string_view text);
template <std::same_as<std::string> T>
std::string_view trim(T&& text) = delete;

// "a,b,,c" at ',' is {"a", "b", "", "c"}; an empty text is one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);
template <std::same_as<std::string> T>
std::vector<std::string_view> split(T&& text, char separator) = delete;

// ASCII only: other letters are unchanged.
std::string to_lower(std::string_view text);

// The candidate that a person who typed `word` most likely meant; nullopt if none is near. Ties go
// to the first candidate.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// The position of the first byte that is not valid UTF-8; npos if all are.
std::size_t find_not_utf8(std::string_view text);

// `text` made safe to show on a terminal: control characters, escape sequences, line breaks,
// direction overrides and invalid UTF-8 become visible escapes such as \x1b or \u202e.
std::string printable(std::string_view text);

// The last non-blank line, without trailing blanks. A carriage return also ends a line, because
// progress bars use it.
std::string_view last_line(std::string_view text);
template <std::same_as<std::string> T>
std::string_view last_line(T&& text) = delete;

// Columns that `text` takes on a terminal, one per code point. Double-width scripts are not
// recognized.
std::size_t display_width(std::string_view text);

// The first `width` columns; truncated text ends in "...".
std::string shortened(std::string_view text, std::size_t width);

// The same with "..." inside: names of kernels often differ at their end.
std::string shortened_inside(std::string_view text, std::size_t width);

// `text` broken at blanks so that no line is wider than `width` columns; lines after the first
// begin with `indent` blanks. A longer word keeps a line of its own. `width` 0: unchanged.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// Words that begin a sentence: the first letter becomes a capital, except of a command.
std::string with_capital(std::string words);
// What ends a sentence: nothing where it has its own.
inline const char* full_stop(std::string_view sentence) {
  return sentence.ends_with('.') ? "" : ".";
}

}  // namespace gpuwhy
