// SPDX-License-Identifier: Apache-2.0
//
// Exports of a recording to other tools' formats.
//
// A format is a row with its name, its file name and the function that writes it.
#include "session/writing/trace_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/profile.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "export/chrome.h"
#include "export/parquet.h"
#include "export/perfetto.h"
#include "export/pprof.h"
#include "export/tables.h"
#include "session/version.h"
#include "session/writing/own_files.h"

namespace gpuwhy {
namespace {

struct ExportFormat {
  const char* name;
  const char* file;
  // Writes the whole recording; null if the format only has the kernel table.
  ExportedTrace (*write)(const Profile&, const std::filesystem::path&, std::uint64_t);
};

constexpr ExportFormat kFormats[] = {
    {"pftrace", layout::kTrace, write_pftrace},
    {"perfetto", layout::kTrace, write_pftrace},  // the name of the viewer, for the same file
    {"pprof", layout::kKernelProfile, nullptr},
    {"chrome", "trace.json", write_chrome_trace},
    {"parquet", "tables", nullptr},
};

// One file for each table, in a folder that is made if it is not there.
ExportResult write_tables(const std::filesystem::path& folder, const Profile& profile) {
  if (folder.extension() == ".parquet") {
    throw Error(ErrorKind::kUsage,
                fmt::format("--out {}: a folder is needed", printable(folder.string())),
                "it gets kernels.parquet, steps.parquet, layers.parquet and launches.parquet");
  }
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot create {}: {}", printable(folder.string()), failure.message()));
  }
  const std::vector<ColumnTable> tables = parquet_tables(profile);
  std::vector<std::string> names;
  for (const ColumnTable& table : tables) {
    names.push_back(table.name + ".parquet");
  }
  claim_files(folder, names);
  const CaptureInfo& capture = profile.analysis.capture;
  for (const ColumnTable& table : tables) {
    std::vector<std::pair<std::string, std::string>> metadata = {
        {"gpuwhy.schema", "gpuwhy.tables." + table.name},
        {"gpuwhy.schema_version", fmt::to_string(kTablesVersion)},
        {"gpuwhy.recording", std::filesystem::path(capture.path).filename().string()},
        {"gpuwhy.format", std::string(capture.format.name)}};
    if (capture.utc_ns) {
      metadata.emplace_back("gpuwhy.utc_ns", fmt::to_string(*capture.utc_ns));
    }
    FileWriter file(folder / (table.name + ".parquet"));
    write_parquet(table, metadata, "gpuwhy version " + program_version(), file);
    file.commit();
  }
  confirm_files(folder);
  ExportResult result{folder, std::nullopt};
  if (!profile.trace) {
    result.notes.push_back({"no_events", Severity::kInfo, 0,
                            "a summary of kernels has no events: only kernels.parquet is written"});
  }
  return result;
}

}  // namespace

const std::vector<std::string>& export_formats() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> all;
    for (const ExportFormat& format : kFormats) {
      all.emplace_back(format.name);
    }
    return all;
  }();
  return kNames;
}

ExportResult write_export(const std::string& format_name, const std::filesystem::path& out,
                          std::uint64_t budget_bytes, const Profile& profile) {
  const auto* format =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const ExportFormat& row) { return format_name == row.name; });
  const std::filesystem::path file = out.empty() ? format->file : out;
  if (format_name == "parquet") {
    return write_tables(file, profile);
  }
  if (out.empty()) {
    // The name is ours, and what is there may be the recording itself.
    claim_files("", {format->file});
    ExportResult result = write_export(format_name, file, budget_bytes, profile);
    confirm_files("");
    return result;
  }
  if (format->write == nullptr) {
    write_file(file, pprof_profile(profile));
    return {file, std::nullopt};
  }
  if (!profile.trace) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is a summary of kernels: it has no timestamps to draw",
                            printable(profile.analysis.capture.path)),
                "its kernel table is what gpuwhy export --format pprof writes");
  }
  return {file, format->write(profile, file, budget_bytes)};
}

}  // namespace gpuwhy
