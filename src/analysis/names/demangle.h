// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuwhy {

// A kernel's name as its source has it, without parameters: a::f<4, float> for
// _ZN1a1fILi4EfEEvPT0_. Names that are not mangled, or not understood, come back as they are.
std::string readable_kernel_name(std::string_view name);

}  // namespace gpuwhy
