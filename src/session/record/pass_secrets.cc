// SPDX-License-Identifier: Apache-2.0
//
// Removal of secrets from the files of a run.
//
// nsys writes the environment of every process it can see into its report, and programs name ranges
// after requests. Texts and the export are cleaned. Reports and raw streams, which only NVIDIA's
// tools can write, are deleted if they contain a key, and so is everything that could not be
// cleaned or searched: no file is better than one with keys in it.
#include <chrono>

#include <fmt/format.h>

#include "base/error.h"
#include "base/temporary_file.h"
#include "bundle/layout.h"
#include "bundle/scrub.h"
#include "bundle/scrub_files.h"
#include "bundle/scrub_sqlite.h"
#include "bundle/secret_search.h"
#include "session/record/pass_parts.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// A report was left out of the bundle.
void tell_of_secrets(PassRunner& runner, const std::string& sentence) {
  runner.add({{Reason::kSecretsInReport, runner.pass().name, sentence,
               "if the bundle stays with you", "artifacts.keep_report=true", false}});
}

bool is_report_of_profiler(const fs::path& file) {
  const fs::path kind = file.extension();
  return kind == ".nsys-rep" || kind == ".qdrep" || kind == ".qdstrm" || kind == ".ncu-rep";
}

// Those of a folder, and the traces of an engine below it.
std::vector<fs::path> reports_in(const fs::path& folder, const fs::path& traces) {
  std::vector<fs::path> reports = recordings_below(traces);
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (is_report_of_profiler(entry.path())) {
      reports.push_back(entry.path());
    }
  }
  return reports;
}

bool may_hold_secret(const fs::path& report, const SecretValues& values) {
  try {
    const SecretSearch search = search_file(report, values);
    return search.has_found || !search.unsearched.empty();
  } catch (const Error&) {
    return true;
  }
}

// Deletes the .nsys-rep if its SQLite export contained secrets.
void scrub_export(PassRunner& runner, const fs::path& report, const fs::path& sqlite) {
  if (scrub_sqlite(sqlite, runner.secrets()).held_secret && !runner.setup().options.keeps_report) {
    fs::remove(report);
    tell_of_secrets(
        runner, fmt::format("nsys wrote keys of the environment into {}: it was left out of the "
                            "bundle; {} has the same data without them",
                            report.filename().string(), sqlite.filename().string()));
  }
}

}  // namespace

// A user who stopped the run waits: the log gets little time then, and none after another signal.
void scrub_step_log(PassRunner& runner, const fs::path& log, StepEnd end) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kTimeOfInterrupted{500};
  const bool is_stopped = end == StepEnd::kInterrupted || end == StepEnd::kAborted;
  const Clock::time_point until =
      is_stopped ? Clock::now() + kTimeOfInterrupted : Clock::time_point::max();
  const std::uint64_t num_left = scrub_log(log, runner.secrets(), [&] {
    return InterruptCounter::num_new() > 0 || Clock::now() > until;
  });
  if (num_left > 0) {
    runner.warn(
        Reason::kLogLost,
        fmt::format("{} is incomplete: the run was stopped before all of it was searched for keys",
                    log.string()));
  }
}

bool export_without_secrets(PassRunner& runner, const fs::path& report, const fs::path& sqlite) {
  DoomedFile unscrubbed(sqlite);
  try {
    export_report(runner.system(), *runner.setup().nsys, report, sqlite);
    scrub_export(runner, report, sqlite);
    unscrubbed.spare();
    return true;
  } catch (const Error& error) {
    runner.fail(Reason::kReportUnreadable, error);
  }
  std::error_code ignored;
  fs::remove(sqlite.string() + "-journal", ignored);
  if (!runner.setup().options.keeps_report && fs::remove(report, ignored)) {
    tell_of_secrets(runner, fmt::format("{} could not be searched for keys: it was left out of the "
                                        "bundle",
                                        report.filename().string()));
  }
  return false;
}

void leave_out_secrets(PassRunner& runner) {
  if (runner.setup().options.keeps_report) {
    return;
  }
  const fs::path folder = runner.pass().folder;
  const bool has_traces = fs::path(layout::kTraces).parent_path() == folder;
  const fs::path traces = has_traces ? runner.artifacts().path(layout::kTraces) : "";
  for (const fs::path& report : reports_in(runner.artifacts().path(folder.string()), traces)) {
    if (may_hold_secret(report, runner.secrets())) {
      std::error_code ignored;
      fs::remove(report, ignored);
      tell_of_secrets(runner, fmt::format("{} may hold a key: it was left out of the bundle",
                                          report.filename().string()));
    }
  }
}

// Range names come from the program; each distinct one is stored once.
void scrub_ranges(const SecretValues& values, TimedRun& run) {
  for (TimedProcess& process : run.processes) {
    for (std::string& text : process.texts) {
      text = scrub_text(text, values);
    }
  }
}

}  // namespace gpuwhy
