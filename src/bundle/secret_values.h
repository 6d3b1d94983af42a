// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gpuwhy {

// Texts that must not be in any file. Searching for all of them costs as much as searching for one.
class SecretValues {
 public:
  SecretValues() = default;
  SecretValues(const std::vector<std::string>& values);  // NOLINT: a list is such a set
  // The tables point into the set, so it can be moved but not copied.
  SecretValues(SecretValues&&) = default;
  SecretValues& operator=(SecretValues&&) = default;

  // Surrounding blanks are removed. Empty and known values are ignored.
  void add(std::string_view value);
  void add(const std::vector<std::string>& values);
  void add(const SecretValues& others);

  std::size_t size() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  std::size_t longest() const { return longest_; }
  const std::unordered_set<std::string>& all() const { return values_; }

  bool are_in(std::string_view text) const;

  // `text` with every occurrence replaced by kScrubbed, the longest match at each position.
  std::string without(std::string_view text) const;

 private:
  struct Match {
    std::size_t begin = std::string_view::npos;
    std::size_t length = 0;
  };
  std::size_t match(std::string_view text) const;
  // The first match from `from` on, the longest there.
  Match next(std::string_view text, std::size_t from) const;

  std::unordered_set<std::string> values_;
  std::unordered_map<std::uint64_t, std::vector<const std::string*>> by_start_;
  std::vector<const std::string*> short_;  // shorter than eight bytes
  std::bitset<65'536> has_pair_;           // the first two bytes of a value
  std::size_t longest_ = 0;
};

}  // namespace gpuwhy
