// SPDX-License-Identifier: Apache-2.0
//
// The files of a finished profile, as written by `analyze --out` and `run`.
//
// trace.pftrace takes longer than all other files together, so it is made on demand. Exports,
// report and summary are made at the same time. What an export left out is a diagnostic of the
// report: then the report is made once more. That is rare, and takes a fraction of the trace's
// time.
#include "session/writing/report_folder.h"

#include <iterator>
#include <utility>

#include "analysis/profile.h"
#include "base/error.h"
#include "base/file.h"
#include "base/task_graph.h"
#include "bundle/layout.h"
#include "fleet/summary/summary_file.h"
#include "session/record/rank_run.h"
#include "session/writing/own_files.h"
#include "session/writing/trace_files.h"

namespace gpuwhy {
namespace {

// One export beside a report.
struct Exported {
  std::vector<std::string> files;  // its name; none if it could not be written
  Diagnostics notes;               // what is not in it
};

Exported write_beside(const char* format, const char* name, const Profile& profile,
                      const ReportFolder& folder) {
  Exported result;
  try {
    const ExportResult written =
        write_export(format, folder.directory / name, folder.trace_budget_bytes, profile);
    result.files.emplace_back(name);
    if (written.trace) {
      result.notes = written.trace->left_out;
    }
  } catch (const Error& error) {
    if (!folder.may_lack_exports) {
      throw;
    }
    result.notes.push_back({"export_failed", Severity::kWarning, 1, error.what()});
  }
  return result;
}

using Files = std::vector<std::pair<std::string, std::string>>;  // names and contents

void add_names(const Files& files, std::vector<std::string>& names) {
  std::ranges::transform(files, std::back_inserter(names), &Files::value_type::first);
}

Files request_tables(const Profile& profile) {
  if (!profile.requests) {
    return {};
  }
  return {{layout::kRequestTable, requests_csv(*profile.requests)},
          {layout::kLateTokens, late_tokens_csv(*profile.requests)}};
}

// The files of the report proper.
Files contents_of(const Profile& profile, const ReportFolder& folder,
                  const std::vector<std::string>& exports, const Files& tables, PassTimer* timer) {
  std::vector<std::string> beside = folder.beside;
  beside.insert(beside.end(), exports.begin(), exports.end());
  add_names(tables, beside);
  return report_files(profile.analysis, beside, profile.timeline, timer, folder.gpu_hour_price,
                      folder.kernel_rows);
}

}  // namespace

std::vector<std::string> write_report_folder(Profile& profile, const ReportFolder& folder,
                                             PassTimer* timer) {
  add_run(folder.run, profile.analysis);
  const bool is_recorded = profile.analysis.absent.empty();
  const bool has_trace = is_recorded && profile.trace && folder.trace_budget_bytes > 0;
  std::vector<std::string> expected;  // exports
  if (has_trace) {
    expected.emplace_back(layout::kTrace);
  }
  if (is_recorded) {
    expected.emplace_back(layout::kKernelProfile);
  }
  Files tables = request_tables(profile);
  Files summary = summary_files(profile, folder.identity);
  if (folder.is_of_user) {
    std::vector<std::string> all = report_file_names();
    all.insert(all.end(), expected.begin(), expected.end());
    add_names(tables, all);
    add_names(summary, all);
    claim_files(folder.directory, all);
  }
  Exported trace;
  Exported table;
  Files files;
  PassTimer of_trace;
  const auto names = [&] {
    std::vector<std::string> all = trace.files;
    all.insert(all.end(), table.files.begin(), table.files.end());
    return all;
  };
  std::vector<std::function<void()>> tasks;
  if (has_trace) {
    tasks.emplace_back([&] {
      const PassTimer::Scope pass(&of_trace, "trace");
      trace = write_beside("pftrace", layout::kTrace, profile, folder);
    });
  }
  tasks.emplace_back([&] { files = contents_of(profile, folder, expected, tables, timer); });
  if (is_recorded) {
    tasks.emplace_back(
        [&] { table = write_beside("pprof", layout::kKernelProfile, profile, folder); });
  }
  run_tasks(tasks, folder.num_threads);
  if (timer != nullptr) {
    timer->append(of_trace);
  }
  if (!trace.notes.empty() || !table.notes.empty()) {
    Diagnostics& diagnostics = profile.analysis.data_quality;
    diagnostics.insert(diagnostics.end(), trace.notes.begin(), trace.notes.end());
    diagnostics.insert(diagnostics.end(), table.notes.begin(), table.notes.end());
    files = contents_of(profile, folder, names(), tables, nullptr);
    summary = summary_files(profile, folder.identity);
  }
  std::vector<std::string> written = names();
  for (Files* more : {&tables, &summary}) {
    files.insert(files.end(), std::make_move_iterator(more->begin()),
                 std::make_move_iterator(more->end()));
  }
  add_names(files, written);
  write_files(folder.directory, files);
  if (folder.is_of_user) {
    confirm_files(folder.directory);
  }
  return written;
}

}  // namespace gpuwhy
