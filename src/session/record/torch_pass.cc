// SPDX-License-Identifier: Apache-2.0
//
// The pass in which a server's own profiler records: PyTorch's, which names operators and, in
// SGLang, steps with their tokens.
#include <filesystem>

#include <fmt/format.h>

#include "analysis/profile.h"
#include "base/error.h"
#include "base/temporary_file.h"
#include "bundle/layout.h"
#include "serve/drive.h"
#include "session/record/pass_parts.h"

namespace gpuwhy {
namespace {

std::vector<PassCommand> torch_commands(const CommandInputs& inputs) {
  const std::filesystem::path traces = inputs.bundle / layout::kTraces;
  return {
      driven(inputs, "torch", program_command(inputs, "torch", traces), {{}, {}, true, traces})};
}

void run_torch(PassRunner& runner) {
  const std::filesystem::path traces = runner.artifacts().path(layout::kTraces);
  make_inner_folder(traces, 0700);
  const StepResult step = runner.run_only_step();
  const std::vector<Breach> found = check_program(runner, step, {});
  runner.add(found);
  std::vector<std::string> paths;
  for (const std::filesystem::path& file :
       files_of_stage(recordings_below(traces), runner.setup().server->window.stage)) {
    paths.push_back(file.string());
  }
  if (paths.empty()) {
    // A pass that failed has its own reason.
    if (found.empty()) {
      runner.fail(Reason::kReportMissing,
                  fmt::format("the server wrote no trace into {}", traces.string()),
                  fmt::format("see {}", (runner.folder() / layout::kLog).string()));
    }
    return;
  }
  try {
    // The recording of nsys has the report, where there is one.
    std::optional<Profile>& profile = runner.results().profile;
    const bool is_first = !profile;
    if (is_first) {
      read_requests(runner);
    }
    Profile made = profile_of_files(runner, paths);
    check_served_window(runner, made.analysis);
    if (is_first) {
      runner.add(check_stages("torch", runner.setup().options.contract,
                              instances_of(made.analysis.stage_times)));
      profile = std::move(made);
    }
  } catch (const Error& error) {
    runner.fail(Reason::kReportUnreadable, error);
  }
}

}  // namespace

Pass torch_pass() {
  return {"torch", "torch", torch_commands, run_torch};
}

}  // namespace gpuwhy
