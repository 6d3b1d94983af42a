// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof {

// Where a rank's bundle lies below the run's directory: "rank-000007", and of a requeued job's next
// attempt "rank-000007-attempt-1".
struct RankPlace {
  std::int64_t rank = 0;
  std::int64_t attempt = 0;
};
std::string rank_folder(const RankPlace& place);
std::optional<RankPlace> rank_of_folder(std::string_view name);

}  // namespace llmprof
