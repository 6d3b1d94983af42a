// SPDX-License-Identifier: Apache-2.0
//
// Folder names of ranks, chosen without communication.
//
// A name consists of the rank and the attempt only, so no two collide, and the directory shows
// which ranks came.
#include "session/writing/rank_folder.h"

#include <fmt/format.h>

#include "base/parse_number.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kPrefix = "rank-";
constexpr std::string_view kAttempt = "-attempt-";

std::optional<std::int64_t> digits(std::string_view text) {
  const auto number = parse_whole(text);
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace

std::string rank_folder(const RankPlace& place) {
  std::string name = fmt::format("{}{:06}", kPrefix, place.rank);
  return place.attempt > 0 ? fmt::format("{}{}{}", name, kAttempt, place.attempt) : name;
}

std::optional<RankPlace> rank_of_folder(std::string_view name) {
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  name.remove_prefix(kPrefix.size());
  const std::size_t at = name.find(kAttempt);
  const auto rank = digits(name.substr(0, at));
  const auto attempt = at == std::string_view::npos ? std::optional<std::int64_t>(0)
                                                    : digits(name.substr(at + kAttempt.size()));
  return rank && attempt ? std::optional(RankPlace{*rank, *attempt}) : std::nullopt;
}

}  // namespace gpuwhy
