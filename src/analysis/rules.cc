// SPDX-License-Identifier: Apache-2.0
//
// Which family a kernel belongs to, by words in its name.
//
// Words, not regular expressions: names come from strangers, may be many kilobytes of templates,
// and a pattern that backtracks would hang on them. Rules are tried in order, so a file puts what
// is specific first: a communication kernel called "reduce" before reductions, attention before
// GEMM. It fails where a vendor gives a kernel a name without any of the words; then the family is
// `other`, and the report lists those names when they matter.
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
