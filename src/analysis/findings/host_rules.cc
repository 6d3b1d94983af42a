// SPDX-License-Identifier: Apache-2.0
//
// Rules on idle time for which the host is the cause.
//
// Savings follow from the two chains of a step (analysis/idle/host_chain.h): whatever is removed,
// it takes at least the longer one.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "analysis/findings/rule.h"
#include "analysis/idle/host_chain.h"
#include "analysis/stages/capture_summary.h"
#include "base/cut_name.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kFewGaps = 20;  // fewer may be chance

// The largest causes of a kind, each with its own key.
std::vector<std::string> evidence_of(const Analysis& analysis, const LedgerRow& row,
                                     IdleKind kind) {
  constexpr std::size_t kMostCauses = 3;
  std::vector<std::string> keys;
  for (const IdleRow& cause : causes_of(analysis.idle_causes, row)) {
    if (cause.kind == kind && keys.size() < kMostCauses) {
      std::string key = fmt::format("idle_causes[stage={},device={},bucket={},kind={}",
                                    path_value(row.stage.text()), row.device, word_of(cause.bucket),
                                    word_of(kind));
      for (const auto& [name, text] : {std::pair("call", &cause.call), {"scope", &cause.scope}}) {
        key += text->empty() ? "" : fmt::format(",{}={}", name, path_value(*text));
      }
      keys.push_back(key + "].total_ns");
    }
  }
  return keys;
}

// ": 1.91 s in cudaMalloc, 1.06 s in 'aten::empty'": where most of the time went.
std::string place_of(const KindOfGaps& kind) {
  std::string place;
  if (!kind.call.empty()) {
    place =
        fmt::format(": {} in {}", format_duration_ns(kind.in_call_ns), printable_name(kind.call));
  }
  if (!kind.scope.empty()) {
    place += fmt::format("{} {} in '{}'", place.empty() ? ":" : ",",
                         format_duration_ns(kind.in_scope_ns), printable_name(kind.scope));
  }
  for (const auto& [scope, time_ns] : kind.scopes) {
    place += fmt::format("{} {} in '{}'", place.empty() ? ":" : ",", format_duration_ns(time_ns),
                         printable_name(scope));
  }
  return place;
}

// " in cudaStreamSynchronize, called in 'aten::item'".
std::string names_of(const KindOfGaps& kind) {
  std::string scopes = kind.scope.empty() ? "" : fmt::format("'{}'", printable_name(kind.scope));
  for (const auto& [scope, time_ns] : kind.scopes) {
    scopes += fmt::format("{}'{}'", scopes.empty() ? "" : ", ", printable_name(scope));
  }
  return (kind.call.empty() ? "" : " in " + printable_name(kind.call)) +
         (scopes.empty() ? "" : ", called in " + scopes);
}

// "; 12 waits per step left it idle": how often, where steps are marked.
std::string waits_per_step(const KindOfGaps& waits, const LedgerRow& row) {
  if (row.num_instances < 2 || waits.num_gaps < row.num_instances) {
    return fmt::format("; {} left it idle", count_of(waits.num_gaps, "wait"));
  }
  const auto per_step =
      static_cast<double>(waits.num_gaps) / static_cast<double>(row.num_instances);
  return fmt::format("; {:.3g} waits per {} left it idle", per_step,
                     printable_name(row.stage.text()));
}

std::string gaps_text(const KindOfGaps& kind) {
  return kind.num_gaps == 1
             ? "1 gap"
             : fmt::format(
                   "{} gaps of {} on average", kind.num_gaps,
                   format_duration_ns(kind.total_ns / std::max<std::int64_t>(1, kind.num_gaps)));
}

// What in PyTorch ends in which waiting call.
std::string_view pytorch_waits(std::string_view call) {
  if (has_one_of(call, {"DeviceSynchronize", "CtxSynchronize"})) {
    return "torch.cuda.synchronize(), and libraries that call it";
  }
  if (has_one_of(call, {"EventSynchronize"})) {
    return "Event.synchronize(), timing of single kernels, and cuDNN's search for the fastest "
           "convolution (torch.backends.cudnn.benchmark)";
  }
  if (has_one_of(call, {"StreamSynchronize", "Memcpy"})) {
    return ".item(), .cpu(), .tolist(), printing a tensor; copy with non_blocking=True from pinned "
           "memory";
  }
  return ".item(), .cpu(), .tolist(), printing a tensor, torch.cuda.synchronize(); copy with "
         "non_blocking=True from pinned memory";
}

std::string sync_advice(const Workload& workload, std::string_view call) {
  return workload.is_pytorch
             ? fmt::format("remove synchronization from the step: {}", pytorch_waits(call))
             : "remove synchronization from the step: launch the next work before waiting for the last, "
               "and wait once at the end (OpenMP: nowait)";
}

// Whether most kernels of the row are nodes of CUDA graphs.
bool is_in_graphs(const Analysis& analysis, const LedgerRow& row) {
  std::int64_t in_graphs = 0;
  std::int64_t all = 0;
  const bool is_stage =
      std::any_of(analysis.stages.begin(), analysis.stages.end(),
                  [&](const StageRow& stage) { return stage.stage == row.stage; });
  for (const StageRow& stage : analysis.stages) {
    if (is_stage ? stage.stage == row.stage : !stage.is_nested) {
      in_graphs += stage.num_graph_kernels;
      all += stage.num_kernels;
    }
  }
  return in_graphs * 2 > all;
}

// How an engine runs its steps as CUDA graphs.
struct GraphsOf {
  std::string_view engine;
  std::string_view advice;
};
constexpr GraphsOf kGraphsOfEngines[] = {
    {"vllm",
     "start vLLM without --enforce-eager; steps with more sequences than the largest of "
     "cudagraph_capture_sizes (--compilation-config) run without a graph"},
    {"sglang",
     "start SGLang without --disable-cuda-graph, and with --cuda-graph-max-bs of at least the "
     "sequences in a step"},
    {"tensorrt-llm",
     "set cuda_graph_config of TensorRT-LLM's LLM API, with max_batch_size of at least the "
     "sequences in a step"},
    {"llama.cpp",
     "build llama.cpp with -DGGML_CUDA_GRAPHS=ON, and do not set GGML_CUDA_DISABLE_GRAPHS"},
};

Advice launch_advice(const FindingContext& context, const LedgerRow& row) {
  const Workload& workload = context.workload;
  if (is_in_graphs(context.analysis, row)) {
    return {.text =
                "its kernels already run in graphs: overlap the CPU work between steps with "
                "the previous step",
            .more = workload.engine == "sglang" ? "; SGLang: remove --disable-overlap-schedule"
                    : workload.engine == "vllm" ? "; vLLM: remove --no-async-scheduling"
                                                : ""};
  }
  const auto* engine = std::ranges::find(kGraphsOfEngines, workload.engine, &GraphsOf::engine);
  if (engine != std::end(kGraphsOfEngines)) {
    return {.text = fmt::format("run the steps as CUDA graphs: {}", engine->advice)};
  }
  const std::string graphs = workload.is_amd ? "HIP graphs" : "CUDA graphs";
  if (!workload.is_pytorch) {
    return {.text = "launch fewer and larger kernels, or run them as " + graphs};
  }
  return {Fix::kCompileWithGraphs,
          fmt::format("launch fewer kernels: {} fuses them and runs them as {}",
                      fix_words(Fix::kCompileWithGraphs), graphs),
          "; a larger batch gives each kernel more work"};
}

void check_waits(const FindingContext& context, const LedgerRow& row, const HostChain& chain) {
  const KindOfGaps& waits = chain[IdleKind::kWaiting];
  const KindOfGaps& launches = chain[IdleKind::kLaunching];
  const bool holds_back = chain.waits_hold_back();
  const std::int64_t idle_ns = waits.total_ns + (holds_back ? launches.total_ns : 0);
  const std::int64_t saving_ns =
      std::min(idle_ns, std::max<std::int64_t>(0, chain.window_ns - chain.longer_ns()));
  if (share_of(saving_ns, row) < kLeastWaitShare) {
    return;
  }
  // A CPU that does not run ahead launches late: most of the idle time is then booked there.
  const bool is_late = holds_back && launches.total_ns > waits.total_ns;
  Finding& finding = context.add(FindingId::kHostSync, row,
                                 is_late ? Bucket::kLaunchLate : Bucket::kSync, saving_ns);
  finding.confidence = holds_back ? Confidence::kMedium : Confidence::kHigh;
  finding.sentence =
      holds_back
          ? fmt::format(
                "{} was idle for {} ({}) of {} because the CPU waited for it ({}{}{}). The CPU's own work is "
                "{}, the GPU's {}: without the waits the CPU would run ahead",
                row.device, format_duration_ns(idle_ns), format_fraction(share_of(idle_ns, row)),
                stage_words(row), format_duration_ns(chain.wait_ns), names_of(waits),
                waits_per_step(waits, row), format_duration_ns(chain.host_ns),
                format_duration_ns(chain.gpu_ns))
          : fmt::format(
                "{} was idle for {} ({}) of {} while the CPU was still waiting for earlier work, {}{}",
                row.device, format_duration_ns(idle_ns), format_fraction(share_of(idle_ns, row)),
                stage_words(row), gaps_text(waits), place_of(waits));
  finding.bound = saving_ns < idle_ns ? Bound(BeyondLongerChain{chain.window_ns, chain.longer_ns()})
                                      : AllOf{idle_ns, "this idle time"};
  finding.advice.text = sync_advice(context.workload, waits.call);
  finding.evidence =
      evidence_of(context.analysis, row, is_late ? IdleKind::kLaunching : IdleKind::kWaiting);
  finding.evidence.push_back(evidence("ledgers", row, &LedgerRow::host_wait_ns));
}

// A finding on gaps of one kind. `what` goes on after "cuda:0 waited 1.20 ms (12.3 %) in decode".
Finding& add_gaps(const FindingContext& context, FindingId id, const LedgerRow& row,
                  const HostChain& chain, IdleKind kind, const std::string& what) {
  const std::int64_t time_ns = chain[kind].total_ns;
  Finding& finding = context.add(id, row, Bucket::kLaunchLate, time_ns);
  finding.bound = AllOf{time_ns, "these gaps"};
  finding.confidence = Confidence::kHigh;
  finding.sentence =
      fmt::format("{} waited {} ({}) in {} {}", row.device, format_duration_ns(time_ns),
                  format_fraction(share_of(time_ns, row)), stage_words(row), what);
  finding.evidence = evidence_of(context.analysis, row, kind);
  return finding;
}

void check_launches(const FindingContext& context, const LedgerRow& row, const HostChain& chain) {
  const KindOfGaps& gaps = chain[IdleKind::kLaunching];
  if (chain.waits_hold_back() || gaps.num_gaps < kFewGaps ||
      share_of(gaps.total_ns, row) < kLeastIdleShare) {
    return;
  }
  const bool has_stacks = has_diagnostic(context.analysis.data_quality, "python_stacks");
  Finding& finding =
      add_gaps(context, FindingId::kLaunchBound, row, chain, IdleKind::kLaunching,
               fmt::format("for the CPU to launch the next kernel: {}{}", gaps_text(gaps),
                           has_stacks ? ", longer than without the recorded Python stacks" : ""));
  if (has_stacks) {
    finding.confidence = Confidence::kMedium;
  }
  finding.advice = launch_advice(context, row);
}

// Where the user sees what a thread does. Few recordings have samples of the CPU.
std::string cpu_rows(const Analysis& analysis) {
  return analysis.capture.has_cpu_samples
             ? "look at the CPU rows of nsys"
             : "record CPU samples too (nsys profile --sample=process-tree)";
}

// Calls of the operating system that wait for another thread, and those that read files.
std::string system_call_advice(const Analysis& analysis, std::string_view call) {
  if (has_one_of(call, {"futex", "wait", "poll", "select", "lock", "join"})) {
    return "the thread that launches was waiting for another thread: find out what that one did: put "
           "NVTX ranges in it, or " +
           cpu_rows(analysis);
  }
  if (has_one_of(call, {"read", "open", "write", "mmap", "fsync"})) {
    return "the thread that launches was busy with files: read ahead or write in another thread";
  }
  return "find out what calls it: put NVTX ranges around parts of the loop, or " +
         cpu_rows(analysis);
}

// Whether an operator launched kernels itself.
bool runs_on_gpu(const Analysis& analysis, const std::string& scope) {
  return analysis.operators && analysis.operators->time_of == OperatorTime::kKernels &&
         std::any_of(
             analysis.operators->rows.begin(), analysis.operators->rows.end(),
             [&](const OperatorRow& row) { return row.name == scope && row.num_kernels > 0; });
}

// Parts of PyTorch's training loop that have a faster form.
std::string known_scope_advice(std::string_view scope) {
  if (scope.find("flatten_dense_tensors") != std::string_view::npos) {
    return "DistributedDataParallel sends the model's buffers before each forward pass: "
           "DistributedDataParallel(broadcast_buffers=False), where they need not be equal";
  }
  if (scope.starts_with("Optimizer.step")) {
    return "use the fused form of the optimizer (fused=True), or foreach=True";
  }
  if (scope.starts_with("Optimizer.zero_grad")) {
    return "drop gradients instead of clearing them: zero_grad(set_to_none=True)";
  }
  return "";
}

std::string work_advice(const FindingContext& context, const LedgerRow& row,
                        const KindOfGaps& gaps) {
  if (gaps.scope.ends_with("()")) {
    return system_call_advice(context.analysis, gaps.scope);
  }
  const std::string& main_scope =
      gaps.scope.empty() && !gaps.scopes.empty() ? gaps.scopes.front().first : gaps.scope;
  if (std::string advice = known_scope_advice(main_scope); !advice.empty()) {
    return advice;
  }
  if (runs_on_gpu(context.analysis, main_scope)) {
    return "these operators run on the GPU, and their CPU side is slow: if only a first call is (libraries, "
           "autotuning, compilation), run some steps before recording; if every call is, use CUDA graphs";
  }
  const auto is_of_model = [](std::string_view scope) {
    return scope.starts_with("aten::") || scope.starts_with("nn.Module");
  };
  const auto is_any_of_model = [&](const auto& one) { return is_of_model(one.first); };
  if (is_of_model(gaps.scope) && row.num_instances > 1 && gaps.num_in_scope >= row.num_instances) {
    return fmt::format(
        "'{}' takes this long on the CPU in every {}: run it on the GPU, or prepare its result in another "
        "thread",
        printable_name(gaps.scope), printable_name(row.stage.text()));
  }
  if (is_of_model(gaps.scope) ||
      std::any_of(gaps.scopes.begin(), gaps.scopes.end(), is_any_of_model)) {
    return "find out why they take so long on the CPU: what computes there can run on the GPU or in another "
           "thread; if only a first call is slow (libraries, compilation), run some steps before "
           "recording";
  }
  if (!gaps.scopes.empty()) {
    return "move these to another thread, overlap them with GPU work, or do less of them";
  }
  if (gaps.scope.empty()) {
    // Options of the profiler that made this recording.
    return context.analysis.capture.format.tool_id == "kineto"
               ? "find out what it does: record with with_stack=True, or put "
                 "torch.profiler.record_function around parts of the loop"
               : fmt::format("find out what it does: put {} around parts of the loop, or {}",
                             context.workload.is_pytorch ? "torch.cuda.nvtx.range" : "NVTX ranges",
                             cpu_rows(context.analysis));
  }
  if (gaps.scope.find("DataLoader") != std::string::npos) {
    return "load data while the GPU works: DataLoader(num_workers=4, pin_memory=True, "
           "prefetch_factor=2)";
  }
  return fmt::format("move '{}' to another thread, overlap it with GPU work, or do less of it",
                     printable_name(gaps.scope));
}

// Time in the scopes that the sentence names: what advice about them can save.
std::int64_t named_ns(const KindOfGaps& gaps) {
  std::int64_t sum_ns = gaps.in_scope_ns;
  for (const auto& [scope, time_ns] : gaps.scopes) {
    sum_ns += time_ns;
  }
  return sum_ns;
}

// What the advice of work_advice() can save: where it is about one scope, the time in it.
std::int64_t reach_of_advice(const KindOfGaps& gaps) {
  if (gaps.scope.empty() && !gaps.scopes.empty() &&
      !known_scope_advice(gaps.scopes.front().first).empty()) {
    return gaps.scopes.front().second;
  }
  const std::int64_t in_scopes_ns = named_ns(gaps);
  return in_scopes_ns > 0 ? std::min(in_scopes_ns, gaps.total_ns) : gaps.total_ns;
}

// Whether the first gap is more than all others of several steps: the start of a data loader's
// workers, or a first batch. It happens once.
bool is_first_alone(const KindOfGaps& gaps, const LedgerRow& row) {
  return row.num_instances > 1 && gaps.num_gaps > 1 && gaps.first_gap_ns * 2 > gaps.total_ns;
}

// Long gaps: the host did something else.
void check_host_work(const FindingContext& context, const LedgerRow& row, const HostChain& chain) {
  const KindOfGaps& gaps = chain[IdleKind::kHostWork];
  if (share_of(gaps.total_ns, row) < kLeastIdleShare) {
    return;
  }
  const bool is_once = is_first_alone(gaps, row);
  const std::int64_t again_ns = gaps.total_ns - (is_once ? gaps.first_gap_ns : 0);
  const std::int64_t saving_ns = std::min(reach_of_advice(gaps), again_ns);
  Finding& finding = add_gaps(
      context, FindingId::kHostWork, row, chain, IdleKind::kHostWork,
      fmt::format(
          "while the CPU did other work, {}{}{}", gaps_text(gaps), place_of(gaps),
          is_once ? fmt::format("; the first gap alone is {}, and the others {}: what happens "
                                "once is not counted as a saving",
                                format_duration_ns(gaps.first_gap_ns), format_duration_ns(again_ns))
                  : ""));
  finding.saving_ns = share_of(saving_ns, row) < kLeastExposedShare ? 0 : saving_ns;
  if (saving_ns < gaps.total_ns) {
    finding.bound =
        is_once && saving_ns == again_ns
            ? Difference{gaps.total_ns, "of gaps", gaps.first_gap_ns, "of the first, once"}
            : Difference{gaps.total_ns, "of gaps", gaps.total_ns - saving_ns,
                         "that are not in what is named"};
  }
  finding.advice.text = work_advice(context, row, gaps);
}

// Whether a recording shows that memory is allocated repeatedly. PyTorch and other pools
// allocate in the first steps and then no more: one pass shows nothing, nor do gaps that end early.
bool is_repeated(const KindOfGaps& gaps, const LedgerRow& row) {
  const bool is_marked = row.stage.kind == RowKind::kStage;
  const std::int64_t least = is_marked ? std::max<std::int64_t>(row.num_instances, 2) : kFewGaps;
  return gaps.num_gaps >= least && (!is_marked || row.num_instances > 1) &&
         (gaps.last_start_ns - gaps.first_start_ns) * 2 >= row.base_ns.value_or(0);
}

void check_allocations(const FindingContext& context, const LedgerRow& row,
                       const HostChain& chain) {
  const KindOfGaps& gaps = chain[IdleKind::kAllocating];
  if (share_of(gaps.total_ns, row) < kLeastExposedShare) {
    return;
  }
  const bool is_host_memory = gaps.call.find("Host") != std::string::npos;
  const bool repeats = is_repeated(gaps, row);
  if (!repeats && share_of(gaps.total_ns, row) < kLeastIdleShare) {
    return;
  }
  Finding& finding = add_gaps(
      context, FindingId::kAllocation, row, chain, IdleKind::kAllocating,
      fmt::format(
          "while the CPU allocated or freed {}, {}{}{}",
          is_host_memory ? "pinned memory of its own" : "GPU memory", gaps_text(gaps),
          place_of(gaps),
          repeats ? "" : ": perhaps once, since the recording does not show it repeatedly"));
  finding.advice.text =
      is_host_memory ? "allocate pinned buffers once before the loop, and use them again"
      : context.workload.is_pytorch
          ? "PyTorch caches what it allocated, so this should stop after the first iterations; if it "
            "does not, look for torch.cuda.empty_cache() and sizes that keep changing, and set "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
          : "allocate once before the loop, or from a pool (cudaMallocAsync)";
  if (!repeats) {
    finding.once_ns = finding.saving_ns;
    finding.saving_ns = 0;
    finding.advice.text =
        "record later steps, after a warm-up, and see whether it is still there: " +
        finding.advice.text;
  }
}

void check_blocked_calls(const FindingContext& context, const LedgerRow& row,
                         const HostChain& chain) {
  const KindOfGaps& gaps = chain[IdleKind::kBlocked];
  if (share_of(gaps.total_ns, row) < kLeastIdleShare) {
    return;
  }
  Finding& finding =
      add_gaps(context, FindingId::kBlockedCall, row, chain, IdleKind::kBlocked,
               fmt::format("for long API calls, {}{}", gaps_text(gaps), place_of(gaps)));
  finding.confidence = Confidence::kMedium;
  const bool is_copy = gaps.call.find("Memcpy") != std::string::npos;
  finding.advice.text =
      is_copy
          ? "pin the host memory: a copy from pageable memory is staged by the CPU"
          : "look at what else the process does then: another thread in the driver, a full launch "
            "queue, module loading";
  finding.advice.fix = is_copy ? Fix::kPinMemory : Fix::kNoFix;
}

// Loading and compiling happen once: no step is faster without them, but a reader of the
// recording must know where that time went.
void check_first_use(const FindingContext& context, const LedgerRow& row, const HostChain& chain) {
  const KindOfGaps& gaps = chain[IdleKind::kFirstUse];
  if (share_of(gaps.total_ns, row) < kLeastIdleShare) {
    return;
  }
  Finding& finding = add_gaps(
      context, FindingId::kFirstUse, row, chain, IdleKind::kFirstUse,
      fmt::format(
          "while modules were loaded or compiled on first use, {}{}: once, not in every step",
          gaps_text(gaps), place_of(gaps)));
  finding.saving_ns = 0;
  finding.advice.text = "warm up before recording: a few steps before the profiler starts";
}

void check_host(const FindingContext& context) {
  if (context.analysis.ledgers.empty()) {
    for (const FindingId id :
         {FindingId::kLaunchBound, FindingId::kHostSync, FindingId::kHostWork,
          FindingId::kAllocation, FindingId::kBlockedCall, FindingId::kFirstUse}) {
      context.silent(id, "the recording has no GPU activity with times");
    }
    return;
  }
  if (context.analysis.capture.kernel_ns == 0 || is_capture_of_graphs(context.analysis) ||
      has_missing_calls(context.analysis)) {
    return;  // nothing waited for, or idle time has no meaning
  }
  for (const LedgerRow& row : context.scopes) {
    const HostChain chain(row, causes_of(context.analysis.idle_causes, row));
    check_waits(context, row, chain);
    check_launches(context, row, chain);
    check_host_work(context, row, chain);
    check_allocations(context, row, chain);
    check_blocked_calls(context, row, chain);
    check_first_use(context, row, chain);
  }
}

constexpr Rule kOnHost[] = {check_host};

}  // namespace

const std::span<const Rule> kHostRules = kOnHost;

}  // namespace gpuwhy
