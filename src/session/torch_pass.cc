// SPDX-License-Identifier: Apache-2.0
//
// The pass in which a server's own profiler records: PyTorch's, which names operators and, in
// SGLang, steps with their tokens.
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "serve/drive.h"
#include "session/pass_parts.h"
#include "session/recording.h"

namespace gpuwhy {

void PassRunner::run_torch(const Pass& pass) {
  const std::filesystem::path traces = artifacts_.path(kTracesFolder);
  make_inner_folder(traces, 0700);
  const StepResult step = run_only_step();
  const std::vector<Breach> found = check_program(*this, step, {});
  add(found);
  std::vector<std::string> paths;
  for (const std::filesystem::path& file :
       files_of_stage(recordings_below(traces), setup().server->window.stage)) {
    paths.push_back(file.string());
  }
  if (paths.empty()) {
    // A pass that failed has its own reason.
    if (found.empty()) {
      add({{Reason::kReportMissing, pass.name,
            fmt::format("the server wrote no trace into {}", traces.string()),
            fmt::format("see {}", artifacts_.path("torch/log.txt").string()), ""}});
    }
    return;
  }
  try {
    const bool is_first =
        !results_.profile;  // the recording of nsys has the report, where there is one
    Profile made = profile_of_files(*this, paths, is_first);
    check_served_window(*this, made.analysis);
    if (is_first) {
      std::map<std::string, std::int64_t> instances;
      for (const StageTimes& stage : made.analysis.stage_times) {
        instances[stage.stage.text()] = stage.n;
      }
      add(check_stages(pass.name, setup().options.contract, instances));
      results_.profile = std::move(made);
    }
  } catch (const Error& error) {
    add({{Reason::kReportUnreadable, pass.name, error.what(), error.hint(), ""}});
  }
}

}  // namespace gpuwhy
