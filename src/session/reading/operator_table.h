// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "ingest/operators_csv.h"
#include "results/operator.h"

namespace gpuwhy {

struct Besides;

// A program's own table in the form of an analysis: operators over all layers, and layers over all
// operators. Operators without a layer are one more, last.
Operators operators_of(const OperatorTable& table);

// Reads the table of a bundle, if there is one. An unreadable table is a diagnostic.
void read_operators(const std::filesystem::path& bundle, Besides& evidence);

// A file of the baseline pass in a bundle. Bundles of earlier versions have it in stage1/.
std::filesystem::path baseline_file(const std::filesystem::path& bundle, const char* file);

}  // namespace gpuwhy
