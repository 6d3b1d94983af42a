// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "results/rank_summary.h"

namespace gpuwhy {

inline constexpr std::string_view kRankKind = "rank";

// A rank's summary as a file (format: fleet/summary/columnar_file.h): the same summary gives the
// same bytes, whatever the order of its rows. Negative sums are written as 0.
std::string summary_bytes(const RankSummary& summary);

// The inverse; rows are sorted. Throws kInput if the bytes are not the summary of one rank.
RankSummary read_summary(std::string_view bytes);

}  // namespace gpuwhy
