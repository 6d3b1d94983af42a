// SPDX-License-Identifier: Apache-2.0
//
// Classification of kernels into families by words in their names.
//
// Words instead of regular expressions: names are untrusted, may be kilobytes of templates, and a
// backtracking pattern would hang on them. Rules are tried in order, so a file lists specific ones
// first: a communication kernel called "reduce" before reductions, attention before GEMM. It fails
// if a vendor uses a name without any of the words; then the family is `other`, and the report
// lists those names if they matter.
#include "analysis/rules.h"

#include "analysis/kernel_names.h"
#include "base/text.h"

namespace llmprof {

std::string_view family_of(const Rules& rules, std::string_view kernel_name) {
  const std::string lower = to_lower(without_parameters(kernel_name));
  for (const FamilyRule& rule : rules.families) {
    for (const std::string& word : rule.words) {
      if (lower.find(word) != std::string::npos) {
        return rule.family;
      }
    }
  }
  return kOther;
}

}  // namespace llmprof
