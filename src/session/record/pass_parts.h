// SPDX-License-Identifier: Apache-2.0
//
// What passes have in common besides their commands: marks, secrets, servers.
#pragma once

#include <filesystem>

#include "capture/nvtx_timer.h"
#include "session/record/pass_runner.h"

namespace gpuwhy {

// Modules of --mark: their files before the first pass, and after each pass what was not marked.
void write_marks(PassRunner& runner);
void read_mark_notes(PassRunner& runner);

// Removal of secrets, at the latest when the pass has ended. What cannot be cleaned is deleted.
void scrub_step_log(PassRunner& runner, const std::filesystem::path& log, StepEnd end);
void scrub_ranges(const SecretValues& values, TimedRun& run);
void leave_out_secrets(PassRunner& runner);
// Exports a report of nsys. False: that failed, as the breaches say, and both files are gone.
bool export_without_secrets(PassRunner& runner, const std::filesystem::path& report,
                            const std::filesystem::path& sqlite);

// How the program of the pass ended. A server ends because it is stopped; what counts is its load.
std::vector<Breach> check_program(const PassRunner& runner, const StepResult& step,
                                  const std::vector<int>& expected_codes);
// Whether the part of a server's work that was asked for is in the recording.
void check_served_window(PassRunner& runner, const Analysis& analysis);
// What the client measured during the pass. Clients write it only if they are asked to.
void read_requests(PassRunner& runner);
// The profile of the recordings that a server's ranks, or its own profiler, wrote.
Profile profile_of_files(const PassRunner& runner, const std::vector<std::string>& paths);

// Whether any stage was marked.
bool has_marks(const std::vector<StageTimes>& times);
// How often each stage ran.
std::map<std::string, std::int64_t> instances_of(const std::vector<StageTimes>& times);

}  // namespace gpuwhy
