// SPDX-License-Identifier: Apache-2.0
//
// What is known about each finding beside its numbers: one row each, and nothing elsewhere.
//
// A new finding is a rule (analysis/findings/), a name here and a row below.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "results/idle_label.h"
#include "results/words.h"

namespace gpuwhy {

// clang-format off
enum class FindingId : std::uint8_t {
  kNoGpuActivity, kGraphOpaque, kGraphCapture, kCallsMissing, kDataLoss, kImpossibleRows,
  kLaunchBound, kHostWork, kHostSync, kAllocation, kBlockedCall, kFirstUse, kIdleAtStart,
  kExposedComm, kExposedCopy, kQueueWait, kStartedLate, kRankSkew, kGraphIdle, kUnrecordedWork,
  kUnfusedAttention, kFlashAttention2, kLayoutConversion, kEmptySms, kGemmOffTensorCores, kFusion,
  kSampling, kKvCacheCopy, kDecodeOffMemoryRoof, kPrefillOffComputeRoof, kLowOccupancy,
  kAttentionOffRoof, kGemvMemoryBound, kProfilerOverhead, kFirstRangeStretch, kFewKernels,
  kLargestPart, kOtherFamilies, kOtherGpuUsers, kClocksNotLocked,
  kUnknown,  // of a file that a later version wrote
};
// clang-format on
inline constexpr std::size_t kNumFindings = static_cast<std::size_t>(FindingId::kUnknown);

// What a finding is good for: a gain that can be estimated, a remark, or a recording that must be
// made again before its other figures mean anything.
enum class FindingKind : std::uint8_t { kOpportunity, kNote, kBlocker };

struct FindingInfo {
  FindingId id = FindingId::kUnknown;
  FindingKind kind = FindingKind::kNote;
  const char* word = "";         // scripts rely on it
  std::string_view problem;      // for a reader who has never seen a trace
  std::string_view effort = "";  // of an opportunity
  std::string_view risk = "";
  std::string_view meaning = "";  // and the rest of its line of the glossary
  std::string_view found = "";
  std::string_view advice = "";
  IdleKind idle = IdleKind::kNotHost;  // the one kind of waiting for the CPU that it is about
};

// By id, in the order of the glossary.
// clang-format off
inline constexpr std::array<FindingInfo, kNumFindings + 1> kFindingInfo = [] {
  using enum FindingId;
  using enum FindingKind;
  return std::array<FindingInfo, kNumFindings + 1>{{
      {kNoGpuActivity, kBlocker, "no_gpu_activity", "No GPU activity was recorded", "", "",
       "No kernel was recorded, so there is nothing to report about the GPU.",
       "The recording has no kernel rows. The profiler's own messages are quoted where they say why.",
       "Run gpuwhy doctor. Profile the process that launches the kernels, with CUDA tracing on."},
      {kGraphOpaque, kBlocker, "graph_opaque", "CUDA graphs were recorded as a whole", "", "",
       "Half of GPU time or more is in CUDA graphs that were recorded as one block each.", "Time of graph launches without node records, over all GPU time.",
       "Record again with nsys --cuda-graph-trace=node, as gpuwhy run does."},
      {kGraphCapture, kBlocker, "graph_capture", "Graphs were captured, not run", "", "",
       "The recording shows a graph being captured: its kernels were not executed.", "More launches were captured into graphs than kernels ran.",
       "Use it to name the kernels of the replay: gpuwhy analyze REPLAY --capture-trace THIS."},
      {kCallsMissing, kBlocker, "calls_missing", "Most of the recording is missing", "", "",
       "Most CUDA API calls are missing, so idle time and its causes mean nothing.",
       "Correlation ids grow with every call; the file has fewer than one in fifty of them.", "Record again without sampling of events."},
      {kDataLoss, kBlocker, "data_loss", "The profiler lost events", "", "",
       "The recording is incomplete: events were dropped or the file ends early.", "Messages of the profiler, and the reader's own checks.",
       "Record a shorter time, or less. nsys: gpuwhy run run.mode=light; PyTorch's profiler: fewer active steps in its schedule."},
      {kImpossibleRows, kBlocker, "impossible_rows", "The recording contradicts itself", "", "",
       "The recording has numbers that cannot be right, so no figure holds.",
       "More than a hundredth of the kernels, or of the other events, was left out: text where a number belongs, an end before its start, times a year away. "
       "Or kernels of one stream run at the same time for more than a hundredth of all kernel time.",
       "Export the recording again, without editing it. If it says the same, record again."},
      {kLaunchBound, kOpportunity, "launch_bound", "The GPU waits for the processor to hand it work", "a setting, or days in own code", "low",
       "The GPU waits for the CPU to launch the next kernel, gap after gap.",
       "Short gaps that end when a launch call returns, while the CPU does nothing else for long. At least 20 gaps and 5 % of the time. The saving is all of "
       "these gaps, but never more than the CPU's own work lets through.",
       "Launch fewer, larger kernels or replay CUDA graphs: torch.compile(mode=\"reduce-overhead\"); vLLM without --enforce-eager; SGLang without "
       "--disable-cuda-graph. A larger batch gives each launch more work.", IdleKind::kLaunching},
      {kHostWork, kOpportunity, "host_work", "The GPU waits while the processor does other work", "a setting of a library, else days in own code", "low",
       "The GPU waits while the CPU does something else: data loading, Python code, I/O, scheduling.",
       "Gaps of 1 ms and more in which no CUDA call explains the wait. The operator, range or function around them is named. The saving is the time in what "
       "is named, without a first gap that is longer than all others of several steps.",
       "Move the named work to another thread, overlap it with GPU work, or do less of it.", IdleKind::kHostWork},
      {kHostSync, kOpportunity, "host_sync", "The processor waits for the GPU and then the GPU waits for it", "days", "low: same results",
       "The CPU waits for the GPU and only then launches more work, so the GPU runs dry.",
       "Gaps in which the launching thread is still inside a synchronizing call; also short launch gaps, if the CPU would run ahead without its waits.",
       "Remove .item(), .cpu(), .tolist(), print(tensor) and torch.cuda.synchronize() from the step; copy with non_blocking=True from pinned memory."},
      {kAllocation, kOpportunity, "allocation", "The GPU waits while memory is allocated", "hours", "low: same results",
       "The GPU waits while the CPU allocates or frees GPU memory.",
       "Gaps inside cudaMalloc, cudaFree and their kin. The saving is 0 unless they come repeatedly: PyTorch and other pools allocate once.",
       "Allocate before the loop or from a pool. In PyTorch look for torch.cuda.empty_cache() and changing sizes.", IdleKind::kAllocating},
      {kBlockedCall, kOpportunity, "blocked_call", "The GPU waits for a slow driver call", "days, cause to be found", "low",
       "The GPU waits for one API call that takes long, often a launch that blocks.",
       "Gaps in which a call that is neither a wait nor an allocation took most of the time.",
       "Look for another thread inside the driver, a full launch queue, or module loading.", IdleKind::kBlocked},
      {kFirstUse, kOpportunity, "first_use", "Code is loaded at its first use", "hours: warm up", "none",
       "Modules were loaded, compiled or tuned at their first use. It happens once.",
       "Gaps around the first launch of a kernel, or inside calls that load code. The saving is 0: no later step is faster without it.",
       "Warm up for a few steps before the profiler starts.", IdleKind::kFirstUse},
      {kIdleAtStart, kOpportunity, "idle_at_start", "A request waits before the GPU starts on it", "days", "low: same results",
       "A request waits before its first kernel: tokenizing, scheduling, allocating.",
       "Idle time between the start of prefill and its first kernel, as far as it is the CPU's.", "Do that work before the request reaches the GPU thread."},
      {kExposedComm, kOpportunity, "exposed_comm", "GPUs talk to each other instead of computing", "days to weeks", "medium: settings of the whole job",
       "GPUs communicate without computing at the same time.", "Time in which only communication kernels (NCCL, RCCL and others) ran.",
       "Overlap communication with compute, or send less: larger buckets, smaller groups; for all-reduce, a fused kernel."},
      {kExposedCopy, kOpportunity, "exposed_copy", "The GPU copies data instead of computing", "hours to days", "low: same results",
       "The GPU copies memory while no kernel runs.", "Time in which only copies or memsets ran, with direction, kind of host memory and GB/s.",
       "Keep data on the GPU, pin host memory, and copy on a stream of its own."},
      {kQueueWait, kOpportunity, "queue_wait", "GPU work blocks other GPU work", "days, cause to be found", "low",
       "Work was launched in time but was blocked by other GPU work.", "Idle time before a kernel that had been launched before the gap began.",
       "Look for events between streams, another GPU, or another process."},
      {kStartedLate, kOpportunity, "started_late", "Work starts late on the GPU", "days, cause to be found", "low",
       "A kernel started long after its launch call returned.", "The launch had returned more than 20 us before the kernel began, and the GPU was idle.",
       "Check for another process on the GPU, lazy module loading, and clocks that do not agree."},
      {kRankSkew, kOpportunity, "rank_skew", "One GPU waits for a slower one", "days, cause to be found", "low",
       "One GPU waits in communication for a slower one.",
       "A GPU communicates longer than the one that communicates least. Ranks that send different amounts look the same, so confidence is low.",
       "Compare kernels, copies and CPU time of the late rank with those of the others."},
      {kGraphIdle, kNote, "graph_idle", "The GPU is idle inside CUDA graphs", "", "",
       "The GPU is idle between nodes of a CUDA graph.", "Gaps between two nodes of one graph launch. Nodes that were not recorded look the same.",
       "Record nodes (nsys --cuda-graph-trace=node) and see whether the time stays."},
      {kUnrecordedWork, kNote, "unrecorded_work", "Some GPU work was not recorded", "", "",
       "The CPU was waiting for the GPU, but no GPU activity was recorded.",
       "Idle time that no CPU work explains, typically the rest of an earlier step at the start of a recording.", "Record several consecutive steps."},
      {kUnfusedAttention, kOpportunity, "unfused_attention", "Attention runs in several steps instead of one", "a setting", "low: results equal within rounding",
       "Attention runs as GEMM, softmax, GEMM instead of one fused kernel.",
       "Sequences of kernels of these families. The saving is all but the two GEMMs, and of these what they take longer than at the GPU's peak, where shapes are recorded.",
       "PyTorch: F.scaled_dot_product_attention; transformers: attn_implementation=\"sdpa\" or \"flash_attention_2\"."},
      {kFlashAttention2, kOpportunity, "flash_attention_2", "Attention uses code for an older GPU generation", "hours: an upgrade", "low: results equal within rounding",
       "FlashAttention 2, built for Ampere, runs on a Hopper GPU.",
       "Kernel names on a GPU of compute capability 9.0. The saving assumes that FlashAttention 3 is twice as fast; its authors measured 1.5 to 2 times.",
       "Use FlashAttention 3, or cuDNN attention."},
      {kLayoutConversion, kOpportunity, "layout_conversion", "Images are converted before and after each convolution", "a setting", "low: results equal within rounding",
       "Images are converted between NCHW and NHWC around convolutions.",
       "Kernels of cuDNN and MIOpen that do only that, by name. At least 3 % of the time. The saving is all of it.",
       "PyTorch: model and input .to(memory_format=torch.channels_last); on AMD also PYTORCH_MIOPEN_SUGGEST_NHWC=1."},
      {kEmptySms, kOpportunity, "empty_sms", "Most of the GPU is empty while some kernels run", "days", "low",
       "Kernels launch fewer blocks than the GPU has SMs, so most of the GPU is empty.",
       "Grid sizes of kernels longer than 20 us. The saving is the empty share of their time.", "Launch more blocks: a larger batch, split-K, or another kernel."},
      {kGemmOffTensorCores, kOpportunity, "gemm_off_tensor_cores", "Matrix products run on the slow units of the GPU", "a setting", "medium: lower precision, check quality",
       "GEMMs or convolutions run on CUDA cores although the GPU has tensor cores.",
       "Kernel names of cuBLAS, CUTLASS and cuDNN. The saving is bounded by the peaks of this GPU.",
       "Use bf16 or fp16, or allow TF32: torch.backends.cuda.matmul.allow_tf32 = True."},
      {kFusion, kOpportunity, "fusion", "Many small steps read and write the same data", "a setting, or days in own code", "low",
       "Many memory-bound kernels run back to back and could be fused.",
       "Chains of pointwise, copy and reduction kernels. The saving is all but one pass over the data per chain, as torch.compile may leave it; names do not "
       "tell whether neighbours depend on one another, so confidence is low.", "torch.compile, or fused norm, RoPE and activation kernels."},
      {kSampling, kOpportunity, "sampling", "Choosing the next token takes long", "hours", "low",
       "Sampling tokens takes a visible share of the step.", "Time of sampling kernels.", "Use one fused sampling kernel, and overlap it with the next step."},
      {kKvCacheCopy, kOpportunity, "kv_cache_copy", "Moving the cache of earlier tokens takes long", "hours", "low",
       "Writing or moving the KV cache takes a visible share of the step.", "Time of KV cache kernels.",
       "Use paged attention, and avoid swapping the cache inside the step."},
      {kDecodeOffMemoryRoof, kOpportunity, "decode_off_memory_roof", "Kernels use a fraction of the memory bandwidth", "days to weeks", "medium",
       "Decode kernels move data far below the GPU's memory bandwidth.",
       "The model's bytes over the GPU's bandwidth, against the time the GPU was busy. Needs --model and a known GPU.",
       "Look at the top kernels; measure them with ncu."},
      {kPrefillOffComputeRoof, kOpportunity, "prefill_off_compute_roof", "Kernels use a fraction of the GPU's speed", "days to weeks", "medium",
       "Prefill kernels compute far below the GPU's peak.",
       "The model's FLOPs over the GPU's peak, against the time the GPU was busy. Needs --model and a known GPU.",
       "Look at the top GEMMs: data type, shapes, batch."},
      {kLowOccupancy, kOpportunity, "low_occupancy", "A kernel keeps few threads busy", "days", "low",
       "A kernel is latency-bound and keeps few warps on each SM.", "Counters of Nsight Compute.",
       "More blocks, or fewer registers and less shared memory per block."},
      {kAttentionOffRoof, kOpportunity, "attention_off_roof", "The attention kernel is slow", "days", "low",
       "An attention kernel is far from both roofs of the GPU.", "Counters of Nsight Compute.",
       "Another attention kernel: FlashAttention 3 on Hopper, FlashInfer, or split-KV decoding."},
      {kGemvMemoryBound, kOpportunity, "gemv_memory_bound", "Reading the model's weights takes most of the time", "days: quantize the weights", "medium: check quality",
       "GEMMs or GEMVs are limited by memory bandwidth.", "Counters of Nsight Compute.", "Serve more sequences at once, or store weights in 8 or 4 bits."},
      {kProfilerOverhead, kNote, "profiler_overhead", "The profiler slows the program down", "", "",
       "The profiler made a stage more than a quarter longer.", "Stage times with and without the profiler.", "Record less: gpuwhy run run.mode=light."},
      {kFirstRangeStretch, kNote, "first_range_stretch", "The first step takes longer than the others", "", "",
       "The first instance of a stage took much longer than the others.", "Its length against the mean of the others.",
       "Warm up before profiling starts; use the steady mean."},
      {kFewKernels, kNote, "few_kernels", "Too little work was recorded", "", "",
       "Fewer than 20 kernels ran: too few to say what a step waits for.", "The number of kernels.", "Record a few steps of the workload, after warming up."},
      {kLargestPart, kNote, "largest_part", "Where most of the kernel time goes", "", "",
       "Nothing stands out, so the largest kernel family and kernel are named.", "Kernel time by family.",
       "Name the model (--model) or measure the kernel with ncu (gpuwhy ncu plan)."},
      {kOtherFamilies, kNote, "other_family", "Kernels that gpuwhy does not know", "", "",
       "More than 10 % of the time is in kernels of unknown families.", "Kernel names that no rule matches.", "Add their names to a rules file: --rules FILE."},
      {kOtherGpuUsers, kNote, "other_gpu_users", "Other programs use the GPU", "", "",
       "Other processes used the GPUs when the run began.", "nvidia-smi at the start of the run.", "Run alone, or choose another GPU with CUDA_VISIBLE_DEVICES."},
      {kClocksNotLocked, kNote, "clocks_not_locked", "The GPU's clocks are not fixed", "", "",
       "GPU clocks are not locked, so repeated runs will differ.", "Persistence mode is off.",
       "sudo nvidia-smi -pm 1, then sudo nvidia-smi --lock-gpu-clocks=MIN,MAX."},

      {kUnknown, kNote, "unknown", "A later version of gpuwhy found this"},
  }};
}();
// clang-format on

constexpr bool has_all_rows() {
  for (std::size_t i = 0; i < kFindingInfo.size(); ++i) {
    if (kFindingInfo[i].id != static_cast<FindingId>(i) || kFindingInfo[i].problem.empty()) {
      return false;
    }
  }
  return true;
}
static_assert(has_all_rows(), "a finding lacks its row, or a row is not in its place");

constexpr const FindingInfo& info_of(FindingId id) {
  return kFindingInfo[static_cast<std::size_t>(id)];
}

// The words that files have, by id.
inline constexpr auto kFindingWords = [] {
  std::array<const char*, kFindingInfo.size()> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = kFindingInfo[i].word;
  }
  return words;
}();
constexpr std::span<const char* const> words_of(FindingId /*any*/) {
  return kFindingWords;
}
inline constexpr std::span<const char* const> kKnownFindings(kFindingWords.data(), kNumFindings);
// kUnknown for a word of none.
FindingId finding_id(std::string_view word);

}  // namespace gpuwhy
