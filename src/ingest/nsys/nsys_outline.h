// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace/trace_outline.h"

namespace gpuwhy {

class InputFile;

// Row counts of an export, from a few of its pages. Throws like reading it.
TraceOutline outline_nsys_sqlite(const InputFile& input);

}  // namespace gpuwhy
