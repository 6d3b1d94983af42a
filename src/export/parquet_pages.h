// SPDX-License-Identifier: Apache-2.0
//
// Encodings of Parquet pages: how the values of a column become bytes.
//
// Names and layouts are those of github.com/apache/parquet-format, Encodings.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace gpuwhy {

// PLAIN: eight bytes a number, the lowest first.
std::string plain_numbers(std::span<const std::int64_t> values);

// PLAIN of booleans: a bit each.
std::string plain_flags(std::span<const std::int64_t> values);

// DELTA_BINARY_PACKED: differences in blocks of 128, each with as many bits as it needs. Times in
// order take a fourth of their plain size.
std::string delta_numbers(std::span<const std::int64_t> values);

// The RLE/bit-packing hybrid: runs as a count, everything else in `width` bits each. For indexes
// into a dictionary and for definition levels.
std::string hybrid_runs(std::span<const std::uint32_t> values, unsigned width);

// Bits that numbers up to `largest` need, at least one: some readers refuse zero.
unsigned bits_for(std::uint64_t largest);

}  // namespace gpuwhy
