// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"
#include "session/recording.h"

namespace llmprof {

// Adds the options of every command that reads a recording.
void add_recording_options(Command& command, RecordingOptions& target);

}  // namespace llmprof
