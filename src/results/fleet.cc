// SPDX-License-Identifier: Apache-2.0
//
// Ranks as words, and the JSON of a merge.
#include "results/fleet.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "results/row_json.h"

namespace gpuwhy {

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  if (ranks.size() < 2) {
    return ranks.empty() ? "" : fmt::format("{}", ranks[0]);
  }
  const std::int64_t step = ranks[1] - ranks[0];
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != step) {
      return fmt::format("{}", fmt::join(ranks, ", "));
    }
  }
  if (step == 1) {
    return fmt::format("{}-{}", ranks.front(), ranks.back());
  }
  return ranks.size() == 2 ? fmt::format("{}, {}", ranks[0], ranks[1])
                           : fmt::format("{}-{} by {}", ranks.front(), ranks.back(), step);
}

std::string range_text(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

std::vector<AttemptRanks> by_attempt(const std::vector<OlderRank>& older) {
  std::map<std::int64_t, std::vector<NumberPair>> attempts;
  for (const OlderRank& one : older) {
    auto& runs = attempts[one.attempt];
    if (!runs.empty() && runs.back().second == one.rank - 1) {
      runs.back().second = one.rank;
    } else {
      runs.emplace_back(one.rank, one.rank);
    }
  }
  std::vector<AttemptRanks> rows;
  for (const auto& [attempt, runs] : attempts) {
    AttemptRanks& row = rows.emplace_back(AttemptRanks{attempt, {}});
    for (const auto& [first, last] : runs) {
      row.ranks.push_back(range_text(first, last));
    }
  }
  return rows;
}

std::string_view id_of(FleetReport::Lateness lateness) {
  constexpr std::array<std::string_view, 3> kIds = {"none", "pinned", "rotating"};
  return kIds[static_cast<std::size_t>(lateness)];
}

std::vector<RankVerdict> FleetReport::rank_table() const {
  std::vector<RankVerdict> table;
  table.reserve(stragglers.size());
  for (const std::size_t i : stragglers) {
    table.push_back(ranks[i]);
  }
  return table;
}

std::string fleet_json_text(const FleetReport& report) {
  return to_json_text(object_json(report, json_document("fleet", 1)));
}

}  // namespace gpuwhy
