// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <string>
#include <string_view>

namespace gpuwhy {

// A kernel's name, made ready for the many words of the rules.
class KernelText {
 public:
  explicit KernelText(std::string_view kernel_name);

  // Whether a word of conf/rules/kernels.yaml (lower case) fits: it occurs in the name up to the
  // parameters. `*` stands for any text between two parts. With ^ or $ only the function's own name
  // counts: ^ is its beginning, $ its end or the number that ends it.
  bool fits(std::string_view word) const;

 private:
  static constexpr std::size_t kNumPairs = 4096;

  bool may_hold(std::string_view part) const;

  std::string whole_;             // lower case, without parameters
  std::string own_;               // also without return type, namespaces and template arguments
  std::bitset<kNumPairs> pairs_;  // hashes of neighbouring characters: most words fail here
};

// Whether a word has a letter or digit to look for.
bool is_kernel_word(std::string_view word);

}  // namespace gpuwhy
