// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace/trace_outline.h"

namespace llmprof {

class InputFile;

// How many rows an export has, from a few of its pages. Throws as reading it would.
TraceOutline outline_nsys_sqlite(const InputFile& input);

}  // namespace llmprof
