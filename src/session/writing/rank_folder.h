// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

// The folder of a rank's bundle in the run's directory: "rank-000007", or for the next attempt of a
// requeued job "rank-000007-attempt-1".
struct RankPlace {
  std::int64_t rank = 0;
  std::int64_t attempt = 0;
};
std::string rank_folder(const RankPlace& place);
std::optional<RankPlace> rank_of_folder(std::string_view name);

}  // namespace gpuwhy
