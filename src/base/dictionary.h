// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuwhy {

// Two words in one that differs in all bits: multiplied by odd numbers (2^64 over the golden ratio,
// and a prime of xxHash), which spreads differences in few bits.
inline std::uint64_t hash_of_words(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t hash = a * 0x9e3779b97f4a7c15 ^ b * 0xc2b2ae3d27d4eb4f;
  return hash ^ hash >> 32;
}

inline std::uint64_t hash_of(std::uint64_t key) {
  return hash_of_words(key, 0);
}

// Numbers distinct keys in order of appearance. For keys with a function hash_of(), found by the
// namespace of the key, and ==. Open addressing: one look per key, at most half full.
template <typename Key>
class Dictionary {
 public:
  std::uint32_t id(const Key& key) {
    // Rows repeat the key before them, or, as the nodes of a graph do, a whole sequence of keys.
    for (const std::uint32_t guess : {last_, last_ + 1}) {
      if (guess < keys.size() && key == keys[guess]) {
        last_ = guess;
        return guess;
      }
    }
    if (2 * keys.size() >= slots_.size()) {
      grow();
    }
    std::size_t slot = hash_of(key) & (slots_.size() - 1);
    while (slots_[slot] != 0 && !(keys[slots_[slot] - 1] == key)) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    if (slots_[slot] == 0) {
      keys.push_back(key);
      slots_[slot] = static_cast<std::uint32_t>(keys.size());
    }
    last_ = slots_[slot] - 1;
    return last_;
  }

  std::vector<Key> keys;

 private:
  void grow() {
    slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), 0);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::size_t slot = hash_of(keys[i]) & (slots_.size() - 1);
      while (slots_[slot] != 0) {
        slot = (slot + 1) & (slots_.size() - 1);
      }
      slots_[slot] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::vector<std::uint32_t> slots_;  // number of a key, from 1; 0: free
  std::uint32_t last_ = 0;
};

}  // namespace gpuwhy
