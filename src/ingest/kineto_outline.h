// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trace/trace_outline.h"

namespace llmprof {

class InputFile;

// How many events a trace of PyTorch's profiler holds, from samples of its text. Throws kInput
// where it cannot be read.
TraceOutline outline_kineto_json(const InputFile& file);

// Adds the events that begin in `text`, which may start and stop anywhere.
void count_kineto_events(std::string_view text, TraceOutline& outline);

}  // namespace llmprof
