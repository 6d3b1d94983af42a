// SPDX-License-Identifier: Apache-2.0
//
// Options of commands that record a part of a server's work.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "serve/window.h"

namespace gpuwhy {

Option window_steps_option(RecordingPeriod& wish);
Option window_seconds_option(RecordingPeriod& wish);
Option window_after_option(RecordingPeriod& wish);
Option window_stage_option(RecordingPeriod& wish);

// The options as they were given, with their values.
std::vector<std::pair<std::string, std::string>> window_words(const RecordingPeriod& wish);

}  // namespace gpuwhy
