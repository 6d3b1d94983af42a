// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuwhy {

// Stored width of values: `bytes` per `elements`, including scales. A ratio, so that formats of
// 4.25 bits and whole tensor directories stay exact.
struct StoredWidth {
  std::int64_t elements = 1;
  std::int64_t bytes = 2;

  // Rounded up to a byte. Throws kInput if it exceeds 63 bits.
  std::int64_t bytes_of(std::int64_t num_elements) const;
  // The same for an expected, hence fractional, number of elements.
  long double bytes_of(long double num_elements) const;
  double bits() const { return 8.0 * static_cast<double>(bytes) / static_cast<double>(elements); }

  bool operator==(const StoredWidth&) const = default;
};

// Accepts "bf16", "float8_e4m3fn", "Q4_K", "mxfp4" in any case; nullopt for an unknown name.
std::optional<StoredWidth> width_of(std::string_view format);

}  // namespace gpuwhy
