// SPDX-License-Identifier: Apache-2.0
//
// Exact parsing of the numbers in a PyTorch trace.
//
// Times are the delicate ones: a time of day in microseconds with three decimals needs more digits
// than a double has, so decimals are parsed as decimals.
#include "ingest/kineto/kineto_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace gpuwhy {

std::string_view bare_token(std::string_view token) {
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') {
    token.remove_suffix(1);
  }
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"') {
    token = token.substr(1, token.size() - 2);
  }
  return token;
}

// Numbers come as numbers, as quoted text and as "stream 7".
std::optional<std::int64_t> integer_of(std::string_view token) {
  std::string_view text = bare_token(token);
  if (text.starts_with("stream ")) {
    text.remove_prefix(7);
  }
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data(), end, value); read.ec == std::errc()) {
    return read.ptr == end ? std::optional(value) : std::nullopt;
  }
  // Ids beyond 63 bits keep their bits: they are compared, never computed with.
  std::uint64_t large = 0;
  const auto read = std::from_chars(text.data(), end, large);
  return read.ec == std::errc() && read.ptr == end ? std::optional(static_cast<std::int64_t>(large))
                                                   : std::nullopt;
}

std::optional<std::int64_t> ns_of_microseconds(std::string_view token) {
  const std::string_view text = bare_token(token);
  constexpr std::int64_t kMostUs = 4'000'000'000'000'000;
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool is_negative = at != end && *at == '-';
  at += is_negative ? 1 : 0;
  const char* const first_digit = at;
  std::int64_t whole = 0;
  for (; at != end && *at >= '0' && *at <= '9'; ++at) {
    if (whole > kMostUs) {
      return std::nullopt;
    }
    whole = 10 * whole + (*at - '0');
  }
  if (at == first_digit || whole > kMostUs) {
    return std::nullopt;
  }
  std::int64_t thousandths = 0;
  if (at != end && *at == '.') {
    int place = 100;
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at, place /= 10) {
      thousandths += static_cast<std::int64_t>(*at - '0') * place;
      if (place == 0) {
        thousandths += *at >= '5' ? 1 : 0;  // the fourth digit rounds
        at = std::find_if(at, end, [](char c) { return c < '0' || c > '9'; });
        break;
      }
    }
  }
  // Exponents occur only in hand-made traces: a double is good enough.
  if (at != end && (*at == 'e' || *at == 'E')) {
    double us = 0;
    const auto read = std::from_chars(text.data(), end, us);
    if (read.ec != std::errc() || read.ptr != end || std::abs(us) > static_cast<double>(kMostUs)) {
      return std::nullopt;
    }
    return std::llround(us * 1000);
  }
  if (at != end) {
    return std::nullopt;
  }
  const std::int64_t ns = 1000 * whole + thousandths;
  return is_negative ? -ns : ns;
}

}  // namespace gpuwhy
