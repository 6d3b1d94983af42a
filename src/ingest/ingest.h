// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "results/format.h"
#include "trace/counters.h"
#include "trace/kernel_summary.h"
#include "trace/trace.h"
#include "trace/trace_outline.h"

namespace gpuwhy {

class SqliteFile;

// An input file whose format is to be detected. Its first bytes are read once, for all importers.
class InputFile {
 public:
  // Throws kUsage if it cannot be read.
  InputFile(std::filesystem::path path);  // NOLINT: a path is all it needs
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::string_view head() const { return head_; }

  // The database if the file is one, else null. Opened at the first call and kept open, so that the
  // reader uses the same one as the sniff. Throws kInput if it is damaged.
  const SqliteFile* sqlite() const;

 private:
  std::filesystem::path path_;
  std::string head_;
  mutable std::unique_ptr<SqliteFile> sqlite_;
};

// A format of recordings. `load` and `outline` throw kInput. `outline` is fast for files of any
// size; it is null if the contents are unknown before the file is read.
struct Importer {
  FormatInfo format;
  bool (*sniff)(const InputFile& file);
  Recording (*load)(const InputFile& file, unsigned num_threads);
  TraceOutline (*outline)(const InputFile& file);
};

// Reads a recording of any format; errors name the file. `num_threads` must be at least 1.
Recording load_input(const InputFile& file, unsigned num_threads);

// The same for a recording with events. Throws kInput for a summary.
Trace load_trace(const InputFile& file, unsigned num_threads);

// The amount of data that load_input() would find, with the same errors as far as they show early.
// Throws kUsage for a format without an outline.
TraceOutline outline_trace(const InputFile& file);

// A format of kernel counters. `load` throws kInput.
struct CounterImporter {
  FormatInfo format;
  bool (*sniff)(const InputFile& file);
  Counters (*load)(const InputFile& file);
};

// Reads Nsight Compute results of any format; errors name the file.
Counters load_counters(const InputFile& file);

// The same of all files of a folder and of those below it: reports, and pages that ncu printed. A
// file without a table of ncu is left out, and said, and so is a folder that cannot be read. A path
// of a file is that file. Throws kUsage for more than 4,096 files.
std::vector<Counters> load_counter_files(const std::filesystem::path& path);

// All formats of recordings, and of counters, in the order in which they are tried.
std::vector<FormatInfo> recording_formats();
std::vector<FormatInfo> counter_formats();

// The format with this name in metrics.json; a generic one if the name is unknown.
FormatInfo format_named(std::string_view name);

// "SQLite export or report of Nsight Systems, trace of PyTorch's profiler": the supported formats,
// with or without those that only have totals.
std::string recording_kinds(bool with_totals);

// Whether a file is a report or raw capture of Nsight Systems, which only nsys can open.
bool is_nsys_report(const InputFile& file);

// The version of nsys that wrote a .nsys-rep or .qdrep, from its first bytes, e.g. "2024.6.2.225";
// empty if unknown.
std::string report_writer_version(std::string_view head);

// Each is defined in the file of its format.
extern const Importer kNsysSqlite;
extern const Importer kNsysReport;
extern const Importer kNsysCsv;
extern const Importer kKinetoJson;
extern const CounterImporter kNcuReport;
extern const CounterImporter kNcuCsv;

}  // namespace gpuwhy
