// SPDX-License-Identifier: Apache-2.0
//
// Findings, ranked by what they are worth.
#include "report/report.h"

namespace llmprof {

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
         {"bucket", text_or_null(finding.bucket)},
         {"overlaps", finding.overlaps},
         {"confidence", finding.confidence},
         {"sentence", finding.sentence},
         {"next", finding.next},
         {"evidence", finding.evidence}});
  }
  return rows;
}

}  // namespace llmprof
