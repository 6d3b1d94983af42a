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
#include "bundle/scrub.h"
#include "bundle/scrub_files.h"
#include "bundle/scrub_sqlite.h"
#include "bundle/secret_search.h"
#include "capture/workload.h"
#include "session/pass_runner.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

Breach secrets_breach(const std::string& pass, const std::string& sentence) {
  return {Reason::kSecretsInReport,     pass, sentence, "if the bundle stays with you",
          "artifacts.keep_report=true", false};
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

}  // namespace

std::string PassRunner::without_secrets(const std::vector<std::string>& argv) const {
  const SecretValues values = secret_values(system_.environment);
  return values.without(shell_text(scrub_arguments(argv)));
}

std::string PassRunner::command_line() const {
  std::vector<std::string> argv = setup_.work_argv;
  if (!argv.empty()) {
    argv[0] = fs::path(argv[0]).filename().string();
  }
  return without_secrets(argv);
}

// A user who stopped the run waits: the log gets little time then, and none after another signal.
void PassRunner::scrub_step_log(const fs::path& log, StepEnd end, const std::string& pass) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kTimeOfInterrupted{500};
  const bool is_stopped = end == StepEnd::kInterrupted || end == StepEnd::kAborted;
  const Clock::time_point until =
      is_stopped ? Clock::now() + kTimeOfInterrupted : Clock::time_point::max();
  const std::uint64_t num_left = scrub_log(log, secret_values(system_.environment), [&] {
    return InterruptCounter::num_new() > 0 || Clock::now() > until;
  });
  if (num_left > 0) {
    add({{Reason::kLogLost, pass,
          fmt::format(
              "{} is incomplete: the run was stopped before all of it was searched for keys",
              log.string()),
          "", "", false}});
  }
}

// Delete the .nsys-rep if its SQLite export contained secrets.
void PassRunner::scrub_report(const fs::path& report, const fs::path& sqlite) {
  const bool has_secrets = scrub_sqlite(sqlite, secret_values(system_.environment)).held_secret;
  if (has_secrets && !setup_.options.keeps_report) {
    fs::remove(report);
    add({secrets_breach(
        "nsys", fmt::format("nsys wrote keys of the environment into {}: it was left out of the "
                            "bundle; {} has the same data without them",
                            report.filename().string(), sqlite.filename().string()))});
  }
}

// Deletes a recording that could not be cleaned.
void PassRunner::leave_out_recording(const fs::path& report, const fs::path& sqlite) {
  std::error_code ignored;
  fs::remove(sqlite, ignored);
  fs::remove(sqlite.string() + "-journal", ignored);
  if (!setup_.options.keeps_report && fs::remove(report, ignored)) {
    add({secrets_breach("nsys",
                        fmt::format("{} could not be searched for keys: it was left out of the "
                                    "bundle",
                                    report.filename().string()))});
  }
}

void PassRunner::leave_out_secrets(const Pass& pass) {
  if (setup_.options.keeps_report) {
    return;
  }
  const SecretValues values = secret_values(system_.environment);
  const fs::path traces = pass.kind == PassKind::kTorch ? artifacts_.path(kTracesFolder) : "";
  for (const fs::path& report : reports_in(artifacts_.path(pass.folder), traces)) {
    if (may_hold_secret(report, values)) {
      std::error_code ignored;
      fs::remove(report, ignored);
      add({secrets_breach(pass.name, fmt::format("{} may hold a key: it was left out of the bundle",
                                                 report.filename().string()))});
    }
  }
}

// Range names come from the program; each distinct one is stored once.
void PassRunner::scrub_ranges(TimedRun& run) const {
  const SecretValues values = secret_values(system_.environment);
  for (TimedProcess& process : run.processes) {
    for (std::string& text : process.texts) {
      text = scrub_text(text, values);
    }
  }
}

}  // namespace gpuwhy
