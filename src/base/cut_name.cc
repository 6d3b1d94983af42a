// SPDX-License-Identifier: Apache-2.0
//
// Names in sentences and cells: a recording may hold one of megabytes.
#include "base/cut_name.h"

#include "base/text.h"

namespace gpuwhy {

// A multi-byte character is dropped as a whole.
std::string cut_name(std::string_view name) {
  constexpr std::size_t kLongestName = 200;
  if (name.size() <= kLongestName) {
    return std::string(name);
  }
  std::size_t end = kLongestName;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return std::string(name.substr(0, end)) + "...";
}

std::string printable_name(std::string_view name) {
  return printable(cut_name(name));
}

}  // namespace gpuwhy
