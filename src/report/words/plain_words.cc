// SPDX-License-Identifier: Apache-2.0
//
// Verdict and advice in plain words.
#include "report/words/plain_words.h"

#include <string_view>

#include <fmt/format.h>

#include "analysis/findings/findings.h"
#include "base/text.h"

namespace gpuwhy {

std::string with_plain_names(std::string text) {
  constexpr std::string_view kLoader = "'enumerate(DataLoader)";
  for (std::size_t at = text.find(kLoader); at != std::string::npos; at = text.find(kLoader, at)) {
    const std::size_t end = text.find('\'', at + kLoader.size());
    if (end == std::string::npos) {
      return text;
    }
    text.replace(at, end + 1 - at, "loading data with PyTorch's DataLoader");
  }
  return text;
}

std::string verdict_in_words(const Verdict& verdict) {
  std::string text = with_plain_names(printable(verdict.words()));
  if (verdict.top) {
    text += fmt::format("{}{}{}", kTopOpportunity, info_of(verdict.top->id).problem,
                        printable(verdict.top->gain));
  }
  return text;
}

std::string advice_in_words(const Advice& advice) {
  std::string text = with_plain_names(printable(advice.words()));
  if (advice.same_as) {
    text = fmt::format("also fixed by the same change as \"{}\": {}",
                       info_of(*advice.same_as).problem, text);
  }
  if (advice.after) {
    text += fmt::format(" (first solve: {})", info_of(*advice.after).problem);
  }
  return text;
}

const FindingInfo& change_of(const Finding& finding) {
  return info_of(finding.advice.same_as.value_or(finding.id));
}

std::string order_words() {
  return fmt::format(
      "The largest saving comes first, and one that is less sure counts less: medium {:.0f} %, low "
      "{:.0f} % of it. Gains do not add up: each is for that point alone.",
      kMediumWeight * 100, kLowWeight * 100);
}

}  // namespace gpuwhy
