// SPDX-License-Identifier: Apache-2.0
//
// The summary on a terminal: one verdict, then what supports it, on one screen.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/report.h"

namespace llmprof {
namespace {

std::string stages_text(const Analysis& analysis) {
  std::string text = fmt::format("\nStages ({})\n", analysis.stage_source);
  text += fmt::format("  {:<14} {:>9} {:>10} {:>10} {:>10} {:>9} {:>11}\n", "stage", "instances",
                      "host total", "median", "max", "kernels", "kernel time");
  for (const StageSummary& stage : analysis.stages) {
    text += fmt::format("  {:<14} {:>9} {:>10} {:>10} {:>10} {:>9} {:>11}\n",
                        (stage.is_nested ? "  " : "") + printable(stage.stage), stage.num_instances,
                        format_duration_ns(stage.total_ns), format_duration_ns(stage.median_ns),
                        format_duration_ns(stage.max_ns), stage.num_kernels,
                        format_duration_ns(stage.kernel_ns));
  }
  return text;
}

// Buckets with time in them, largest first.
std::string ledger_text(const Analysis& analysis) {
  std::string text = "\nWhere the time went, by stage and GPU\n";
  for (const StageLedger& stage : analysis.ledgers) {
    if (stage.stage == "all") {
      continue;  // the capture by another name
    }
    text += fmt::format("  {:<14} {:<7} {:>10}", printable(stage.stage), stage.device,
                        format_duration_ns(stage.ledger.window_ns));
    std::vector<std::pair<std::int64_t, const char*>> parts;
    for (std::size_t i = 0; i < kNumBuckets; ++i) {
      if (stage.ledger.buckets_ns[i] > 0) {
        parts.emplace_back(stage.ledger.buckets_ns[i], kBucketNames[i]);
      }
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string separator = "  ";
    for (const auto& [time_ns, name] : parts) {
      text += fmt::format("{}{} {}", separator, name,
                          format_fraction(fraction_of(time_ns, stage.ledger.window_ns)));
      separator = ", ";
    }
    text += "\n";
  }
  return text;
}

std::string kernels_text(const Analysis& analysis, std::size_t top) {
  std::string text = fmt::format("\nKernels, {} of {} by time\n",
                                 std::min(top, analysis.kernels.size()), analysis.kernels.size());
  for (const KernelRecord& kernel : top_n_kernels(analysis.kernels, top)) {
    const std::string bound =
        analysis.counters ? fmt::format("{:<8}", bound_text(analysis, kernel)) : "";
    text += fmt::format(
        "  {:>7} {:>9} {:>8} x {:>9}  {:<13} {:<8} {}{}\n",
        format_fraction(fraction_of(kernel.total_ns, analysis.kernel_ns)),
        format_duration_ns(kernel.total_ns), kernel.calls,
        format_duration_ns(kernel.total_ns / std::max<std::int64_t>(kernel.calls, 1)),
        printable(kernel.family), printable(kernel.stage), bound, printable(kernel.short_name));
  }
  return text;
}

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

constexpr double kHighOverhead = 0.25;
constexpr std::size_t kShownFindings = 3;

}  // namespace

std::string overhead_text(const Analysis& analysis) {
  if (analysis.overheads.empty()) {
    return "";
  }
  std::string text = "\nWhat the profiler added (mean of a stage, without and with it)\n";
  bool is_high = false;
  for (const StageOverhead& overhead : analysis.overheads) {
    is_high = is_high || overhead.fraction > kHighOverhead;
    text += fmt::format("  {:<14} {:>10} {:>10}  {}\n", printable(overhead.stage),
                        format_duration_ns(std::llround(overhead.baseline_mean_ns)),
                        format_duration_ns(std::llround(overhead.profiled_mean_ns)),
                        (overhead.fraction < 0 ? "" : "+") + format_fraction(overhead.fraction));
  }
  if (is_high) {
    text += "  More than 25 %: times below are the profiler's too. run.mode=light records less.\n";
  }
  return text;
}

std::string stage_times_text(const std::vector<StageTimes>& stages) {
  std::string text = fmt::format("  {:<14} {:>6} {:>10} {:>10} {:>10} {:>10} {:>11}\n", "stage",
                                 "n", "mean", "std", "p50", "p99", "tokens/s");
  for (const StageTimes& stage : stages) {
    text +=
        fmt::format("  {:<14} {:>6} {:>10} {:>10} {:>10} {:>10} {:>11}\n", printable(stage.stage),
                    stage.n, format_duration_ns(std::llround(stage.mean_ns)),
                    stage.std_ns ? format_duration_ns(std::llround(*stage.std_ns)) : "n/a",
                    format_duration_ns(stage.p50_ns), format_duration_ns(stage.p99_ns),
                    stage.tokens_per_s ? fmt::format("{:.1f}", *stage.tokens_per_s) : "n/a");
  }
  return text;
}

std::string verdict(const Analysis& analysis) {
  const CaptureInfo& capture = analysis.capture;
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

std::string terminal_summary(const Analysis& analysis, std::size_t top) {
  std::string text = verdict(analysis) + "\n";
  for (const DeviceSummary& device : analysis.devices) {
    text += fmt::format(
        "  {}  {}  {} kernels\n", device.device,
        device.name.empty() ? "n/a (the recording does not name it)" : printable(device.name),
        device.num_kernels);
  }
  text += findings_text(analysis.findings, kShownFindings);
  if (!analysis.stages.empty()) {
    text += stages_text(analysis);
    text += overhead_text(analysis);
  }
  if (!analysis.ledgers.empty()) {
    text += ledger_text(analysis);
  }
  if (analysis.efficiency) {
    text += efficiency_text(*analysis.efficiency);
  }
  if (!analysis.kernels.empty()) {
    text += kernels_text(analysis, top);
  }
  if (analysis.counters) {
    text += counters_text(analysis, top);
  }
  if (!analysis.unmatched_names.empty()) {
    text +=
        "\nKernels without a family take more than 10 % of the time. A rule for "
        "conf/rules/kernels.yaml:\n  - family: NAME\n    words: [";
    for (std::size_t i = 0; i < analysis.unmatched_names.size(); ++i) {
      const std::string name = printable(analysis.unmatched_names[i]);
      text += (i == 0 ? "\"" : ", \"") + name.substr(0, 60) + "\"";
    }
    text += "]\n";
  }
  if (!analysis.diagnostics.empty()) {
    text += "\nData quality\n";
    for (const Diagnostic& diagnostic : analysis.diagnostics) {
      text += fmt::format("  {}\n", printable(diagnostic.sentence));
    }
  }
  return text;
}

}  // namespace llmprof
