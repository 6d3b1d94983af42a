// SPDX-License-Identifier: Apache-2.0
//
// What passes have in common besides their commands: marks and secrets.
#pragma once

#include <filesystem>

#include "capture/nvtx_timer.h"
#include "session/pass_runner.h"

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

}  // namespace gpuwhy
