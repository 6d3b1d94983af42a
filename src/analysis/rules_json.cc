// SPDX-License-Identifier: Apache-2.0
//
// Reading of rules from their configuration files.
#include "analysis/rules_json.h"

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace llmprof {

// Words are compared in lower case, so they are lowered once, here.
Rules rules_from(const Json& kernels, const Json& stages) {
  Rules rules;
  try {
    for (const Json& entry : kernels.at("families")) {
      FamilyRule rule{entry.at("family").get<std::string>(), {}};
      for (const Json& word : entry.at("words")) {
        rule.words.push_back(to_lower(word.get<std::string>()));
      }
      rules.families.push_back(std::move(rule));
    }
    for (const Json& entry : stages.at("stages")) {
      rules.stages.push_back({entry.at("domain").get<std::string>(),
                              entry.at("text").get<std::string>(),
                              entry.at("stage").get<std::string>()});
    }
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::kUsage, std::string("a rules file lacks a field: ") + error.what(),
                "compare it with conf/rules");
  }
  return rules;
}

}  // namespace llmprof
