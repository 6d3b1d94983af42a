// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "base/error.h"

namespace gpuwhy {

// Exit codes of every command. Scripts rely on them: numbers do not change.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,
  kExitUsage = 2,
  kExitRegression = 3,
  kExitInconclusive = 4,
  kExitEnvironment = 5,
  kExitNotComparable = 6,
  kExitIncomplete = 7,
  kExitInterrupted = 130,
};

// What a command exits with after an Error.
constexpr ExitCode exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kFailure:
    case ErrorKind::kInput:
      return kExitFailure;
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kContract:
      return kExitIncomplete;
    case ErrorKind::kEnvironment:
      return kExitEnvironment;
  }
  return kExitFailure;
}

// One row of the table that `gpuwhy list` and the documentation print.
struct ExitCodeMeaning {
  ExitCode code;
  const char* meaning;
};

inline constexpr std::array<ExitCodeMeaning, 9> kExitCodes = {{
    {kExitOk, "what was asked for is done"},
    {kExitFailure, "gpuwhy failed, or a file is unreadable or not what it claims to be"},
    {kExitUsage, "the command line or a configuration is wrong"},
    {kExitRegression, "a gate found a regression"},
    {kExitInconclusive, "a gate cannot decide, mostly for too few runs"},
    {kExitEnvironment, "a tool, a permission, a driver or memory is missing"},
    {kExitNotComparable,
     "a gate was given runs that did different work, or work on different GPUs"},
    {kExitIncomplete, "a run failed, or a capture, bundle or job is not what it should be"},
    {kExitInterrupted, "interrupted; what was captured is kept"},
}};

}  // namespace gpuwhy
