// SPDX-License-Identifier: Apache-2.0
//
// Enumerations that files hold as words.
#pragma once

#include <cstddef>
#include <type_traits>

namespace gpuwhy {

// One that has words_of(), the words of all its values in order, is a text in every file.
template <typename T>
concept Worded = std::is_enum_v<T> && requires(T value) {
  words_of(value);
};

template <Worded T>
const char* word_of(T value) {
  return words_of(value)[static_cast<std::size_t>(value)];
}

}  // namespace gpuwhy
