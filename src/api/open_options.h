// SPDX-License-Identifier: Apache-2.0
//
// Options as callers of the C functions give them: texts, so that a new one changes no signature
// and no struct.
#pragma once

#include <span>
#include <string_view>

#include "compare/compare.h"
#include "session/reading/named_model.h"
#include "session/reading/recording.h"

namespace gpuwhy {

// What the options of gpuwhy_open() say.
struct OpenOptions {
  RecordingOptions recording;
  ModelChoice model;
};

// Reads "name=value" texts, whose names are listed in gpuwhy/c.h. Throws kUsage.
OpenOptions open_options(std::span<const char* const> texts);

// The same for gpuwhy_compare().
CompareOptions compare_options(std::span<const char* const> texts);

}  // namespace gpuwhy
