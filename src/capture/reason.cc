// SPDX-License-Identifier: Apache-2.0
//
// Table of reasons: code, exit code, meaning.
#include "capture/reason.h"

#include <iterator>

#include "base/exit_code.h"

namespace gpuwhy {
namespace {

constexpr int kCapture = kExitIncomplete;
constexpr int kEnvironment = kExitEnvironment;
constexpr int kInterrupted = kExitInterrupted;

constexpr ReasonInfo kReasons[] = {
    {Reason::kGateNotFired, "gate_not_fired", kCapture,
     "the range that opens the recording was never entered"},
    {Reason::kReportMissing, "report_missing", kCapture, "the tool wrote no report"},
    {Reason::kReportStale, "report_stale", kCapture, "the report is older than the pass"},
    {Reason::kReportUnreadable, "report_unreadable", kCapture, "the report cannot be read"},
    {Reason::kImporterFailed, "importer_failed", kEnvironment,
     "nsys left its raw stream and no report"},
    {Reason::kToolMissing, "tool_missing", kEnvironment, "nsys or ncu is not installed"},
    {Reason::kToolTooOld, "tool_too_old", kEnvironment,
     "the installed tool cannot do what was asked"},
    {Reason::kToolFailed, "tool_failed", kEnvironment, "the tool itself failed"},
    {Reason::kWorkloadFailed, "workload_failed", kCapture,
     "the program exited with a code that was not expected"},
    {Reason::kServerNotReady, "server_not_ready", kCapture,
     "the server did not answer at its address in time"},
    {Reason::kServerDied, "server_died", kCapture, "the server ended before its load did"},
    {Reason::kClientFailed, "client_failed", kCapture,
     "the client that sends the load exited with an error"},
    {Reason::kWindowFailed, "window_failed", kCapture,
     "the profiler or the server refused to start or stop recording"},
    {Reason::kWindowShort, "window_short", kCapture,
     "the recording has fewer steps than asked for, or ended before its time"},
    {Reason::kTimeout, "timeout", kCapture,
     "the pass took longer than run.timeout_s and was stopped"},
    {Reason::kTooLarge, "too_large", kCapture,
     "the report exceeded run.max_report_bytes and recording was stopped"},
    {Reason::kDiskFull, "disk_full", kCapture, "the disk was almost full and the pass was stopped"},
    {Reason::kNoProgress, "no_progress", kCapture,
     "ncu made no progress for run.ncu_no_progress_s and was stopped"},
    {Reason::kInterrupted, "interrupted", kInterrupted,
     "the user stopped the run; what was captured is kept"},
    {Reason::kPassFailed, "pass_failed", kCapture, "gpuwhy could not carry out the pass"},
    {Reason::kPrepareFailed, "prepare_failed", kCapture, "skipped: the model file was not made"},
    {Reason::kBaselineFailed, "baseline_failed", kCapture, "skipped: the baseline pass failed"},
    {Reason::kNothingCaptured, "nothing_captured", kCapture, "no pass could run"},
    {Reason::kNoMarks, "no_marks", kCapture, "no stage was marked: only the whole run is measured"},
    {Reason::kStageMissing, "stage_missing", kCapture,
     "a declared stage is not in the capture, or not often enough"},
    {Reason::kLogLost, "log_lost", kCapture, "part of the program's output was lost"},
    {Reason::kMarksLost, "marks_lost", kCapture, "the stage timer could not keep all ranges"},
    {Reason::kMarksIncomplete, "marks_incomplete", kCapture,
     "a module of --mark did not mark all it is for"},
    {Reason::kChildrenNotTraced, "children_not_traced", kCapture,
     "processes of the baseline pass are not in the recording"},
    {Reason::kNoGpu, "no_gpu", kCapture, "there is no GPU; parts that need one are n/a"},
    {Reason::kNoKernels, "no_kernels", kCapture, "there is a GPU, but no kernel was recorded"},
    {Reason::kGraphOpaque, "graph_opaque", kCapture,
     "CUDA graphs were recorded as a whole, their kernels are hidden"},
    {Reason::kDroppedEvents, "dropped_events", kCapture,
     "nsys says that it lost events, or stages of the baseline are missing"},
    {Reason::kSecretsInReport, "secrets_in_report", kCapture,
     "a profiler's report may contain secrets and was left out"},
    {Reason::kCounterPermission, "counter_permission", kEnvironment,
     "the driver restricts hardware counters to administrators"},
    {Reason::kCountersBusy, "counters_busy", kEnvironment,
     "another profiler or DCGM uses the hardware counters"},
    {Reason::kNoKernelsProfiled, "no_kernels_profiled", kCapture, "ncu ran and measured no kernel"},
    {Reason::kNoRecording, "no_recording", kCapture,
     "skipped: the ncu plan needs a recording, and there is none"},
    {Reason::kNothingToProfile, "nothing_to_profile", kCapture, "the plan for ncu is empty"},
    {Reason::kUnknownSet, "unknown_set", kCapture, "this ncu has no such set"},
    {Reason::kUnknownSection, "unknown_section", kCapture, "this ncu has no such section"},
    {Reason::kUnknownMetric, "unknown_metric", kCapture, "this ncu has no such metric"},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < std::size(kReasons); ++i) {
    if (static_cast<std::size_t>(kReasons[i].reason) != i) {
      return false;
    }
  }
  return std::size(kReasons) == static_cast<std::size_t>(Reason::kUnknownMetric) + 1;
}
static_assert(is_in_order(), "a row for each Reason, in the order of the enum");

}  // namespace

std::span<const ReasonInfo> all_reasons() {
  return kReasons;
}

const ReasonInfo& info_of(Reason reason) {
  return kReasons[static_cast<std::size_t>(reason)];
}

}  // namespace gpuwhy
