// SPDX-License-Identifier: Apache-2.0
//
// Checks whether a capture pass recorded what was asked for.
//
// Both tools exit with 0 when nothing was captured: a gate that never opened, a report written
// elsewhere, a filter that matched no kernel. So we check exit code, files and contents; each
// breach says which check failed.
//
// What it gets wrong: a program that itself exits with 143, 130 or 255 looks as if a tool had ended
// it.
#include "capture/contract.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "capture/nsys_leftovers.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// Words in nsys messages that mean that events are missing from the report.
constexpr std::string_view kLossWords[] = {"Not all", "lost", "dropped", "couldn't allocate"};

constexpr const char* kEndByExit =
    "programs that end by _exit or by a signal (os._exit in Python) lose nsys' buffers: "
    "end them by exit";
constexpr const char* kForkEarly =
    "nsys does not know NVTX domains that were made before a fork: fork before the first mark, or "
    "use spawn; and end children by exit, not by _exit";

// "exited with 1" or "was ended by signal 9".
std::string ending_text(int exit_code) {
  if (exit_code > 128 && exit_code < 128 + NSIG) {
    const char* name = ::sigabbrev_np(exit_code - 128);
    return name != nullptr ? fmt::format("was ended by SIG{}", name)
                           : fmt::format("was ended by signal {}", exit_code - 128);
  }
  return fmt::format("exited with code {}", exit_code);
}

// The last line that the program printed, as the end of a sentence.
std::string saying(const StepResult& step) {
  constexpr std::size_t kShown = 160;
  const std::string line = printable(last_line(step.last_lines).substr(0, kShown));
  return line.empty() ? "; it printed nothing" : "; the last line it printed: " + line;
}

// Who stopped a step, as the end of a sentence: Ctrl-C is the user's, SIGTERM mostly a scheduler's.
std::string stop_text(int signal) {
  return signal == SIGTERM  ? ": terminated (SIGTERM)"
         : signal == SIGHUP ? ": the terminal was closed (SIGHUP)"
                            : " at your request";
}

bool is_there(const fs::path& file) {
  std::error_code failure;
  return fs::file_size(file, failure) > 0 && !failure;
}

}  // namespace

fs::path find_with_suffix(const fs::path& folder, std::string_view suffix) {
  std::error_code failure;
  fs::recursive_directory_iterator entry(folder, failure);
  for (; !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    if (entry->path().extension() == suffix) {
      return entry->path();
    }
  }
  return {};
}

std::vector<Breach> check_step(const std::string& pass, const Contract& contract,
                               const StepResult& step, const std::vector<int>& expected_codes) {
  const std::string after =
      fmt::format("the {} pass was stopped after {}", pass, format_duration_ns(step.duration_ns));
  switch (step.end) {
    // Each limit names the setting that raises it.
    case StepEnd::kTimeout:
      return {{Reason::kTimeout, pass, after + ": time limit reached", "allow more time",
               fmt::format("run.timeout_s={}", 2 * (step.duration_ns / kNsPerS + 1))}};
    case StepEnd::kTooLarge:
      return {{Reason::kTooLarge, pass,
               fmt::format("{}: it had written {}; what came before is kept", after,
                           format_bytes(step.bytes)),
               "record fewer steps, or allow more",
               fmt::format("run.max_report_bytes={}", 4 * step.bytes), false}};
    case StepEnd::kDiskFull:
      return {{Reason::kDiskFull, pass, after + ": the disk was about to be full",
               "free some space, or write elsewhere", "artifacts.dir=/path/with/space"}};
    case StepEnd::kNoProgress:
      return {{Reason::kNoProgress, pass,
               after + fmt::format(": it neither wrote nor printed anything{}", saying(step)),
               "leave out the kernel it hangs on, or wait longer", "run.ncu_no_progress_s=1800"}};
    case StepEnd::kInterrupted:
    case StepEnd::kAborted:
      return {{Reason::kInterrupted, pass, after + stop_text(step.stop_signal), "", "", true}};
    case StepEnd::kItself:
      break;
  }
  const bool is_expected =
      step.exit_code == 0 || std::find(expected_codes.begin(), expected_codes.end(),
                                       step.exit_code) != expected_codes.end();
  if (is_expected || contract.workload_may_fail) {
    return {};
  }
  return {{Reason::kWorkloadFailed, pass,
           fmt::format("the program {} in the {} pass{}", ending_text(step.exit_code), pass,
                       pass == "baseline" ? saying(step) : ""),
           "fix the program, or if this exit code is expected", "contract.workload_may_fail=true"}};
}

std::vector<Breach> check_nsys_report(const ReportFacts& report, const StepResult& step) {
  std::error_code failure;
  if (is_there(report.expected)) {
    // A second of slack: file systems have coarser times than clocks.
    const auto written = fs::last_write_time(report.expected, failure);
    if (!failure && written + std::chrono::seconds(1) < report.pass_start) {
      return {{Reason::kReportStale, "nsys",
               fmt::format("{} is older than this pass: it belongs to another run",
                           report.expected.string()),
               "remove it and run again", ""}};
    }
    return {};
  }
  // No report. The most specific explanation comes first.
  if (const fs::path raw = find_with_suffix(report.scratch, ".qdstrm"); !raw.empty()) {
    return {{Reason::kImporterFailed, "nsys",
             fmt::format("nsys left its raw stream ({}) and no report{}",
                         format_bytes(fs::file_size(raw, failure)), saying(step)),
             fmt::format("it is kept as nsys/{}; gpuwhy doctor says whether the importer is there",
                         raw.filename().string()),
             ""}};
  }
  const bool has_ended_well = step.last_lines.find("Generated:") != std::string::npos;
  if (report.is_gated && (has_ended_well || step.exit_code == 0)) {
    if (report.num_gate_entries > 0) {
      return {{Reason::kReportMissing, "nsys",
               fmt::format("nsys wrote no report, although {} was entered {} in the baseline pass: "
                           "nsys missed it, or the program took another path",
                           printable(report.gate_text), count_of(report.num_gate_entries, "time")),
               "run it again when the machine is less busy, or record everything",
               "run.gate=none"}};
    }
    return {{Reason::kGateNotFired, "nsys",
             fmt::format("{}: {} was never entered",
                         has_ended_well ? "nsys exited with 0 but recorded nothing"
                                        : "nsys wrote no report",
                         printable(report.gate_text)),
             "record everything", "run.gate=none"}};
  }
  return {{Reason::kReportMissing, "nsys",
           fmt::format("nsys {} and wrote no report{}", ending_text(step.exit_code), saying(step)),
           step.last_lines.find(kAgentFailed) != std::string::npos
               ? "gpuwhy doctor names what a killed nsys left, once it is a minute old, and how to "
                 "remove it; if it finds nothing, the machine was too busy: run it again. To let "
                 "the run remove it"
               : "read nsys/log.txt; gpuwhy doctor checks what nsys needs",
           step.last_lines.find(kAgentFailed) != std::string::npos
               ? "pipeline.nsys.remove_leftovers=true"
               : ""}};
}

std::vector<Breach> check_stages(const std::string& pass, const Contract& contract,
                                 const std::map<std::string, std::int64_t>& instances) {
  std::vector<Breach> breaches;
  for (const std::string& stage : contract.stages) {
    const auto found = instances.find(stage);
    const std::int64_t count = found == instances.end() ? 0 : found->second;
    if (count < contract.min_instances) {
      breaches.push_back(
          {Reason::kStageMissing, pass,
           fmt::format("contract.stages names {}: the {} pass has {}, at least {} "
                       "required",
                       printable(stage), pass, count_of(count, "instance"), contract.min_instances),
           "mark it (docs/marking.md), or declare the stages that exist", ""});
    }
  }
  return breaches;
}

std::vector<Breach> check_recording(const Contract& contract, const Expectations& expected,
                                    const RecordingFacts& facts) {
  std::vector<Breach> breaches = check_stages("nsys", contract, facts.stage_instances);
  if (expected.num_processes_with_ranges > facts.num_processes_with_ranges) {
    breaches.push_back(
        {Reason::kChildrenNotTraced, "nsys",
         fmt::format("{} processes marked stages in the baseline pass, {} in the recording: {}",
                     expected.num_processes_with_ranges, facts.num_processes_with_ranges,
                     expected.follows_forks ? "nsys lost the others"
                                            : "nsys does not follow children that do not exec"),
         expected.follows_forks ? kForkEarly
                                : "follow them (or start them with spawn in place of fork)",
         expected.follows_forks ? "" : "pipeline.nsys.trace_fork_before_exec=true"});
  }
  for (const auto& [stage, expected_count] : expected.stage_instances) {
    const auto found = facts.stage_instances.find(stage);
    const std::int64_t count = found == facts.stage_instances.end() ? 0 : found->second;
    // Runs of one program differ a little if sampling ends them, but not by a tenth.
    if (breaches.empty() && count * 10 < expected_count * 9) {
      breaches.push_back(
          {Reason::kDroppedEvents, "nsys",
           fmt::format("the baseline pass has {} of {}, the recording {}: nsys lost the rest",
                       count_of(expected_count, "instance"), printable(stage), count),
           kEndByExit, ""});
    }
  }
  if (expected.is_gpu_expected && !facts.has_kernels && facts.opaque_graph_fraction == 0) {
    breaches.push_back(
        {Reason::kNoKernels, "nsys",
         facts.has_cuda ? "CUDA calls were recorded, but no kernel: the work ran in a process that "
                          "is not traced, or driver and nsys are incompatible"
                        : "no CUDA activity was recorded: the program did not use a GPU",
         facts.has_cuda ? "follow children that do not exec" : "if that is intended",
         facts.has_cuda ? "pipeline.nsys.trace_fork_before_exec=true" : "contract.gpu=none"});
  }
  if (facts.opaque_graph_fraction > 0.5) {
    breaches.push_back({Reason::kGraphOpaque, "nsys",
                        fmt::format("{} of GPU time is in CUDA graphs that were recorded as a "
                                    "whole: their kernels are hidden",
                                    format_fraction(facts.opaque_graph_fraction)),
                        "record their nodes", "pipeline.nsys.cuda_graph_trace=node"});
  }
  for (const std::string& message : facts.tool_messages) {
    const bool is_loss = std::ranges::any_of(
        kLossWords, [&](std::string_view word) { return message.find(word) != std::string::npos; });
    if (is_loss) {
      breaches.push_back({Reason::kDroppedEvents, "nsys", "nsys says: " + printable(message),
                          "record fewer steps", "", false});
    }
  }
  return breaches;
}

std::vector<Breach> check_ncu_report(const fs::path& report, const StepResult& step) {
  const std::string& said = step.last_lines;
  const auto says = [&](std::string_view text) { return said.find(text) != std::string::npos; };
  // Messages first: with these errors ncu may still leave a report.
  if (says("ERR_NVGPUCTRPERM")) {
    return {{Reason::kCounterPermission, "ncu",
             "the driver restricts hardware counters to administrators (ERR_NVGPUCTRPERM)",
             "gpuwhy doctor says how to allow them", ""}};
  }
  if (says("driver resource was unavailable") || says("Driver resource was unavailable")) {
    return {{Reason::kCountersBusy, "ncu", "another profiler or DCGM uses the hardware counters",
             "dcgmi profile --pause, then run again", ""}};
  }
  if (is_there(report)) {
    return {};
  }
  if (says("No kernels were profiled")) {
    return {{Reason::kNoKernelsProfiled, "ncu",
             "ncu ran and measured nothing: no launch matched the plan's names and ranges",
             "compare ncu/plan.json with ncu/log.txt; without ranges",
             "pipeline.ncu.gating_nvtx=false"}};
  }
  return {{Reason::kReportMissing, "ncu",
           fmt::format("ncu {} and wrote no report{}", ending_text(step.exit_code), saying(step)),
           "read ncu/log.txt", ""}};
}

}  // namespace gpuwhy
