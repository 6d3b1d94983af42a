// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpuwhy {

// The words that remain of a kernel name once everything is removed in which tools differ
// (namespaces, casts, brackets, const, lambda notations). Equal for one kernel, rarely equal for
// two; the caller must check for that.
std::string kernel_match_key(std::string_view name);

// The same without return type and parameter list, which demanglers of compilers and debuggers
// print differently for templates.
std::string bare_match_key(std::string_view name);

// The function's name alone: "gemm" for "void a::gemm<4>(float *)".
std::string function_match_key(std::string_view name);

}  // namespace gpuwhy
