// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/diagnostics.h"

namespace llmprof {

// Kernel name -> family: the first rule with a word that occurs in the name, ignoring case.
struct FamilyRule {
  std::string family;
  std::vector<std::string> words;  // lower case
};

// NVTX range -> stage, for programs that mark their stages with other names.
struct StageRule {
  std::string domain;  // exact; empty: the default domain
  std::string text;    // exact, or a prefix if it ends in '*'
  std::string stage;
};

// The rules of conf/rules, in order of precedence.
struct Rules {
  std::vector<FamilyRule> families;
  std::vector<StageRule> stages;
  std::size_t num_user_stages = 0;  // the first rows of `stages` are of the user's file
  std::string user_file = {};       // its name; empty: there is none
  Diagnostics notes = {};           // what a result must say of the rules
};

inline constexpr std::string_view kCommunication = "communication";
inline constexpr std::string_view kOther = "other";
inline constexpr std::string_view kOpaqueGraph = "cuda_graph (opaque)";

// The family of a kernel by its name; kOther if no rule matches.
std::string_view family_of(const Rules& rules, std::string_view kernel_name);

}  // namespace llmprof
