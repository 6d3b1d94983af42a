// SPDX-License-Identifier: Apache-2.0
//
// The texts of the glossary. A finding, a bucket or a term that is printed has a row here.
#include "report/glossary.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"

namespace gpuwhy {
namespace {

// clang-format off
constexpr Term kTerms[] = {
    {"no_gpu_activity", "finding", "No kernel was recorded, so there is nothing to report about the GPU.",
     "The recording has no kernel rows. The profiler's own messages are quoted where they say why.",
     "Run gpuwhy doctor. Profile the process that launches the kernels, with CUDA tracing on."},
    {"graph_opaque", "finding", "Half of GPU time or more is in CUDA graphs that were recorded as one block each.",
     "Time of graph launches without node records, over all GPU time.",
     "Record again with nsys --cuda-graph-trace=node, as gpuwhy run does."},
    {"graph_capture", "finding", "The recording shows a graph being captured: its kernels were not executed.",
     "More launches were captured into graphs than kernels ran.",
     "Use it to name the kernels of the replay: gpuwhy analyze REPLAY --capture-trace THIS."},
    {"calls_missing", "finding", "Most CUDA API calls are missing, so idle time and its causes mean nothing.",
     "Correlation ids grow with every call; the file has fewer than one in fifty of them.",
     "Record again without sampling of events."},
    {"data_loss", "finding", "The recording is incomplete: events were dropped or the file ends early.",
     "Messages of the profiler, and the reader's own checks.",
     "Record a shorter time, or less. nsys: gpuwhy run run.mode=light; PyTorch's profiler: fewer active steps in its schedule."},
    {"impossible_rows", "finding", "The recording has numbers that cannot be right, so no figure holds.",
     "More than a hundredth of the kernels, or of the other events, was left out: text where a number belongs, an end before its start, times a "
     "year away. Or kernels of one stream run at the same time for more than a hundredth of all kernel time.",
     "Export the recording again, without editing it. If it says the same, record again."},
    {"launch_bound", "finding", "The GPU waits for the CPU to launch the next kernel, gap after gap.",
     "Short gaps that end when a launch call returns, while the CPU does nothing else for long. At least 20 gaps and 5 % of the time. "
     "The saving is all of these gaps, but never more than the CPU's own work lets through.",
     "Launch fewer, larger kernels or replay CUDA graphs: torch.compile(mode=\"reduce-overhead\"); vLLM without --enforce-eager; SGLang without "
     "--disable-cuda-graph. A larger batch gives each launch more work."},
    {"host_work", "finding", "The GPU waits while the CPU does something else: data loading, Python code, I/O, scheduling.",
     "Gaps of 1 ms and more in which no CUDA call explains the wait. The operator, range or function around them is named. "
     "The saving is the time in what is named, without a first gap that is longer than all others of several steps.",
     "Move the named work to another thread, overlap it with GPU work, or do less of it."},
    {"host_sync", "finding", "The CPU waits for the GPU and only then launches more work, so the GPU runs dry.",
     "Gaps in which the launching thread is still inside a synchronizing call; also short launch gaps, if the CPU would run ahead without its waits.",
     "Remove .item(), .cpu(), .tolist(), print(tensor) and torch.cuda.synchronize() from the step; copy with non_blocking=True from pinned memory."},
    {"allocation", "finding", "The GPU waits while the CPU allocates or frees GPU memory.",
     "Gaps inside cudaMalloc, cudaFree and their kin. The saving is 0 unless they come repeatedly: PyTorch and other pools allocate once.",
     "Allocate before the loop or from a pool. In PyTorch look for torch.cuda.empty_cache() and changing sizes."},
    {"blocked_call", "finding", "The GPU waits for one API call that takes long, often a launch that blocks.",
     "Gaps in which a call that is neither a wait nor an allocation took most of the time.",
     "Look for another thread inside the driver, a full launch queue, or module loading."},
    {"first_use", "finding", "Modules were loaded, compiled or tuned at their first use. It happens once.",
     "Gaps around the first launch of a kernel, or inside calls that load code. The saving is 0: no later step is faster without it.",
     "Warm up for a few steps before the profiler starts."},
    {"idle_at_start", "finding", "A request waits before its first kernel: tokenizing, scheduling, allocating.",
     "Idle time between the start of prefill and its first kernel, as far as it is the CPU's.",
     "Do that work before the request reaches the GPU thread."},
    {"exposed_comm", "finding", "GPUs communicate without computing at the same time.",
     "Time in which only communication kernels (NCCL, RCCL and others) ran.",
     "Overlap communication with compute, or send less: larger buckets, smaller groups; for all-reduce, a fused kernel."},
    {"exposed_copy", "finding", "The GPU copies memory while no kernel runs.",
     "Time in which only copies or memsets ran, with direction, kind of host memory and GB/s.",
     "Keep data on the GPU, pin host memory, and copy on a stream of its own."},
    {"queue_wait", "finding", "Work was launched in time but was blocked by other GPU work.",
     "Idle time before a kernel that had been launched before the gap began.",
     "Look for events between streams, another GPU, or another process."},
    {"started_late", "finding", "A kernel started long after its launch call returned.",
     "The launch had returned more than 20 us before the kernel began, and the GPU was idle.",
     "Check for another process on the GPU, lazy module loading, and clocks that do not agree."},
    {"rank_skew", "finding", "One GPU waits in communication for a slower one.",
     "A GPU communicates longer than the one that communicates least. Ranks that send different amounts look the same, so confidence is low.",
     "Compare kernels, copies and CPU time of the late rank with those of the others."},
    {"graph_idle", "finding", "The GPU is idle between nodes of a CUDA graph.",
     "Gaps between two nodes of one graph launch. Nodes that were not recorded look the same.",
     "Record nodes (nsys --cuda-graph-trace=node) and see whether the time stays."},
    {"unrecorded_work", "finding", "The CPU was waiting for the GPU, but no GPU activity was recorded.",
     "Idle time that no CPU work explains, typically the rest of an earlier step at the start of a recording.",
     "Record several consecutive steps."},
    {"unfused_attention", "finding", "Attention runs as GEMM, softmax, GEMM instead of one fused kernel.",
     "Sequences of kernels of these families. The saving is all but the two GEMMs, and of these what they take longer than at the GPU's peak, where shapes are recorded.",
     "PyTorch: F.scaled_dot_product_attention; transformers: attn_implementation=\"sdpa\" or \"flash_attention_2\"."},
    {"flash_attention_2", "finding", "FlashAttention 2, built for Ampere, runs on a Hopper GPU.",
     "Kernel names on a GPU of compute capability 9.0. The saving assumes that FlashAttention 3 is twice as fast; its authors measured 1.5 to 2 times.",
     "Use FlashAttention 3, or cuDNN attention."},
    {"layout_conversion", "finding", "Images are converted between NCHW and NHWC around convolutions.",
     "Kernels of cuDNN and MIOpen that do only that, by name. At least 3 % of the time. The saving is all of it.",
     "PyTorch: model and input .to(memory_format=torch.channels_last); on AMD also PYTORCH_MIOPEN_SUGGEST_NHWC=1."},
    {"empty_sms", "finding", "Kernels launch fewer blocks than the GPU has SMs, so most of the GPU is empty.",
     "Grid sizes of kernels longer than 20 us. The saving is the empty share of their time.",
     "Launch more blocks: a larger batch, split-K, or another kernel."},
    {"gemm_off_tensor_cores", "finding", "GEMMs or convolutions run on CUDA cores although the GPU has tensor cores.",
     "Kernel names of cuBLAS, CUTLASS and cuDNN. The saving is bounded by the peaks of this GPU.",
     "Use bf16 or fp16, or allow TF32: torch.backends.cuda.matmul.allow_tf32 = True."},
    {"fusion", "finding", "Many memory-bound kernels run back to back and could be fused.",
     "Chains of pointwise, copy and reduction kernels. The saving is all but one pass over the data per chain, as torch.compile may leave it; names do not tell whether neighbours depend "
     "on one another, so confidence is low.",
     "torch.compile, or fused norm, RoPE and activation kernels."},
    {"sampling", "finding", "Sampling tokens takes a visible share of the step.", "Time of sampling kernels.",
     "Use one fused sampling kernel, and overlap it with the next step."},
    {"kv_cache_copy", "finding", "Writing or moving the KV cache takes a visible share of the step.", "Time of KV cache kernels.",
     "Use paged attention, and avoid swapping the cache inside the step."},
    {"decode_off_memory_roof", "finding", "Decode kernels move data far below the GPU's memory bandwidth.",
     "The model's bytes over the GPU's bandwidth, against the time the GPU was busy. Needs --model and a known GPU.",
     "Look at the top kernels; measure them with ncu."},
    {"prefill_off_compute_roof", "finding", "Prefill kernels compute far below the GPU's peak.",
     "The model's FLOPs over the GPU's peak, against the time the GPU was busy. Needs --model and a known GPU.",
     "Look at the top GEMMs: data type, shapes, batch."},
    {"low_occupancy", "finding", "A kernel is latency-bound and keeps few warps on each SM.", "Counters of Nsight Compute.",
     "More blocks, or fewer registers and less shared memory per block."},
    {"attention_off_roof", "finding", "An attention kernel is far from both roofs of the GPU.", "Counters of Nsight Compute.",
     "Another attention kernel: FlashAttention 3 on Hopper, FlashInfer, or split-KV decoding."},
    {"gemv_memory_bound", "finding", "GEMMs or GEMVs are limited by memory bandwidth.", "Counters of Nsight Compute.",
     "Serve more sequences at once, or store weights in 8 or 4 bits."},
    {"profiler_overhead", "finding", "The profiler made a stage more than a quarter longer.", "Stage times with and without the profiler.",
     "Record less: gpuwhy run run.mode=light."},
    {"first_range_stretch", "finding", "The first instance of a stage took much longer than the others.", "Its length against the mean of the others.",
     "Warm up before profiling starts; use the steady mean."},
    {"few_kernels", "finding", "Fewer than 20 kernels ran: too few to say what a step waits for.", "The number of kernels.",
     "Record a few steps of the workload, after warming up."},
    {"largest_part", "finding", "Nothing stands out, so the largest kernel family and kernel are named.", "Kernel time by family.",
     "Name the model (--model) or measure the kernel with ncu (gpuwhy ncu plan)."},
    {"other_family", "finding", "More than 10 % of the time is in kernels of unknown families.", "Kernel names that no rule matches.",
     "Add their names to a rules file: --rules FILE."},
    {"other_gpu_users", "finding", "Other processes used the GPUs when the run began.", "nvidia-smi at the start of the run.",
     "Run alone, or choose another GPU with CUDA_VISIBLE_DEVICES."},
    {"clocks_not_locked", "finding", "GPU clocks are not locked, so repeated runs will differ.", "Persistence mode is off.",
     "sudo nvidia-smi -pm 1, then sudo nvidia-smi --lock-gpu-clocks=MIN,MAX."},

    {"compute", "bucket", "A compute kernel of the stage runs.", "Time with at least one such kernel on the GPU.", ""},
    {"comm", "bucket", "Only communication kernels of the stage run.", "Communication that no compute kernel hides.", "See exposed_comm."},
    {"copy", "bucket", "Only copies or memsets of the stage run.", "Copies that no kernel hides.", "See exposed_copy."},
    {"other_stage", "bucket", "Only work of other stages runs.", "Work that was launched in another stage.", ""},
    {"unattributed", "bucket", "Only work that belongs to no stage runs.", "Work that was launched outside all marks.", "Mark more of the program: docs/marking.md."},
    {"graph", "bucket", "Idle between two nodes of one CUDA graph launch.", "Gaps inside a graph.", "See graph_idle."},
    {"sync", "bucket", "Idle while the launching thread still waits for earlier work.", "The gap's part before the synchronizing call returns.", "See host_sync."},
    {"launch_late", "bucket", "Idle because the CPU has not launched the next work yet.", "The gap's part until the launch call returns.", "See launch_bound, host_work and allocation."},
    {"started_late", "bucket", "Idle although the launch call had returned more than 20 us before.", "The gap's part after the launch call returned.", ""},
    {"queued", "bucket", "Idle although the next work had been launched before the gap: other GPU work blocks it.", "Launch times against the start of the gap.", "See queue_wait."},
    {"unknown_idle", "bucket", "Idle for an unknown reason: the launch of the next work was not recorded.", "Kernels without a launch call.", ""},
    {"unrecorded", "bucket", "Idle as far as was recorded: before the first GPU work, or while the CPU waits for a GPU that seems idle.", "No record covers the time.", "See unrecorded_work."},
    {"tail", "bucket", "Idle after the last kernel.", "The time from the last GPU work to the end of the window.", ""},

    {"busy", "term", "The share of the time in which a GPU ran a kernel, a copy or a memset, or several at once.", "The union of all of them, over the window; a GPU that only copies is busy too. The bucket `compute` is the share with a kernel.", ""},
    {"ledger", "term", "The table that puts every nanosecond of a stage on a GPU into exactly one bucket.", "Its buckets sum to the window of the stage, exactly.", ""},
    {"window", "term", "The time of a stage on a GPU: from its mark, or the end of the previous step, to the start of the next step.", "docs/metrics.md, ledgers.", ""},
    {"steady_phase", "term", "The part of a recording in which the model runs, without start-up and without what follows.", "From the first to the last mark, or kernel of a model family.", ""},
    {"saving", "term", "What fixing a finding saves at most. It is an upper bound, not a forecast.", "Bounded by the bucket it comes from and by the longer of the CPU's and the GPU's own work.", ""},
    {"ttft", "term", "Time to first token: from the start of a request's prefill to its end, or to the end of its GPU work if that is later.", "Marks of prefill; under vLLM, SGLang and others their step markers.", ""},
    {"tpot", "term", "Time per output token: from one decode step to the next.", "The period of steps on the GPU where there are several, else the longer of the CPU range and the step's window on the GPU; tpot.basis says which.", ""},
    {"step_time", "term", "The time of one step, the number that summaries and comparisons give.", "The median time from one step's first kernel to the next step's; of a stage without such a period the longer of its mark on the CPU and its time on the GPU, median.", ""},
    {"itl", "term", "Inter-token latency: the time between the arrivals of two tokens of a request at the client.", "The file of --requests.", "docs/requests.md"},
    {"goodput", "term", "Requests within the limits of --slo: TTFT, and the mean time per token after the first.", "The file of --requests.", ""},
    {"network", "term", "Part of TTFT: until the server had the request.", "Only where the server says when it received it.", ""},
    {"queue_busy", "term", "Part of TTFT: the request waits while the engine runs steps of others.", "From received to its first own step, as far as a step runs.",
     "More GPUs or replicas, a larger batch, or shorter prompts of others (chunked prefill)."},
    {"queue_idle", "term", "Part of TTFT: the request waits while the engine runs no step.", "From received to its first own step, as far as no step runs.",
     "Look at the CPU: tokenizing, scheduling, routing. gpuwhy report --section host_phases."},
    {"prefill_gpu", "term", "Part of TTFT: the GPU works in the prefill steps of the request.", "Own work of these steps on the busiest GPU.", ""},
    {"prefill_host", "term", "Part of TTFT: the GPU does not work in the prefill steps of the request.", "The rest of these steps.", "See launch_bound and host_sync."},
    {"other_steps", "term", "Part of TTFT: steps without the request, between its own prefill steps.", "The steps between its first and its last prefill step.", ""},
    {"between", "term", "Part of TTFT: no step runs, between its own prefill steps.", "The rest of that time.", ""},
    {"delivery", "term", "From the end of the step that made a token to its arrival: detokenizing, streaming, network, client.", "Needs a clock that is joined: requests.clock.", "Stream from another thread; measure with a client on the server's machine."},
    {"late_token", "term", "A token that took more than twice the median of its request, and more than 95 in 100 of all.", "Its cause is the part of the gap that exceeds its median by most.", ""},
    {"mixed_step", "term", "Cause of a late token: its step also read prompts of others.", "Prompt tokens of the step's marker.", "Smaller chunks: vLLM --max-num-batched-tokens, SGLang --chunked-prefill-size."},
    {"long_step", "term", "Cause of a late token: the GPU worked longer than usual for its step, without prompts.", "Own work of the step against the median.", ""},
    {"gap", "term", "Cause of a late token: the GPU waited before or in its step.", "The bucket of the ledger with most of that time is named.", "gpuwhy explain BUCKET"},
    {"missing", "term", "Cause of a late token: steps ran without the request, which was preempted or not scheduled.", "Steps between its tokens that do not have it.", "More memory for keys and values, or fewer sequences at once."},
    {"mfu", "term", "Model FLOPs utilization: the model's FLOPs over what the GPU could compute in the same time.", "FLOPs of the matrix products / dense peak of their type / time. Needs --model.", ""},
    {"hfu", "term", "Hardware FLOPs utilization: as MFU, with the FLOPs that usual kernels execute.", "Adds masked attention scores and MLA on compressed keys. No counter.", ""},
    {"mbu", "term", "Memory bandwidth utilization: the bytes a pass must move over what the GPU could move in the same time.", "Weights once, keys and values read and written. Needs --model.", ""},
    {"sol", "term", "Share of the theoretical peak (speed of light): the minimum time of a stage on this GPU over its measured time.", "The larger of MFU and MBU.", ""},
    {"roofline", "term", "The two ceilings of a kernel: the GPU's peak FLOP/s and its memory bandwidth.", "Counters of Nsight Compute, or the model's FLOPs and bytes.", ""},
    {"occupancy", "term", "Warps resident on an SM, over the most it can hold.", "Counters of Nsight Compute.", ""},
    {"kernel", "term", "A function that runs on the GPU. A step of a model is hundreds or thousands of them.", "The profiler records the start and the end of each.", ""},
    {"sm", "term", "Streaming multiprocessor: the part of a GPU that runs blocks of threads. An H100 has 132; a kernel with fewer blocks leaves some empty.",
     "devices[].sms, as the recording says.", "See empty_sms."},
    {"warp", "term", "32 threads of a GPU that execute one instruction at a time together. A wavefront of AMD has 32 or 64.", "Counters of Nsight Compute.", "See occupancy."},
    {"gemm", "term", "General matrix multiplication: the products of a model's weights with its inputs, most of the FLOPs of a transformer.",
     "Kernel names of cuBLAS, CUTLASS, Triton and others; gpuwhy table kernels shows them.", ""},
    {"gemv", "term", "The product of a matrix and one vector, as in decode of one sequence. It is limited by memory bandwidth.", "Kernel names.", ""},
    {"tensor_cores", "term", "Units of NVIDIA GPUs that multiply small matrices, in TF32, fp16, bf16, fp8 and less. They compute several times as fast as the CUDA cores, which compute fp32.",
     "Kernel names say which unit a product uses.", "See gemm_off_tensor_cores."},
    {"nvtx", "term", "NVIDIA's library for marks: a program names a range of its time, and profilers record it.", "Ranges of the recording; gpuwhy table ranges lists them.", "docs/marking.md"},
    {"cuda_graph", "term", "Kernels that are recorded once and launched together by one call, which saves the CPU a launch for each. HIP graphs are AMD's.",
     "Launches of graphs; their kernels are seen with nsys --cuda-graph-trace=node.", "See launch_bound and graph_opaque."},
    {"kv_cache", "term", "Keys and values of earlier tokens, kept so that decode need not compute them again. Its size grows with context and batch.", "gpuwhy model NAME gives its bytes per token.", "See kv_cache_copy."},
    {"stream", "term", "A queue of GPU work in order. Work of different streams may run at the same time.", "The recording names the stream of each kernel.", ""},
    {"prefill", "term", "The pass that reads a prompt. It is usually compute-bound.", "Marks, engine step markers, or two signs in the kernels.", ""},
    {"decode", "term", "Passes that make one token per sequence. They are usually memory- or launch-bound.", "As prefill.", ""},
    {"mixed", "term", "An engine step that reads prompts and makes tokens at once (chunked prefill).", "Engine step markers.", ""},
    {"all", "term", "The stage of a recording without marks: the whole recording.", "Where neither marks nor steps were found.", ""},
    {"capture", "term", "As the place of a finding: the recording as a whole, not one stage of it.", "Findings about time outside of stages, or about the recording itself.", ""},
    {"outside", "term", "GPU work outside of every marked stage.", "By the thread and time of its launch.", ""},
    {"steady", "term", "Without warm-up: the steady phase of a recording, or a mean without the first of a stage.", "See steady_phase.", ""},
};
// clang-format on

struct BucketLabel {
  std::string_view bucket;
  std::string_view label;
};

// Without commas: labels are listed.
constexpr BucketLabel kBucketLabels[] = {
    {"compute", "compute"},
    {"comm", "communication only"},
    {"copy", "copy only"},
    {"other_stage", "other stages"},
    {"unattributed", "outside any stage"},
    {"graph", "idle inside graphs"},
    {"sync", "CPU waits in sync call"},
    {"launch_late", "waiting for CPU launch"},
    // Parts of launch_late, by what the CPU did.
    {"launch_late.host_work", "CPU did other work"},
    {"launch_late.first_use", "CPU loaded code or captured graphs"},
    {"launch_late.allocating", "CPU allocated memory"},
    {"launch_late.blocked", "CPU in a long API call"},
    {"started_late", "launched but started late"},
    {"queued", "blocked by other GPU work"},
    {"unknown_idle", "idle (cause unknown)"},
    {"unrecorded", "not recorded"},
    {"tail", "idle after last kernel"},
};

// A part of a bucket is what a finding says.
std::string_view term_of_bucket(std::string_view bucket) {
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"launch_late.host_work", "host_work"},
      {"launch_late.first_use", "first_use"},
      {"launch_late.allocating", "allocation"},
      {"launch_late.blocked", "blocked_call"}};
  for (const auto& [part, finding] : kParts) {
    if (bucket == part) {
      return finding;
    }
  }
  return bucket;
}

}  // namespace

std::string term_name(std::string_view word) {
  std::string name = to_lower(word);
  std::ranges::replace(name, ' ', '_');
  std::ranges::replace(name, '-', '_');
  return name;
}

std::span<const Term> glossary() {
  return kTerms;
}

const Term* find_term(std::string_view word) {
  std::string name = term_name(word);
  // Buckets are also known by what the screen says.
  for (const BucketLabel& row : kBucketLabels) {
    std::string label = to_lower(row.label);
    std::ranges::replace(label, ' ', '_');
    if (label == name) {
      name = term_of_bucket(row.bucket);
    }
  }
  // So are the parts of a recording.
  static constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"whole_recording", "capture"}, {"unmarked", "outside"}};
  for (const auto& [label, term] : kParts) {
    name = name == label ? std::string(term) : name;
  }
  // "CUDA graphs", "tensor core": in the singular or plural.
  for (const std::string& form :
       {name, name.ends_with('s') ? name.substr(0, name.size() - 1) : name, name + "s"}) {
    const auto* found = std::ranges::find(kTerms, std::string_view(form), &Term::name);
    if (found != std::end(kTerms)) {
      return found;
    }
  }
  return nullptr;
}

std::vector<std::string_view> bucket_labels() {
  std::vector<std::string_view> labels;
  for (const BucketLabel& row : kBucketLabels) {
    labels.push_back(row.label);
  }
  return labels;
}

std::string_view bucket_label(std::string_view bucket) {
  const auto* found = std::ranges::find(kBucketLabels, bucket, &BucketLabel::bucket);
  return found == std::end(kBucketLabels) ? bucket : found->label;
}

}  // namespace gpuwhy
