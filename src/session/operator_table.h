// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "analysis/profile.h"
#include "ingest/operators_csv.h"

namespace llmprof {

// A program's own table as an analysis holds it: operators of all layers together, and layers of
// all operators together. What belongs to no layer is one more, last.
Operators operators_of(const OperatorTable& table);

// Reads the table of a bundle, where there is one. A table that cannot be read is a diagnostic.
void read_operators(const std::filesystem::path& bundle, Evidence& evidence);

// Where a bundle keeps it.
inline constexpr const char* kOperatorsFile = "baseline/operators.csv";

// A file of the baseline pass in a bundle. Bundles of earlier versions have it in stage1/.
std::filesystem::path baseline_file(const std::filesystem::path& bundle, const std::string& name);

}  // namespace llmprof
