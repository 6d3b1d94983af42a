// SPDX-License-Identifier: Apache-2.0
//
// What rows of an nsys export refer to, numbered chunk by chunk: processes, devices, streams,
// shapes, threads; and texts by nsys' own numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "trace/filter.h"
#include "trace/trace.h"

namespace llmprof {

// Numbers distinct keys in the order they are met. Rows that follow each other mostly share them.
template <typename Key>
class Dictionary {
 public:
  std::uint32_t id(const Key& key) {
    if (!keys.empty() && key == keys[last_]) {
      return last_;
    }
    const auto [entry, is_new] = ids_.try_emplace(key, static_cast<std::uint32_t>(keys.size()));
    if (is_new) {
      keys.push_back(key);
    }
    last_ = entry->second;
    return last_;
  }

  std::vector<Key> keys;

 private:
  std::map<Key, std::uint32_t> ids_;
  std::uint32_t last_ = 0;
};

// Ids of StringIds to texts of the pool. Ids are dense in real files, but need not be.
class NameMap {
 public:
  static constexpr std::int64_t kMostDense = 1 << 24;  // ids below have a place each

  void add(std::int64_t id, StringId name) {
    if (id >= 0 && id < kMostDense) {
      if (static_cast<std::size_t>(id) >= dense_.size()) {
        dense_.resize(static_cast<std::size_t>(id) + 1);
      }
      dense_[static_cast<std::size_t>(id)] = name;
    } else {
      sparse_[id] = name;
    }
  }

  StringId operator[](std::int64_t id) const {
    if (id >= 0 && id < static_cast<std::int64_t>(dense_.size())) {
      return dense_[static_cast<std::size_t>(id)];
    }
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? StringId{} : found->second;
  }

 private:
  std::vector<StringId> dense_;
  std::unordered_map<std::int64_t, StringId> sparse_;
};

struct DeviceKey {
  std::uint64_t global_pid = 0;
  std::int64_t ordinal = 0;
  auto operator<=>(const DeviceKey&) const = default;
};

struct StreamKey {
  std::uint32_t device = 0;  // of the same chunk
  std::int64_t context = 0;
  std::int64_t stream = 0;
  auto operator<=>(const StreamKey&) const = default;
};

// Of events as they are read: whether one cannot be, and how long they last together, which has to
// fit into a number.
struct SeenTimes {
  std::int64_t num_implausible = 0;
  double sum_ns = 0;

  void add(std::int64_t start_ns, std::int64_t end_ns) {
    if (is_plausible(start_ns, end_ns)) {
      sum_ns += static_cast<double>(end_ns - start_ns);
    } else {
      ++num_implausible;
    }
  }
  void add(const SeenTimes& other) {
    num_implausible += other.num_implausible;
    sum_ns += other.sum_ns;
  }
};

// What the rows of one chunk refer to.
struct ChunkKeys {
  SeenTimes times;
  Dictionary<std::uint64_t> processes;
  Dictionary<DeviceKey> devices;
  Dictionary<StreamKey> streams;
  Dictionary<LaunchShape> shapes;
  Dictionary<std::uint64_t> threads;
};

}  // namespace llmprof
