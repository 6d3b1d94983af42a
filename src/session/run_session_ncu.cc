// SPDX-License-Identifier: Apache-2.0
//
// The last pass of a run: hardware counters of selected launches.
//
// Measuring all launches takes hours, so the recording of the previous pass is used to plan.
// Without a recording there is no plan, and the pass is skipped with that reason.
#include <fmt/format.h>

#include "base/error.h"
#include "capture/ncu.h"
#include "report/metrics.h"
#include "session/ncu_plan_command.h"
#include "session/nvtx_marks.h"
#include "session/pass_runner.h"
#include "session/recording.h"

namespace gpuwhy {
void PassRunner::read_counters() {
  try {
    results_.counters = counters_of(counters_in(artifacts_.root()));
  } catch (const Error& error) {
    add({{Reason::kReportUnreadable, "ncu", error.what(), error.hint(), ""}});
  }
}

// The recording from which the plan is made.
const std::optional<Profile>& PassRunner::plan_source() const {
  return setup().planned_from ? setup().planned_from : results_.profile;
}

// The reason why ncu is not started, in the order in which a user would fix it.
std::optional<Reason> PassRunner::ncu_obstacle() {
  const std::optional<Profile>& source = plan_source();
  const bool has_kernels = source && source->trace && source->trace->kernels.size() > 0;
  if (!has_kernels && setup().machine.gpus.empty()) {
    return Reason::kNoGpu;
  }
  if (!has_kernels) {
    return source ? Reason::kNoKernels : Reason::kNoRecording;
  }
  if (!setup().ncu) {
    return Reason::kToolMissing;
  }
  if (setup().machine.counters_need_admin.value_or(false) && !setup().machine.has_cap_sys_admin &&
      !setup().machine.has_cap_perfmon) {
    add({{Reason::kCounterPermission, "ncu",
          "the driver keeps hardware counters for administrators: ncu was not started",
          "gpuwhy doctor says how to allow them", ""}});
    return Reason::kCounterPermission;
  }
  return std::nullopt;
}

void PassRunner::run_ncu(const Pass& pass) {
  const Profile& source = *plan_source();
  const NcuPlan plan = make_plan(setup().options, *setup().ncu, source,
                                 static_cast<double>(results_.baseline.duration_ns) / 1e9);
  artifacts_.write("ncu/plan.json", plan_json(plan));
  artifacts_.write("ncu/sections.txt", list_ncu_sections(system(), *setup().ncu));
  if (plan.kernels.empty()) {
    add({{Reason::kNothingToProfile, "ncu",
          "no launch of the recording deserves counters; ncu/plan.json says why of each", "", ""}});
  }
  inputs_.ncu = ncu_steps(plan, seen_marks(*source.trace));
  const std::vector<PassCommand> commands = pass.commands(inputs_);
  for (std::size_t i = 0; i < commands.size() && !is_interrupted(); ++i) {
    progress_.note(fmt::format("measuring {} launches, about {:.0f} s",
                               plan.commands[i].expected_launches, plan.commands[i].forecast_s));
    const StepResult step = run_step(commands[i], setup().options.ncu_limits);
    const std::vector<Breach> found =
        check_ncu_report(inputs_.bundle / "ncu" / inputs_.ncu[i].report, step);
    if (found.empty() || step.end != StepEnd::kItself) {
      add(check_step("ncu", setup().options.contract, step, {}));
    }
    // A watchdog that ended ncu has already reported the reason.
    if (step.end == StepEnd::kItself) {
      add(found);
    }
  }
  read_counters();
}

}  // namespace gpuwhy
