// SPDX-License-Identifier: Apache-2.0
//
// Commands of each pass: program, arguments and environment.
#include "session/record/run_passes.h"

#include <fmt/format.h>

#include "bundle/layout.h"
#include "capture/mark_module.h"
#include "capture/nvtx_library.h"
#include "capture/workload.h"
#include "session/reading/nvtx_marks.h"
#include "session/reading/operator_table.h"
#include "session/record/ncu_plan_command.h"

namespace gpuwhy {

std::vector<std::string> filled_for(const CommandInputs& inputs,
                                    const std::vector<std::string>& words,
                                    const std::string& folder) {
  return filled(words, {{"model", inputs.setup.target.model_file.string()},
                        {"out", (inputs.bundle / folder).string()},
                        {"file", (inputs.bundle / layout::kOperatorTable).string()}});
}

PassCommand program_command(const CommandInputs& inputs, const std::string& folder,
                            const std::filesystem::path& traces, bool is_profiled) {
  const RunSetup& setup = inputs.setup;
  PassCommand command;
  command.argv =
      setup.has_placeholders ? filled_for(inputs, setup.work_argv, folder) : setup.work_argv;
  command.environment =
      work_environment(inputs.system, setup.options.workload, is_profiled, command.notes);
  add_mark_environment(inputs.scratch / kMarksFolder, setup.options.mark_modules,
                       command.environment);
  if (setup.server) {
    add_to_server(*setup.server, is_profiled || !traces.empty(), traces, command);
  }
  return command;
}

PassCommand profiled_command(const CommandInputs& inputs, const std::string& folder) {
  PassCommand command = program_command(inputs, folder, {}, true);
  for (const auto& [name, value] : stage_timer_environment({}, {})) {
    command.environment.erase(name);
  }
  return command;
}

std::vector<NcuStep> ncu_steps(const NcuPlan& plan, const std::vector<SeenMark>& seen) {
  std::vector<NcuStep> steps;
  for (const PlannedCommand& command : plan.commands) {
    const std::string name =
        command.stages.size() == 1 ? command.stages[0] : fmt::format("run{}", steps.size());
    steps.push_back({filter_of(command, seen), name + ".ncu-rep"});
  }
  return steps;
}

std::vector<Pass> passes_of(const RunOptions& options, const TargetWorkload& target) {
  const std::pair<bool, Pass> all[] = {{target.needs_preparation(), prepare_pass()},
                                       {options.has_baseline, baseline_pass()},
                                       {options.has_operators, operators_pass()},
                                       {options.has_companion, companion_pass()},
                                       {options.has_nsys, nsys_pass()},
                                       {options.has_torch, torch_pass()},
                                       {options.has_ncu, ncu_pass()}};
  std::vector<Pass> passes;
  for (const auto& [is_wanted, pass] : all) {
    if (is_wanted) {
      passes.push_back(pass);
    }
  }
  return passes;
}

CommandInputs dry_inputs(const RunSetup& setup) {
  // An empty environment: a dry run shows only the variables that a run adds.
  static const System kNoEnvironment;
  CommandInputs inputs{setup, kNoEnvironment, "BUNDLE", "SCRATCH", "gpuwhy-RUN", {}, {}};
  inputs.gate = choose_trigger(setup.options.gate, nullptr);
  if (setup.ncu && setup.planned_from) {
    inputs.ncu = ncu_steps(make_plan(setup.options, *setup.ncu, *setup.planned_from, 0),
                           seen_marks(*setup.planned_from->trace));
  } else if (setup.ncu) {
    NcuFilter filter;
    filter.names = {"PLANNED_KERNEL"};
    filter.is_per_launch_config = setup.ncu->has_per_launch_config;
    if (setup.options.is_ncu_gated) {
      filter.marks = {{{"LLM", "prefill"}, 1, true, true, false},
                      {{"LLM", "decode_all"}, 1, true, true, false}};
    }
    inputs.ncu = {{filter, "run0.ncu-rep"}};
  }
  return inputs;
}

}  // namespace gpuwhy
