// SPDX-License-Identifier: Apache-2.0
//
// Numbering of the processes, devices, streams, shapes, threads and graph nodes in an nsys export,
// per chunk of rows, and lookup of texts by nsys' own ids.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "trace/filter.h"
#include "trace/trace.h"

namespace llmprof {

// NVIDIA's layout of a global id: thread in the low 24 bits, process in the next 24, machine above.
inline std::uint64_t process_part(std::uint64_t global_tid) {
  return global_tid & ~0xffffffULL;
}
inline std::uint32_t pid_of(std::uint64_t global_id) {
  return static_cast<std::uint32_t>((global_id >> 24) & 0xffffff);
}

// Numbers distinct keys in order of appearance. Consecutive rows mostly share them.
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

// Maps nsys' StringIds to texts of the pool. Ids are dense in real files, but need not be.
class NameMap {
 public:
  static constexpr std::int64_t kMostDense = 1 << 24;  // smaller ids are kept in a vector

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

// A GPU as a process numbers it.
struct DeviceKey {
  std::uint64_t global_pid = 0;
  std::int64_t ordinal = 0;
  auto operator<=>(const DeviceKey&) const = default;
};

// A stream as a process numbers it.
struct StreamKey {
  std::uint32_t device = 0;  // of the same chunk
  std::int64_t context = 0;
  std::int64_t stream = 0;
  auto operator<=>(const StreamKey&) const = default;
};

struct NodeKey {
  std::uint32_t process = 0;  // of the same chunk
  std::uint64_t node = 0;
  auto operator<=>(const NodeKey&) const = default;
};

// Sum of durations, which must fit 63 bits, and number of implausible events.
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

// Everything that the rows of one chunk refer to.
struct ChunkKeys {
  SeenTimes times;
  Dictionary<std::uint64_t> processes;
  Dictionary<DeviceKey> devices;
  Dictionary<StreamKey> streams;
  Dictionary<LaunchShape> shapes;
  Dictionary<std::uint64_t> threads;
  Dictionary<NodeKey> nodes;
};

}  // namespace llmprof
