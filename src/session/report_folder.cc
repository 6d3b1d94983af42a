// SPDX-License-Identifier: Apache-2.0
//
// The files of a finished profile, as written by `analyze --out` and `run`.
#include "session/report_folder.h"

#include "base/error.h"
#include "base/file.h"
#include "session/rank_run.h"
#include "session/trace_files.h"

namespace llmprof {
namespace {

// Writes the files for other tools and returns their names; empty if nothing was recorded.
std::vector<std::string> write_exports(Profile& profile, const ReportFolder& folder) {
  if (!profile.analysis.absent.empty()) {
    return {};
  }
  try {
    return write_trace_files(profile, folder.directory, folder.trace_budget_bytes);
  } catch (const Error& error) {
    if (!folder.may_lack_trace) {
      throw;
    }
    profile.analysis.diagnostics.push_back({"export_failed", Severity::kWarning, 1, error.what()});
    return {};
  }
}

}  // namespace

WrittenReport write_report_folder(Profile& profile, const ReportFolder& folder, PassTimer* timer) {
  // Exports come first: what their budget left out is a diagnostic of the report.
  const std::vector<std::string> exports = write_exports(profile, folder);
  std::vector<std::string> beside = folder.beside;
  beside.insert(beside.end(), exports.begin(), exports.end());
  if (profile.requests) {
    beside.insert(beside.end(), {"requests.csv", "late_tokens.csv"});
  }
  WrittenReport written{metrics_of(profile.analysis, folder.run), exports};
  const auto write = [&](const std::string& name, const std::string& contents) {
    write_file(folder.directory / name, contents);
    written.files.push_back(name);
  };
  for (const auto& [name, contents] :
       report_files(written.metrics, beside, profile.timeline, timer)) {
    write(name, contents);
  }
  if (profile.requests) {
    write("requests.csv", requests_csv(*profile.requests));
    write("late_tokens.csv", late_tokens_csv(*profile.requests));
  }
  for (const auto& [name, contents] : summary_files(profile, folder.identity)) {
    write(name, contents);
  }
  return written;
}

}  // namespace llmprof
