// SPDX-License-Identifier: Apache-2.0
//
// The two chains of a step: what the host does besides waiting for the GPU, and the GPU's own work.
//
// Whatever is removed, the step takes at least the longer one. If the host needs less time than the
// GPU and the GPU is idle all the same, the host's waits keep it from running ahead: they are the
// cause, also of the launches that come late after them. If the host needs more, launching or other
// work is the cause.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis.h"

namespace gpuwhy {

// The gaps of one kind in a row of the ledger.
struct KindOfGaps {
  std::int64_t total_ns = 0;
  std::int64_t num_gaps = 0;
  std::int64_t in_call_ns = 0;   // in the call below
  std::int64_t in_scope_ns = 0;  // gaps with the scope below
  std::int64_t num_in_scope = 0;
  std::string call;   // with half of the time or more; may be empty
  std::string scope;  // around half of the time or more; may be empty
  // Where no scope is around half of it, but several together: the three largest, with their time.
  std::vector<std::pair<std::string, std::int64_t>> scopes;
  // The first and the last of these gaps, in time.
  std::int64_t first_start_ns = 0;
  std::int64_t first_gap_ns = 0;
  std::int64_t last_start_ns = 0;
};

struct HostChain {
  std::array<KindOfGaps, kNumIdleKinds> kinds{};
  std::int64_t window_ns = 0;      // from the first recorded work to the last
  std::int64_t gpu_ns = 0;         // the GPU's own work
  std::int64_t wait_ns = 0;        // the launching thread waited for the GPU
  std::int64_t early_wait_ns = 0;  // of it, before launches that were late
  std::int64_t host_ns = 0;        // the launching thread did not

  // Of a row and its causes.
  HostChain(const LedgerRow& row, std::span<const IdleRow> causes)
      : wait_ns(row.host_wait_ns), early_wait_ns(row.early_wait_ns) {
    window_ns = row.work_ns();
    for (const Bucket bucket : {Bucket::kCompute, Bucket::kComm, Bucket::kCopy, Bucket::kOtherStage,
                                Bucket::kUnattributed, Bucket::kGraph}) {
      gpu_ns += row[bucket];
    }
    host_ns = std::max<std::int64_t>(0, window_ns - wait_ns);
    for (std::size_t kind = 0; kind < kNumIdleKinds; ++kind) {
      kinds[kind] = gaps_of(causes, static_cast<IdleKind>(kind));
    }
  }

  const KindOfGaps& operator[](IdleKind kind) const {
    return kinds[static_cast<std::size_t>(kind)];
  }
  std::int64_t longer_ns() const { return std::max(host_ns, gpu_ns); }

  // Whether the host falls behind only because it waits: a twentieth of the time or more.
  bool waits_hold_back() const {
    return host_ns < gpu_ns && early_wait_ns * 20 >= window_ns &&
           (*this)[IdleKind::kWaiting].num_gaps > 0;
  }

 private:
  static KindOfGaps gaps_of(std::span<const IdleRow> causes, IdleKind kind);
};

}  // namespace gpuwhy
