// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace llmprof {

// A kernel's name without return type, parameters, namespaces and casts: what tells it from others
// is left.
std::string bare_kernel_name(std::string_view demangled);

// A kernel's name up to its parameters.
std::string_view without_parameters(std::string_view demangled);

// A short name for each of `names` (all different), in their order; no two are the same.
std::vector<std::string> short_kernel_names(const std::vector<std::string>& names);

}  // namespace llmprof
