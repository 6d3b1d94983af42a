// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace gpuwhy {

// Why a pass failed or was skipped. Its code is a stable identifier for scripts and for
// docs/capture-contract.md.
enum class Reason {
  kGateNotFired,
  kReportMissing,
  kReportStale,
  kReportUnreadable,
  kImporterFailed,
  kToolMissing,
  kToolTooOld,
  kToolFailed,
  kWorkloadFailed,
  kServerNotReady,
  kServerDied,
  kClientFailed,
  kWindowFailed,
  kWindowShort,
  kTimeout,
  kTooLarge,
  kDiskFull,
  kNoProgress,
  kInterrupted,
  kPassFailed,
  kPrepareFailed,
  kBaselineFailed,
  kNothingCaptured,
  kNoMarks,
  kStageMissing,
  kLogLost,
  kMarksLost,
  kMarksIncomplete,
  kChildrenNotTraced,
  kNoGpu,
  kNoKernels,
  kGraphOpaque,
  kDroppedEvents,
  kSecretsInReport,
  kCounterPermission,
  kCountersBusy,
  kNoKernelsProfiled,
  kNoRecording,
  kNothingToProfile,
  kUnknownSet,
  kUnknownSection,
  kUnknownMetric,
};

// What is known about a reason.
struct ReasonInfo {
  Reason reason;
  const char* code;
  int exit_code;  // 5 for a tool, permission or driver, 4 for the capture; where it is fatal
  const char* meaning;
};
std::span<const ReasonInfo> all_reasons();  // in the order of Reason

const ReasonInfo& info_of(Reason reason);
inline const char* code_of(Reason reason) {
  return info_of(reason).code;
}

}  // namespace gpuwhy
