// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/diagnostic.h"
#include "results/families.h"

namespace gpuwhy {

// Kernel name -> family: the first rule with a word that fits the name (KernelText), ignoring case.
struct FamilyRule {
  std::string family;
  std::vector<std::string> words;  // lower case
};

// NVTX range -> stage, for programs that mark their stages with other names.
struct StageRule {
  std::string domain;       // exact; empty: the default domain
  std::string text;         // exact, or a prefix if it ends in '*'
  std::string stage;        // `step`: each range is one step
  std::string option = {};  // of the command line, as "--mark decode=loop"; empty: a row of a file
};

// The rules of conf/rules, in order of precedence.
struct Rules {
  std::vector<FamilyRule> families;
  std::vector<StageRule> stages;
  std::size_t num_user_stages = 0;  // the first rows of `stages` are the user's
  std::string user_source = {};     // where those come from, in words; empty: there are none
  Diagnostics notes = {};           // what a result must say of the rules
};

inline constexpr std::string_view kOtherFamily = "other";
inline constexpr std::string_view kOpaqueGraph = "cuda_graph (opaque)";

// Whether a range is one that the rule names.
bool fits(const StageRule& rule, std::string_view domain, std::string_view text);

// Puts rows of the command line before all others. A mark is STAGE=NAME, a step is a NAME: a range
// as `gpuwhy table ranges` prints it, with its domain if it has one, or its beginning and a '*'.
// Throws kUsage.
void add_marks(const std::vector<std::string>& marks, const std::vector<std::string>& steps,
               Rules& rules);

// The family of a kernel by its name; kOtherFamily if no rule matches.
std::string_view family_of(const Rules& rules, std::string_view kernel_name);

}  // namespace gpuwhy
