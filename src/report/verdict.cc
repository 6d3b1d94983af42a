// SPDX-License-Identifier: Apache-2.0
//
// One sentence: the largest waste of the GPU that worked most, or why nothing can be said. A
// blocker comes before any figure that it spoils.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/report.h"

namespace llmprof {
namespace {

// What the GPU did most of the time it did not compute, when that is a tenth or more.
std::string largest_waste(const Analysis& analysis, const std::string& device) {
  static constexpr std::pair<Bucket, const char*> kWords[] = {
      {Bucket::kLaunchLate, "it waited {} of the time for the host to launch"},
      {Bucket::kSync, "it waited {} of the time for a host that sat in a synchronising call"},
      {Bucket::kQueued, "{} of the time its next work was launched but waited for other work"},
      {Bucket::kGraph, "it was idle {} of the time between nodes of CUDA graphs"},
      {Bucket::kComm, "{} of the time it only communicated"},
      {Bucket::kCopy, "{} of the time it only copied"}};
  for (const StageLedger& row : analysis.ledgers) {
    if (row.stage != "capture" || row.device != device) {
      continue;
    }
    const auto largest = std::max_element(
        std::begin(kWords), std::end(kWords),
        [&](const auto& a, const auto& b) { return row.ledger[a.first] < row.ledger[b.first]; });
    const std::int64_t time_ns = row.ledger[largest->first];
    if (time_ns * 10 >= row.ledger.window_ns) {
      return "; " + fmt::format(fmt::runtime(largest->second),
                                format_fraction(fraction_of(time_ns, row.ledger.window_ns)));
    }
  }
  return "";
}

}  // namespace

std::string verdict(const Analysis& analysis) {
  const CaptureInfo& capture = analysis.capture;
  if (!analysis.absent.empty()) {
    return fmt::format("There is no recording: {}.", printable(analysis.absent));
  }
  if (!capture.has_cuda) {
    std::string text = "No CUDA activity was recorded: nothing of the GPU can be said.";
    for (const std::string& message : capture.messages) {
      if (message.find("CUDA") != std::string::npos) {
        text += " nsys says: " + printable(message);
        break;
      }
    }
    return text;
  }
  if (analysis.is_summary) {
    return fmt::format(
        "{} of kernels, from a summary without times of day: stages, gaps and devices are n/a.",
        format_duration_ns(analysis.kernel_ns));
  }
  if (analysis.kernel_ns == 0) {
    return "CUDA calls were recorded, but no kernel: the work ran elsewhere, or kernel tracing "
           "failed.";
  }
  if (analysis.opaque_graph_ns * 2 > analysis.kernel_ns) {
    return fmt::format(
        "{} of GPU time lies in CUDA graphs that were recorded as a whole: their kernels are not "
        "visible. Record again with nsys profile --cuda-graph-trace=node",
        format_fraction(fraction_of(analysis.opaque_graph_ns, analysis.kernel_ns)));
  }
  const auto busiest = std::max_element(
      analysis.devices.begin(), analysis.devices.end(),
      [](const DeviceSummary& a, const DeviceSummary& b) { return a.busy_ns < b.busy_ns; });
  return fmt::format("{} was busy {} of {} recorded{}.", busiest->device,
                     format_fraction(fraction_of(busiest->busy_ns, analysis.capture_ns)),
                     format_duration_ns(analysis.capture_ns),
                     largest_waste(analysis, busiest->device));
}

}  // namespace llmprof
