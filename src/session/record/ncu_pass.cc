// SPDX-License-Identifier: Apache-2.0
//
// The last pass of a run: hardware counters of selected launches.
//
// Measuring all launches takes hours, so the recording of the previous pass is used to plan.
// Without a recording there is no plan, and the pass is skipped with that reason.
#include <fmt/format.h>

#include "analysis/profile.h"
#include "base/error.h"
#include "bundle/layout.h"
#include "capture/ncu.h"
#include "session/reading/nvtx_marks.h"
#include "session/reading/recording.h"
#include "session/record/ncu_plan_command.h"
#include "session/record/pass_runner.h"

namespace gpuwhy {
namespace {

std::vector<PassCommand> ncu_commands(const CommandInputs& inputs) {
  std::vector<PassCommand> commands;
  const PassCommand program = profiled_command(inputs, "ncu");
  for (const NcuStep& step : inputs.ncu) {
    commands.push_back(program);
    commands.back().argv = build_ncu_cmd(*inputs.setup.ncu, inputs.setup.options.ncu, step.filter,
                                         inputs.bundle / "ncu" / step.report, program.argv);
    if (inputs.setup.server) {
      commands.back() = driven(inputs, "ncu", std::move(commands.back()), {});
    }
  }
  return commands;
}

// The recording from which the plan is made.
const std::optional<Profile>& plan_source(PassRunner& runner) {
  const std::optional<Profile>& given = runner.setup().planned_from;
  return given ? given : runner.results().profile;
}

// The reason why ncu is not started, in the order in which a user would fix it.
std::optional<Reason> ncu_obstacle(PassRunner& runner) {
  const MachineFacts& machine = runner.setup().machine;
  const std::optional<Profile>& source = plan_source(runner);
  const bool has_kernels = source && source->trace && source->trace->kernels.size() > 0;
  if (!has_kernels && machine.gpus.empty()) {
    return Reason::kNoGpu;
  }
  if (!has_kernels) {
    return source ? Reason::kNoKernels : Reason::kNoRecording;
  }
  if (!runner.setup().ncu) {
    return Reason::kToolMissing;
  }
  if (machine.counters_need_admin.value_or(false) && !machine.has_cap_sys_admin &&
      !machine.has_cap_perfmon) {
    runner.fail(Reason::kCounterPermission,
                "the driver keeps hardware counters for administrators: ncu was not started",
                "gpuwhy doctor says how to allow them");
    return Reason::kCounterPermission;
  }
  return std::nullopt;
}

// Plans the launches to measure, and writes the plan down.
NcuPlan planned(PassRunner& runner) {
  const Profile& source = *plan_source(runner);
  const NcuTool& ncu = *runner.setup().ncu;
  const NcuPlan plan = make_plan(runner.setup().options, ncu, source,
                                 static_cast<double>(runner.results().baseline.duration_ns) / 1e9);
  runner.artifacts().write(layout::kNcuPlan, plan_json(plan));
  runner.artifacts().write(layout::kNcuSections, list_ncu_sections(runner.system(), ncu));
  if (plan.kernels.empty()) {
    runner.fail(Reason::kNothingToProfile,
                "no launch of the recording deserves counters; ncu/plan.json says why of each");
  }
  runner.inputs().ncu = ncu_steps(plan, seen_marks(*source.trace));
  return plan;
}

void run_ncu(PassRunner& runner) {
  const NcuPlan plan = planned(runner);
  const std::vector<PassCommand> commands = ncu_commands(runner.inputs());
  for (std::size_t i = 0; i < commands.size() && !runner.is_interrupted(); ++i) {
    runner.note(fmt::format("measuring {} launches, about {:.0f} s",
                            plan.commands[i].expected_launches, plan.commands[i].forecast_s));
    const StepResult step = runner.run_step(commands[i], runner.setup().options.ncu_limits);
    const std::vector<Breach> found =
        check_ncu_report(runner.inputs().bundle / "ncu" / runner.inputs().ncu[i].report, step);
    if (found.empty() || step.end != StepEnd::kItself) {
      runner.add(check_step("ncu", runner.setup().options.contract, step, {}));
    }
    // A watchdog that ended ncu has already reported the reason.
    if (step.end == StepEnd::kItself) {
      runner.add(found);
    }
  }
  try {
    runner.results().counters = counters_of(counters_in(runner.artifacts().root()));
  } catch (const Error& error) {
    runner.fail(Reason::kReportUnreadable, error);
  }
}

}  // namespace

Pass ncu_pass() {
  return {"ncu", "ncu", ncu_commands, run_ncu, ncu_obstacle};
}

}  // namespace gpuwhy
