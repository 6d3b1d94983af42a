// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trace/trace_outline.h"

namespace gpuwhy {

class InputFile;

// Estimates the number of events in a PyTorch trace from samples of its text. Throws kInput if it
// cannot be read.
TraceOutline outline_kineto_json(const InputFile& file);

// Counts the events that begin in `text`, which may start and stop anywhere.
void count_kineto_events(std::string_view text, TraceOutline& outline);

}  // namespace gpuwhy
