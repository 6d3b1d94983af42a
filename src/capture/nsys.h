// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/gate.h"
#include "capture/tools.h"

namespace llmprof {

// How nsys records: a file of conf/profiling/nsys/.
struct NsysSettings {
  std::vector<std::string> trace;
  std::string cuda_graph_trace;
  std::string sample;
  std::string cpuctxsw;
  bool trace_fork_before_exec = false;  // children without exec; NVIDIA warns that it may deadlock
  std::int64_t duration_s = 0;          // 0: to the end of the program
  std::vector<std::string> extra_options;
};

// What one recording is named and where it goes.
struct NsysOutput {
  std::string session;           // unique on the machine: leftovers are found by it
  std::filesystem::path report;  // run.nsys-rep, in a folder that exists
  std::string workload_tmpdir;   // TMPDIR as the workload must see it; nsys itself has its own
};

// The command that records. Options this nsys does not know are left out where it does the same
// without them, and are an Error of kEnvironment where it does not.
std::vector<std::string> build_nsys_cmd(const NsysTool& nsys, const NsysSettings& settings,
                                        const Gate& gate, const NsysOutput& output,
                                        const std::vector<std::string>& work_argv);

// The command that turns a report into a SQLite file.
std::vector<std::string> build_export_cmd(const NsysTool& nsys, const std::filesystem::path& report,
                                          const std::filesystem::path& sqlite);

// The command that turns a raw capture (.qdstrm) into a report.
std::vector<std::string> build_import_cmd(const NsysTool& nsys, const std::filesystem::path& raw,
                                          const std::filesystem::path& report);

// Carries the two out: `made` is a whole file when they return. Throw kEnvironment when nsys
// cannot, with what it said.
void export_report(const System& system, const NsysTool& nsys, const std::filesystem::path& report,
                   const std::filesystem::path& sqlite);
void import_raw(const System& system, const NsysTool& nsys, const std::filesystem::path& raw,
                const std::filesystem::path& report);

// The SQLite export of a report or raw capture, made by the installed nsys and kept in the user's
// cache under the hash of the report's contents: a report that was replaced is exported again,
// whatever its name. `writer_version` is who wrote the report, empty when not known. Throws
// kEnvironment when nsys is missing or too old for it.
std::filesystem::path exported_sqlite(const System& system, const std::filesystem::path& report,
                                      const std::string& writer_version);

}  // namespace llmprof
