// SPDX-License-Identifier: Apache-2.0
//
// Text helpers without knowledge of profiling: trimming, splitting, spelling suggestions, escaping.
//
// nearest() uses the edit distance with neighbour swaps ("rnu" is one step from "run"), because
// swapped letters are the most common typo. It accepts a distance of a third of the word's length,
// and always one step: enough for "docter" and for "top_kernels" (top_n_kernels), too little to
// turn "ls" into "list". It cannot find synonyms.
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <cstdint>

#include <fmt/format.h>

namespace gpuwhy {
namespace {

// Insertions, deletions, substitutions and swaps of neighbours each count one step.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

// A longer word is not a typo of ours, and the distance takes quadratic time.
constexpr std::size_t kLongestTypo = 200;

struct CodePoint {
  char32_t value;
  std::size_t length;  // 0: the bytes at this place are not UTF-8
};

// Rejects overlong forms, surrogates and values beyond U+10FFFF; a length of 0 means invalid.
CodePoint decode_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  std::size_t length = 0;
  char32_t value = 0;
  char32_t smallest = 0;  // a longer encoding of a smaller value is invalid
  if ((first & 0xe0) == 0xc0) {
    length = 2, value = first & 0x1f, smallest = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    length = 3, value = first & 0x0f, smallest = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    length = 4, value = first & 0x07, smallest = 0x10000;
  } else {
    return {0, 0};
  }
  if (text.size() < length) {
    return {0, 0};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return {0, 0};
    }
    value = (value << 6) | (byte(i) & 0x3f);
  }
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < smallest || value > 0x10ffff || is_surrogate) {
    return {0, 0};
  }
  return {value, length};
}

// Characters that move the cursor, change the writing direction or are invisible.
bool is_deceptive(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x00ad || c == 0x061c ||
         (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f);
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const std::size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return pieces;
    }
    text.remove_prefix(end + 1);
  }
}

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower;
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.empty() || word.size() > kLongestTypo) {
    return std::nullopt;
  }
  const std::string lower = to_lower(word);
  // A third of the letters may be wrong; otherwise the suggestion would be a different word.
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestTypo) {
      continue;
    }
    const std::size_t distance = edit_distance(lower, to_lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best == nullptr ? std::nullopt : std::optional<std::string>(*best);
}

std::size_t find_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = decode_utf8(text.substr(at)).length;
    if (length == 0) {
      return at;
    }
    at += length;
  }
  return std::string_view::npos;
}

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = decode_utf8(text);
    const std::size_t length = std::max<std::size_t>(c.length, 1);
    if (c.length == 0 || (is_deceptive(c.value) && c.value < 0x80)) {
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (is_deceptive(c.value)) {
      safe += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c.value));
    } else {
      safe += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return safe;
}

std::string_view last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  return text.substr(text.find_last_of("\r\n") + 1);
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string shortened_inside(std::string_view text, std::size_t width) {
  constexpr std::size_t kDots = 3;
  if (display_width(text) <= width || width <= kDots + 2) {
    return shortened(text, width);
  }
  // Whole characters from both ends, two thirds of them from the start.
  const auto starts_character = [](char c) { return (c & 0xc0) != 0x80; };
  const std::size_t tail_columns = (width - kDots) / 3;
  const std::string head = shortened(text, width - tail_columns);
  std::size_t tail = text.size();
  for (std::size_t columns = 0; columns < tail_columns && tail > 0;) {
    --tail;
    columns += starts_character(text[tail]) ? 1 : 0;
  }
  return head + std::string(text.substr(tail));
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  std::string kept;
  std::size_t columns = 0;
  for (const char c : text) {
    const bool starts_character = (c & 0xc0) != 0x80;
    columns += starts_character ? 1 : 0;
    if (columns + 3 > width) {
      break;
    }
    kept += c;
  }
  return kept + "...";
}

namespace {

// The end of the word at `begin`; a number and its unit are one word.
std::size_t end_of_word(std::string_view text, std::size_t begin) {
  const std::size_t end = std::min(text.find(' ', begin), text.size());
  const bool is_number = end > begin && text[end - 1] >= '0' && text[end - 1] <= '9';
  if (!is_number || end == text.size()) {
    return end;
  }
  const std::size_t next = std::min(text.find(' ', end + 1), text.size());
  const std::string_view unit = text.substr(end + 1, next - end - 1);
  const std::string_view letters = unit.substr(0, unit.find_first_of(",;:.)"));
  for (const std::string_view known : {"%", "ns", "us", "ms", "s", "KiB", "MiB", "GiB", "GB/s"}) {
    if (letters == known) {
      return next;
    }
  }
  return end;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  if (width == 0 || display_width(text) <= width) {
    return std::string(text);
  }
  std::string lines;
  std::size_t column = 0;
  std::size_t place = 0;
  while (place < text.size()) {
    const std::size_t begin = std::min(text.find_first_not_of(' ', place), text.size());
    const std::size_t end = end_of_word(text, begin);
    const std::string_view word = text.substr(begin, end - begin);
    const std::size_t blanks = begin - place;
    const std::size_t columns = display_width(word);
    if (column + blanks + columns > width && column + blanks > indent && column > 0) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else {
      lines.append(blanks, ' ');
      column += blanks;
    }
    lines += word;
    column += columns;
    place = end;
  }
  return lines;
}

std::string with_capital(std::string words) {
  // A command stays as it is typed, and a key as metrics.json has it.
  const std::string_view first = std::string_view(words).substr(0, words.find(' '));
  const bool is_key =
      first.find_first_of("[_") != std::string_view::npos ||
      first.substr(0, first.find_last_not_of('.') + 1).find('.') != std::string_view::npos;
  if (!words.empty() && words[0] >= 'a' && words[0] <= 'z' && !is_key && first != "gpuwhy") {
    words[0] = static_cast<char>(words[0] - 'a' + 'A');
  }
  return words;
}

}  // namespace gpuwhy
