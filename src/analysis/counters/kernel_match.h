// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace llmprof {

// One kernel, spelt by different tools: the words that are left when everything is taken off in
// which they differ (namespaces, casts, brackets, const, lambda notations). Equal for one kernel;
// seldom equal for two, which whoever compares must find out.
std::string kernel_match_key(std::string_view name);

// The same without return type and parameter list, which compilers' and debuggers' demanglers print
// differently for templates.
std::string bare_match_key(std::string_view name);

// The function's name alone: "gemm" of "void a::gemm<4>(float *)".
std::string function_match_key(std::string_view name);

}  // namespace llmprof
