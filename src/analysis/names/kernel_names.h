// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// A kernel's name, mangled or not, without return type, parameters, namespaces and casts.
std::string bare_kernel_name(std::string_view name);

// A kernel's name up to its parameters.
std::string_view without_parameters(std::string_view demangled);

// The function's name alone: without return type, namespaces, template arguments and parameters.
std::string_view own_kernel_name(std::string_view demangled);

// A short name for each of `names` (all different), in the same order; no two are equal.
std::vector<std::string> short_kernel_names(const std::vector<std::string>& names);
// The same by whole name.
std::map<std::string, std::string> short_names_of(const std::set<std::string>& names);

}  // namespace gpuwhy
