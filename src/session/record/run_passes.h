// SPDX-License-Identifier: Apache-2.0
//
// List of the passes of a run: a run executes it, a dry run prints it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/counters/ncu_plan.h"
#include "analysis/profile.h"
#include "capture/contract.h"
#include "capture/launcher.h"
#include "capture/machine.h"
#include "capture/system.h"
#include "results/rank_summary.h"
#include "session/reading/model_target.h"
#include "session/record/run_options.h"
#include "session/record/server_setup.h"

namespace gpuwhy {

struct CommandInputs;

// One command of a pass.
struct PassCommand {
  std::vector<std::string> argv;
  std::map<std::string, std::string> environment;
  std::vector<std::string> notes;  // what was taken out of the user's environment
};

class PassRunner;

// A pass: its name, its folder, how its commands are built, and what is made of what they leave.
struct Pass {
  const char* name;    // in the manifest and in messages
  const char* folder;  // of the bundle
  // In the order in which they are started. None where the pass has no tool.
  std::vector<PassCommand> (*commands)(const CommandInputs&);
  // Starts them, checks what they left, and reads it into the results.
  void (*run)(PassRunner&);
  // Why it cannot run. May choose what the commands depend on. nullptr: it always can.
  std::optional<Reason> (*obstacle)(PassRunner&) = nullptr;
  bool is_preparation = false;  // it starts what makes the program's files, not the program
};

// What is known before the first pass.
struct RunSetup {
  RunOptions options;
  std::vector<std::string> work_argv;
  bool has_placeholders = false;  // in work_argv: it is the target's own
  TargetWorkload target;
  std::vector<Pass> passes;  // that are wanted, in order
  std::shared_ptr<const Config> config;
  Rules rules;
  std::string rules_file;                // that they are of; empty: the user's own, if any
  std::vector<std::string> stage_marks;  // of --mark STAGE=NAME, which they contain
  MachineFacts machine;
  std::optional<NsysTool> nsys;
  std::optional<NcuTool> ncu;
  std::vector<Breach> missing;        // tools a pass needs and that are not there
  std::optional<LaunchedRank> rank;   // empty: the run is not part of a job
  RankIdentity described;             // of its summary: engine and labels
  std::optional<ServerSetup> server;  // empty: the program ends by itself
  // A recording to plan ncu from, in place of this run's own. Its numbers stay out of this run.
  std::optional<Profile> planned_from;
  std::vector<std::string> notes = {};  // sentences for the user
};

// One invocation of ncu.
struct NcuStep {
  NcuFilter filter;
  std::string report;  // file in ncu/
};
std::vector<NcuStep> ncu_steps(const NcuPlan& plan, const std::vector<SeenMark>& seen);

// Of the scratch folder: where the modules of --mark lie, and their notes.
inline constexpr const char* kMarksFolder = "marks";

// Inputs of the commands.
struct CommandInputs {
  const RunSetup& setup;
  const System& system;
  std::filesystem::path bundle;   // absolute
  std::filesystem::path scratch;  // absolute
  std::string session;            // name of the session of nsys
  CaptureTrigger gate;            // chosen by the marks of the baseline pass
  std::vector<NcuStep> ncu;       // planned by the recording
};

// The passes in the order in which they run: later ones use what earlier ones found.
std::vector<Pass> passes_of(const RunOptions& options, const TargetWorkload& target);

// One file each; the companion is beside the baseline.
Pass prepare_pass();
Pass baseline_pass();
Pass operators_pass();
Pass companion_pass();
Pass nsys_pass();
Pass torch_pass();
Pass ncu_pass();

// For the commands of passes. `folder` is the pass's own. `words` with the placeholders of targets
// replaced.
std::vector<std::string> filled_for(const CommandInputs& inputs,
                                    const std::vector<std::string>& words,
                                    const std::string& folder);
// The program. `traces`: where the engine's own profiler writes; empty: it does not record.
PassCommand program_command(const CommandInputs& inputs, const std::string& folder,
                            const std::filesystem::path& traces = {}, bool is_profiled = false);
// The program as a profiler starts it, which has its own injection: ours must not be set.
PassCommand profiled_command(const CommandInputs& inputs, const std::string& folder);

// For a dry run. Words in capitals stand for what only a run knows: its folders, and the kernels of
// a plan that is made from its recording. The environment contains only what a run adds.
CommandInputs dry_inputs(const RunSetup& setup);

}  // namespace gpuwhy
