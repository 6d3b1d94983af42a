// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/tools.h"

namespace llmprof {

// The command that turns a report into a SQLite file.
std::vector<std::string> build_export_cmd(const NsysTool& nsys, const std::filesystem::path& report,
                                          const std::filesystem::path& sqlite);

// The command that turns a raw capture (.qdstrm) into a report.
std::vector<std::string> build_import_cmd(const NsysTool& nsys, const std::filesystem::path& raw,
                                          const std::filesystem::path& report);

// The SQLite export of a report or raw capture, made by the installed nsys and kept in the user's
// cache under the hash of the report's contents: a report that was replaced is exported again,
// whatever its name. `writer_version` is who wrote the report, empty when not known. Throws
// kEnvironment when nsys is missing or too old for it.
std::filesystem::path exported_sqlite(const System& system, const std::filesystem::path& report,
                                      const std::string& writer_version);

}  // namespace llmprof
