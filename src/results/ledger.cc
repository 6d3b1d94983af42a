// SPDX-License-Identifier: Apache-2.0
//
// Sums of ledgers.
#include "results/ledger.h"

#include <numeric>

namespace gpuwhy {

std::int64_t Ledger::sum_ns() const {
  return std::accumulate(buckets_ns.begin(), buckets_ns.end(), std::int64_t{0});
}

void Ledger::add(const Ledger& other) {
  window_ns += other.window_ns;
  lead_ns += other.lead_ns;
  between_ns += other.between_ns;
  host_wait_ns += other.host_wait_ns;
  early_wait_ns += other.early_wait_ns;
  for (std::size_t i = 0; i < kNumBuckets; ++i) {
    buckets_ns[i] += other.buckets_ns[i];
  }
}

}  // namespace gpuwhy
