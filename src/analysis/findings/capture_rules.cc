// SPDX-License-Identifier: Apache-2.0
//
// Rules on the recording itself: what invalidates figures, and oddities of the machine.
//
// They save no time; they keep people from trusting a wrong number.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/findings/rule.h"
#include "base/cut_name.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {

bool is_capture_of_graphs(const Analysis& analysis) {
  std::int64_t num_kernels = 0;
  for (const DeviceRow& device : analysis.devices) {
    num_kernels += device.num_kernels;
  }
  return analysis.capture.num_captured_launches > num_kernels;
}

bool has_missing_calls(const Analysis& analysis) {
  constexpr std::int64_t kFewCalls = 500;
  constexpr std::int64_t kMostCallsPerRecorded = 50;  // about 16 where none are missing
  return analysis.capture.num_calls >= kFewCalls &&
         analysis.capture.num_numbered_calls > analysis.capture.num_calls * kMostCallsPerRecorded;
}

namespace {

std::string capture_key(std::int64_t CaptureRow::*number) {
  return path_of<Results>(&Results::capture, number);
}

void check_gpu_activity(const FindingContext& context) {
  const Analysis& analysis = context.analysis;
  // Without kernels all other findings are meaningless.
  if (analysis.capture.kernel_ns > 0) {
    return;
  }
  Finding& finding = context.block(FindingId::kNoGpuActivity);
  finding.sentence =
      !analysis.absent.empty() ? "there is no recording: " + printable(analysis.absent)
      : analysis.capture.has_kernel_table
          ? "kernels were recorded, but none takes any time in the part that was asked for"
      : !analysis.copies.empty() ? "only copies and memsets were recorded on the GPU, no kernel"
      : analysis.capture.has_cuda
          ? "CUDA calls were recorded, but no kernel"
          : "no CUDA activity was recorded, so there is nothing to report about the GPU";
  for (const std::string& message : analysis.tool_messages) {
    if (message.find("CUDA") != std::string::npos) {
      finding.sentence +=
          fmt::format(". {} says: {}", analysis.capture.format.tool_id, printable(message));
      break;
    }
  }
  if (!analysis.absent.empty()) {
    finding.advice.text = analysis.absent_next;
    finding.evidence = {path_of<Results>(&Results::contract)};
    return;
  }
  if (!context.facts.has_gpu.value_or(true)) {
    finding.sentence =
        "this machine has no GPU: times of the program are valid, GPU results are n/a";
    finding.advice.text = "run the same command on a machine with a GPU";
    finding.evidence = {path_of<Results>(&Results::environment, &Environment::gpus),
                        capture_key(&CaptureRow::kernel_ns)};
    return;
  }
  finding.advice.text = analysis.capture.format.record_gpu;
  finding.evidence = {capture_key(&CaptureRow::kernel_ns),
                      path_of<Results>(&Results::tool_messages)};
  for (const Diagnostic& diagnostic : analysis.data_quality) {
    if (diagnostic.kind == "range_profiling") {
      finding.sentence = "no kernel was recorded: " + diagnostic.sentence;
      finding.advice.text =
          "record again without profiler_metrics in torch.profiler's experimental_config; count single "
          "kernels with ncu";
      finding.evidence = {"data_quality[kind=range_profiling].count"};
    }
  }
}

void check_opaque_graphs(const FindingContext& context) {
  const Analysis& analysis = context.analysis;
  const double share = fraction_of(analysis.capture.opaque_graph_ns, analysis.capture.kernel_ns);
  if (share < kMostOpaque) {
    return;
  }
  Finding& finding = context.block(FindingId::kGraphOpaque);
  finding.sentence = fmt::format(
      "{} of GPU time is in CUDA graphs that were recorded as a whole: their kernels are not visible",
      format_fraction(share));
  finding.advice.text = fmt::format("record again with {}, as gpuwhy run does",
                                    analysis.capture.format.record_graphs);
  finding.evidence = {capture_key(&CaptureRow::opaque_graph_ns),
                      capture_key(&CaptureRow::kernel_ns)};
}

// Launches that were captured into a graph did not run, so such a recording has no speed.
void check_captured_graphs(const FindingContext& context) {
  constexpr std::int64_t kFewLaunches = 20;
  const Analysis& analysis = context.analysis;
  if (!is_capture_of_graphs(analysis) || analysis.capture.num_captured_launches < kFewLaunches) {
    return;
  }
  Finding& finding = context.block(FindingId::kGraphCapture);
  finding.sentence = fmt::format(
      "this recording is of graph capture: {} launches were captured, not executed; only {} of kernels "
      "ran",
      analysis.capture.num_captured_launches, format_duration_ns(analysis.capture.kernel_ns));
  finding.advice.text =
      "use it to name the kernels of the replay: gpuwhy analyze REPLAY --capture-trace THIS";
  finding.evidence = {capture_key(&CaptureRow::num_captured_launches),
                      capture_key(&CaptureRow::kernel_ns)};
}

// Where most calls are missing, what looks idle may not have been.
void check_missing_calls(const FindingContext& context) {
  if (!has_missing_calls(context.analysis)) {
    return;
  }
  Finding& finding = context.block(FindingId::kCallsMissing);
  finding.sentence = fmt::format(
      "the recording has {} of about {} API calls, judging by their correlation ids: it is a sample, "
      "so idle time and its causes are meaningless",
      context.analysis.capture.num_calls, context.analysis.capture.num_numbered_calls);
  finding.advice.text = "record again without sampling; times of single kernels are valid";
  finding.evidence = {capture_key(&CaptureRow::num_calls),
                      capture_key(&CaptureRow::num_numbered_calls)};
}

// nsys reports dropped events in its own messages; importers report files that end early, and rows
// that cannot be right.
void check_data_loss(const FindingContext& context) {
  const FormatInfo& format = context.analysis.capture.format;
  for (const Diagnostic& diagnostic : context.analysis.data_quality) {
    const bool is_impossible = diagnostic.severity == Severity::kImpossible;
    if (is_impossible || diagnostic.severity == Severity::kDataLoss) {
      Finding& finding =
          context.block(is_impossible ? FindingId::kImpossibleRows : FindingId::kDataLoss);
      finding.sentence =
          (is_impossible ? "the recording contradicts itself: " : "the recording is incomplete: ") +
          printable(diagnostic.sentence);
      finding.advice.text = is_impossible ? fmt::format(
                                                "make the file again, unchanged: {}; if it says "
                                                "the same, record again",
                                                format.made_with)
                                          : std::string(format.record_less);
      finding.evidence = {fmt::format("data_quality[kind={}].count", diagnostic.kind)};
    }
  }
  for (const std::string& message : context.analysis.tool_messages) {
    if (has_one_of(to_lower(message), {"dropped", "truncated", "events were lost"})) {
      Finding& finding = context.block(FindingId::kDataLoss);
      finding.sentence = fmt::format("the recording is incomplete. {} says: {}",
                                     context.analysis.capture.format.tool_id, printable(message));
      finding.advice.text = context.analysis.capture.format.record_less;
      finding.evidence = {path_of<Results>(&Results::tool_messages)};
      break;
    }
  }
}

void check_overhead(const FindingContext& context) {
  if (!context.analysis.baseline) {
    context.silent(FindingId::kProfilerOverhead, "needs a baseline pass: gpuwhy run");
    return;
  }
  for (const StageOverhead& overhead : *context.analysis.overhead) {
    // A nested stage is part of another one, whose note would say the same.
    const auto stage =
        std::find_if(context.analysis.stages.begin(), context.analysis.stages.end(),
                     [&](const StageRow& row) { return row.stage == overhead.stage; });
    const bool is_nested = stage != context.analysis.stages.end() && stage->is_nested;
    const double longer = overhead.profiled_mean_ns / overhead.baseline_mean_ns - 1;
    if (longer <= kMostOverhead || is_nested) {
      continue;
    }
    Finding& finding = context.note(FindingId::kProfilerOverhead, overhead.stage);
    finding.sentence =
        fmt::format("{} took {} longer under the profiler: part of its time is profiler overhead",
                    printable_name(overhead.stage.text()), format_fraction(longer));
    finding.advice.text = "record less: run.mode=light";
    finding.evidence = {evidence("overhead", overhead, &StageOverhead::profiled_mean_ns)};
  }
}

// The profiler starts with the first gated range, which makes it milliseconds longer.
void check_first_range(const FindingContext& context) {
  constexpr std::int64_t kEnough = 3;
  constexpr double kStretch = 1.5;
  for (const StageRow& stage : context.analysis.stages) {
    if (stage.num_instances < kEnough || !stage.steady_mean_ns || *stage.steady_mean_ns <= 0) {
      continue;
    }
    const double ratio =
        static_cast<double>(stage.first_ns) / static_cast<double>(*stage.steady_mean_ns);
    if (ratio < kStretch) {
      continue;
    }
    Finding& finding = context.note(FindingId::kFirstRangeStretch, stage.stage);
    finding.confidence = Confidence::kMedium;
    finding.sentence = fmt::format(
        "the first {} took {}, {:.1f} times the mean of the others: warm-up, or the profiler starting",
        printable_name(stage.stage.text()), format_duration_ns(stage.first_ns), ratio);
    finding.advice.text = "use the steady mean, which excludes it; warm up before profiling starts";
    finding.evidence = {evidence("stages", stage, &StageRow::first_ns),
                        evidence("stages", stage, &StageRow::steady_mean_ns)};
  }
}

void check_other_family(const FindingContext& context) {
  if (context.analysis.unmatched_names.empty()) {
    return;
  }
  Finding& finding = context.note(FindingId::kOtherFamilies);
  finding.sentence = "kernels of unknown families take more than 10 % of the time";
  finding.advice.text = "add their names to a rules file: --rules FILE";
  finding.evidence = {"families[family=other].total_ns",
                      path_of<Results>(&Results::unmatched_names)};
}

void check_other_users(const FindingContext& context) {
  if (!context.facts.num_other_gpu_users) {
    context.silent(FindingId::kOtherGpuUsers,
                   "needs nvidia-smi at the time of the run: gpuwhy run");
    return;
  }
  if (*context.facts.num_other_gpu_users > 0) {
    Finding& finding = context.note(FindingId::kOtherGpuUsers);
    finding.sentence =
        fmt::format("{} other {} on the GPUs when the run began: times include theirs",
                    *context.facts.num_other_gpu_users,
                    *context.facts.num_other_gpu_users == 1 ? "process was" : "processes were");
    finding.advice.text =
        "nvidia-smi lists them; run again alone, or on another GPU: CUDA_VISIBLE_DEVICES";
    finding.evidence = {path_of<Results>(&Results::environment, &Environment::gpu_processes)};
  }
}

// Drivers do not say whether clocks are locked. Without persistence mode a lock is lost as soon as
// no program uses the GPU, so then they are not.
void check_clocks(const FindingContext& context) {
  if (!context.facts.keeps_clocks) {
    context.silent(FindingId::kClocksNotLocked,
                   "needs nvidia-smi at the time of the run: gpuwhy run");
    return;
  }
  if (!*context.facts.keeps_clocks) {
    Finding& finding = context.note(FindingId::kClocksNotLocked);
    finding.confidence = Confidence::kMedium;
    finding.sentence = "persistence mode is off, so clocks are not locked: repeats will differ";
    finding.advice.text = "sudo nvidia-smi -pm 1 && sudo nvidia-smi --lock-gpu-clocks=MIN,MAX";
    finding.evidence = {path_of<Results>(&Results::environment, &Environment::gpus)};
  }
}

// Whether a GPU ran kernels nearly all the time.
bool is_busy(const Analysis& analysis) {
  constexpr double kMost = 0.9;
  return std::any_of(analysis.ledgers.begin(), analysis.ledgers.end(), [&](const LedgerRow& row) {
    return row.stage.kind == RowKind::kRecording &&
           fraction_of(row[Bucket::kCompute], row.work_ns()) >= kMost;
  });
}

// The operator with known sizes that takes most time, if that is a tenth of all kernel time.
const GemmRate* largest_rate(const Analysis& analysis) {
  constexpr double kLeast = 0.1;
  if (!analysis.operators) {
    return nullptr;
  }
  const GemmRate* largest = nullptr;
  for (const GemmRate& rate : analysis.gemm_rates) {
    if (rate.peak_fraction && (largest == nullptr || rate.total_ns > largest->total_ns)) {
      largest = &rate;
    }
  }
  return largest != nullptr && fraction_of(largest->total_ns, analysis.capture.kernel_ns) >= kLeast
             ? largest
             : nullptr;
}

// "; aten::mm of 15360x4096 x 4096x24576 takes 49.3 % at 457 TFLOP/s, 34.9 % of the GPU's peak".
std::string rate_words(const Analysis& analysis, const GemmRate* rate) {
  return rate == nullptr
             ? ""
             : fmt::format("; {} of {} takes {} at {:.4g} TFLOP/s, {} of the GPU's peak",
                           printable_name(rate->op), printable_name(rate->dims),
                           format_fraction(fraction_of(rate->total_ns, analysis.capture.kernel_ns)),
                           *rate->flops_per_s / 1e12, format_fraction(*rate->peak_fraction));
}

// The roofline is that of a language model.
bool is_language_model(const FindingContext& context) {
  return !context.workload.engine.empty() || has_family(context.analysis, "attention") ||
         has_family(context.analysis, "rope") || has_family(context.analysis, "kv_cache");
}

// What the roofline needs to be told.
std::string roofline_options(const Analysis& analysis) {
  const bool is_named = std::any_of(analysis.devices.begin(), analysis.devices.end(),
                                    [](const DeviceRow& device) { return !device.name.empty(); });
  return is_named ? "--model NAME" : "--model NAME --gpu-name NAME";
}

std::string largest_part_advice(const FindingContext& context, const std::string& family,
                                const GemmRate* rate) {
  constexpr double kFarBelow = 0.6;  // of the peak
  if (family == "communication" && context.analysis.devices.size() > 1) {
    return "compare the collectives of the GPUs: where one takes shorter than the others, they wait "
           "for it; where all take as long, they wait for the link";
  }
  if (family == "communication") {
    return "find out whether the GPUs wait for each other or for the link: analyze the recordings of "
           "all ranks together";
  }
  if (context.workload.is_amd) {
    return rate != nullptr && *rate->peak_fraction < kFarBelow && context.workload.is_pytorch
               ? "let PyTorch choose among the products of hipBLASLt and rocBLAS: "
                 "PYTORCH_TUNABLEOP_ENABLED=1; or measure the kernel with rocprof-compute"
           : rate != nullptr || !is_language_model(context)
               ? "measure the kernel with rocprof-compute"
               : "compare it with the GPU's roofline: " + roofline_options(context.analysis) +
                     "; or measure the kernel with rocprof-compute";
  }
  return context.analysis.efficiency || rate != nullptr || !is_language_model(context)
             ? "measure it with ncu: gpuwhy ncu plan names the launch"
             : "compare it with the GPU's roofline: " + roofline_options(context.analysis) +
                   "; or measure the kernel with ncu: gpuwhy ncu plan names the launch";
}

void check_few_kernels(const FindingContext& context) {
  constexpr std::int64_t kFewKernels = 20;
  // Nothing repeats, and nothing takes long: no saving can be told.
  constexpr std::int64_t kNextToNone = 3;
  constexpr std::int64_t kNextToNoTimeNs = 1'000'000;
  const Analysis& analysis = context.analysis;
  std::int64_t num_kernels = 0;
  for (const KernelRow& kernel : analysis.kernels) {
    num_kernels += kernel.calls;
  }
  if (num_kernels == 0 || num_kernels >= kFewKernels || is_capture_of_graphs(analysis)) {
    return;
  }
  const bool is_next_to_none =
      num_kernels <= kNextToNone && analysis.capture.kernel_ns < kNextToNoTimeNs;
  if (analysis.capture.kernel_ns >= kNextToNoTimeNs && is_busy(analysis)) {
    return;  // nothing waits
  }
  Finding& finding = is_next_to_none ? context.block(FindingId::kFewKernels)
                                     : context.note(FindingId::kFewKernels);
  finding.sentence = fmt::format(
      "only {} {} ran, {} in total: too few to say what a step waits for", num_kernels,
      num_kernels == 1 ? "kernel" : "kernels", format_duration_ns(analysis.capture.kernel_ns));
  finding.advice.text = "record a few steps of the workload, after warming up";
  finding.evidence = {capture_key(&CaptureRow::kernel_ns)};
}

// A recording without a cause to remove still has a strongest fact.
void check_largest_part(const FindingContext& context) {
  constexpr double kEnough = 0.10;  // of the window: another finding says it
  const Analysis& analysis = context.analysis;
  const bool is_said = std::any_of(
      context.findings.found.begin(), context.findings.found.end(), [](const Finding& finding) {
        // Of a sample it is all that can be said.
        return (finding.is_blocker && finding.id != FindingId::kCallsMissing) ||
               finding.id == FindingId::kFewKernels ||
               finding.saving_fraction().value_or(0) >= kEnough;
      });
  if (is_said || analysis.kernels.empty() || analysis.families.empty() ||
      analysis.capture.kernel_ns == 0) {
    return;
  }
  const KernelRow& top = analysis.kernels.front();
  const FamilyRow& family = analysis.families.front();
  const GemmRate* rate = largest_rate(analysis);
  Finding& finding = context.note(FindingId::kLargestPart);
  finding.sentence = fmt::format(
      "{} of kernel time is {} kernels; the largest kernel is {} with {} in {} {}, median {}{}",
      format_fraction(fraction_of(family.total_ns, analysis.capture.kernel_ns)), family.family,
      printable_name(top.short_name),
      format_fraction(fraction_of(top.total_ns, analysis.capture.kernel_ns)), top.calls,
      top.calls == 1 ? "launch" : "launches", format_duration_ns(top.median_ns),
      rate_words(analysis, rate));
  finding.advice.text = largest_part_advice(context, family.family, rate);
  finding.evidence = {evidence("families", family, &FamilyRow::total_ns)};
}

constexpr Rule kOnRecording[] = {check_gpu_activity, check_opaque_graphs, check_captured_graphs,
                                 check_missing_calls, check_data_loss};
// The last one speaks where no other does.
constexpr Rule kRemarks[] = {check_overhead,    check_first_range, check_other_family,
                             check_other_users, check_clocks,      check_few_kernels,
                             check_largest_part};

}  // namespace

const std::span<const Rule> kRecordingRules = kOnRecording;
const std::span<const Rule> kRemarkRules = kRemarks;

}  // namespace gpuwhy
