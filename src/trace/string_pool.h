// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gpuwhy {

// Number of a text. A separate type, so that it cannot be mistaken for a row number.
enum class StringId : std::uint32_t {};

// Stores each distinct text once. Id 0 is the empty text.
class StringPool {
 public:
  StringPool() { intern(""); }
  StringPool(StringPool&&) = default;
  StringPool& operator=(StringPool&&) = default;

  // The number of a text, which is added if it is new.
  StringId intern(std::string_view text) {
    if (const auto found = ids_.find(text); found != ids_.end()) {
      return found->second;
    }
    const auto id = static_cast<StringId>(texts_.size());
    texts_.emplace_back(text);
    ids_.emplace(texts_.back(), id);
    return id;
  }

  // The number of a known text; adds nothing.
  std::optional<StringId> find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string_view operator[](StringId id) const { return texts_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string>
      texts_;  // a deque does not move what it holds, so the keys below stay valid
  std::unordered_map<std::string_view, StringId> ids_;
};

}  // namespace gpuwhy
