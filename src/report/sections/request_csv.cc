// SPDX-License-Identifier: Apache-2.0
//
// Tables of all requests and all late tokens, for scripts.
#include <fmt/format.h>

#include "analysis/requests/requests.h"
#include "base/csv.h"
#include "report/sections/files.h"
#include "results/results.h"

namespace gpuwhy {

std::string requests_csv(const JoinedRequests& joined) {
  const Requests& requests = joined.requests;
  std::string text = "id,told,ttft_ns,first_step,last_step,prefill_steps";
  for (const char* part : kTtftPartNames) {
    text += fmt::format(",{}_ns", part);
  }
  text += "\n";
  for (std::size_t row = 0; row < requests.size(); ++row) {
    text += csv_cell(requests.id[row]) + "," +
            kToldNames[static_cast<std::size_t>(joined.join.told[row])];
    const std::int64_t first_ns = requests.first_token_ns[row];
    text += first_ns == kNoTime ? "," : fmt::format(",{}", first_ns - requests.sent_ns[row]);
    const auto own = joined.join.prefill_of(row);
    if (!joined.join.is_apart(row)) {
      text += own.empty() ? ",,," : fmt::format(",,{},", own.back());
      text.append(kNumTtftParts, ',');
      text += "\n";
      continue;
    }
    text += fmt::format(",{},{},{}", own.front(), own.back(), own.size());
    for (const std::int64_t part : joined.join.parts[row]) {
      text += fmt::format(",{}", part);
    }
    text += "\n";
  }
  return text;
}

std::string late_tokens_csv(const JoinedRequests& joined) {
  constexpr std::size_t kMostLines = 1'000'000;
  std::string text = "id,token,gap_ns,cause,step,detail\n";
  for (std::size_t i = 0; i < std::min(kMostLines, joined.late.tokens.size()); ++i) {
    const LateToken& late = joined.late.tokens[i];
    text += fmt::format("{},{},{},{},{},{}\n", csv_cell(joined.requests.id[late.row]), late.token,
                        late.gap_ns, kStutterCauseNames[static_cast<std::size_t>(late.cause)],
                        late.step == kNone ? "" : std::to_string(late.step), csv_cell(late.detail));
  }
  return text;
}

}  // namespace gpuwhy
