// SPDX-License-Identifier: Apache-2.0
//
// The sweep over the time of one GPU that fills all of its ledgers: of the capture, of its phases,
// of stages and steps.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/idle/gaps.h"
#include "analysis/idle/idle_causes.h"
#include "analysis/kernels/device_work.h"
#include "trace/trace.h"

namespace gpuwhy {

// Idle time of a ledger by cause.
class CauseTotals {
 public:
  void add(const Gap& gap, std::int64_t time_ns);

  // Largest first.
  std::vector<IdleRow> list(const std::vector<IdleLabel>& labels) const;

 private:
  // By label. One of waiting is always sync, all others are launch_late or unrecorded.
  std::vector<IdleRow> in_work_;
  std::vector<IdleRow> unrecorded_;
};

// Some time of a GPU, in parts that follow each other without a gap. Each part has a ledger.
struct LedgerSpan {
  std::array<std::int64_t, 4> bounds_ns{};  // where part 0 begins, part 1 begins, ...
  std::uint32_t num_parts = 1;              // up to three
  std::uint32_t instance = kNone;           // whose work is its own; kNone: all work is
  bool is_nested = false;                   // of that instance's stage
  std::uint32_t number = 0;                 // for the caller
  std::array<CauseTotals*, 3> causes{};     // by part
  LedgerHistory* history = nullptr;         // of the capture
  // Receives the idle times, as (gap, start_ns, end_ns).
  std::function<void(const Gap&, std::int64_t, std::int64_t)> on_gap = {};
};

// Receives the ledger of each part when it is complete.
using OnLedger =
    std::function<void(const LedgerSpan& window, std::uint32_t part, const Ledger& ledger)>;
// The window that begins next, by start; false: there is none.
using NextWindow = std::function<bool(LedgerSpan& window)>;

// Sweeps the GPU's time once. Throws kFailure if the buckets of a part do not sum to it, which is a
// bug of this program.
void sweep_ledgers(const SweptWork& work, const GapJudge& judge, IdleCauses& causes,
                   const NextWindow& next, const OnLedger& on_ledger);

}  // namespace gpuwhy
