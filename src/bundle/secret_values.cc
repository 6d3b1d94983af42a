// SPDX-License-Identifier: Apache-2.0
//
// Set of known secret values with a fast search for all of them at once.
//
// Values are indexed by their first eight bytes, which two secrets are unlikely to share. At each
// position of a text these bytes are looked up in a table; a bit set rules out most positions
// first. Searching for one value after the other would be quadratic for a log that prints a new key
// on every line.
//
// Values of fewer than eight bytes, which only a user gives, are compared one by one.
#include "bundle/secret_values.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "bundle/scrub.h"

namespace llmprof {
namespace {

constexpr std::size_t kStartBytes = sizeof(std::uint64_t);

std::uint64_t start_of(const char* bytes) {
  std::uint64_t start = 0;
  std::memcpy(&start, bytes, kStartBytes);
  return start;
}

std::size_t bit_of(std::uint64_t start) {
  return start * 0x9E3779B97F4A7C15U >> 48U;  // Fibonacci hashing: 2^64 over the golden ratio
}

}  // namespace

SecretValues::SecretValues(const std::vector<std::string>& values) {
  add(values);
}

void SecretValues::add(const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    add(value);
  }
}

void SecretValues::add(const SecretValues& others) {
  for (const std::string& value : others.values_) {
    add(value);
  }
}

void SecretValues::add(std::string_view value) {
  value = trim(value);
  if (value.empty() || value == kScrubbed) {
    return;
  }
  const auto [added, is_new] = values_.emplace(value);
  if (!is_new) {
    return;
  }
  longest_ = std::max(longest_, value.size());
  if (value.size() < kStartBytes) {
    short_.push_back(&*added);
    return;
  }
  const std::uint64_t start = start_of(added->data());
  by_start_[start].push_back(&*added);
  has_start_.set(bit_of(start));
}

// The length of the longest value at the start of `text`, or 0.
std::size_t SecretValues::match(std::string_view text) const {
  std::size_t longest = 0;
  const auto compare = [&](const std::vector<const std::string*>& values) {
    for (const std::string* value : values) {
      if (value->size() > longest && text.starts_with(*value)) {
        longest = value->size();
      }
    }
  };
  compare(short_);
  if (text.size() >= kStartBytes) {
    const std::uint64_t start = start_of(text.data());
    if (has_start_.test(bit_of(start))) {
      if (const auto found = by_start_.find(start); found != by_start_.end()) {
        compare(found->second);
      }
    }
  }
  return longest;
}

bool SecretValues::are_in(std::string_view text) const {
  for (std::size_t at = 0; !values_.empty() && at < text.size(); ++at) {
    if (match(text.substr(at)) > 0) {
      return true;
    }
  }
  return false;
}

std::string SecretValues::without(std::string_view text) const {
  if (values_.empty()) {
    return std::string(text);
  }
  std::string clean;
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = match(text.substr(at));
    if (length > 0) {
      clean.append(text.substr(kept, at - kept)).append(kScrubbed);
      kept = at + length;
    }
    at += std::max<std::size_t>(length, 1);
  }
  return clean.append(text.substr(kept));
}

}  // namespace llmprof
