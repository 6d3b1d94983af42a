// SPDX-License-Identifier: Apache-2.0
//
// A run in progress: its passes, what they hand on, and where the contract was broken.
#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "analysis/profile.h"
#include "base/error.h"
#include "base/temporary_file.h"
#include "bundle/artifacts.h"
#include "bundle/secret_values.h"
#include "capture/nvtx_timer.h"
#include "capture/system.h"
#include "session/record/run_passes.h"
#include "session/run_progress.h"
#include "session/writing/software.h"

namespace gpuwhy {

// A pass as recorded in the manifest.
struct PassRecord {
  std::string name;
  std::string status;            // done, failed, skipped
  std::optional<Reason> reason;  // why it was skipped
  std::vector<std::vector<std::string>> commands;
  std::vector<StepResult> steps;  // of those commands that were started
};

// What passes hand on: later ones build on it, and the report contains it.
struct RunResults {
  std::optional<NamedModel> model;  // as the configuration describes it
  // The program without a profiler.
  struct Baseline {
    std::optional<std::vector<SeenMark>> marks;  // nullopt: nobody looked
    std::vector<StageTimes> times;               // empty: no stage was marked
    Trace trace;                                 // the ranges, and the stages in them
    Stages stages;
    std::int64_t duration_ns = 0;  // 0: it did not run so
  } baseline;
  std::optional<Profile> profile;  // of this run's recording
  std::optional<Counters> counters;
  std::optional<RequestEvidence> requests;
};

// Runs the passes of one run in order; keeps what each did, what was wrong with it, and the
// results. What a pass does is in the file of that pass.
class PassRunner {
 public:
  PassRunner(const RunSetup& setup, const Artifacts& artifacts, const System& system,
             Progress& progress);
  ~PassRunner();  // removes the scratch folder
  PassRunner(const PassRunner&) = delete;
  PassRunner& operator=(const PassRunner&) = delete;

  // Each pass runs, verifies and keeps its results; later ones build on earlier ones. Passes that
  // cannot run are recorded as skipped. Problems are findings, never Errors.
  void prepare();     // makes the model's file if need be, and reads what the model costs
  void run_passes();  // the others

  // Records a signal that came while no program ran; no further pass starts. Returns whether there
  // was one.
  bool look_for_signal(const std::string& pass);

  const std::vector<PassRecord>& passes() const { return passes_; }
  const std::vector<Breach>& breaches() const { return breaches_; }
  RunResults& results() { return results_; }
  const RunResults& results() const { return results_; }
  // What was run, for a heading: the program without its folder, the arguments without secrets.
  std::string command_line() const;
  // The program as it was seen in the first pass that had it; nullopt: it was too short.
  const std::optional<ProcessFiles>& seen_program() const { return seen_program_; }
  int workload_exit_code() const { return workload_exit_code_; }  // of the last pass that ran

  // For passes, about the one that runs.
  const RunSetup& setup() const { return inputs_.setup; }
  const System& system() const { return inputs_.system; }
  const Artifacts& artifacts() const { return artifacts_; }
  void note(const std::string& sentence) { progress_.note(sentence); }
  CommandInputs& inputs() { return inputs_; }
  const SecretValues& secrets() const { return secrets_; }  // of the user's environment
  const Pass& pass() const { return *pass_; }
  std::filesystem::path folder() const { return artifacts_.path(pass_->folder); }
  // Runs one command: its line goes into cmd.txt, its output into log.txt of the pass's folder.
  StepResult run_step(const PassCommand& command, const StepLimits& limits);
  StepResult run_only_step();
  void add(const std::vector<Breach>& breaches) {
    breaches_.insert(breaches_.end(), breaches.begin(), breaches.end());
  }
  void fail(Reason reason, const std::string& sentence, const std::string& next = "") {
    breaches_.push_back({reason, pass_->name, sentence, next, ""});
  }
  void fail(Reason reason, const Error& error) { fail(reason, error.what(), error.hint()); }
  void warn(Reason reason, const std::string& sentence, const std::string& next = "") {
    breaches_.push_back({reason, pass_->name, sentence, next, "", false});
  }
  // The file goes where a signal ends this program before the pass was searched for secrets.
  void hold_back(const std::filesystem::path& file) { unsearched_.emplace_back(file); }
  // Why no further pass makes sense; nullopt where one does.
  std::optional<Reason> stop_reason() const;
  bool is_interrupted() const;

 private:
  void run_those(bool is_preparation);
  void run(const Pass& pass);
  std::string without_secrets(const std::vector<std::string>& argv) const;

  const Artifacts& artifacts_;
  const SecretValues secrets_;
  Progress& progress_;
  CommandInputs inputs_;        // gate and plan of ncu are filled in on the way
  const Pass* pass_ = nullptr;  // that runs; its record is the last
  std::vector<PassRecord> passes_;
  std::list<DoomedFile> unsearched_;
  std::map<std::string, std::string> command_lines_;  // by folder, as its cmd.txt has them
  std::vector<Breach> breaches_;
  std::optional<ProcessFiles> seen_program_;
  int workload_exit_code_ = 0;
  RunResults results_;
};

// The name of the nsys session, unique on the machine.
std::string session_name(const Artifacts& artifacts);

// The folder for files that a run does not keep.
std::filesystem::path scratch_folder(const Artifacts& artifacts, const System& system);

}  // namespace gpuwhy
