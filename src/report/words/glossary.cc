// SPDX-License-Identifier: Apache-2.0
//
// The texts of the glossary: a bucket or a term that is printed has a row here, a finding in
// results/finding_info.h.
#include "report/words/glossary.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "results/bucket.h"
#include "results/finding_info.h"

namespace gpuwhy {
namespace {

// clang-format off
constexpr Term kTerms[] = {
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

// A part of a bucket is what a finding says: "launch_late.host_work".
std::string_view term_of_bucket(std::string_view bucket) {
  for (const FindingInfo& info : kFindingInfo) {
    if (info.idle != IdleKind::kNotHost &&
        bucket == fmt::format("{}.{}", word_of(Bucket::kLaunchLate), word_of(info.idle))) {
      return info.word;
    }
  }
  return bucket;
}

std::vector<Term> all_terms() {
  std::vector<Term> terms;
  for (const FindingInfo& info : std::span(kFindingInfo).first(kNumFindings)) {
    terms.push_back({info.word, "finding", info.meaning, info.found, info.advice});
  }
  terms.insert(terms.end(), std::begin(kTerms), std::end(kTerms));
  return terms;
}

}  // namespace

std::string term_name(std::string_view word) {
  std::string name = to_lower(word);
  std::ranges::replace(name, ' ', '_');
  std::ranges::replace(name, '-', '_');
  return name;
}

std::span<const Term> glossary() {
  static const std::vector<Term> kAll = all_terms();
  return kAll;
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
    const auto found = std::ranges::find(glossary(), std::string_view(form), &Term::name);
    if (found != glossary().end()) {
      return &*found;
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
