// SPDX-License-Identifier: Apache-2.0
//
// Whether a sanitizer is compiled in, and how many random inputs a test takes then.
#pragma once

#ifndef __has_feature  // clang's way to tell
#define __has_feature(feature) 0
#endif

namespace gpuwhy {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kHasSanitizer = true;
#else
inline constexpr bool kHasSanitizer = false;
#endif

// A fifth of `all` under sanitizers: they look at memory, which the first inputs reach, and each
// input takes many times as long.
constexpr int num_random_inputs(int all) {
  return kHasSanitizer ? all / 5 : all;
}

}  // namespace gpuwhy
