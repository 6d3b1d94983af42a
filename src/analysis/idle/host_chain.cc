// SPDX-License-Identifier: Apache-2.0
//
// Main call and main scope of the gaps of one kind.
//
// One name is given where it has half of the time: with less, the reader would look in the wrong
// place. Up to three are given where they have half of it together.
#include "analysis/idle/host_chain.h"

#include <map>

namespace gpuwhy {
namespace {

// The three largest scopes, if they are around half of the time.
std::vector<std::pair<std::string, std::int64_t>> largest_scopes(
    const std::map<std::string, std::int64_t>& by_scope, std::int64_t total_ns) {
  constexpr std::size_t kMostScopes = 3;
  std::vector<std::pair<std::string, std::int64_t>> scopes;
  for (const auto& [scope, time_ns] : by_scope) {
    if (!scope.empty()) {
      scopes.emplace_back(scope, time_ns);
    }
  }
  std::ranges::sort(scopes, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  scopes.resize(std::min(scopes.size(), kMostScopes));
  std::int64_t sum_ns = 0;
  for (const auto& [scope, time_ns] : scopes) {
    sum_ns += time_ns;
  }
  return sum_ns * 2 >= total_ns ? scopes : decltype(scopes){};
}

}  // namespace

KindOfGaps HostChain::gaps_of(std::span<const IdleRow> causes, IdleKind kind) {
  KindOfGaps gaps;
  std::map<std::string, std::int64_t> by_call;
  std::map<std::string, std::int64_t> by_scope;
  std::map<std::string, std::int64_t> gaps_in_scope;
  for (const IdleRow& cause : causes) {
    if (cause.kind != kind || cause.bucket == Bucket::kUnrecorded) {
      continue;
    }
    if (gaps.num_gaps == 0 || cause.first_start_ns < gaps.first_start_ns) {
      gaps.first_start_ns = cause.first_start_ns;
      gaps.first_gap_ns = cause.first_gap_ns;
    }
    gaps.last_start_ns = gaps.num_gaps == 0 ? cause.last_start_ns
                                            : std::max(gaps.last_start_ns, cause.last_start_ns);
    gaps.total_ns += cause.total_ns;
    gaps.num_gaps += cause.num_gaps;
    by_call[cause.call] += cause.in_call_ns;
    by_scope[cause.scope] += cause.call.empty() ? cause.in_call_ns : cause.total_ns;
    gaps_in_scope[cause.scope] += cause.num_gaps;
  }
  for (const auto& [call, time_ns] : by_call) {
    if (!call.empty() && time_ns * 2 >= gaps.total_ns && time_ns > gaps.in_call_ns) {
      gaps.call = call;
      gaps.in_call_ns = time_ns;
    }
  }
  for (const auto& [scope, time_ns] : by_scope) {
    if (!scope.empty() && time_ns * 2 >= gaps.total_ns && time_ns > gaps.in_scope_ns) {
      gaps.scope = scope;
      gaps.in_scope_ns = time_ns;
      gaps.num_in_scope = gaps_in_scope[scope];
    }
  }
  if (gaps.scope.empty() && (kind == IdleKind::kHostWork || kind == IdleKind::kWaiting)) {
    gaps.scopes = largest_scopes(by_scope, gaps.total_ns);
  }
  return gaps;
}

}  // namespace gpuwhy
