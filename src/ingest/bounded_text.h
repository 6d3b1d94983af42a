// SPDX-License-Identifier: Apache-2.0
//
// Names of events, cut where no compiler and no person would have made them.
//
// A name is looked at many times and shown in many places. The longest real kernel names have some
// ten KiB; one of 100 MB is an attack, and would cost minutes in a report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "trace/string_pool.h"

namespace gpuwhy {

inline constexpr std::size_t kLongestName = 65'536;

// The number of a name. A longer one keeps its beginning; its length and a hash (FNV-1a) keep it
// apart from others that begin alike.
inline StringId intern_bounded(StringPool& strings, std::string_view name) {
  if (name.size() <= kLongestName) {
    return strings.intern(name);
  }
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return strings.intern(fmt::format("{}... [{} bytes, {:016x}]", name.substr(0, kLongestName - 64),
                                    name.size(), hash));
}

}  // namespace gpuwhy
