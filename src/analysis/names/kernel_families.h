// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/names/rules.h"
#include "trace/trace.h"

namespace gpuwhy {

// Families of the kernels of a recording. Each name is matched with the rules once.
class KernelFamilies {
 public:
  KernelFamilies(const Trace& trace, const Rules& rules);

  // Names of kernels, in order of their first row.
  const std::vector<StringId>& names() const { return names_; }
  // The family of such a name.
  const std::string& operator[](StringId name) const {
    return families_[of_name_[static_cast<std::size_t>(name)]];
  }

 private:
  std::vector<StringId> names_;
  std::vector<std::string> families_;   // that occur
  std::vector<std::uint32_t> of_name_;  // by StringId, into families_; kNone: not a kernel's name
};

}  // namespace gpuwhy
