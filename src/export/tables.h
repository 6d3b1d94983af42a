// SPDX-License-Identifier: Apache-2.0
//
// Tables of a recording's events, and those that data tools read: kernels, steps, layers, launches.
#pragma once

#include <memory>
#include <vector>

#include "results/columns.h"

namespace gpuwhy {

struct Profile;

// The version of the tables for data tools. A new column leaves it; a changed or removed one raises
// it.
inline constexpr int kTablesVersion = 1;

// One row per kernel that ran, in the order of the recording. Its own columns are not copied:
// `owner` keeps the profile.
ColumnTable launch_table(const Profile& profile, std::shared_ptr<const void> owner);

// One row per instance of a stage, counted once for all ranks of its group. The profile must
// outlive it.
ColumnTable step_table(const Profile& profile);

// Documented in docs/formats.md: the kernel table of a report; steps; layers of each pass, with
// what is before its first and after its last one; every kernel, and every CUDA graph that was
// recorded as a whole, in order of start. Of a kernel summary: kernels alone. The profile must
// outlive them.
std::vector<ColumnTable> parquet_tables(const Profile& profile);

}  // namespace gpuwhy
