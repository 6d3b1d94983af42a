// SPDX-License-Identifier: Apache-2.0
//
// The passes of a run, in order: unprofiled, under nsys, under ncu.
//
// Each pass leaves its command line, log and files in the bundle before it is judged, so that a
// failed run can be inspected. Later passes use the results of earlier ones: the marks of the
// baseline become gates, its times the reference for the profiler's overhead, its processes are
// expected in the recording, and the recording's kernels determine the ncu plan.
#include "session/record/pass_runner.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "bundle/layout.h"
#include "bundle/scrub.h"
#include "capture/stale_runs.h"
#include "capture/workload.h"
#include "session/record/pass_parts.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::nanoseconds kShortestPause = std::chrono::milliseconds(20);

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

StepResult PassRunner::run_step(const PassCommand& command, const StepLimits& limits) {
  PassRecord& record = passes_.back();
  const std::string folder = pass_->folder;
  command_lines_[folder] += without_secrets(command.argv) + "\n";
  artifacts_.write(fmt::format("{}/{}", folder, layout::kCommands), command_lines_[folder]);
  record.commands.push_back(command.argv);
  Step step;
  step.process.argv = command.argv;
  step.process.environment = command.environment;
  step.process.environment[kRunVariable] = inputs_.bundle.string();
  step.log = artifacts_.path(folder) / layout::kLog;
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
    note(fmt::format("killed leftover processes: {}",
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
  run_those(true);
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
  run_those(false);
}

void PassRunner::run_those(bool is_preparation) {
  for (const Pass& pass : setup().passes) {
    if (pass.is_preparation == is_preparation) {
      run(pass);
    }
  }
}

void PassRunner::run(const Pass& pass) {
  pass_ = &pass;
  look_for_signal(pass.name);
  std::optional<Reason> reason = stop_reason();
  if (!reason && pass.obstacle != nullptr) {
    reason = pass.obstacle(*this);
  }
  progress_.begin(pass.name);
  passes_.push_back({pass.name, "skipped", reason, {}, {}});
  if (reason) {
    progress_.end(fmt::format("n/a ({})", code_of(*reason)));
    if (*reason == Reason::kNoRecording || *reason == Reason::kNoKernels) {
      note("the plan for ncu is made from the kernels of a recording");
    }
    return;
  }
  try {
    make_inner_folder(artifacts_.path(pass.folder), 0700);
    pass.run(*this);
  } catch (const Error& error) {
    fail(error.kind() == ErrorKind::kEnvironment ? Reason::kToolFailed : Reason::kPassFailed,
         error);
  }
  read_mark_notes(*this);
  leave_out_secrets(*this);
  std::ranges::for_each(unsearched_, &DoomedFile::spare);
  unsearched_.clear();
  const auto failure = std::ranges::find_if(
      breaches_, [&](const Breach& breach) { return breach.is_fatal && breach.pass == pass.name; });
  const bool has_failed = failure != breaches_.end();
  progress_.end(has_failed ? fmt::format("failed ({})", code_of(failure->reason)) : "done");
  passes_.back().status = has_failed ? "failed" : "done";
}

}  // namespace gpuwhy
