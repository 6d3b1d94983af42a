// SPDX-License-Identifier: Apache-2.0
//
// The small tables of a Trace: processes, threads, GPUs, streams, shapes. Rows get their numbers in
// the order in which they are first met.
#pragma once

#include <cstddef>
#include <vector>

namespace gpuwhy {

// Of one recording. Every GPU has rows, columns and files of its own in a report; a machine has up
// to 16, in up to 7 parts each.
inline constexpr std::size_t kMostDevices = 256;

// Throws kInput where there are more than the 16 bits of a column can number; no machine has.
void require_16_bits(std::size_t num_processes, std::size_t num_devices);

// The number of a key: its place in a table, to which a new key is appended as make().
template <typename Row, typename Numbers, typename Make>
typename Numbers::mapped_type number_in(std::vector<Row>& table, Numbers& numbers,
                                        const typename Numbers::key_type& key, Make make) {
  const auto [entry, is_new] =
      numbers.try_emplace(key, static_cast<typename Numbers::mapped_type>(table.size()));
  if (is_new) {
    table.push_back(make());
  }
  return entry->second;
}

}  // namespace gpuwhy
