// SPDX-License-Identifier: Apache-2.0
//
// The passes of a run, in order: unprofiled, under nsys, under ncu.
//
// Each pass leaves its command line, log and files in the bundle before it is judged, so that a
// failed run can be inspected. Later passes use the results of earlier ones: the marks of the
// baseline become gates, its times the reference for the profiler's overhead, its processes are
// expected in the recording, and the recording's kernels determine the ncu plan.
#include "session/pass_runner.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <random>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/stages.h"
#include "base/error.h"
#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/scrub.h"
#include "capture/nsys_leftovers.h"
#include "capture/nvtx_library.h"
#include "capture/nvtx_timer.h"
#include "capture/stale_runs.h"
#include "capture/workload.h"
#include "ingest/ingest.h"
#include "ingest/request_files.h"
#include "report/metrics.h"
#include "serve/drive.h"
#include "session/nvtx_marks.h"
#include "session/pass_parts.h"
#include "session/recording.h"
#include "session/unprofiled_trace.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kReadThreads = 2;

std::vector<int> expected_codes(const NsysSettings& nsys) {
  // --duration ends the program with SIGTERM.
  return nsys.duration_s > 0 ? std::vector<int>{143} : std::vector<int>{};
}

constexpr int kMostRetries = 2;
constexpr std::chrono::nanoseconds kShortestPause = std::chrono::milliseconds(20);

// By what nsys printed alone. What drives a server then says that it died, and names a rank that
// was not started, as other ranks print too.
bool agent_has_failed(const StepResult& step) {
  const std::string death = fmt::format("gpuwhy: {}:", code_of(Reason::kServerDied));
  const std::size_t driver = step.last_lines.rfind(death);
  const bool is_driven = driver != std::string::npos;
  const int code = is_driven ? info_of(Reason::kServerDied).exit_code : 1;
  return step.end == StepEnd::kItself && step.exit_code == code &&
         (is_agent_failure(std::string_view(step.last_lines).substr(0, driver)) ||
          (is_driven && step.last_lines.find(kRankNotStarted, driver) != std::string::npos));
}

// The stage timer's library lies there and is loaded from there, so the folder must be new and
// ours: who can guess its name could have made it first.
void make_scratch(const fs::path& scratch) {
  std::error_code failure;
  fs::create_directories(scratch.parent_path(), failure);
  if (failure || ::mkdir(scratch.c_str(), 0700) != 0 ||
      ::mkdir((scratch / "ranges").c_str(), 0700) != 0) {
    const std::string reason = failure ? failure.message() : std::strerror(errno);
    throw Error(ErrorKind::kEnvironment,
                fmt::format("cannot make {}: {}", scratch.string(), reason),
                "export TMPDIR=/some/writable/directory");
  }
}

}  // namespace

std::string session_name(const Artifacts& artifacts) {
  return fmt::format("gpuwhy-{}-{}", artifacts.run_id(), ::getpid());
}

fs::path scratch_folder(const Artifacts& artifacts, const System& system) {
  static const std::uint64_t kScratchNonce =
      (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
  const std::string name = fmt::format("{}-{:016x}", session_name(artifacts), kScratchNonce);
  return fs::absolute(fs::path(system.temporary_directory()) / name).lexically_normal();
}

PassRunner::PassRunner(const RunSetup& setup, const Artifacts& artifacts, const System& system,
                       Progress& progress)
    : artifacts_(artifacts),
      secrets_(secret_values(system.environment)),
      progress_(progress),
      inputs_{setup,
              system,
              fs::absolute(artifacts.root()),
              scratch_folder(artifacts, system),
              session_name(artifacts),
              {},
              {}} {
  make_scratch(inputs_.scratch);
}

PassRunner::~PassRunner() {
  std::error_code ignored;
  fs::remove_all(inputs_.scratch, ignored);
}

std::string PassRunner::without_secrets(const std::vector<std::string>& argv) const {
  return secrets_.without(shell_text(scrub_arguments(argv)));
}

std::string PassRunner::command_line() const {
  std::vector<std::string> argv = setup().work_argv;
  if (!argv.empty()) {
    argv[0] = fs::path(argv[0]).filename().string();
  }
  return without_secrets(argv);
}

void PassRunner::add(const std::vector<Breach>& breaches) {
  breaches_.insert(breaches_.end(), breaches.begin(), breaches.end());
}

void PassRunner::fail(Reason reason, const std::string& sentence, const std::string& next) {
  breaches_.push_back({reason, pass_->name, sentence, next, ""});
}

void PassRunner::warn(Reason reason, const std::string& sentence, const std::string& next) {
  breaches_.push_back({reason, pass_->name, sentence, next, "", false});
}

bool PassRunner::is_interrupted() const {
  return std::ranges::find(breaches_, Reason::kInterrupted, &Breach::reason) != breaches_.end();
}

bool PassRunner::look_for_signal(const std::string& pass) {
  if (InterruptCounter::num_new() == 0) {
    return false;
  }
  InterruptCounter::acknowledge();
  if (!is_interrupted()) {
    add({{Reason::kInterrupted, pass, "stopped by a signal; what was captured before is kept", "",
          ""}});
  }
  return true;
}

std::optional<Reason> PassRunner::stop_reason() const {
  if (is_interrupted()) {
    return Reason::kInterrupted;
  }
  for (const Breach& breach : breaches_) {
    if (breach.is_fatal && breach.pass == "prepare") {
      return Reason::kPrepareFailed;
    }
    if (breach.is_fatal && breach.pass == "baseline") {
      return Reason::kBaselineFailed;
    }
  }
  return std::nullopt;
}

void PassRunner::skip(const Pass& pass, Reason reason) {
  progress_.begin(pass.name);
  progress_.end(fmt::format("n/a ({})", code_of(reason)));
  if (reason == Reason::kNoRecording || reason == Reason::kNoKernels) {
    progress_.note("the plan for ncu is made from the kernels of a recording");
  }
  passes_.push_back({pass.name, "skipped", reason, {}, {}});
}

StepResult PassRunner::run_step(const PassCommand& command, const StepLimits& limits) {
  PassRecord& record = passes_.back();
  const std::string folder = pass_->folder;
  command_lines_[folder] += without_secrets(command.argv) + "\n";
  artifacts_.write(folder + "/cmd.txt", command_lines_[folder]);
  record.commands.push_back(command.argv);
  Step step;
  step.process.argv = command.argv;
  step.process.environment = command.environment;
  step.process.environment[kRunVariable] = inputs_.bundle.string();
  step.log = artifacts_.path(folder + "/log.txt");
  step.outputs = {artifacts_.path(folder), inputs_.scratch};
  step.limits = limits;
  DoomedFile unscrubbed(step.log);  // rather none than one with keys in it
  std::optional<ProcessFiles> seen;
  std::chrono::nanoseconds next_look{0};  // more rarely the longer it lasts
  StepResult result = supervise(step, [&](const StepProgress& progress) {
    if (!seen_program_ && !pass_->is_preparation && progress.elapsed >= next_look) {
      look_at_programs(seen);
      next_look = progress.elapsed + std::max(progress.elapsed / 2, kShortestPause);
    }
    progress_.update(progress);
  });
  seen_program_ = seen_program_ ? seen_program_ : seen;
  look_for_signal(pass_->name);
  if (!result.left_over.empty()) {
    progress_.note(fmt::format("killed leftover processes: {}",
                               printable(fmt::format("{}", fmt::join(result.left_over, ", ")))));
  }
  if (result.has_lost_output) {
    add({{Reason::kLogLost, record.name,
          fmt::format("{} is incomplete: some of the program's output could not be written",
                      step.log.string()),
          "free some space, or write elsewhere", "artifacts.dir=/path/with/space", false}});
  }
  scrub_step_log(*this, step.log, result.end);
  unscrubbed.spare();
  workload_exit_code_ = result.exit_code;
  record.steps.push_back(result);
  return result;
}

StepResult PassRunner::run_only_step() {
  return run_step(pass_->commands(inputs_).at(0), setup().options.limits);
}

void PassRunner::prepare() {
  for (const Pass& pass : setup().passes) {
    if (pass.is_preparation) {
      run(pass);
    }
  }
  if (stop_reason()) {
    return;
  }
  try {
    results_.model = target_model(*setup().config);
  } catch (const Error& error) {
    add({{Reason::kPassFailed, "prepare", error.what(), error.hint(), ""}});
  }
}

void PassRunner::run_passes() {
  write_marks(*this);
  for (const Pass& pass : setup().passes) {
    if (!pass.is_preparation) {
      run(pass);
    }
  }
}

void PassRunner::run(const Pass& pass) {
  pass_ = &pass;
  if (const auto reason = obstacle(pass)) {
    return skip(pass, *reason);
  }
  progress_.begin(pass.name);
  passes_.push_back({pass.name, "", {}, {}, {}});
  // Until they are searched, they go where a signal ends this program.
  DoomedFile recording(artifacts_.path("nsys/run.sqlite"));
  DoomedFile report(artifacts_.path("nsys/run.nsys-rep"));
  std::list<DoomedFile> of_ranks;
  constexpr std::int64_t kMostRanks = 256;  // of one machine, where the launcher decides
  const bool has_ranks = pass.kind == PassKind::kNsys && setup().server && setup().server->ranks;
  for (std::int64_t rank = 0; has_ranks && !setup().options.keeps_report &&
                              rank < setup().server->ranks->num_ranks.value_or(kMostRanks);
       ++rank) {
    of_ranks.emplace_back(artifacts_.path("nsys/" + rank_report(fmt::format("{}", rank))));
  }
  if (pass.kind != PassKind::kNsys) {
    recording.spare();
  }
  if (pass.kind != PassKind::kNsys || setup().options.keeps_report) {
    report.spare();
  }
  try {
    make_inner_folder(artifacts_.path(pass.folder), 0700);
    run_body(pass);
  } catch (const Error& error) {
    fail(error.kind() == ErrorKind::kEnvironment ? Reason::kToolFailed : Reason::kPassFailed,
         error);
  }
  read_mark_notes(*this);
  leave_out_secrets(*this);
  recording.spare();
  report.spare();
  std::ranges::for_each(of_ranks, &DoomedFile::spare);
  const auto failure = std::ranges::find_if(
      breaches_, [&](const Breach& breach) { return breach.is_fatal && breach.pass == pass.name; });
  const bool has_failed = failure != breaches_.end();
  progress_.end(has_failed ? fmt::format("failed ({})", code_of(failure->reason)) : "done");
  passes_.back().status = has_failed ? "failed" : "done";
}

void PassRunner::run_body(const Pass& pass) {
  if (pass.run != nullptr) {
    return pass.run(*this);
  }
  switch (pass.kind) {
    case PassKind::kOther:
      return;
    case PassKind::kNsys:
      return run_nsys(pass);
    case PassKind::kNcu:
      return run_ncu(pass);
  }
}

// Why a pass is left out; nothing where it can run.
std::optional<Reason> PassRunner::obstacle(const Pass& pass) {
  look_for_signal(pass.name);
  if (const auto reason = stop_reason()) {
    return reason;
  }
  return pass.kind == PassKind::kNsys  ? nsys_obstacle()
         : pass.kind == PassKind::kNcu ? ncu_obstacle()
                                       : std::nullopt;
}

std::optional<Reason> PassRunner::nsys_obstacle() {
  if (!setup().nsys) {
    return Reason::kToolMissing;
  }
  try {
    inputs_.gate = choose_gate(setup().options.gate,
                               results_.baseline.marks ? &*results_.baseline.marks : nullptr);
  } catch (const Error& error) {
    add({{Reason::kGateNotFired, "nsys", error.message(), error.hint(), ""}});
    return Reason::kGateNotFired;
  }
  return std::nullopt;
}

// They would let this capture fail. They are of other sessions, so only if asked for; and only what
// is provably nobody's goes.
void PassRunner::remove_leftovers_of_nsys() {
  if (!setup().options.nsys.remove_leftovers) {
    return;
  }
  const NsysLeftovers gone = remove_nsys_leftovers(system());
  for (const fs::path& path : gone.files) {
    progress_.note(
        fmt::format("removed {}, which a killed nsys had left", printable(path.string())));
  }
  for (const RunningProcess& agent : gone.hung_agents) {
    progress_.note(fmt::format("ended {}, an agent that waited for what a killed nsys had begun",
                               printable(agent.text())));
  }
}

void PassRunner::run_nsys(const Pass& pass) {
  const Gate& gate = inputs_.gate;
  if (gate.kind == GateWish::Kind::kMark) {
    progress_.note(
        fmt::format("recording from the first {} ({})", printable(gate.mark.text()), gate.reason));
  }
  const PassCommand command = pass.commands(inputs_).at(0);
  for (const std::string& note : command.notes) {
    progress_.note(note);
  }
  remove_leftovers_of_nsys();
  const fs::path report = inputs_.bundle / "nsys/run.nsys-rep";
  auto start = fs::file_time_type::clock::now();
  StepResult step = run_step(command, setup().options.limits);
  for (int retry = 0; retry < kMostRetries && !is_interrupted() && agent_has_failed(step);
       ++retry) {
    progress_.note("nsys failed to start its agent before it started the program; trying again");
    remove_leftovers_of_nsys();
    start = fs::file_time_type::clock::now();
    step = run_step(command, setup().options.limits);
  }
  if (setup().server && setup().server->ranks) {
    return read_rank_recordings(pass, step, start);
  }
  const bool has_report = keep_report(report, step, start);
  // Where there is no report the reason is there, not in the exit code.
  if (has_report || step.end != StepEnd::kItself) {
    add(check_program(*this, step, expected_codes(setup().options.nsys)));
  }
  if (has_report) {
    read_recording(report, step.end != StepEnd::kItself);
  }
}

ReportFacts PassRunner::report_facts(const fs::path& report, fs::file_time_type start) const {
  const Gate& gate = inputs_.gate;
  ReportFacts facts{report,           inputs_.scratch, start, gate.kind == GateWish::Kind::kMark,
                    gate.mark.text(), gate.num_entries};
  if (gate.kind == GateWish::Kind::kCudaProfilerApi) {
    facts.is_gated = true;
    facts.gate_text = "cudaProfilerStart";
  }
  return facts;
}

// True when the report is where it was asked for, if need be made by the importer.
bool PassRunner::keep_report(const fs::path& report, const StepResult& step,
                             fs::file_time_type start) {
  std::error_code failure;
  const fs::path raw = find_with_suffix(inputs_.scratch, ".qdstrm");
  if (!fs::exists(report, failure) && !raw.empty() && !setup().nsys->importer.empty() &&
      step.end != StepEnd::kAborted) {
    progress_.note("nsys left its raw stream; the importer makes the report of it");
    import_raw(system(), *setup().nsys, raw, report);
  }
  const std::vector<Breach> found = check_nsys_report(report_facts(report, start), step);
  if (!found.empty() && !raw.empty()) {
    fs::copy_file(raw, artifacts_.path("nsys/" + raw.filename().string()), failure);
  }
  add(found);
  return found.empty();
}

void PassRunner::read_recording(const fs::path& report, bool was_cut) {
  const fs::path sqlite = artifacts_.path("nsys/run.sqlite");
  if (!export_without_secrets(*this, report, sqlite)) {
    return;
  }
  try {
    read_requests(*this);
    ProfileOptions options;
    options.has_timeline = true;
    options.has_requests = results_.requests.has_value();
    Trace trace = load_trace(sqlite, kReadThreads);
    name_graph_kernels(sqlite, {}, std::nullopt, trace);
    for (const std::string& mark : unused_marks(setup().rules, trace)) {
      add({{Reason::kMarksIncomplete, "nsys", mark + ": no range of the recording has this name",
            fmt::format("gpuwhy ranges {} lists the names", sqlite.string()), ""}});
    }
    results_.profile = profile(std::move(trace), setup().rules, options);
  } catch (const Error& error) {
    add({{Reason::kReportUnreadable, "nsys", error.what(), error.hint(), ""}});
    return;
  }
  check_recorded(was_cut);
}

// What the recording must have: declared stages, the baseline's, kernels, and a server's window.
void PassRunner::check_recorded(bool was_cut) {
  const Analysis& analysis = results_.profile->analysis;
  RecordingFacts facts;
  facts.stage_instances = instances_of(analysis.stage_times);
  facts.has_kernels = analysis.capture.has_kernel_table;
  facts.has_cuda = analysis.capture.has_cuda;
  facts.opaque_graph_fraction =
      analysis.kernel_ns == 0
          ? 0
          : static_cast<double>(analysis.opaque_graph_ns) / static_cast<double>(analysis.kernel_ns);
  if (has_marks(analysis.stage_times)) {
    facts.num_processes_with_ranges =
        count_processes(*results_.profile->trace, results_.profile->stages);
  }
  facts.tool_messages = analysis.capture.messages;
  const bool is_gpu_expected =
      setup().options.contract.gpu == Contract::Gpu::kRequired ||
      (setup().options.contract.gpu == Contract::Gpu::kAuto && !setup().machine.gpus.empty());
  Expectations expected{is_gpu_expected, setup().options.nsys.trace_fork_before_exec, 0, {}};
  // A window of its own holds fewer stages than the whole run, and a server batches as it likes.
  if (!results_.baseline.times.empty() && !setup().server &&
      inputs_.gate.kind != GateWish::Kind::kCudaProfilerApi &&
      setup().options.nsys.duration_s == 0 && !was_cut) {
    const ExpectedStages stages =
        expected_stages(results_.baseline.trace, results_.baseline.stages, inputs_.gate);
    expected.num_processes_with_ranges = stages.num_processes;
    expected.stage_instances = stages.instances;
  }
  add(check_recording(setup().options.contract, expected, facts));
  check_served_window(*this, analysis);
}

}  // namespace gpuwhy
