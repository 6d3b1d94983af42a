// SPDX-License-Identifier: Apache-2.0
//
// Main call and main scope of the gaps of one kind.
#include "analysis/host_chain.h"

#include <map>

namespace llmprof {

KindOfGaps HostChain::gaps_of(const StageLedger& row, IdleKind kind) {
  KindOfGaps gaps;
  std::map<std::string, std::int64_t> by_call;
  std::map<std::string, std::int64_t> by_scope;
  for (const IdleCause& cause : row.causes) {
    if (cause.label.kind != kind || cause.bucket == Bucket::kUnrecorded) {
      continue;
    }
    gaps.total_ns += cause.total_ns;
    gaps.num_gaps += cause.num_gaps;
    by_call[cause.label.call] += cause.in_call_ns;
    by_scope[cause.label.scope] += cause.total_ns;
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
    }
  }
  return gaps;
}

}  // namespace llmprof
