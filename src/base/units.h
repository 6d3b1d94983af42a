// SPDX-License-Identifier: Apache-2.0
//
// Units and their formatting. Quantities are integers in base units everywhere; only this file
// turns them into text.
//
// Names carry the unit (`window_ns`, `free_bytes`, `peak_flops_per_s`). A ratio is 0..1 and ends in
// `_fraction`. GB is 1e9 bytes, as vendors quote memory and bandwidth; GiB is 2^30, as operating
// systems quote sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

inline constexpr std::int64_t kNsPerUs = 1'000;
inline constexpr std::int64_t kNsPerMs = 1'000'000;
inline constexpr std::int64_t kNsPerS = 1'000'000'000;

inline constexpr std::uint64_t kKiB = 1ULL << 10;
inline constexpr std::uint64_t kMiB = 1ULL << 20;
inline constexpr std::uint64_t kGiB = 1ULL << 30;
inline constexpr std::uint64_t kTiB = 1ULL << 40;
inline constexpr double kGB = 1e9;

// "0 ns", "950 ns", "12.3 us", "4.56 ms", "78.9 s": three significant digits, in the largest unit
// below the value.
std::string format_duration_ns(std::int64_t duration_ns);

// Parses "250ms", "1.5 s", "40us", "900ns", or "2" for seconds. nullopt if it is not a duration,
// negative, or longer than a century.
std::optional<std::int64_t> parse_duration_ns(std::string_view text);

// "0 B", "512 B", "1.50 KiB", "79.9 GiB".
std::string format_bytes(std::uint64_t bytes);

// Parses "4GiB", "500 MB", "1.5G" or "1048576". Units are powers of two (KiB, MiB, GiB, TiB),
// powers of ten (kB, MB, GB, TB), or absent, in any case. A lone K, M, G or T is a power of two, as
// in operating system tools. nullopt if it is not a size, negative, or beyond 2^63.
std::optional<std::uint64_t> parse_bytes(std::string_view text);

// `part` of `whole`; 0 if `whole` is 0.
inline double fraction_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// "71.3 %" for 0.713. Never clamps: a ratio above 1 is a bug that must be visible.
std::string format_fraction(double fraction);
// "1.43x", "12x": a bound, so ten and more are told without decimals.
std::string format_speedup(double factor);

// A change: "+1.2 %", and "0.0 %" without a sign where nothing else is shown.
std::string format_change(double fraction, int num_decimals = 1);

// "1 step", "2 steps", "0 copies": the count and the noun, given in singular, agree.
std::string count_of(std::int64_t count, std::string_view noun);

}  // namespace gpuwhy
