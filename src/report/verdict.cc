// SPDX-License-Identifier: Apache-2.0
//
// The one-sentence verdict: the largest waste of the busiest GPU, or why there is no result.
//
// A blocker comes before any figure that it invalidates. Start-up and what follows the last work of
// the model are named and left out: no step is faster without them.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/metrics.h"

namespace llmprof {
namespace {

const char* words_of(Bucket bucket, const Ledger& ledger) {
  switch (bucket) {
    case Bucket::kLaunchLate:
      return "it waited {} of the time for the host to launch";
    case Bucket::kStartedLate:
      return "{} of the time its next work had been launched but started late";
    case Bucket::kSync:
      return ledger.sync_held_ns * 2 < ledger[bucket]
                 ? "it waited {} of the time for a host that had been held by a synchronising call"
                 : "it waited {} of the time for a host that sat in a synchronising call";
    case Bucket::kQueued:
      return "{} of the time its next work was launched but waited for other work";
    case Bucket::kGraph:
      return "it was idle {} of the time between nodes of CUDA graphs";
    case Bucket::kComm:
      return "{} of the time it only communicated";
    case Bucket::kCopy:
      return "{} of the time it only copied";
    default:
      return "{} of the time it did other things";
  }
}

// What the GPU did most while it did not compute, if that is a tenth or more.
std::string largest_waste(const Ledger& ledger) {
  static constexpr Bucket kWaste[] = {Bucket::kLaunchLate, Bucket::kSync, Bucket::kQueued,
                                      Bucket::kGraph,      Bucket::kComm, Bucket::kCopy,
                                      Bucket::kStartedLate};
  const Bucket largest =
      *std::max_element(std::begin(kWaste), std::end(kWaste),
                        [&](Bucket a, Bucket b) { return ledger[a] < ledger[b]; });
  if (ledger[largest] * 10 < ledger.window_ns) {
    return "";
  }
  return "; " + fmt::format(fmt::runtime(words_of(largest, ledger)),
                            format_fraction(fraction_of(ledger[largest], ledger.window_ns)));
}

const Ledger* ledger_of(const Analysis& analysis, const std::string& stage,
                        const std::string& device) {
  const auto row =
      std::find_if(analysis.ledgers.begin(), analysis.ledgers.end(),
                   [&](const StageLedger& l) { return l.stage == stage && l.device == device; });
  return row == analysis.ledgers.end() ? nullptr : &row->ledger;
}

// ", of which 1.20 s of start-up and 0.30 s after the last work are left out".
std::string around_work(const Analysis& analysis, const std::string& device) {
  const Ledger* before = ledger_of(analysis, "startup", device);
  const Ledger* after = ledger_of(analysis, "ending", device);
  std::string text;
  if (before != nullptr) {
    text = fmt::format("{} of start-up", format_duration_ns(before->window_ns));
  }
  if (after != nullptr) {
    text += fmt::format("{}{} after the last work of the model", text.empty() ? "" : " and ",
                        format_duration_ns(after->window_ns));
  }
  return text.empty() ? "" : ", of which " + text + " are left out";
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
        text += fmt::format(" {} says: {}", capture.format.tool_id, printable(message));
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
        "visible. Record again with {}",
        format_fraction(fraction_of(analysis.opaque_graph_ns, analysis.kernel_ns)),
        capture.format.record_graphs);
  }
  // The steady phase if there is one, else the whole capture.
  const auto busiest = std::max_element(
      analysis.devices.begin(), analysis.devices.end(),
      [](const DeviceSummary& a, const DeviceSummary& b) { return a.busy_ns < b.busy_ns; });
  if (const Ledger* steady = ledger_of(analysis, "steady", busiest->device)) {
    const std::int64_t busy_ns =
        (*steady)[Bucket::kCompute] + (*steady)[Bucket::kComm] + (*steady)[Bucket::kCopy];
    return fmt::format("{} was busy {} of the {} in which the model worked{}. {} recorded{}.",
                       busiest->device, format_fraction(fraction_of(busy_ns, steady->window_ns)),
                       format_duration_ns(steady->window_ns), largest_waste(*steady),
                       format_duration_ns(analysis.capture_ns),
                       around_work(analysis, busiest->device));
  }
  const Ledger* whole = ledger_of(analysis, "capture", busiest->device);
  return fmt::format("{} was busy {} of {} recorded{}.", busiest->device,
                     format_fraction(fraction_of(busiest->busy_ns, analysis.capture_ns)),
                     format_duration_ns(analysis.capture_ns),
                     whole == nullptr ? "" : largest_waste(*whole));
}

}  // namespace llmprof
