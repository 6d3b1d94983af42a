// SPDX-License-Identifier: Apache-2.0
//
// Parts of passes that know of servers: how one ended, what its client measured, which part of its
// work was recorded.
#include <fmt/format.h>

#include "base/error.h"
#include "bundle/layout.h"
#include "ingest/requests/request_files.h"
#include "serve/drive.h"
#include "session/reading/recording.h"
#include "session/record/pass_parts.h"

namespace gpuwhy {

namespace fs = std::filesystem;

std::vector<Breach> check_program(const PassRunner& runner, const StepResult& step,
                                  const std::vector<int>& expected_codes) {
  const std::string pass = runner.pass().name;
  if (!runner.setup().server || step.end != StepEnd::kItself) {
    return check_step(pass, runner.setup().options.contract, step, expected_codes);
  }
  const fs::path folder = runner.folder();
  const auto result = read_drive_result(folder / layout::kDrive);
  if (!result) {
    return {{Reason::kPassFailed, pass, "what drives the server was killed", "", ""}};
  }
  if (!result->failure) {
    return {};
  }
  const bool is_of_client = *result->failure == Reason::kClientFailed;
  return {{*result->failure, pass, result->sentence,
           fmt::format("see {}",
                       (folder / (is_of_client ? layout::kClientLog : layout::kLog)).string()),
           ""}};
}

void check_served_window(PassRunner& runner, const Analysis& analysis) {
  const auto& server = runner.setup().server;
  if (!server) {
    return;
  }
  const auto result = read_drive_result(runner.folder() / layout::kDrive);
  const bool is_whole = result && result->start_ns > 0 && !result->failure;
  runner.add(check_window(runner.pass().name, server->window, instances_of(analysis.stage_times),
                          is_whole ? result->end_ns - result->start_ns : 0));
}

void read_requests(PassRunner& runner) {
  const fs::path file = runner.folder() / layout::kRequests;
  if (!runner.setup().server || !fs::exists(file)) {
    return;
  }
  std::optional<RequestEvidence>& requests = runner.results().requests;
  try {
    requests = RequestEvidence{load_requests(file), runner.setup().server->limits};
    requests->requests.is_on_server_host = true;  // both were started here
  } catch (const Error& error) {
    runner.warn(Reason::kReportUnreadable, error.what(), error.hint());
  }
}

Profile profile_of_files(const PassRunner& runner, const std::vector<std::string>& paths) {
  RecordingOptions options;
  options.rules = runner.setup().rules_file;
  options.marks = runner.setup().stage_marks;
  options.requests = runner.results().requests ? layout::kRequests : "";
  ProfileWants wants;
  wants.has_timeline = true;
  return profile_alone(paths, options, runner.system(), wants);
}

}  // namespace gpuwhy
