// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "generate.h"

namespace llama_runner {

// The program's own timers as JSON: every request, and means with their spread.
std::string metrics_json(const Options& options, const RunResult& result);

// The same for a person.
std::string metrics_text(const Options& options, const RunResult& result);

}  // namespace llama_runner
