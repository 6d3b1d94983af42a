// SPDX-License-Identifier: Apache-2.0
//
// The last pass of a run: hardware counters of the launches that deserve them.
//
// Measuring all launches takes hours, so the recording of the pass before is read first and a plan
// made of its kernels; without one there is nothing to plan with, and the pass says so.
#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "capture/ncu.h"
#include "report/metrics.h"
#include "session/ncu_plan_command.h"
#include "session/nvtx_marks.h"
#include "session/recording.h"
#include "session/run_session.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

}  // namespace

void RunSession::read_counters() {
  try {
    counters_ = counters_of(counters_in(artifacts_.root()));
  } catch (const Error& error) {
    add({{Reason::kReportUnreadable, "ncu", error.what(), error.hint(), ""}});
  }
}

void RunSession::run_ncu() {
  if (const auto reason = stop_reason()) {
    return skip("ncu", *reason, "");
  }
  const std::optional<Profile>& source = setup_.planned_from ? setup_.planned_from : profile_;
  const bool has_kernels = source && source->trace && source->trace->kernels.size() > 0;
  if (!has_kernels && setup_.machine.gpus.empty()) {
    return skip("ncu", Reason::kNoGpu, "");
  }
  if (!has_kernels) {
    return skip("ncu", source ? Reason::kNoKernels : Reason::kNoRecording,
                "the plan for ncu is made from the kernels of a recording");
  }
  if (!setup_.ncu) {
    return skip("ncu", Reason::kToolMissing, "");
  }
  if (setup_.machine.counters_need_admin.value_or(false) && !setup_.machine.has_cap_sys_admin &&
      !setup_.machine.has_cap_perfmon) {
    add({{Reason::kCounterPermission, "ncu",
          "the driver keeps hardware counters for administrators: ncu was not started",
          "llmprof doctor says how to allow them", ""}});
    return skip("ncu", Reason::kCounterPermission, "");
  }
  progress_.begin("ncu");
  const std::size_t before = breaches_.size();
  PassRecord record{"ncu", "", {}, {}, {}};
  const NcuPlan plan =
      make_plan(setup_.options, *setup_.ncu, *source, static_cast<double>(baseline_ns_) / 1e9);
  artifacts_.write("ncu/plan.json", to_json_text(plan_json(plan)));
  artifacts_.write("ncu/sections.txt", list_ncu_sections(system_, *setup_.ncu));
  if (plan.kernels.empty()) {
    add({{Reason::kNothingToProfile, "ncu",
          "no launch of the recording deserves counters; ncu/plan.json says why of each", "", ""}});
  }
  run_ncu_plan(plan, seen_marks(*source->trace), record);
  read_counters();
  progress_.end(outcome_of(breaches_, before));
  finish(std::move(record));
}

void RunSession::run_ncu_plan(const NcuPlan& plan, const std::vector<SeenMark>& seen,
                              PassRecord& record) {
  std::vector<std::string> notes;
  const auto environment = profiled_environment(system_, setup_.options.workload, notes);
  for (std::size_t i = 0; i < plan.commands.size() && !is_interrupted_; ++i) {
    const PlannedCommand& command = plan.commands[i];
    progress_.note(fmt::format("measuring {} launches, about {:.0f} s", command.expected_launches,
                               command.forecast_s));
    const fs::path report = fs::absolute(artifacts_.path(
        fmt::format("ncu/{}.ncu-rep",
                    command.stages.size() == 1 ? command.stages[0] : fmt::format("run{}", i))));
    const auto argv = build_ncu_cmd(*setup_.ncu, setup_.options.ncu, filter_of(command, seen),
                                    report, work_argv("ncu"));
    const StepResult step = run_step(record, "ncu", argv, environment, setup_.options.ncu_limits);
    const std::vector<Breach> found = check_ncu_report(report, step);
    if (found.empty() || step.end != StepEnd::kItself) {
      add(check_step("ncu", setup_.options.contract, step, {}));
    }
    // A watchdog that ended ncu has told the reason already.
    if (step.end == StepEnd::kItself) {
      add(found);
    }
  }
}

}  // namespace llmprof
