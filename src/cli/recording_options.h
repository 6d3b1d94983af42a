// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "report/sections/worth.h"
#include "session/reading/named_model.h"

namespace gpuwhy {

struct Profile;
struct RecordingOptions;

// --rules FILE, of commands that take no other option below.
Option rules_option(std::string& target);

// --mark, --step and --rules: what the ranges of a recording mean.
void add_mark_options(Command& command, RecordingOptions& target);

// --steps and --trim: the part of a recording that is analyzed.
void add_part_options(Command& command, RecordingOptions& target);

// --requests and --slo: what clients measured.
void add_request_options(Command& command, RecordingOptions& target);

// What the recording does not say of its model. `recording` gets how ranks share it.
void add_model_options(Command& command, ModelChoice& target, RecordingOptions& recording);
// Throws kUsage for options that need --model where it is not given.
void check_model_options(const ModelChoice& choice);

// All options of a command that reads a recording.
void add_recording_options(Command& command, RecordingOptions& target);

// The value of --gpu-hour-price; nullopt where it is empty. Throws kUsage for what is not a price.
std::optional<GpuPrice> gpu_price_of(const std::string& text);

// Says on standard error which rules and which window a result is of, for commands whose output has
// no place for it.
void say_how_read(const Profile& profile, Console& console);

}  // namespace gpuwhy
