// SPDX-License-Identifier: Apache-2.0
//
// Verdict and advice in plain words.
#include "report/plain_words.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "analysis/findings/findings.h"
#include "base/text.h"
#include "report/metrics.h"
#include "report/opportunity.h"

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

std::string verdict_in_words(const Metrics& metrics) {
  std::string text = with_plain_names(printable(metrics.verdict));
  const std::string_view words =
      metrics.findings.empty() ? std::string_view() : problem_words(metrics.findings[0].id);
  const std::string lead = " Top opportunity: ";
  const std::size_t place = text.find(lead);
  if (place != std::string::npos && !words.empty() &&
      text.compare(place + lead.size(), metrics.findings[0].id.size(), metrics.findings[0].id) ==
          0) {
    text.replace(place + lead.size(), metrics.findings[0].id.size(), words);
  }
  return text;
}

std::string advice_in_words(const Finding& finding) {
  std::string text = with_plain_names(printable(finding.next));
  if (text.starts_with(kAlsoFixed)) {
    const std::size_t end = std::min(text.find(':'), text.size());
    const std::string_view before =
        problem_words(std::string_view(text).substr(kAlsoFixed.size(), end - kAlsoFixed.size()));
    if (!before.empty()) {
      text.replace(kAlsoFixed.size(), end - kAlsoFixed.size(),
                   fmt::format("the same change as \"{}\"", before));
    }
  }
  const std::size_t place = text.rfind(" (after ");
  if (place != std::string::npos && text.ends_with(')')) {
    const std::string_view before =
        problem_words(std::string_view(text).substr(place + 8, text.size() - place - 9));
    if (!before.empty()) {
      text.replace(place, std::string::npos, fmt::format(" (first solve: {})", before));
    }
  }
  return text;
}

}  // namespace gpuwhy
