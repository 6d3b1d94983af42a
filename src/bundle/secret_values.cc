// SPDX-License-Identifier: Apache-2.0
//
// Set of known secret values with a fast search for all of them at once.
//
// Values are indexed by their first eight bytes, which two secrets are unlikely to share. At each
// position of a text these bytes are looked up in a table; a bit set of the first two rules out
// most positions first. Searching for one value after the other would be quadratic for a log that
// prints a new key on every line.
//
// Values of fewer than eight bytes, which only a user gives, are compared one by one.
#include "bundle/secret_values.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "bundle/scrub.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kStartBytes = sizeof(std::uint64_t);

std::uint64_t start_of(const char* bytes) {
  std::uint64_t start = 0;
  std::memcpy(&start, bytes, kStartBytes);
  return start;
}

std::size_t pair_of(const char* bytes) {
  std::uint16_t pair = 0;
  std::memcpy(&pair, bytes, sizeof pair);
  return pair;
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
  if (value.size() == 1) {
    for (int second = 0; second < 256; ++second) {
      const char pair[] = {value[0], static_cast<char>(second)};
      has_pair_.set(pair_of(pair));
    }
  } else {
    has_pair_.set(pair_of(added->data()));
  }
  if (value.size() < kStartBytes) {
    short_.push_back(&*added);
  } else {
    by_start_[start_of(added->data())].push_back(&*added);
  }
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
    if (const auto found = by_start_.find(start_of(text.data())); found != by_start_.end()) {
      compare(found->second);
    }
  }
  return longest;
}

SecretValues::Match SecretValues::next(std::string_view text, std::size_t from) const {
  // A value of one byte may be the last one.
  for (std::size_t at = from; !values_.empty() && at < text.size(); ++at) {
    if (at + 1 == text.size() || has_pair_.test(pair_of(text.data() + at))) {
      if (const std::size_t length = match(text.substr(at)); length > 0) {
        return {at, length};
      }
    }
  }
  return {};
}

bool SecretValues::are_in(std::string_view text) const {
  return next(text, 0).length > 0;
}

std::string SecretValues::without(std::string_view text) const {
  std::string clean;
  std::size_t kept = 0;
  for (Match found = next(text, 0); found.length > 0; found = next(text, kept)) {
    clean.append(text.substr(kept, found.begin - kept)).append(kScrubbed);
    kept = found.begin + found.length;
  }
  return clean.append(text.substr(kept));
}

}  // namespace gpuwhy
