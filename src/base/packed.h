// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace llmprof {

// `bytes` as a gzip member: the same bytes for the same input, with no name and no time in it.
// `level` is zlib's, 1 (fast) to 9 (small).
std::string gzipped(std::string_view bytes, int level = 6);

// The bytes of a gzip member. Throws kInput where it is damaged, or holds more than `limit_bytes`.
std::string gunzipped(std::string_view packed, std::size_t limit_bytes);

// Base64 of RFC 4648 with padding, on one line.
std::string base64(std::string_view bytes);

// What base64() was made of; ends before the first character that is none of it.
std::string from_base64(std::string_view text);

}  // namespace llmprof
