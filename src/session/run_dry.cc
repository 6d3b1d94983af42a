// SPDX-License-Identifier: Apache-2.0
//
// What a run would start. Words in capitals stand for what only a run knows: its folders, and the
// kernels of a plan that is made from its recording.
#include "session/run_dry.h"

#include "session/ncu_plan_command.h"
#include "session/nvtx_marks.h"
#include "session/recording.h"

namespace llmprof {

std::vector<DryCommand> dry_commands(const RunSetup& setup) {
  std::vector<DryCommand> commands;
  const RunOptions& options = setup.options;
  const System nobody;
  std::vector<std::string> notes;
  const std::map<std::string, std::string> added =
      work_environment(nobody, options.workload, false, notes);
  // The program's words with the bundle's folders in capitals.
  const auto work_argv = [&](const std::string& folder) {
    return setup.has_placeholders
               ? filled(setup.work_argv, placeholder_values(setup.target, "BUNDLE", folder))
               : setup.work_argv;
  };
  if (setup.target.needs_preparation()) {
    commands.push_back(
        {"prepare",
         {},
         filled(setup.target.prepare, placeholder_values(setup.target, "BUNDLE", "prepare"))});
  }
  if (options.has_baseline) {
    std::map<std::string, std::string> environment = added;
    environment["NVTX_INJECTION64_PATH"] = "SCRATCH/libllmprof_nvtx.so";
    environment["LLMPROF_NVTX_DIR"] = "SCRATCH/ranges";
    commands.push_back({"baseline", environment, work_argv("stage1")});
  }
  if (options.has_operators) {
    std::vector<std::string> argv = work_argv("operators");
    const std::vector<std::string> asking =
        filled(setup.target.operators, placeholder_values(setup.target, "BUNDLE", "operators"));
    argv.insert(argv.end(), asking.begin(), asking.end());
    commands.push_back({"operators", added, argv});
  }
  if (options.has_nsys && setup.nsys) {
    const Gate gate = choose_gate(options.gate, nullptr);
    std::map<std::string, std::string> environment = added;
    environment.merge(nsys_gate_environment(gate));
    environment["TMPDIR"] = "SCRATCH";
    commands.push_back(
        {"nsys", environment,
         build_nsys_cmd(*setup.nsys, options.nsys, gate,
                        {"llmprof-RUN", "BUNDLE/nsys/run.nsys-rep", "/tmp"}, work_argv("nsys"))});
  }
  if (options.has_ncu && setup.ncu) {
    if (setup.planned_from) {
      const NcuPlan plan = make_plan(options, *setup.ncu, *setup.planned_from, 0);
      const std::vector<SeenMark> seen = seen_marks(*setup.planned_from->trace);
      for (std::size_t i = 0; i < plan.commands.size(); ++i) {
        commands.push_back(
            {"ncu", added,
             build_ncu_cmd(*setup.ncu, options.ncu, filter_of(plan.commands[i], seen),
                           "BUNDLE/ncu/run" + std::to_string(i) + ".ncu-rep", work_argv("ncu"))});
      }
      return commands;
    }
    NcuFilter filter;
    filter.names = {"PLANNED_KERNEL"};
    filter.is_per_launch_config = setup.ncu->has_per_launch_config;
    if (options.is_ncu_gated) {
      filter.marks = {{{"LLM", "prefill"}, 1, true, true, false},
                      {{"LLM", "decode_all"}, 1, true, true, false}};
    }
    commands.push_back({"ncu", added,
                        build_ncu_cmd(*setup.ncu, options.ncu, filter, "BUNDLE/ncu/run0.ncu-rep",
                                      work_argv("ncu"))});
  }
  return commands;
}

}  // namespace llmprof
