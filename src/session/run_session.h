// SPDX-License-Identifier: Apache-2.0
//
// A run in the making: its passes, what they found, and what of the contract is not met.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/counters/ncu_plan.h"
#include "analysis/profile.h"
#include "bundle/artifacts.h"
#include "capture/contract.h"
#include "capture/launcher.h"
#include "capture/machine.h"
#include "capture/nvtx_timer.h"
#include "capture/system.h"
#include "session/model_target.h"
#include "session/progress.h"
#include "session/run_options.h"

namespace llmprof {

// A pass as the manifest tells it.
struct PassRecord {
  std::string name;
  std::string status;            // done, failed, skipped
  std::optional<Reason> reason;  // why it was skipped
  std::vector<std::vector<std::string>> commands;
  std::vector<StepResult> steps;  // of those commands that were started
};

// What stands before the first pass.
struct RunSetup {
  RunOptions options;
  std::vector<std::string> work_argv;
  bool has_placeholders = false;  // in work_argv: it is the target's own
  TargetWorkload target;
  const Config* config = nullptr;
  MachineFacts machine;
  std::optional<NsysTool> nsys;
  std::optional<NcuTool> ncu;
  std::vector<Breach> missing;       // tools a pass needs and that are not there
  std::optional<LaunchedRank> rank;  // of many; nothing: a run of its own
  // A recording to plan ncu from, in place of this run's own. Its numbers stay out of this run.
  std::optional<Profile> planned_from;
};

class RunSession {
 public:
  RunSession(const RunSetup& setup, const Artifacts& artifacts, const System& system,
             Progress& progress);
  ~RunSession();  // removes the scratch folder
  RunSession(const RunSession&) = delete;
  RunSession& operator=(const RunSession&) = delete;

  // Each runs, verifies and keeps what it found; later ones build on earlier ones. Those that
  // cannot run are recorded as skipped; what goes wrong on the way is a finding, never an Error.
  void prepare();  // the model's file, where the target says how; then reads what the model costs
  void baseline_pass();
  void operators_pass();
  void companion_pass();  // bare once more, so that ranks under a profiler do not wait for this one
  void nsys_pass();
  void ncu_pass();

  const std::vector<PassRecord>& passes() const { return passes_; }
  const std::vector<Breach>& breaches() const { return breaches_; }
  // Of this run's recording; absent: there is none.
  std::optional<Profile> take_profile() { return std::move(profile_); }
  // What the other passes know: counters, operators, times without a profiler, the model.
  Evidence take_evidence();
  const std::optional<NamedModel>& model() const { return model_; }
  int workload_exit_code() const { return workload_exit_code_; }  // of the last pass that ran

 private:
  void guard(const std::string& pass, const std::function<void()>& body);
  void run_prepare();
  void run_baseline();
  void run_operators();
  void run_companion();
  void run_nsys();
  void run_ncu();
  StepResult run_step(PassRecord& record, const std::string& folder,
                      const std::vector<std::string>& argv,
                      std::map<std::string, std::string> environment, const StepLimits& limits);
  void add(std::vector<Breach> breaches);
  void skip(const std::string& pass, Reason reason, const std::string& sentence);
  void finish(PassRecord record);
  std::optional<Reason> stop_reason() const;
  std::map<std::string, std::string> values_for(const std::string& folder) const;
  std::vector<std::string> work_argv(const std::string& folder) const;

  void read_operators();
  void read_baseline(const std::filesystem::path& directory, const StepResult& step);
  bool keep_report(const std::filesystem::path& report, const StepResult& step, const Gate& gate,
                   std::filesystem::file_time_type start);
  void scrub_report(const std::filesystem::path& report, const std::filesystem::path& sqlite);
  void leave_out_recording(const std::filesystem::path& report,
                           const std::filesystem::path& sqlite);
  void leave_out_secrets(const std::string& pass);
  void scrub_ranges(TimedRun& run) const;
  void read_recording(const std::filesystem::path& report, bool was_cut);
  void read_counters();
  void run_ncu_plan(const NcuPlan& plan, const std::vector<SeenMark>& seen, PassRecord& record);

  const RunSetup& setup_;
  const Artifacts& artifacts_;
  const System& system_;
  Progress& progress_;
  std::filesystem::path scratch_;
  std::vector<PassRecord> passes_;
  std::map<std::string, std::string> command_lines_;  // by folder, as its cmd.txt has them
  std::vector<Breach> breaches_;
  bool is_interrupted_ = false;
  int workload_exit_code_ = 0;

  // What passes hand to each other.
  std::optional<std::vector<SeenMark>> baseline_marks_;
  std::vector<StageTimes> baseline_times_;
  std::optional<Trace> baseline_trace_;
  Stages baseline_stages_;
  Gate gate_;
  std::int64_t baseline_ns_ = 0;
  std::optional<NamedModel> model_;
  std::optional<Profile> profile_;
  std::optional<Counters> counters_;
};

// The workload's environment under a tool: nsys brings its own injection, ours must not be there
// beside it.
std::map<std::string, std::string> profiled_environment(const System& system,
                                                        const WorkloadSettings& workload,
                                                        std::vector<std::string>& notes);

// How a pass ended, in the words of its progress: by the fatal ones of `breaches` from `before` on.
std::string outcome_of(const std::vector<Breach>& breaches, std::size_t before);

// The values of placeholders for a pass whose files go to `folder` of the bundle at `root`.
std::map<std::string, std::string> placeholder_values(const TargetWorkload& target,
                                                      const std::filesystem::path& root,
                                                      const std::string& folder);

// The name of the session of nsys, unique on the machine.
std::string session_name(const Artifacts& artifacts);

// The folder for what a run does not keep.
std::filesystem::path scratch_folder(const Artifacts& artifacts, const System& system);

}  // namespace llmprof
