// SPDX-License-Identifier: Apache-2.0
//
// Numbering of the processes, devices, streams, shapes, threads and graph nodes in an nsys export,
// per chunk of rows, and lookup of texts by nsys' own ids.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/dictionary.h"
#include "ingest/sqlite/sqlite_pages.h"
#include "trace/filter.h"
#include "trace/left_out.h"
#include "trace/trace.h"

namespace gpuwhy {

// NVIDIA's layout of a global id: thread in the low 24 bits, process in the next 24, machine above.
inline std::uint64_t process_part(std::uint64_t global_tid) {
  return global_tid & ~0xffffffULL;
}
inline std::uint32_t pid_of(std::uint64_t global_id) {
  return static_cast<std::uint32_t>((global_id >> 24) & 0xffffff);
}

// Maps nsys' StringIds to texts of the pool. Ids are dense in real files, but need not be: a vector
// holds those that are not far beyond their number.
class NameMap {
 public:
  static constexpr std::int64_t most_dense(std::int64_t num_ids) { return 4 * num_ids + 65'536; }

  void add(std::int64_t id, StringId name) {
    if (id >= 0 && id < most_dense(++num_ids_)) {
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
      const StringId name = dense_[static_cast<std::size_t>(id)];
      if (name != StringId{} || sparse_.empty()) {
        return name;
      }
    }
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? StringId{} : found->second;
  }

 private:
  std::int64_t num_ids_ = 0;
  std::vector<StringId> dense_;
  std::unordered_map<std::int64_t, StringId> sparse_;
};

// A GPU as a process numbers it.
struct DeviceKey {
  std::uint64_t global_pid = 0;
  std::int64_t ordinal = 0;
  bool operator==(const DeviceKey&) const = default;
};
inline std::uint64_t hash_of(const DeviceKey& key) {
  return hash_of_words(key.global_pid, static_cast<std::uint64_t>(key.ordinal));
}

// A stream as a process numbers it.
struct StreamKey {
  std::uint32_t device = 0;  // of the same chunk
  std::int64_t context = 0;
  std::int64_t stream = 0;
  bool operator==(const StreamKey&) const = default;
};
inline std::uint64_t hash_of(const StreamKey& key) {
  return hash_of_words(static_cast<std::uint64_t>(key.stream),
                       static_cast<std::uint64_t>(key.context) << 16 ^ key.device);
}

struct NodeKey {
  std::uint32_t process = 0;  // of the same chunk
  std::uint64_t node = 0;
  bool operator==(const NodeKey&) const = default;
};
inline std::uint64_t hash_of(const NodeKey& key) {
  return hash_of_words(key.node, key.process);
}

inline std::uint64_t hash_of(const LaunchShape& shape) {
  const auto pair = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 |
           static_cast<std::uint32_t>(b);
  };
  return hash_of_words(pair(shape.grid[0], shape.grid[1]) ^ pair(shape.block[1], shape.block[2]),
                       pair(shape.grid[2], shape.block[0]));
}

// Sum of durations, which must fit 63 bits, and rows that are left out, by Unusable.
struct SeenTimes {
  bool has_text = false;  // in a column of numbers: the row at hand
  std::array<std::int64_t, 3> num_left_out{};
  double sum_ns = 0;

  // The times of the row at hand. Those of a row that is left out are so far away that
  // drop_implausible() drops it. False for these.
  bool read(const SqlValue& start, const SqlValue& end, std::int64_t& start_ns,
            std::int64_t& end_ns) {
    constexpr auto kNumber = SqlValue::Kind::kInteger;
    start_ns = start.integer;
    end_ns = end.integer;
    if (start.kind == kNumber && end.kind == kNumber && !has_text && start_ns <= end_ns &&
        is_plausible(start_ns, end_ns)) {
      sum_ns += static_cast<double>(end_ns - start_ns);
      return true;
    }
    const Unusable why = start.kind != kNumber || end.kind != kNumber || has_text
                             ? Unusable::kNoNumber
                         : is_plausible(start_ns, end_ns) ? Unusable::kEndsFirst
                                                          : Unusable::kFarAway;
    leave_out(why);
    start_ns = end_ns = INT64_MIN;
    return false;
  }
  void leave_out(Unusable why) { ++num_left_out[static_cast<std::size_t>(why)]; }
};

// Where a piece of GPU work ran, as a row has it, and the numbers of that in the chunk. Rows mostly
// repeat the place of the one before.
struct GpuPlace {
  std::int64_t process = 0;
  std::int64_t device = 0;
  std::int64_t context = 0;
  std::int64_t stream = 0;

  bool operator==(const GpuPlace&) const = default;
};
struct GpuNumbers {
  std::uint16_t process = 0;
  std::uint16_t device = 0;
  std::uint32_t stream = 0;
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

  GpuNumbers numbers_of(const GpuPlace& place) {
    if (place == last_place_ && !devices.keys.empty()) {
      return last_numbers_;
    }
    const std::uint64_t global_pid = process_part(static_cast<std::uint64_t>(place.process));
    const std::uint32_t device = devices.id({global_pid, place.device});
    last_place_ = place;
    last_numbers_ = {static_cast<std::uint16_t>(processes.id(global_pid)),
                     static_cast<std::uint16_t>(device),
                     streams.id({device, place.context, place.stream})};
    return last_numbers_;
  }

 private:
  GpuPlace last_place_;
  GpuNumbers last_numbers_;
};

}  // namespace gpuwhy
