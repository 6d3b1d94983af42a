// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/counters.h"
#include "trace/format.h"
#include "trace/kernel_summary.h"
#include "trace/trace.h"
#include "trace/trace_outline.h"

namespace llmprof {

class SqliteFile;

// A file whose format is to be found: its first bytes are read once, for all importers.
class InputFile {
 public:
  // Throws kUsage when it cannot be read.
  InputFile(std::filesystem::path path);  // NOLINT: a path is all it needs
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::string_view head() const { return head_; }

  // The database, if the file is one, else null. It is opened at the first call and stays open, so
  // that the reader uses the one in which a sniff looked for tables. Throws kInput when it is
  // damaged.
  const SqliteFile* sqlite() const;

 private:
  std::filesystem::path path_;
  std::string head_;
  mutable std::unique_ptr<SqliteFile> sqlite_;
};

// A format of recordings. `load` throws kInput, and so does `outline`, which is quick however large
// the file; it may be null, then nobody knows what a file holds before it is read.
struct Importer {
  FormatInfo format;
  bool (*sniff)(const InputFile& file);
  Recording (*load)(const InputFile& file, unsigned num_threads);
  TraceOutline (*outline)(const InputFile& file);
};

// Reads a recording, whatever its format; errors name the file. `num_threads` of at least 1.
Recording load_input(const InputFile& file, unsigned num_threads);

// The same of a recording with events. Throws kInput for a mere summary.
Trace load_trace(const InputFile& file, unsigned num_threads);

// How much load_input() would find; errors are the same as far as they show so soon. Throws kUsage
// for a format without an outline.
TraceOutline outline_trace(const InputFile& file);

// A format of counters. `load` throws kInput.
struct CounterImporter {
  FormatInfo format;
  bool (*sniff)(const InputFile& file);
  Counters (*load)(const InputFile& file);
};

// Reads what Nsight Compute measured, whatever the format; errors name the file.
Counters load_counters(const InputFile& file);

// All formats of recordings, and of counters, in the order they are tried.
std::vector<FormatInfo> recording_formats();
std::vector<FormatInfo> counter_formats();

// The format that metrics.json calls `name`; one of general words when it is not known.
FormatInfo format_named(std::string_view name);

// "SQLite export or report of Nsight Systems, trace of PyTorch's profiler": what is read, with or
// without the formats that have only totals.
std::string recording_kinds(bool with_totals);

// Whether a file is a report or raw capture of Nsight Systems, which only nsys opens.
bool is_nsys_report(const InputFile& file);

// Which nsys wrote a .nsys-rep or .qdrep, from its first bytes, as "2024.6.2.225"; empty when they
// do not say.
std::string report_writer_version(std::string_view head);

// Defined in the file of its format.
extern const Importer kNsysSqlite;
extern const Importer kNsysReport;
extern const Importer kNsysCsv;
extern const Importer kKinetoJson;
extern const CounterImporter kNcuReport;
extern const CounterImporter kNcuCsv;

}  // namespace llmprof
