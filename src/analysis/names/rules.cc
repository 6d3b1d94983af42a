// SPDX-License-Identifier: Apache-2.0
//
// Classification by names: of kernels into families, of ranges into stages.
//
// Rules are tried in order, so a file lists specific ones first: a communication kernel called
// "reduce" before reductions, attention before GEMM. It fails if a vendor uses a name without any
// of the words; then the family is `other`, and the report lists those names if they matter.
#include "analysis/names/rules.h"

#include <fmt/format.h>

#include "analysis/names/kernel_words.h"
#include "analysis/names/operator_names.h"
#include "base/error.h"
#include "base/text.h"
#include "results/row.h"

namespace gpuwhy {
namespace {

// The rows of one option. "a:b" is printed both for text b of domain a and for the plain text a:b.
std::vector<StageRule> rows_of_mark(const std::string& stage, const std::string& name,
                                    const std::string& option) {
  std::vector<StageRule> rows = {{"", name, stage, option}};
  if (const std::size_t colon = name.find(':'); colon != std::string::npos && colon > 0) {
    rows.push_back({name.substr(0, colon), name.substr(colon + 1), stage, option});
  }
  return rows;
}

}  // namespace

bool fits(const StageRule& rule, std::string_view domain, std::string_view text) {
  if (rule.domain != domain) {
    return false;
  }
  if (rule.text.ends_with('*')) {
    return text.starts_with(std::string_view(rule.text).substr(0, rule.text.size() - 1));
  }
  if (!text.starts_with(rule.text)) {
    return false;
  }
  // PyTorch adds numbers to the names of its operators, which reports leave out.
  return text.size() == rule.text.size() ||
         (is_operator_text(text) && operator_name(text) == rule.text);
}

void add_marks(const std::vector<std::string>& marks, const std::vector<std::string>& steps,
               Rules& rules) {
  std::vector<StageRule> rows;
  const auto add = [&](const std::string& stage, const std::string& name,
                       const std::string& option) {
    const std::vector<StageRule> more = rows_of_mark(stage, name, option);
    rows.insert(rows.end(), more.begin(), more.end());
  };
  for (const std::string& mark : marks) {
    const std::size_t equals = mark.find('=');
    const std::string stage(trim(std::string_view(mark).substr(0, equals)));
    const std::string name = equals == std::string::npos ? "" : mark.substr(equals + 1);
    if (stage.empty() || name.empty()) {
      throw Error(
          ErrorKind::kUsage, fmt::format("--mark takes STAGE=NAME, not '{}'", printable(mark)),
          equals == std::string::npos
              ? "as --mark decode=benchmark_loop; a name alone is a module of gpuwhy run"
              : "as --mark decode=benchmark_loop; gpuwhy table ranges FILE lists the names");
    }
    add(parse_stage_name(stage, "--mark").stage, name, "--mark " + mark);
  }
  for (const std::string& step : steps) {
    if (step.empty()) {
      throw Error(ErrorKind::kUsage, "--step takes the name of a range",
                  "as --step 'ProfilerStep#*'; gpuwhy table ranges FILE lists the names");
    }
    add("step", step, "--step " + step);
  }
  if (rows.empty()) {
    return;
  }
  std::string options;
  for (const StageRule& row : rows) {
    if (!options.ends_with(row.option)) {
      options += (options.empty() ? "" : ", ") + row.option;
    }
  }
  rules.notes.push_back({"user_marks", Severity::kInfo,
                         static_cast<std::int64_t>(marks.size() + steps.size()),
                         fmt::format("stages are marked by {}", options)});
  rules.stages.insert(rules.stages.begin(), rows.begin(), rows.end());
  rules.num_user_stages += rows.size();
  for (const auto& [option, is_given] :
       {std::pair("--step", !steps.empty()), std::pair("--mark", !marks.empty())}) {
    if (is_given) {
      rules.user_source =
          rules.user_source.empty() ? option : fmt::format("{}, {}", option, rules.user_source);
    }
  }
}

std::string_view family_of(const Rules& rules, std::string_view kernel_name) {
  const KernelText text(kernel_name);
  for (const FamilyRule& rule : rules.families) {
    for (const std::string& word : rule.words) {
      if (text.fits(word)) {
        return rule.family;
      }
    }
  }
  return kOtherFamily;
}

}  // namespace gpuwhy
