// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/tools.h"
#include "capture/trigger.h"

namespace gpuwhy {

// How nsys records: one file of conf/profiling/nsys/.
struct NsysSettings {
  std::vector<std::string> trace;
  std::string cuda_graph_trace;
  std::string sample;
  std::string cpuctxsw;
  bool trace_fork_before_exec = false;  // children without exec; may deadlock, says NVIDIA
  bool remove_leftovers = false;        // of other sessions that were killed
  std::int64_t duration_s = 0;          // 0: to the end of the program
  std::vector<std::string> extra_options;
};

// Name and location of one recording.
struct NsysOutput {
  std::string session;           // unique on the machine: leftovers are found by it
  std::filesystem::path report;  // run.nsys-rep, in a folder that exists
  std::string workload_tmpdir;   // TMPDIR of the workload; nsys has its own
};

// The command that records. Options unknown to this nsys are omitted if it behaves the same without
// them; otherwise throws kEnvironment.
std::vector<std::string> build_nsys_cmd(const NsysTool& nsys, const NsysSettings& settings,
                                        const CaptureTrigger& gate, const NsysOutput& output,
                                        const std::vector<std::string>& work_argv);

// Commands of a recording that starts and stops while its program runs.
struct NsysPeriod {
  std::vector<std::string> launch;  // the program under nsys, not recorded yet
  std::vector<std::string> start;
  std::vector<std::string> stop;  // ends when the report is written
};
NsysPeriod build_nsys_period(const NsysTool& nsys, const NsysSettings& settings,
                             const NsysOutput& output, const std::vector<std::string>& work_argv);

// The command that exports a report to SQLite.
std::vector<std::string> build_export_cmd(const NsysTool& nsys, const std::filesystem::path& report,
                                          const std::filesystem::path& sqlite);

// The command that imports a raw capture (.qdstrm) into a report.
std::vector<std::string> build_import_cmd(const NsysTool& nsys, const std::filesystem::path& raw,
                                          const std::filesystem::path& report);

// Run these commands; the file is complete when they return. Throw kEnvironment with the output of
// nsys if it fails.
void export_report(const System& system, const NsysTool& nsys, const std::filesystem::path& report,
                   const std::filesystem::path& sqlite);
void import_raw(const System& system, const NsysTool& nsys, const std::filesystem::path& raw,
                const std::filesystem::path& report);

// The SQLite export of a report or raw capture, made by the installed nsys and cached under the
// hash of the report's contents: a replaced report is exported again, whatever its name.
// `writer_version` is the version that wrote the report, empty if unknown. Throws kEnvironment if
// nsys is missing or too old.
std::filesystem::path exported_sqlite(const System& system, const std::filesystem::path& report,
                                      const std::string& writer_version);

}  // namespace gpuwhy
