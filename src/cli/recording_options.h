// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/command.h"
#include "session/recording.h"

namespace llmprof {

// --rules, for commands that do not take all options below.
Option rules_option(std::string& target);

// Adds the options of every command that reads a recording.
void add_recording_options(Command& command, RecordingOptions& target);

}  // namespace llmprof
