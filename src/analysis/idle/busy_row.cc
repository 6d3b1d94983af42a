// SPDX-License-Identifier: Apache-2.0
//
// The row of the ledger that says how busy a GPU was, and its share.
#include "analysis/idle/busy_row.h"

#include <algorithm>

#include "base/units.h"
#include "results/stage_role.h"

namespace gpuwhy {

void set_base(LedgerRow& row) {
  const std::int64_t base_ns = row.stage.kind == RowKind::kStage
                                   ? row.window_ns - row.unrecorded_before_ns()
                                   : row.work_ns();
  row.base_ns = base_ns;
  row.busy_fraction =
      base_ns > 0 ? std::optional(fraction_of(row.busy_ns(), base_ns)) : std::nullopt;
}

const LedgerRow* row_of(const Analysis& analysis, const RowName& stage, const std::string& device) {
  const auto row =
      std::find_if(analysis.ledgers.begin(), analysis.ledgers.end(),
                   [&](const LedgerRow& l) { return l.stage == stage && l.device == device; });
  return row == analysis.ledgers.end() ? nullptr : &*row;
}

const LedgerRow* only_stage(const Analysis& analysis, const std::string& device) {
  const LedgerRow* only = nullptr;
  for (const StageRow& stage : analysis.stages) {
    const LedgerRow* row = stage.is_nested || is_without_work(stage.stage)
                               ? nullptr
                               : row_of(analysis, stage.stage, device);
    if (row != nullptr && only != nullptr) {
      return nullptr;
    }
    only = row != nullptr ? row : only;
  }
  if (only == nullptr) {
    return nullptr;
  }
  const std::int64_t others_ns = (*only)[Bucket::kOtherStage] + (*only)[Bucket::kUnattributed];
  return others_ns * 20 < only->window_ns ? only : nullptr;
}

const LedgerRow* busy_row_of(const Analysis& analysis, const std::string& device) {
  const LedgerRow* row = only_stage(analysis, device);
  for (const RowKind whole : {RowKind::kSteady, RowKind::kRecording}) {
    row = row != nullptr ? row : row_of(analysis, {whole}, device);
  }
  return row;
}

void set_busy_stages(Analysis& analysis) {
  for (DeviceRow& device : analysis.devices) {
    const LedgerRow* row = busy_row_of(analysis, device.device);
    device.busy_stage = row == nullptr ? RowName() : row->stage;
  }
}

}  // namespace gpuwhy
