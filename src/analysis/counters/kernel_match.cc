// SPDX-License-Identifier: Apache-2.0
//
// Normal forms of kernel names, equal across the spellings of nsys, ncu and PyTorch.
//
// For one lambda of PyTorch:
//
//   nsys    void at::native::f<(int)4, at::native::<unnamed>::g(at::It &)::[lambda() (instance 1)]
//           ::operator ()() const::[lambda(float) (instance 2)], std::array<char *, (unsigned
//           long)2>>(int, T2)
//   ncu     void f<4, unnamed>::g(It &)::[lambda() (instance 1)]::operator ()() lambda(float)
//           (instance 2)], array<char *, 2>>(int, T2)
//   Kineto  void at::native::f<4, at::native::(anonymous namespace)::g(at::It&)::{lambda()#1}
//           ::operator()() const::{lambda(float)#2}, std::array<char*, 2ul> >(int, ...)
//
// Newer ncu reduces every qualified word to its last part and removes adjacent brackets with it.
// That grammar cannot be repaired, but it can be ignored. What remains is the sequence of words and
// numbers: without qualifiers (a word before "::"), casts (a type in parentheses before a number),
// const, unnamed, anonymous namespace and the word instance, with true and false as 1 and 0, and
// numbers without suffix. Brackets are dropped too, so f<a<b>, c> and f<a<b, c>> become equal: such
// names are ambiguous and reported as such.
#include "analysis/counters/kernel_match.h"

#include <cctype>
#include <vector>

#include "analysis/names/kernel_names.h"

namespace gpuwhy {
namespace {

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The length of "(unsigned int)" at the start of `rest` if a number follows it; else 0.
std::size_t cast_length(std::string_view rest) {
  constexpr std::size_t kLongest = 200;
  const std::size_t close = rest.substr(0, kLongest).find(')');
  if (close == std::string_view::npos || close == 1 || close + 1 >= rest.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < close; ++i) {
    if (!is_word_char(rest[i]) && rest[i] != ' ' && rest[i] != ':') {
      return 0;
    }
  }
  const char next = rest[close + 1];
  return is_digit(next) || next == '-' ? close + 1 : 0;
}

// "2ul" and "2u" are 2; "3x" and "s161616gemm" are words.
std::string_view without_suffix(std::string_view word) {
  std::size_t digits = 0;
  while (digits < word.size() && is_digit(word[digits])) {
    ++digits;
  }
  if (digits == 0) {
    return word;
  }
  for (const char c : word.substr(digits)) {
    if (c != 'u' && c != 'l' && c != 'U' && c != 'L') {
      return word;
    }
  }
  return word.substr(0, digits);
}

bool is_dropped(std::string_view word) {
  return word == "const" || word == "unnamed" || word == "anonymous" || word == "namespace" ||
         word == "instance";
}

}  // namespace

std::string kernel_match_key(std::string_view name) {
  std::string key;
  std::size_t i = 0;
  while (i < name.size()) {
    // A cast of a template argument, "(int)4", is dropped whole; other brackets are separators.
    if (name[i] == '(') {
      const std::size_t cast = cast_length(name.substr(i));
      i += cast > 0 ? cast : 1;
      continue;
    }
    // Punctuation separates words, except the sign of a negative number.
    if (!is_word_char(name[i])) {
      if (name[i] == '-' && i + 1 < name.size() && is_digit(name[i + 1])) {
        key += '-';
      }
      ++i;
      continue;
    }
    const std::size_t start = i;
    while (i < name.size() && is_word_char(name[i])) {
      ++i;
    }
    // Namespaces are spelled by one tool and not by another, so the words before "::" are dropped.
    std::string_view word = name.substr(start, i - start);
    if (name.substr(i).starts_with("::") || is_dropped(word)) {
      continue;
    }
    word = word == "true" ? "1" : word == "false" ? "0" : without_suffix(word);
    key.append(word).push_back(' ');
  }
  return key;
}

std::string bare_match_key(std::string_view name) {
  return kernel_match_key(bare_kernel_name(name));
}

std::string function_match_key(std::string_view name) {
  const std::string bare = bare_kernel_name(name);
  return kernel_match_key(std::string_view(bare).substr(0, bare.find('<')));
}

}  // namespace gpuwhy
