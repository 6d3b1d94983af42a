// SPDX-License-Identifier: Apache-2.0
//
// Findings, ranked by what they are worth.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/report.h"

namespace llmprof {
namespace {

std::string worth_of(const Finding& finding) {
  if (finding.is_blocker) {
    return "first";
  }
  return finding.saving_ns == 0 ? "-" : "<= " + format_duration_ns(finding.saving_ns);
}

}  // namespace

std::string findings_text(const Findings& findings, std::size_t most) {
  if (findings.found.empty()) {
    return "";
  }
  std::string text = "\nWhat to fix first, and what it saves at most\n";
  for (std::size_t i = 0; i < std::min(most, findings.found.size()); ++i) {
    const Finding& finding = findings.found[i];
    text += fmt::format("  {:>10}  {}: {}\n{:14}-> {}\n", worth_of(finding), finding.id,
                        finding.sentence, "", finding.next);
  }
  return text;
}

Json findings_json(const Findings& findings) {
  Json rows = Json::array();
  for (const Finding& finding : findings.found) {
    rows.push_back(
        {{"id", finding.id},
         {"stage", finding.stage},
         {"device", text_or_null(finding.device)},
         {"blocker", finding.is_blocker},
         {"saving_ns", finding.saving_ns},
         {"window_ns", finding.window_ns},
         {"saving_fraction", finding.window_ns == 0 ? Json(nullptr)
                                                    : Json(static_cast<double>(finding.saving_ns) /
                                                           static_cast<double>(finding.window_ns))},
         {"confidence", finding.confidence},
         {"sentence", finding.sentence},
         {"next", finding.next},
         {"evidence", finding.evidence}});
  }
  return rows;
}

}  // namespace llmprof
