// SPDX-License-Identifier: Apache-2.0
//
// Match of a recording's kernel names with the rules, once for all passes that ask for families.
#include "analysis/names/kernel_families.h"

#include <map>

namespace gpuwhy {

KernelFamilies::KernelFamilies(const Trace& trace, const Rules& rules)
    : of_name_(trace.strings.size(), kNone) {
  std::map<std::string_view, std::uint32_t> numbers;  // of the rules' own texts
  for (const StringId name : trace.kernels.name) {
    std::uint32_t& number = of_name_[static_cast<std::size_t>(name)];
    if (number != kNone) {
      continue;
    }
    names_.push_back(name);
    const std::string_view family = family_of(rules, trace.strings[name]);
    const auto [known, is_new] =
        numbers.try_emplace(family, static_cast<std::uint32_t>(families_.size()));
    if (is_new) {
      families_.emplace_back(family);
    }
    number = known->second;
  }
}

}  // namespace gpuwhy
