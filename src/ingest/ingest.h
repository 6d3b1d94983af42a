// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trace/counters.h"
#include "trace/trace.h"
#include "trace/trace_outline.h"

namespace llmprof {

// A format we read. `sniff` looks at the first bytes and never throws; `load` throws kInput, and so
// does `outline`, which is quick however large the file.
struct Importer {
  const char* name;
  bool (*sniff)(std::string_view head, const std::filesystem::path& path);
  Trace (*load)(const std::filesystem::path& path, unsigned num_threads);
  TraceOutline (*outline)(const std::filesystem::path& path);
};

// Reads a recording, whatever its format; errors name the file. `num_threads` of at least 1.
Trace load_trace(const std::filesystem::path& path, unsigned num_threads);

// How much load_trace() would find; errors are the same as far as they show so soon.
TraceOutline outline_trace(const std::filesystem::path& path);

// A format of counters. `sniff` as above; `load` throws kInput.
struct CounterImporter {
  const char* name;
  bool (*sniff)(std::string_view head, const std::filesystem::path& path);
  Counters (*load)(const std::filesystem::path& path);
};

// Reads what Nsight Compute measured, whatever the format; errors name the file.
Counters load_counters(const std::filesystem::path& path);

// Whether a file is a report or raw capture of Nsight Systems, which only nsys opens.
bool is_nsys_report(const std::filesystem::path& path);

// Which nsys wrote a .nsys-rep or .qdrep, from its first bytes, as "2024.6.2.225"; empty when they
// do not say.
std::string report_writer_version(std::string_view head);

// The first bytes of a file. Throws kUsage when it cannot be read.
std::string head_of(const std::filesystem::path& path);

// Defined in the file of its format.
extern const Importer kNsysSqlite;
extern const Importer kNsysReport;
extern const Importer kKinetoJson;
extern const CounterImporter kNcuReport;
extern const CounterImporter kNcuCsv;

}  // namespace llmprof
