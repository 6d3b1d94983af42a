// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include "trace/trace_outline.h"

namespace llmprof {

// How many events a trace of PyTorch's profiler holds, from samples of its text. Throws kInput
// where it cannot be read.
TraceOutline outline_kineto_json(const std::filesystem::path& path);

// Adds the events that begin in `text`, which may start and stop anywhere.
void count_kineto_events(std::string_view text, TraceOutline& outline);

}  // namespace llmprof
