// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/machine.h"
#include "capture/tools.h"

namespace gpuwhy {

// Outcome of a check.
enum class CheckStatus {
  kOk,
  kWarn,  // a capture works, but may be incomplete or less accurate
  kFail,  // part of a capture cannot work
  kSkip,  // not applicable or not checkable; the finding says why
};

// The result of one check.
struct Check {
  std::string id;  // stable: scripts rely on it
  CheckStatus status = CheckStatus::kOk;
  std::string finding;
  std::string remedy;  // one line, what to type; empty if not needed
};

// All results, with the facts they are based on.
struct Diagnosis {
  MachineFacts machine;
  std::optional<NsysTool> nsys;
  std::optional<NcuTool> ncu;
  std::vector<Check> checks;  // in the order of a table in doctor.cc
};

// Checks everything a capture needs, before a model is loaded for twenty minutes. Needs no GPU and
// changes nothing. `artifacts_dir` is where bundles will go; it need not exist.
Diagnosis diagnose(const System& system, const std::filesystem::path& artifacts_dir);

}  // namespace gpuwhy
