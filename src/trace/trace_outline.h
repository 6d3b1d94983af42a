// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace gpuwhy {

// Row counts of a recording, obtained without reading it. Used to plan the memory of its analysis.
struct TraceOutline {
  std::string format;  // "nsys SQLite"
  std::uint64_t file_bytes = 0;
  std::uint64_t num_kernels = 0;
  std::uint64_t num_copies = 0;  // and memsets
  std::uint64_t num_graphs = 0;
  std::uint64_t num_calls = 0;
  std::uint64_t num_ranges = 0;
  std::uint64_t num_ops = 0;
  std::uint64_t num_texts = 0;   // distinct names
  std::uint64_t text_bytes = 0;  // their total length
  std::uint64_t name_ids = 0;    // the largest name id in the file
  std::uint64_t num_devices = 1;
  bool is_estimate = false;
  std::string source;  // where the counts come from, in words

  std::uint64_t num_events() const {
    return num_kernels + num_copies + num_graphs + num_calls + num_ranges + num_ops;
  }

  // Counts those of another file of the same job in.
  void add(const TraceOutline& other) {
    file_bytes += other.file_bytes;
    num_kernels += other.num_kernels;
    num_copies += other.num_copies;
    num_graphs += other.num_graphs;
    num_calls += other.num_calls;
    num_ranges += other.num_ranges;
    num_ops += other.num_ops;
    num_texts += other.num_texts;
    text_bytes += other.text_bytes;
    name_ids = std::max(name_ids, other.name_ids);
    num_devices += other.num_devices;
    is_estimate = is_estimate || other.is_estimate;
  }
};

}  // namespace gpuwhy
