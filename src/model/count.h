// SPDX-License-Identifier: Apache-2.0
//
// Integers that throw on overflow. Model sizes are products of untrusted numbers; a FLOP count that
// wrapped around would look like a result.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace gpuwhy {

// Arithmetic throws kInput where the result does not fit 63 bits.
class Count {
 public:
  constexpr Count() = default;
  constexpr Count(std::int64_t value) : value_(value) {}  // NOLINT(google-explicit-constructor)

  constexpr std::int64_t value() const { return value_; }

  friend Count operator+(Count a, Count b) {
    return __builtin_add_overflow(a.value_, b.value_, &a.value_) ? overflow() : a;
  }
  friend Count operator-(Count a, Count b) {
    return __builtin_sub_overflow(a.value_, b.value_, &a.value_) ? overflow() : a;
  }
  friend Count operator*(Count a, Count b) {
    return __builtin_mul_overflow(a.value_, b.value_, &a.value_) ? overflow() : a;
  }
  Count& operator+=(Count other) { return *this = *this + other; }

 private:
  [[noreturn]] static Count overflow() {
    throw Error(ErrorKind::kInput, "the model's sizes multiply to more than 63 bits hold",
                "look for a number in its configuration, or a token count, that is far too large");
  }

  std::int64_t value_ = 0;
};

}  // namespace gpuwhy
