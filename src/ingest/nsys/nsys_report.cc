// SPDX-License-Identifier: Apache-2.0
//
// Detection of native nsys reports (.nsys-rep, .qdrep, .qdstrm), with advice on exporting them.
//
// The format is proprietary and only nsys reads it. But the version that wrote the report is
// readable, so the error can say which nsys to use. From 2023 on it is in the first bytes, with '@'
// for '.'; older reports say "Report 1.".
#include <fmt/format.h>

#include "base/error.h"
#include "ingest/ingest.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kNsysMagic = "NVIDIA Tegra Profiler Report ";

// The file format is not documented. The message names the nsys version that can export it.
[[noreturn]] void refuse_report(const InputFile& file) {
  const std::string shown = file.path().string();
  if (file.path().extension() == ".qdstrm") {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{} is a raw capture that was never turned into a report", shown),
        fmt::format("QdstrmImporter --input-file {}, then nsys export --type sqlite", shown));
  }
  const std::string version = report_writer_version(file.head());
  throw Error(
      ErrorKind::kInput,
      fmt::format("{} is a report of Nsight Systems{}, which only nsys can open", shown,
                  version.empty() ? " before 2023" : " " + version),
      fmt::format("with nsys {} or newer: nsys export --type sqlite {}",
                  version.empty() ? "2022.4" : version.substr(0, version.find('-')), shown));
}

Recording load_nsys_report(const InputFile& file, unsigned /*num_threads*/) {
  refuse_report(file);
}

TraceOutline outline_nsys_report(const InputFile& file) {
  refuse_report(file);
}

}  // namespace

bool is_nsys_report(const InputFile& file) {
  return file.head().starts_with(kNsysMagic) || file.path().extension() == ".qdstrm";
}

// The version in the magic's line, "2024@5@1…"; empty if it has another form.
std::string report_writer_version(std::string_view head) {
  if (!head.starts_with(kNsysMagic)) {
    return {};
  }
  head.remove_prefix(kNsysMagic.size());
  std::string version(head.substr(0, head.find_first_of(".\n")));
  if (version.find('@') == std::string::npos) {
    return {};
  }
  for (char& c : version) {
    c = c == '@' ? '.' : c;
  }
  return version.find_first_not_of("0123456789.-abcdefghijklmnopqrstuvwxyz") == std::string::npos
             ? version
             : std::string{};
}

const Importer kNsysReport = {{.name = "nsys report",
                               .tool = "Nsight Systems",
                               .tool_id = "nsys",
                               .kind = "report",
                               .made_with = "nsys profile PROGRAM"},
                              is_nsys_report,
                              load_nsys_report,
                              outline_nsys_report};

}  // namespace gpuwhy
