// SPDX-License-Identifier: Apache-2.0
//
// The program without a profiler, under the stage timer; and once more where other ranks of a job
// are recorded.
//
// It shows which marks there are, how long stages and the whole program take, and which processes
// mark them: gates, the profiler's overhead and lost children are judged by that.
#include <algorithm>

#include <fmt/format.h>

#include "base/file.h"
#include "bundle/layout.h"
#include "capture/nvtx_library.h"
#include "capture/workload.h"
#include "results/json.h"
#include "results/results.h"
#include "serve/drive.h"
#include "session/reading/unprofiled_trace.h"
#include "session/record/pass_parts.h"

namespace gpuwhy {
namespace {

// Whether the user's environment already gives NVTX a library. It is part of the program, so the
// stage timer does not take its place.
bool has_own_nvtx_library(const CommandInputs& inputs) {
  std::vector<std::string> ignored;
  const auto environment =
      work_environment(inputs.system, inputs.setup.options.workload, false, ignored);
  const auto found = environment.find(kNvtxInjection);
  return found != environment.end() && !found->second.empty();
}

std::vector<PassCommand> baseline_commands(const CommandInputs& inputs) {
  PassCommand command = program_command(inputs, "baseline");
  if (!has_own_nvtx_library(inputs)) {
    for (const auto& [name, value] :
         stage_timer_environment(inputs.scratch / kStageTimerLibrary, inputs.scratch / "ranges")) {
      command.environment[name] = value;
    }
  }
  return {inputs.setup.server ? driven(inputs, "baseline", std::move(command), {}) : command};
}

// Drops the ranges before the recorded window and after it: warm-up, and what the server does
// alone.
void keep_window(const std::filesystem::path& folder, TimedRun& run) {
  const auto window = read_drive_result(folder / layout::kDrive);
  if (!window || window->start_ns == 0) {
    return;
  }
  for (TimedProcess& process : run.processes) {
    const std::int64_t offset_ns = process.start_realtime_ns - process.start_monotonic_ns;
    std::erase_if(process.ranges, [&](const TimedRange& range) {
      const std::int64_t start_ns = range.start_ns + offset_ns;
      return start_ns < window->start_ns || (window->end_ns > 0 && start_ns > window->end_ns);
    });
  }
}

// A Python program may be one of transformers, which gpuwhy can mark.
std::string how_to_mark(const PassRunner& runner) {
  const std::string mark = "for TTFT and TPOT, mark prefill and decode: docs/marking.md";
  const std::string program = runner.command_line();
  return program.starts_with("python") && runner.setup().options.mark_modules.empty()
             ? fmt::format(
                   "{}; if it uses Hugging Face transformers: gpuwhy run --mark "
                   "transformers -- {}",
                   mark, program)
             : mark;
}

void warn_of_no_marks(PassRunner& runner) {
  const bool has_library = has_own_nvtx_library(runner.inputs());
  runner.warn(Reason::kNoMarks,
              has_library
                  ? fmt::format("{} is set: that library has the program's marks, and times "
                                "are of the whole run",
                                kNvtxInjection)
                  : "the program marks no stages: times are of the whole run",
              has_library ? fmt::format("unset {} for TTFT and TPOT", kNvtxInjection)
                          : how_to_mark(runner));
}

void read_ranges(PassRunner& runner, const StepResult& step) {
  const RunSetup& setup = runner.setup();
  RunResults::Baseline& baseline = runner.results().baseline;
  TimedRun run = read_range_directory(runner.inputs().scratch / "ranges");
  if (setup.server) {
    keep_window(runner.folder(), run);
  }
  baseline.trace = trace_of(run);
  baseline.marks = seen_marks(run);
  scrub_ranges(runner.secrets(), run);  // a gate needs the names as they are, the bundle does not
  FileWriter csv(runner.artifacts().path(layout::kRanges));
  write_timed_ranges_csv(run, [&](std::string_view piece) { csv.write(piece); });
  csv.commit();
  baseline.stages = find_stages(baseline.trace, setup.rules, 0, 0);
  baseline.duration_ns = step.duration_ns;
  std::vector<StageTimes> times = time_stages(baseline.stages);
  const bool is_marked = has_marks(times);
  if (is_marked) {
    baseline.times = std::move(times);
  } else if (step.end != StepEnd::kInterrupted && step.end != StepEnd::kAborted) {
    warn_of_no_marks(runner);
  }
  std::uint64_t lost = 0;
  for (const TimedProcess& process : run.processes) {
    lost += process.num_lost;
  }
  if (lost > 0) {
    runner.warn(Reason::kMarksLost, fmt::format("the stage timer lost {} ranges", lost),
                "free space in TMPDIR, or mark fewer ranges");
  }
  runner.add(check_stages("baseline", setup.options.contract, instances_of(baseline.times)));
  runner.artifacts().write(layout::kUnprofiled,
                           unprofiled_json({step.duration_ns, step.exit_code, run.processes.size(),
                                            lost, is_marked ? baseline.stages.source : ""},
                                           baseline.times));
}

void run_baseline(PassRunner& runner) {
  write_stage_timer_library(runner.inputs().scratch);
  const StepResult step = runner.run_only_step();
  runner.add(check_program(runner, step, {}));
  read_ranges(runner, step);
}

std::vector<PassCommand> companion_commands(const CommandInputs& inputs) {
  return {program_command(inputs, "nsys")};
}

// Ranks under a profiler do not wait for this one then.
void run_companion(PassRunner& runner) {
  runner.add(check_step("companion", runner.setup().options.contract, runner.run_only_step(), {}));
}

}  // namespace

Pass baseline_pass() {
  return {"baseline", "baseline", baseline_commands, run_baseline};
}

Pass companion_pass() {
  return {"companion", "nsys", companion_commands, run_companion};
}

}  // namespace gpuwhy
