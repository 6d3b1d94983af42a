// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "analysis/analysis.h"
#include "ingest/operators_csv.h"

namespace llmprof {

// A program's own table as an analysis holds it: operators of all layers together, and layers of
// all operators together. What belongs to no layer is one more, last.
Operators operators_of(const OperatorTable& table);

// The table of a bundle, into an analysis that has no better source; nothing happens where there is
// none. One that cannot be read is a diagnostic.
void add_operators(const std::filesystem::path& bundle, Analysis& analysis);

// Where a bundle keeps it.
inline constexpr const char* kOperatorsFile = "stage1/operators.csv";

}  // namespace llmprof
