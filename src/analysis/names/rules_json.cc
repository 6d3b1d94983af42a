// SPDX-License-Identifier: Apache-2.0
//
// Reading of rules from their configuration files.
#include "analysis/names/rules_json.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/names/kernel_words.h"
#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/yaml.h"
#include "results/row.h"

namespace gpuwhy {
namespace {

[[noreturn]] void refuse_rules(const std::string& file, const std::string& what) {
  throw Error(
      ErrorKind::kUsage, fmt::format("{}: {}", printable(file), what),
      "rows are as in conf/rules: stages: [{domain: \"\", text: my_prefill, stage: prefill}], "
      "families: [{family: gemm, words: [my_gemm]}]");
}

// Calls read(row, name of the row) for each row of a list, if the file has it. The name has a line
// where the text of the file is known.
template <typename Read>
void each_rule(const Json& file, const std::string& name, std::string_view text, const char* key,
               Read&& read) {
  if (!file.contains(key)) {
    return;
  }
  if (!file[key].is_array()) {
    refuse_rules(name, fmt::format("{} is not a list", key));
  }
  const std::vector<int> lines = text.empty() ? std::vector<int>() : yaml_row_lines(text, key);
  for (std::size_t row = 0; row < file[key].size(); ++row) {
    const std::string where =
        fmt::format("{}row {} of {}",
                    row < lines.size() ? fmt::format("line {}, ", lines[row]) : "", row + 1, key);
    if (!file[key][row].is_object()) {
      refuse_rules(name, where + " has no keys");
    }
    read(file[key][row], where);
  }
}

std::string text_of_rule(const Json& value, const std::string& file, const std::string& what) {
  if (!value.is_string()) {
    refuse_rules(file, what + " is not a text");
  }
  return value.get<std::string>();
}

std::vector<FamilyRule> families_in(const Json& file, const std::string& name,
                                    std::string_view text) {
  std::vector<FamilyRule> families;
  each_rule(file, name, text, "families", [&](const Json& row, const std::string& where) {
    FamilyRule rule{text_of_rule(row.value("family", Json()), name, where + ": family"), {}};
    for (const Json& word : row.value("words", Json::array())) {
      rule.words.push_back(to_lower(text_of_rule(word, name, where + ": a word")));
    }
    if (rule.words.empty() || !std::ranges::all_of(rule.words, is_kernel_word)) {
      refuse_rules(name, where + " has no words, or an empty one");
    }
    families.push_back(std::move(rule));
  });
  return families;
}

std::vector<StageRule> stages_in(const Json& file, const std::string& name,
                                 std::string_view source) {
  std::vector<StageRule> stages;
  each_rule(file, name, source, "stages", [&](const Json& row, const std::string& where) {
    const auto text = [&](const char* key) {
      return text_of_rule(row.value(key, Json()), name, fmt::format("{}: {}", where, key));
    };
    stages.push_back({text("domain"), text("text"),
                      parse_stage_name(text("stage"), printable(name) + ": " + where).stage});
  });
  return stages;
}

}  // namespace

// Words are compared in lower case, so they are lowered once, here.
Rules rules_from(const Json& kernels, const Json& stages) {
  Rules rules;
  rules.families = families_in(kernels, "conf/rules/kernels.yaml", {});
  rules.stages = stages_in(stages, "conf/rules/stages.yaml", {});
  return rules;
}

void add_user_rules(const std::string& name, std::string_view text, Rules& rules) {
  const Json file = parse_yaml(text, name);
  if (!file.is_object() || file.empty()) {
    refuse_rules(name, "it has neither stages nor families");
  }
  for (const auto& [key, value] : file.items()) {
    // Rows of secrets are bundle/'s: no analysis depends on them.
    if (key != "families" && key != "stages" && key != "secrets") {
      refuse_rules(name,
                   fmt::format("'{}' is none of stages, families and secrets", printable(key)));
    }
  }
  const std::vector<FamilyRule> families = families_in(file, name, text);
  const std::vector<StageRule> stages = stages_in(file, name, text);
  rules.families.insert(rules.families.begin(), families.begin(), families.end());
  rules.stages.insert(rules.stages.begin(), stages.begin(), stages.end());
  rules.num_user_stages += stages.size();
  rules.user_source = "rules of " + name;
  rules.notes.push_back(
      {"user_rules", Severity::kInfo, static_cast<std::int64_t>(families.size() + stages.size()),
       fmt::format("rules of {} (sha256 {}) come first: {} of stages, {} of families", name,
                   sha256_hex(text), stages.size(), families.size())});
}

}  // namespace gpuwhy
