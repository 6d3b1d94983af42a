// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuwhy {

// `bytes` as one gzip member, without name and time: equal input gives equal output. `level` is
// zlib's, 1 (fast) to 9 (small).
std::string gzipped(std::string_view bytes, int level = 6);

// Inflates a gzip member. Throws kInput if it is damaged or larger than `limit_bytes`.
std::string gunzipped(std::string_view packed, std::size_t limit_bytes);

// Base64 (RFC 4648) with padding, on one line.
std::string base64(std::string_view bytes);

// Decodes base64; stops at the first character that is not base64.
std::string from_base64(std::string_view text);

}  // namespace gpuwhy
