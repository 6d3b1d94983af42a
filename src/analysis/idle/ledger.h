// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "analysis/steps/steps_on_gpu.h"
#include "trace/trace.h"

namespace gpuwhy {

// By StringId: which kernels are communication.
using IsCommunication = std::vector<bool>;

// Throws kFailure if the buckets do not sum to the window, which is a bug of this program.
void check_conservation(const Ledger& ledger);

struct LedgerResult {
  std::vector<LedgerRow> stages;
  std::vector<LedgerRow> capture;
  // The capture in parts: `startup` until the model works, `steady` while it does, `ending` after
  // its last work. They sum to the capture. Empty if there is almost nothing before and after.
  std::vector<LedgerRow> phases;
  std::map<std::pair<RowName, std::string>, std::vector<IdleRow>> causes;  // by stage and GPU
  std::vector<LedgerHistory> history;  // of the capture, by device
  std::vector<std::int64_t> busy_ns;   // by device
  std::vector<std::int64_t> own_ns;    // by window: its own work runs
  std::int64_t overlap_ns = 0;
  std::int64_t outside_ns = 0;
};

// Why a GPU was idle: its bucket, and what the host did.
struct GapCause {
  Bucket bucket = Bucket::kUnknownIdle;
  IdleKind kind = IdleKind::kNotHost;
};

// Receives every gap of the capture with its cause, GPU by GPU, in time order.
using GapSink = std::function<void(std::size_t device, GapCause cause, std::int64_t start_ns,
                                   std::int64_t end_ns)>;

// What the ledgers are made of. References must outlive the call.
struct LedgerInput {
  const Trace& trace;
  const Stages& stages;
  const Attribution& attribution;
  const std::vector<StepOnGpu>& windows;
  const IsCommunication& is_communication;
  std::int64_t start_ns = 0;  // the capture
  std::int64_t end_ns = 0;
  std::vector<bool> is_model = {};  // kernels that only a model's steps run, by StringId
  GapSink on_gap = {};
};

LedgerResult make_ledgers(const LedgerInput& input);

}  // namespace gpuwhy
