// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/machine.h"
#include "capture/tools.h"

namespace llmprof {

enum class CheckStatus {
  kOk,
  kWarn,  // a capture works, something in it may be missing or less exact
  kFail,  // a part of a capture cannot work
  kSkip,  // does not apply, or could not be looked at; the finding says why
};

struct Check {
  std::string id;  // stable: scripts rely on it
  CheckStatus status = CheckStatus::kOk;
  std::string finding;
  std::string remedy;  // one line, what to type; empty when there is nothing to do
};

struct Diagnosis {
  MachineFacts machine;
  std::optional<NsysTool> nsys;
  std::optional<NcuTool> ncu;
  std::vector<Check> checks;  // in the order of a table in doctor.cc
};

// Looks at everything a capture needs before a model is loaded for twenty minutes. Needs no GPU,
// changes nothing. `artifacts_dir` is where bundles will go; it need not exist.
Diagnosis diagnose(const System& system, const std::filesystem::path& artifacts_dir);

}  // namespace llmprof
