// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace llmprof {

// Loads a recording and analyses it with the rules of conf/.
Analysis analyze_recording(const std::string& path, unsigned num_threads);

// A whole number of at least 1 given as an option. Throws kUsage.
std::size_t positive_number(const std::string& option, const std::string& text);

}  // namespace llmprof
