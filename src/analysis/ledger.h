// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/attribution.h"
#include "analysis/stages.h"
#include "trace/trace.h"

namespace llmprof {

// By StringId: which kernels are communication.
using IsCommunication = std::vector<bool>;

// Throws kFailure if the buckets do not sum to the window, which is a bug of this program.
void check_conservation(const Ledger& ledger);

struct LedgerResult {
  std::vector<StageLedger> stages;
  std::vector<StageLedger> capture;
  // The capture in two parts, if no stage is marked: `startup` until the first kernel of the model
  // itself, `steady` from then on. They sum to the capture. Empty if there is no such kernel or
  // almost nothing before it.
  std::vector<StageLedger> phases;
  std::vector<LedgerHistory> history;  // of the capture, by device
  std::vector<std::int64_t> busy_ns;   // by device
  std::int64_t overlap_ns = 0;
  std::int64_t outside_ns = 0;
};

// Receives every gap of the capture with its cause, GPU by GPU, in time order.
using GapSink = std::function<void(std::size_t device, Bucket cause, std::int64_t start_ns,
                                   std::int64_t end_ns)>;

// `is_model`: kernels that only a model's steps run, by StringId; if empty, there are no phases.
LedgerResult make_ledgers(const Trace& trace, const Stages& stages, const Attribution& attribution,
                          const IsCommunication& is_communication, std::int64_t start_ns,
                          std::int64_t end_ns, const std::vector<bool>& is_model = {},
                          const GapSink& on_gap = {});

}  // namespace llmprof
