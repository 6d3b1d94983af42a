// SPDX-License-Identifier: Apache-2.0
//
// The passes of a run, in order: bare, under nsys, under ncu.
//
// Each pass leaves its command line, its log and its files in the bundle before it is judged, so
// that a run that failed can be looked at. What one pass learns the next one uses: the marks of the
// bare pass become gates, its times become the profiler's overhead, its processes are looked for in
// the recording, and the recording's kernels become the plan for ncu.
#include "session/run_session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/stages.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/scrub.h"
#include "bundle/scrub_files.h"
#include "capture/nvtx_library.h"
#include "capture/nvtx_timer.h"
#include "capture/stale_runs.h"
#include "config/presets.h"
#include "ingest/ingest.h"
#include "report/metrics.h"
#include "session/ncu_plan_command.h"
#include "session/nvtx_marks.h"
#include "session/operator_table.h"
#include "session/recording.h"
#include "session/unprofiled_trace.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kReadThreads = 2;
constexpr const char* kTimerVariables[] = {"NVTX_INJECTION64_PATH", "LLMPROF_NVTX_DIR"};

using Environment = std::map<std::string, std::string>;

Stages stages_in(const Trace& trace, const Rules& rules) {
  return find_stages(trace, rules, 0, 0);
}

bool has_marks(const std::vector<StageTimes>& times) {
  return std::any_of(times.begin(), times.end(),
                     [](const StageTimes& stage) { return stage.stage != "all"; });
}

std::map<std::string, std::int64_t> instances_of(const std::vector<StageTimes>& times) {
  std::map<std::string, std::int64_t> instances;
  for (const StageTimes& stage : times) {
    instances[stage.stage] = stage.n;
  }
  return instances;
}

std::vector<int> expected_codes(const NsysSettings& nsys) {
  // --duration ends the program with SIGTERM.
  return nsys.duration_s > 0 ? std::vector<int>{143} : std::vector<int>{};
}

// On a busy machine nsys now and then loses the agent it just started, before it starts the
// program: it prints these words alone and exits with 1.
constexpr int kMostRetries = 2;

bool agent_has_failed(const StepResult& step) {
  const std::string_view said = trim(step.last_lines);
  return step.end == StepEnd::kItself && step.exit_code == 1 &&
         (said == "End of file" || said == "Agent launcher failed." ||
          said.find("Local Endpoint is not available") != std::string_view::npos);
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

std::map<std::string, std::string> profiled_environment(const System& system,
                                                        const WorkloadSettings& workload,
                                                        std::vector<std::string>& notes) {
  Environment environment = work_environment(system, workload, true, notes);
  for (const char* name : kTimerVariables) {
    environment.erase(name);
  }
  return environment;
}

std::string outcome_of(const std::vector<Breach>& breaches, std::size_t before) {
  for (std::size_t i = before; i < breaches.size(); ++i) {
    if (breaches[i].is_fatal) {
      return fmt::format("failed ({})", code_of(breaches[i].reason));
    }
  }
  return "done";
}

std::string session_name(const Artifacts& artifacts) {
  return fmt::format("llmprof-{}-{}", artifacts.run_id(), ::getpid());
}

fs::path scratch_folder(const Artifacts& artifacts, const System& system) {
  static const std::uint64_t kNobodyKnows =
      (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
  const std::string name = fmt::format("{}-{:016x}", session_name(artifacts), kNobodyKnows);
  return fs::absolute(fs::path(system.temporary_directory()) / name).lexically_normal();
}

RunSession::RunSession(const RunSetup& setup, const Artifacts& artifacts, const System& system,
                       Progress& progress)
    : setup_(setup),
      artifacts_(artifacts),
      system_(system),
      progress_(progress),
      scratch_(scratch_folder(artifacts, system)) {
  make_scratch(scratch_);
}

RunSession::~RunSession() {
  std::error_code ignored;
  fs::remove_all(scratch_, ignored);
}

void RunSession::add(std::vector<Breach> breaches) {
  for (Breach& breach : breaches) {
    is_interrupted_ = is_interrupted_ || breach.reason == Reason::kInterrupted;
    breaches_.push_back(std::move(breach));
  }
}

// Why no further pass makes sense; nothing where one does.
std::optional<Reason> RunSession::stop_reason() const {
  if (is_interrupted_) {
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

void RunSession::skip(const std::string& pass, Reason reason, const std::string& sentence) {
  progress_.begin(pass);
  progress_.end(fmt::format("n/a ({})", code_of(reason)));
  if (!sentence.empty()) {
    progress_.note(sentence);
  }
  passes_.push_back({pass, "skipped", reason, {}, {}});
}

void RunSession::finish(PassRecord record) {
  const bool has_failed = std::any_of(
      breaches_.begin(), breaches_.end(),
      [&](const Breach& breach) { return breach.is_fatal && breach.pass == record.name; });
  record.status = has_failed ? "failed" : "done";
  passes_.push_back(std::move(record));
}

// Runs one command of a pass: its line into cmd.txt, its output into log.txt of the folder.
StepResult RunSession::run_step(PassRecord& record, const std::string& folder,
                                const std::vector<std::string>& argv, Environment environment,
                                const StepLimits& limits) {
  const std::string line = shell_text(scrub_arguments(argv)) + "\n";
  command_lines_[folder] += line;
  artifacts_.write(folder + "/cmd.txt", command_lines_[folder]);
  record.commands.push_back(argv);
  environment[kRunVariable] = fs::absolute(artifacts_.root()).string();
  Step step;
  step.process.argv = argv;
  step.process.environment = std::move(environment);
  step.log = artifacts_.path(folder + "/log.txt");
  step.outputs = {artifacts_.path(folder), scratch_};
  step.limits = limits;
  StepResult result =
      supervise(step, [&](const StepProgress& progress) { progress_.update(progress); });
  if (!result.left_over.empty()) {
    progress_.note(fmt::format("ended what the program left behind: {}",
                               printable(fmt::format("{}", fmt::join(result.left_over, ", ")))));
  }
  if (result.has_lost_output) {
    add({{Reason::kLogLost, record.name,
          fmt::format("{} lacks some of what the program printed: it could not be written",
                      step.log.string()),
          "free some space, or write elsewhere", "artifacts.stage2_dir=/path/with/space", false}});
  }
  try {
    scrub_log(step.log, secret_values(system_.environment));
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove(step.log, ignored);  // rather none than one with keys in it
    throw;
  }
  workload_exit_code_ = result.exit_code;
  record.steps.push_back(result);
  return result;
}

void RunSession::guard(const std::string& pass, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    progress_.end("failed");
    add({{error.kind() == ErrorKind::kEnvironment ? Reason::kToolFailed : Reason::kPassFailed, pass,
          error.what(), error.hint(), ""}});
    finish({pass, "", {}, {}, {}});
  }
}

void RunSession::prepare() {
  guard("prepare", [&] { run_prepare(); });
}
void RunSession::baseline_pass() {
  guard("baseline", [&] { run_baseline(); });
}
void RunSession::operators_pass() {
  guard("operators", [&] { run_operators(); });
}
void RunSession::companion_pass() {
  guard("companion", [&] { run_companion(); });
}
void RunSession::nsys_pass() {
  guard("nsys", [&] { run_nsys(); });
  leave_out_secrets("nsys");
}
void RunSession::ncu_pass() {
  guard("ncu", [&] { run_ncu(); });
  leave_out_secrets("ncu");
}

void RunSession::run_baseline() {
  if (const auto reason = stop_reason()) {
    return skip("baseline", *reason, "");
  }
  progress_.begin("baseline");
  const std::size_t before = breaches_.size();
  PassRecord record{"baseline", "", {}, {}, {}};
  std::vector<std::string> notes;
  Environment environment = work_environment(system_, setup_.options.workload, false, notes);
  for (const auto& [name, value] :
       stage_timer_environment(write_stage_timer_library(scratch_), scratch_ / "ranges")) {
    environment[name] = value;
  }
  const StepResult step =
      run_step(record, "stage1", work_argv("stage1"), environment, setup_.options.limits);
  add(check_step("baseline", setup_.options.contract, step, {}));
  read_baseline(scratch_ / "ranges", step);
  progress_.end(outcome_of(breaches_, before));
  finish(std::move(record));
}

void RunSession::run_companion() {
  if (const auto reason = stop_reason()) {
    return skip("companion", *reason, "");
  }
  progress_.begin("companion");
  const std::size_t before = breaches_.size();
  PassRecord record{"companion", "", {}, {}, {}};
  std::vector<std::string> notes;
  const StepResult step = run_step(record, "nsys", work_argv("nsys"),
                                   work_environment(system_, setup_.options.workload, false, notes),
                                   setup_.options.limits);
  add(check_step("companion", setup_.options.contract, step, {}));
  progress_.end(outcome_of(breaches_, before));
  finish(std::move(record));
}

void RunSession::read_baseline(const fs::path& directory, const StepResult& step) {
  TimedRun run = read_range_directory(directory);
  baseline_trace_ = trace_of(run);
  baseline_marks_ = seen_marks(run);
  scrub_ranges(run);  // a gate needs the names as they are, the bundle does not
  FileWriter csv(artifacts_.path("stage1/ranges.csv"));
  write_timed_ranges_csv(run, [&](std::string_view piece) { csv.write(piece); });
  csv.commit();
  baseline_stages_ = stages_in(*baseline_trace_, recording_rules());
  const Stages& stages = baseline_stages_;
  baseline_ns_ = step.duration_ns;
  std::vector<StageTimes> times = time_stages(stages);
  const bool is_marked = has_marks(times);
  if (is_marked) {
    baseline_times_ = times;
  } else {
    add({{Reason::kNoMarks, "baseline",
          "the program marked no stage: times are of the whole run only",
          "mark prefill and decode: docs/marking.md", "", false}});
  }
  std::uint64_t lost = 0;
  for (const TimedProcess& process : run.processes) {
    lost += process.num_lost;
  }
  if (lost > 0) {
    add({{Reason::kMarksLost, "baseline", fmt::format("the stage timer lost {} ranges", lost),
          "free space in TMPDIR, or mark fewer ranges", "", false}});
  }
  add(check_stages("baseline", setup_.options.contract, instances_of(baseline_times_)));
  Json document = json_document("stage1", 1);
  document["wall_ns"] = step.duration_ns;
  document["exit_code"] = step.exit_code;
  document["processes"] = run.processes.size();
  document["ranges_lost"] = lost;
  document["stage_source"] = is_marked ? Json(stages.source) : Json(nullptr);
  document["stages"] = stage_times_json(baseline_times_);
  artifacts_.write("stage1/metrics.json", to_json_text(document));
}

void RunSession::run_nsys() {
  if (const auto reason = stop_reason()) {
    return skip("nsys", *reason, "");
  }
  if (!setup_.nsys) {
    return skip("nsys", Reason::kToolMissing, "");
  }
  const std::size_t before = breaches_.size();
  PassRecord record{"nsys", "", {}, {}, {}};
  const std::vector<SeenMark>* seen = baseline_marks_ ? &*baseline_marks_ : nullptr;
  Gate& gate = gate_;
  try {
    gate = choose_gate(setup_.options.gate, seen);
  } catch (const Error& error) {
    add({{Reason::kGateNotFired, "nsys", error.message(), error.hint(), ""}});
    skip("nsys", Reason::kGateNotFired, "");
    return;
  }
  progress_.begin("nsys");
  if (gate.kind == GateWish::Kind::kMark) {
    progress_.note(
        fmt::format("recording from the first {} ({})", printable(gate.mark.text()), gate.reason));
  }
  const fs::path report = fs::absolute(artifacts_.path("nsys/run.nsys-rep"));
  std::vector<std::string> notes;
  Environment environment = profiled_environment(system_, setup_.options.workload, notes);
  environment.merge(nsys_gate_environment(gate));
  environment["TMPDIR"] = scratch_.string();
  for (const std::string& note : notes) {
    progress_.note(note);
  }
  const auto argv = build_nsys_cmd(
      *setup_.nsys, setup_.options.nsys, gate,
      {session_name(artifacts_), report, system_.temporary_directory()}, work_argv("nsys"));
  const auto start = fs::file_time_type::clock::now();
  StepResult step = run_step(record, "nsys", argv, environment, setup_.options.limits);
  for (int retry = 0; retry < kMostRetries && agent_has_failed(step); ++retry) {
    progress_.note("nsys could not start its agent, and the program not at all: once more");
    step = run_step(record, "nsys", argv, environment, setup_.options.limits);
  }
  const bool has_report = keep_report(report, step, gate, start);
  // Where there is no report the reason is there, not in the exit code.
  if (has_report || step.end != StepEnd::kItself) {
    add(check_step("nsys", setup_.options.contract, step, expected_codes(setup_.options.nsys)));
  }
  if (has_report) {
    read_recording(report, step.end != StepEnd::kItself);
  }
  progress_.end(outcome_of(breaches_, before));
  finish(std::move(record));
}

// True when the report is where it was asked for, if need be made by the importer.
bool RunSession::keep_report(const fs::path& report, const StepResult& step, const Gate& gate,
                             fs::file_time_type start) {
  std::error_code failure;
  const fs::path raw = find_with_suffix(scratch_, ".qdstrm");
  if (!fs::exists(report, failure) && !raw.empty() && !setup_.nsys->importer.empty() &&
      step.end != StepEnd::kAborted) {
    progress_.note("nsys left its raw stream; the importer makes the report of it");
    import_raw(system_, *setup_.nsys, raw, report);
  }
  ReportFacts facts{report, scratch_, start, gate.kind == GateWish::Kind::kMark, gate.mark.text()};
  if (gate.kind == GateWish::Kind::kCudaProfilerApi) {
    facts.is_gated = true;
    facts.gate_text = "cudaProfilerStart";
  }
  const std::vector<Breach> found = check_nsys_report(facts, step);
  if (!found.empty() && !raw.empty()) {
    fs::copy_file(raw, artifacts_.path("nsys/" + raw.filename().string()), failure);
  }
  add(found);
  return found.empty();
}

void RunSession::read_recording(const fs::path& report, bool was_cut) {
  const fs::path sqlite = artifacts_.path("nsys/run.sqlite");
  bool is_clean = false;
  try {
    export_report(system_, *setup_.nsys, report, sqlite);
    scrub_report(report, sqlite);
    is_clean = true;
    ProfileOptions options;
    options.has_timeline = true;
    profile_ = profile(load_trace(sqlite, kReadThreads), recording_rules(), options);
  } catch (const Error& error) {
    add({{Reason::kReportUnreadable, "nsys", error.what(), error.hint(), ""}});
    if (!is_clean) {
      leave_out_recording(report, sqlite);
    }
    return;
  }
  const Analysis& analysis = profile_->analysis;
  RecordingFacts facts;
  facts.stage_instances = instances_of(analysis.stage_times);
  facts.num_kernels = static_cast<std::int64_t>(profile_->trace->kernels.size());
  facts.has_cuda = analysis.capture.has_cuda;
  facts.opaque_graph_fraction =
      analysis.kernel_ns == 0
          ? 0
          : static_cast<double>(analysis.opaque_graph_ns) / static_cast<double>(analysis.kernel_ns);
  if (has_marks(analysis.stage_times)) {
    facts.num_processes_with_ranges = count_processes(*profile_->trace, profile_->stages);
  }
  facts.tool_messages = analysis.capture.messages;
  const bool is_gpu_expected =
      setup_.options.contract.gpu == Contract::Gpu::kRequired ||
      (setup_.options.contract.gpu == Contract::Gpu::kAuto && !setup_.machine.gpus.empty());
  Expectations expected{is_gpu_expected, setup_.options.nsys.trace_fork_before_exec, 0, {}};
  // A window of its own holds fewer stages than the whole run.
  if (!baseline_times_.empty() && gate_.kind != GateWish::Kind::kCudaProfilerApi &&
      setup_.options.nsys.duration_s == 0 && !was_cut) {
    const ExpectedStages stages = expected_stages(*baseline_trace_, baseline_stages_, gate_);
    expected.num_processes_with_ranges = stages.num_processes;
    expected.stage_instances = stages.instances;
  }
  add(check_recording(setup_.options.contract, expected, facts));
}

Evidence RunSession::take_evidence() {
  Evidence evidence;
  evidence.counters = std::move(counters_);
  llmprof::read_operators(artifacts_.root(), evidence);
  evidence.baseline = baseline_times_;
  evidence.gpus = known_gpus;
  evidence.machine_gpu = setup_.machine.gpus.empty() ? "" : setup_.machine.gpus.front().name;
  if (model_ && profile_) {
    evidence.model = EfficiencySetup();
    evidence.model->model_name = model_->name;
    evidence.model->llm = model_->llm;
    if (gpu_name_of(profile_->analysis).empty() && setup_.machine.gpus.empty()) {
      evidence.model->gpu.reason = code_of(Reason::kNoGpu);
    }
  }
  return evidence;
}

}  // namespace llmprof
