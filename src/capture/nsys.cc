// SPDX-License-Identifier: Apache-2.0
//
// Command lines for nsys, and cached conversion of its reports to SQLite.
//
// nsys keeps an export next to the report and trusts it by name: if the report is replaced, `nsys
// stats` answers from the old export, with exit code 0. Here the name of an export is the hash of
// the report. A failed export leaves a partial file behind, so it is written under another name and
// renamed once nsys has succeeded and the file exists.
#include "capture/nsys.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sha256.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "capture/reason.h"
#include "capture/subprocess.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// Exports of tens of gigabytes take long; a hanging tool must still end.
constexpr std::chrono::hours kLongest{2};

// The folder of the exports. Without a home, other users can write to its parent.
struct ExportCache {
  fs::path directory;
  bool is_shared_above = false;
};

ExportCache export_cache(const System& system) {
  if (const auto cache = system.variable("XDG_CACHE_HOME")) {
    return {fs::path(*cache) / "gpuwhy" / "exports"};
  }
  if (const auto home = system.variable("HOME")) {
    return {fs::path(*home) / ".cache" / "gpuwhy" / "exports"};
  }
  return {fs::path(system.temporary_directory()) / fmt::format("gpuwhy-exports-{}", ::geteuid()),
          true};
}

// Creates the folder for the user only: an export contains what the report does, including keys. An
// existing folder of the user's own is restricted, because it used to be as open as the umask
// allows, but not where someone else could have planted exports.
void make_own_folder(const ExportCache& cache) {
  constexpr const char* kHint = "export XDG_CACHE_HOME=/some/writable/directory";
  const char* path = cache.directory.c_str();
  std::error_code failure;
  fs::create_directories(cache.directory.parent_path(), failure);
  struct stat facts {};
  if ((::mkdir(path, 0700) != 0 && errno != EEXIST) || ::lstat(path, &facts) != 0) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot create {}: {}", path, std::strerror(errno)), kHint);
  }
  const bool is_own = S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid();
  const bool is_narrow = (facts.st_mode & 0077) == 0;
  if (!is_own || (!is_narrow && (cache.is_shared_above || ::chmod(path, 0700) != 0))) {
    throw Error(ErrorKind::kEnvironment, fmt::format("{} is not a folder of yours alone", path),
                kHint);
  }
}

// Runs a step whose only proof of success is the file it leaves.
void run_step(const System& system, std::vector<std::string> argv, const fs::path& made,
              const std::string& what) {
  Process step{std::move(argv), system.environment};
  step.timeout = kLongest;
  const ProcessResult result = run_process(step);
  std::error_code ignored;
  if (result.succeeded() && fs::file_size(made, ignored) > 0 && !ignored) {
    return;
  }
  const std::string said = result.err.empty() ? result.out : result.err;
  const std::string_view shown = trim(said);
  throw Error(
      ErrorKind::kEnvironment,
      fmt::format("{} failed{}", what, shown.empty() ? "" : ": " + printable(shown.substr(0, 200))),
      "use the nsys that made the capture, or a newer one: nsys export --type sqlite FILE");
}

// How the program is started and what of it is traced: the same for `profile` and `launch`.
void add_program_options(const NsysTool& nsys, const NsysSettings& settings,
                         const NsysOutput& output, std::vector<std::string>& argv) {
  // nsys cannot pass a TMPDIR with a comma; then the workload sees ours.
  if (output.workload_tmpdir.find(',') == std::string::npos) {
    argv.push_back("--env-var=TMPDIR=" + output.workload_tmpdir);
  }
  if (nsys.has_option("--cuda-graph-trace")) {
    argv.push_back("--cuda-graph-trace=" + settings.cuda_graph_trace);
  }
  if (settings.trace_fork_before_exec) {
    if (!nsys.has_option("--trace-fork-before-exec")) {
      throw Error(ErrorKind::kEnvironment,
                  fmt::format("{}: nsys {} cannot follow children that do not exec",
                              code_of(Reason::kToolTooOld), nsys.version.text()),
                  "install a newer nsys, or pipeline.nsys.trace_fork_before_exec=false");
    }
    argv.emplace_back("--trace-fork-before-exec=true");
  }
  // A daemon left behind by the program must not keep the recording open.
  if (nsys.has_option("--wait")) {
    argv.emplace_back("--wait=primary");
  }
}

}  // namespace

std::vector<std::string> build_nsys_cmd(const NsysTool& nsys, const NsysSettings& settings,
                                        const CaptureTrigger& gate, const NsysOutput& output,
                                        const std::vector<std::string>& work_argv) {
  std::vector<std::string> argv = {nsys.path.string(),
                                   "profile",
                                   fmt::format("--trace={}", fmt::join(settings.trace, ",")),
                                   "--sample=" + settings.sample,
                                   "--cpuctxsw=" + settings.cpuctxsw,
                                   "--session-new=" + output.session,
                                   "--force-overwrite=true",
                                   "--output=" + output.report.string()};
  add_program_options(nsys, settings, output, argv);
  if (settings.duration_s > 0) {
    argv.push_back(fmt::format("--duration={}", settings.duration_s));
  }
  // The report would contain the whole environment, including keys.
  if (nsys.has_option("--discard-environment")) {
    argv.emplace_back("--discard-environment=true");
  }
  const std::vector<std::string> gate_options = nsys_trigger_options(gate);
  argv.insert(argv.end(), gate_options.begin(), gate_options.end());
  argv.insert(argv.end(), settings.extra_options.begin(), settings.extra_options.end());
  argv.insert(argv.end(), work_argv.begin(), work_argv.end());
  return argv;
}

NsysPeriod build_nsys_period(const NsysTool& nsys, const NsysSettings& settings,
                             const NsysOutput& output, const std::vector<std::string>& work_argv) {
  const std::string path = nsys.path.string();
  NsysPeriod window;
  window.launch = {path, "launch", fmt::format("--trace={}", fmt::join(settings.trace, ",")),
                   "--session-new=" + output.session};
  add_program_options(nsys, settings, output, window.launch);
  window.launch.insert(window.launch.end(), work_argv.begin(), work_argv.end());
  window.start = {path,
                  "start",
                  "--session=" + output.session,
                  "--sample=" + settings.sample,
                  "--cpuctxsw=" + settings.cpuctxsw,
                  "--force-overwrite=true",
                  "--output=" + output.report.string()};
  window.stop = {path, "stop", "--session=" + output.session};
  return window;
}

std::vector<std::string> build_export_cmd(const NsysTool& nsys, const fs::path& report,
                                          const fs::path& sqlite) {
  return {nsys.path.string(),       "export",       "--type=sqlite",
          "--force-overwrite=true", "--quiet=true", "--output=" + sqlite.string(),
          report.string()};
}

std::vector<std::string> build_import_cmd(const NsysTool& nsys, const fs::path& raw,
                                          const fs::path& report) {
  return {nsys.importer.string(), "--input-file", raw.string(), "--output-file", report.string()};
}

void export_report(const System& system, const NsysTool& nsys, const fs::path& report,
                   const fs::path& sqlite) {
  run_step(system, build_export_cmd(nsys, report, sqlite), sqlite, "exporting " + report.string());
}

void import_raw(const System& system, const NsysTool& nsys, const fs::path& raw,
                const fs::path& report) {
  run_step(system, build_import_cmd(nsys, raw, report), report,
           "turning " + raw.string() + " into a report");
}

fs::path exported_sqlite(const System& system, const fs::path& report,
                         const std::string& writer_version) {
  const ExportCache cache = export_cache(system);
  const fs::path& directory = cache.directory;
  const std::string hash = sha256_of_file(report);
  fs::path sqlite = directory / (hash + ".sqlite");
  std::error_code failure;
  if (fs::exists(sqlite, failure)) {
    make_own_folder(cache);
    return sqlite;
  }
  const std::string writer_text =
      writer_version.empty() ? "" : ", written by nsys " + writer_version;
  const NsysTool nsys =
      with_context(fmt::format("and only nsys opens {}{}", report.string(), writer_text),
                   [&] { return ensure_nsys(system); });
  const auto writer = parse_tool_version(writer_version);
  if (writer && !nsys.version.is_at_least(writer->year, writer->release)) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{} was written by nsys {}, and nsys {} here cannot open it",
                            report.string(), writer->text(), nsys.version.text()),
                fmt::format("install nsys {}.{} or newer, or export where it was made: nsys export "
                            "--type sqlite {}",
                            writer->year, writer->release, report.filename().string()));
  }
  make_own_folder(cache);
  const std::string unfinished = fmt::format("{}.{}", hash, ::getpid());
  const DoomedFile made(directory / (unfinished + ".sqlite"));
  const DoomedFile imported(directory / (unfinished + ".nsys-rep"));
  const bool is_raw = report.extension() == ".qdstrm";
  if (is_raw) {
    import_raw(system, nsys, report, imported.path());
  }
  export_report(system, nsys, is_raw ? imported.path() : report, made.path());
  fs::rename(made.path(), sqlite);
  return sqlite;
}

}  // namespace gpuwhy
