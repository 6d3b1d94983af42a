// SPDX-License-Identifier: Apache-2.0
//
// Exports of a recording for other tools, shared by export, report, analyze and run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "export/event_walk.h"

namespace gpuwhy {

struct Profile;

// "pftrace", ...
const std::vector<std::string>& export_formats();

// The file or folder that an export wrote, and its statistics.
struct ExportResult {
  std::filesystem::path file;
  std::optional<ExportedTrace> trace;  // absent: the format holds tables
  Diagnostics notes = {};              // what is not in it, and why
};
// If `out` is empty, the format's own file name is used. Throws kInput if the format needs a trace
// and the profile is of a kernel summary.
ExportResult write_export(const std::string& format, const std::filesystem::path& out,
                          std::uint64_t budget_bytes, const Profile& profile);

}  // namespace gpuwhy
