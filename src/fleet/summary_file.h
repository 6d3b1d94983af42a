// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "fleet/rank_summary.h"

namespace llmprof {

inline constexpr const char* kSummaryFile = "summary.llmprof";  // in a bundle
inline constexpr std::string_view kRankKind = "rank";

// A rank's summary as a file (fleet/table_file.h has its form): the same summary, the same bytes,
// whatever order its rows are in. Negative sums are written as 0.
std::string summary_bytes(const RankSummary& summary);

// The reverse; rows come back sorted. Throws kInput for bytes that are not the summary of one rank.
RankSummary read_summary(std::string_view bytes);

}  // namespace llmprof
