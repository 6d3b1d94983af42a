// SPDX-License-Identifier: Apache-2.0
//
// What to fix first?
//
// A rule looks at one kind of waste and says what removing all of it would save: an upper bound, in
// the units people plan in. Idle time, communication and copies come straight from the ledger, so
// their savings are exact and disjoint. Kernels that could run faster or be fused are bounded by
// the time they take, and by the stage's compute time, since they may overlap.
//
// Rules are a table; a rule is a function that adds findings or says why it cannot. Thresholds are
// ours: below them a finding is noise on a list that people must act on. What no rule sees: waste
// inside a kernel (counters tell), and work that need not be done at all.
#include "analysis/findings.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "analysis/analysis.h"
#include "base/text.h"
#include "base/units.h"

namespace llmprof {
namespace {

constexpr double kLeastIdle = 0.05;     // of the window: waits for the host
constexpr double kLeastExposed = 0.01;  // communication, copies, synchronising calls
constexpr double kLeastKernels = 0.03;  // kernels that could be fewer or faster
constexpr double kMostOverhead = 0.25;  // of a profiler, beyond which its times are its own
constexpr double kMostOpaque = 0.5;     // of GPU time in graphs without names
constexpr std::int64_t kTinyKernelNs = 20 * kNsPerUs;
constexpr std::int64_t kManyLaunches = 100;

// The rows a rule looks at: stages that are not nested, or the capture where none is marked.
std::vector<const StageLedger*> scopes(const Analysis& analysis) {
  std::vector<const StageLedger*> rows;
  std::vector<const StageLedger*> captures;
  for (const StageLedger& row : analysis.ledgers) {
    if (row.stage == "capture") {
      captures.push_back(&row);
      continue;
    }
    const auto stage = std::find_if(analysis.stages.begin(), analysis.stages.end(),
                                    [&](const StageSummary& s) { return s.stage == row.stage; });
    if (row.stage != "all" && (stage == analysis.stages.end() || !stage->is_nested)) {
      rows.push_back(&row);
    }
  }
  return rows.empty() ? captures : rows;
}

bool is_in(const KernelRecord& kernel, const StageLedger& row) {
  return kernel.device == row.device && (row.stage == "capture" || kernel.stage == row.stage);
}

struct Context {
  const Analysis& analysis;
  const FindingFacts& facts;
  Findings& findings;

  void silent(const char* id, const std::string& reason) const {
    findings.silent.push_back({id, reason});
  }
};

// One bucket of the ledger as a finding, where it is large enough.
struct BucketRule {
  const char* id;
  Bucket bucket;
  double least;
  const char* sentence;  // takes time, share, device, stage
  const char* next;
};

constexpr BucketRule kBucketRules[] = {
    {"launch_bound", Bucket::kLaunchLate, kLeastIdle,
     "{2} waited {0} ({1}) in {3} for the host to launch its next kernel",
     "put the steps into CUDA graphs (PyTorch: torch.compile(mode=\"reduce-overhead\"); vLLM: "
     "leave out --enforce-eager), or give the host less to do between launches"},
    {"host_sync", Bucket::kSync, kLeastExposed,
     "{2} was idle {0} ({1}) in {3} while the host sat in a synchronising call",
     "find the call (nsys: CUDA API row) and remove it from the step: .item(), .cpu(), "
     "torch.cuda.synchronize(), printing tensors"},
    {"exposed_comm", Bucket::kComm, kLeastExposed, "{2} only communicated for {0} ({1}) in {3}",
     "overlap it with compute, or send less: larger buckets, fewer ranks a group, fused "
     "all-reduce"},
    {"exposed_copy", Bucket::kCopy, kLeastExposed, "{2} only copied for {0} ({1}) in {3}",
     "keep data on the GPU, use pinned memory and a stream of its own; loading weights is not part "
     "of the steady loop: mark the stages (docs/marking.md) to tell them apart"},
    {"queue_wait", Bucket::kQueued, kLeastIdle,
     "{2} was idle {0} ({1}) in {3} with work launched that waited for other work",
     "look for streams that wait for each other's events"},
};

void check_bucket(const Context& context, const BucketRule& rule) {
  for (const StageLedger* row : scopes(context.analysis)) {
    const std::int64_t time_ns = row->ledger[rule.bucket];
    const double share = fraction_of(time_ns, row->ledger.window_ns);
    if (share < rule.least) {
      continue;
    }
    Finding& finding = context.findings.found.emplace_back();
    finding.id = rule.id;
    finding.stage = row->stage;
    finding.device = row->device;
    finding.saving_ns = time_ns;
    finding.window_ns = row->ledger.window_ns;
    finding.confidence = "high";
    finding.sentence = fmt::format(fmt::runtime(rule.sentence), format_duration_ns(time_ns),
                                   format_fraction(share), row->device, printable(row->stage));
    finding.next = rule.next;
    finding.evidence = {fmt::format("ledgers[stage={},device={}].buckets_ns.{}", row->stage,
                                    row->device,
                                    kBucketNames[static_cast<std::size_t>(rule.bucket)])};
  }
}

void check_buckets(const Context& context) {
  for (const BucketRule& rule : kBucketRules) {
    if (context.analysis.ledgers.empty()) {
      context.silent(rule.id, "the recording has no GPU activity with times");
    } else {
      check_bucket(context, rule);
    }
  }
}

// cuBLAS and CUTLASS name the type in the kernel: sgemm is fp32 on CUDA cores, s16816gemm and
// s1688gemm are tensor cores, f32f32_f32f32_f32 is fp32 without tensor cores.
bool is_off_tensor_cores(const KernelRecord& kernel) {
  const std::string name = to_lower(kernel.kernel_name);
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  return kernel.family == "gemm" &&
         (has("_sgemm") || has("simt_sgemm") || has("f32f32_f32f32_f32") || has("dgemm"));
}

void check_tensor_cores(const Context& context) {
  for (const StageLedger* row : scopes(context.analysis)) {
    std::int64_t time_ns = 0;
    for (const KernelRecord& kernel : context.analysis.kernels) {
      time_ns += is_in(kernel, *row) && is_off_tensor_cores(kernel) ? kernel.total_ns : 0;
    }
    time_ns = std::min(time_ns, row->ledger[Bucket::kCompute]);
    const double share = fraction_of(time_ns, row->ledger.window_ns);
    if (share < kLeastKernels) {
      continue;
    }
    const auto device =
        std::find_if(context.analysis.devices.begin(), context.analysis.devices.end(),
                     [&](const DeviceSummary& d) { return d.device == row->device; });
    const auto ratio = device == context.analysis.devices.end()
                           ? context.facts.fp32_by_tensor.end()
                           : context.facts.fp32_by_tensor.find(device->name);
    const bool is_known = ratio != context.facts.fp32_by_tensor.end();
    Finding& finding = context.findings.found.emplace_back();
    finding.id = "gemm_off_tensor_cores";
    finding.stage = row->stage;
    finding.device = row->device;
    finding.window_ns = row->ledger.window_ns;
    finding.saving_ns =
        is_known ? static_cast<std::int64_t>(static_cast<double>(time_ns) * (1 - ratio->second))
                 : time_ns;
    finding.confidence = is_known ? "medium" : "low";
    finding.sentence = fmt::format(
        "{} ({}) of {} on {} is matrix products in fp32 on CUDA cores{}",
        format_duration_ns(time_ns), format_fraction(share), printable(row->stage), row->device,
        is_known ? fmt::format("; its tensor cores are {:.0f} times as fast", 1 / ratio->second)
                 : "");
    finding.next =
        "run the model in bf16 (model.to(torch.bfloat16) or autocast), or allow TF32: "
        "torch.backends.cuda.matmul.allow_tf32 = True";
    finding.evidence = {"kernels[family=gemm].total_ns"};
  }
}

void check_fusion(const Context& context) {
  static constexpr std::string_view kFusible[] = {
      "elementwise", "activation", "norm", "reduction", "copy", "rope", "softmax"};
  for (const StageLedger* row : scopes(context.analysis)) {
    std::int64_t time_ns = 0;
    std::int64_t launches = 0;
    for (const KernelRecord& kernel : context.analysis.kernels) {
      const bool is_fusible =
          std::find(std::begin(kFusible), std::end(kFusible), kernel.family) != std::end(kFusible);
      if (is_in(kernel, *row) && is_fusible && kernel.median_ns < kTinyKernelNs) {
        time_ns += kernel.total_ns;
        launches += kernel.calls;
      }
    }
    time_ns = std::min(time_ns, row->ledger[Bucket::kCompute]);
    const double share = fraction_of(time_ns, row->ledger.window_ns);
    if (share < kLeastKernels || launches < kManyLaunches) {
      continue;
    }
    Finding& finding = context.findings.found.emplace_back();
    finding.id = "fusion";
    finding.stage = row->stage;
    finding.device = row->device;
    finding.saving_ns = time_ns;
    finding.window_ns = row->ledger.window_ns;
    finding.confidence = "low";
    finding.sentence = fmt::format(
        "{} launches of small memory-moving kernels take {} ({}) of {} on {}", launches,
        format_duration_ns(time_ns), format_fraction(share), printable(row->stage), row->device);
    finding.next = "fuse them: torch.compile, or the engine's fused norm, rope and activation";
    finding.evidence = {"kernels[family=elementwise].total_ns", "families"};
  }
}

Finding& add_blocker(const Context& context, const char* id) {
  Finding& finding = context.findings.found.emplace_back();
  finding.id = id;
  finding.stage = "capture";
  finding.is_blocker = true;
  finding.window_ns = context.analysis.capture_ns;
  finding.confidence = "high";
  return finding;
}

void check_gpu_activity(const Context& context) {
  const Analysis& analysis = context.analysis;
  if (analysis.kernel_ns > 0) {
    return;
  }
  Finding& finding = add_blocker(context, "no_gpu_activity");
  finding.sentence = analysis.capture.has_cuda
                         ? "CUDA calls were recorded, but no kernel"
                         : "no CUDA activity was recorded: nothing of the GPU can be said";
  for (const std::string& message : analysis.capture.messages) {
    if (message.find("CUDA") != std::string::npos) {
      finding.sentence += ". nsys says: " + printable(message);
      break;
    }
  }
  finding.next =
      "llmprof doctor checks driver and tools; llmprof run follows forked children with "
      "pipeline.nsys.trace_fork_before_exec=true";
  finding.evidence = {"capture.kernel_ns", "tool_messages"};
}

void check_opaque_graphs(const Context& context) {
  const Analysis& analysis = context.analysis;
  const double share = fraction_of(analysis.opaque_graph_ns, analysis.kernel_ns);
  if (share < kMostOpaque) {
    return;
  }
  Finding& finding = add_blocker(context, "graph_opaque");
  finding.sentence = fmt::format(
      "{} of GPU time lies in CUDA graphs recorded as a whole: their kernels are hidden",
      format_fraction(share));
  finding.next = "record again with nsys profile --cuda-graph-trace=node, as llmprof run does";
  finding.evidence = {"capture.opaque_graph_ns", "capture.kernel_ns"};
}

void check_overhead(const Context& context) {
  if (context.analysis.baseline.empty()) {
    context.silent("profiler_overhead", "needs a baseline pass: llmprof run");
    return;
  }
  for (const StageOverhead& overhead : context.analysis.overheads) {
    if (overhead.fraction <= kMostOverhead) {
      continue;
    }
    Finding& finding = context.findings.found.emplace_back();
    finding.id = "profiler_overhead";
    finding.stage = overhead.stage;
    finding.confidence = "high";
    finding.sentence = fmt::format("the profiler made {} {} longer: its times are partly its own",
                                   printable(overhead.stage), format_fraction(overhead.fraction));
    finding.next = "record less: run.mode=light";
    finding.evidence = {fmt::format("overhead[stage={}].overhead_fraction", overhead.stage)};
  }
}

void check_other_family(const Context& context) {
  if (context.analysis.unmatched_names.empty()) {
    return;
  }
  Finding& finding = context.findings.found.emplace_back();
  finding.id = "other_family";
  finding.stage = "capture";
  finding.confidence = "high";
  finding.sentence = "kernels without a family take more than 10 % of the time";
  finding.next = "add a rule to conf/rules/kernels.yaml";
  finding.evidence = {"families[family=other].total_ns"};
}

constexpr void (*kRules[])(const Context&) = {
    check_gpu_activity, check_opaque_graphs, check_buckets,      check_tensor_cores,
    check_fusion,       check_overhead,      check_other_family,
};

}  // namespace

Findings find_findings(const Analysis& analysis, const FindingFacts& facts) {
  Findings findings;
  for (const auto rule : kRules) {
    rule({analysis, facts, findings});
  }
  std::stable_sort(findings.found.begin(), findings.found.end(),
                   [](const Finding& a, const Finding& b) {
                     return std::tie(b.is_blocker, b.saving_ns, a.id, a.stage, a.device) <
                            std::tie(a.is_blocker, a.saving_ns, b.id, b.stage, b.device);
                   });
  return findings;
}

}  // namespace llmprof
