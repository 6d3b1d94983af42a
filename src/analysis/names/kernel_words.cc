// SPDX-License-Identifier: Apache-2.0
//
// Match of a kernel's name with the words of the rules.
//
// Words instead of regular expressions: names are untrusted, may be kilobytes of templates, and a
// backtracking pattern would hang on them. The parts of a word are found one after the other, each
// at its first place behind the one before, which is exact because a gap may be of any length. So
// a word takes time in proportion to the name.
#include "analysis/names/kernel_words.h"

#include <algorithm>
#include <cctype>

#include "analysis/names/demangle.h"
#include "analysis/names/kernel_names.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

std::size_t pair_hash(char first, char second) {
  return (static_cast<unsigned char>(first) * 61U + static_cast<unsigned char>(second)) % 4096U;
}

std::string_view without_last_number(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789_");
  return name.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace

KernelText::KernelText(std::string_view kernel_name) {
  const std::string readable = readable_kernel_name(kernel_name);
  whole_ = to_lower(without_parameters(readable));
  own_ = to_lower(own_kernel_name(readable));
  for (std::size_t i = 1; i < whole_.size(); ++i) {
    pairs_.set(pair_hash(whole_[i - 1], whole_[i]));
  }
}

bool KernelText::may_hold(std::string_view part) const {
  for (std::size_t i = 1; i < part.size(); ++i) {
    if (!pairs_.test(pair_hash(part[i - 1], part[i]))) {
      return false;
    }
  }
  return true;
}

bool KernelText::fits(std::string_view word) const {
  const bool is_at_begin = word.starts_with('^');
  word.remove_prefix(is_at_begin ? 1 : 0);
  const bool is_at_end = word.ends_with('$');
  word.remove_suffix(is_at_end ? 1 : 0);
  const std::string_view text = is_at_begin || is_at_end ? own_ : whole_;
  std::size_t from = 0;  // behind the parts that were found
  for (bool is_first = true;; is_first = false) {
    const std::size_t star = word.find('*');
    const std::string_view part = word.substr(0, star);
    if (!may_hold(part)) {
      return false;
    }
    const bool is_last = star == std::string_view::npos;
    if (is_last && is_at_end) {
      const auto ends = [&](std::string_view name) {
        return name.ends_with(part) && name.size() >= from + part.size() &&
               (!is_first || !is_at_begin || name.size() == part.size());
      };
      return ends(text) || ends(without_last_number(text));
    }
    const std::size_t at = text.find(part, from);
    if (at == std::string_view::npos || (is_first && is_at_begin && at > 0)) {
      return false;
    }
    if (is_last) {
      return true;
    }
    from = at + part.size();
    word.remove_prefix(star + 1);
  }
}

bool is_kernel_word(std::string_view word) {
  return std::ranges::any_of(
      word, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

}  // namespace gpuwhy
