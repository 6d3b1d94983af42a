// SPDX-License-Identifier: Apache-2.0
//
// The row of the ledger that says how busy a GPU was.
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace gpuwhy {

// Fills in the time that shares of a ledger are of, and how much of it the GPU is busy.
void set_base(LedgerRow& row);

// nullptr: there is none.
const LedgerRow* row_of(const Analysis& analysis, const RowName& stage, const std::string& device);

// The row of the only stage that is marked, as findings have it; nullptr where there are several,
// or other work runs in its time.
const LedgerRow* only_stage(const Analysis& analysis, const std::string& device);

// The row of the only stage that is marked, else of the GPU's steady phase, else of the whole
// capture. nullptr: there is none.
const LedgerRow* busy_row_of(const Analysis& analysis, const std::string& device);

// Fills in the stages of those rows.
void set_busy_stages(Analysis& analysis);

}  // namespace gpuwhy
