// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "ingest/sqlite_file.h"
#include "trace/trace_outline.h"

namespace llmprof {

// Throws kInput where a database is no export of Nsight Systems.
void require_nsys(const SqliteFile& file);

// How many rows an export has, from a few of its pages. Throws as reading it would.
TraceOutline outline_nsys_sqlite(const std::filesystem::path& path);

}  // namespace llmprof
