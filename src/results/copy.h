// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "results/field.h"

namespace gpuwhy {

// All copies of one kind of a GPU.
struct CopyRow {
  std::string device;
  std::string direction;  // "host_to_device", ...
  std::string memory;  // of the host: "pinned", "pageable"; empty if not known, or not the host's
  std::int64_t count = 0;
  std::int64_t size_bytes = 0;
  std::int64_t total_ns = 0;  // sum of their durations

  std::optional<double> bytes_per_s() const {
    return total_ns == 0 || size_bytes == 0 ? std::nullopt
                                            : std::optional(static_cast<double>(size_bytes) /
                                                            (static_cast<double>(total_ns) / 1e9));
  }
};

template <typename F>
void describe(const CopyRow*, F&& f) {
  using T = CopyRow;
  const auto of_copies = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "copies", "copies", text);
  };
  f("device", &T::device, names_row("the GPU"));
  f("direction", &T::direction,
    names_row("host_to_device, device_to_host, device_to_device, peer_to_peer, memset or unknown",
              2));
  f("memory", &T::memory, names_row("of the host: pinned or pageable; empty where it has none", 3));
  f("count", &T::count, of_copies("1", "copies"));
  f("size_bytes", &T::size_bytes, of_copies("B", "their sizes together"));
  f("total_ns", &T::total_ns, of_copies("ns", "sum of their durations"));
  f("bytes_per_s", &T::bytes_per_s, of_copies("B/s", "size_bytes / total_ns"));
}

}  // namespace gpuwhy
