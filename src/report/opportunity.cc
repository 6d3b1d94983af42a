// SPDX-License-Identifier: Apache-2.0
//
// Findings in the words of a reader who has never seen a trace.
#include "report/opportunity.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "analysis/findings/findings.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

// clang-format off
constexpr Opportunity kOpportunities[] = {
    {"launch_bound", "The GPU waits for the processor to hand it work", "a setting, or days in own code", "low"},
    {"host_work", "The GPU waits while the processor does other work", "a setting of a library, else days in own code", "low"},
    {"host_sync", "The processor waits for the GPU and then the GPU waits for it", "days", "low: same results"},
    {"allocation", "The GPU waits while memory is allocated", "hours", "low: same results"},
    {"blocked_call", "The GPU waits for a slow driver call", "days, cause to be found", "low"},
    {"first_use", "Code is loaded at its first use", "hours: warm up", "none"},
    {"idle_at_start", "A request waits before the GPU starts on it", "days", "low: same results"},
    {"exposed_comm", "GPUs talk to each other instead of computing", "days to weeks", "medium: settings of the whole job"},
    {"exposed_copy", "The GPU copies data instead of computing", "hours to days", "low: same results"},
    {"queue_wait", "GPU work blocks other GPU work", "days, cause to be found", "low"},
    {"started_late", "Work starts late on the GPU", "days, cause to be found", "low"},
    {"rank_skew", "One GPU waits for a slower one", "days, cause to be found", "low"},
    {"unfused_attention", "Attention runs in several steps instead of one", "a setting", "low: results equal within rounding"},
    {"flash_attention_2", "Attention uses code for an older GPU generation", "hours: an upgrade", "low: results equal within rounding"},
    {"layout_conversion", "Images are converted before and after each convolution", "a setting", "low: results equal within rounding"},
    {"empty_sms", "Most of the GPU is empty while some kernels run", "days", "low"},
    {"gemm_off_tensor_cores", "Matrix products run on the slow units of the GPU", "a setting", "medium: lower precision, check quality"},
    {"fusion", "Many small steps read and write the same data", "a setting, or days in own code", "low"},
    {"sampling", "Choosing the next token takes long", "hours", "low"},
    {"kv_cache_copy", "Moving the cache of earlier tokens takes long", "hours", "low"},
    {"decode_off_memory_roof", "Kernels use a fraction of the memory bandwidth", "days to weeks", "medium"},
    {"prefill_off_compute_roof", "Kernels use a fraction of the GPU's speed", "days to weeks", "medium"},
    {"low_occupancy", "A kernel keeps few threads busy", "days", "low"},
    {"attention_off_roof", "The attention kernel is slow", "days", "low"},
    {"gemv_memory_bound", "Reading the model's weights takes most of the time", "days: quantize the weights", "medium: check quality"},
};
// clang-format on

// Findings without a gain that can be estimated.
constexpr std::pair<std::string_view, std::string_view> kNotes[] = {
    {"no_gpu_activity", "No GPU activity was recorded"},
    {"graph_opaque", "CUDA graphs were recorded as a whole"},
    {"graph_capture", "Graphs were captured, not run"},
    {"calls_missing", "Most of the recording is missing"},
    {"data_loss", "The profiler lost events"},
    {"impossible_rows", "The recording contradicts itself"},
    {"graph_idle", "The GPU is idle inside CUDA graphs"},
    {"unrecorded_work", "Some GPU work was not recorded"},
    {"profiler_overhead", "The profiler slows the program down"},
    {"first_range_stretch", "The first step takes longer than the others"},
    {"few_kernels", "Too little work was recorded"},
    {"largest_part", "Where most of the kernel time goes"},
    {"other_family", "Kernels that gpuwhy does not know"},
    {"other_gpu_users", "Other programs use the GPU"},
    {"clocks_not_locked", "The GPU's clocks are not fixed"},
};

}  // namespace

const Opportunity* find_opportunity(std::string_view id) {
  const auto* found = std::ranges::find(kOpportunities, id, &Opportunity::id);
  return found == std::end(kOpportunities) ? nullptr : found;
}

const Opportunity* find_change(const Finding& finding) {
  const std::string_view next = finding.next;
  if (next.starts_with(kAlsoFixed)) {
    const std::string_view rest = next.substr(kAlsoFixed.size());
    if (const Opportunity* above = find_opportunity(rest.substr(0, rest.find(':')))) {
      return above;
    }
  }
  return find_opportunity(finding.id);
}

std::string_view problem_words(std::string_view id) {
  if (const Opportunity* known = find_opportunity(id)) {
    return known->problem;
  }
  const auto* note = std::ranges::find(kNotes, id, [](const auto& row) { return row.first; });
  return note == std::end(kNotes) ? std::string_view() : note->second;
}

std::string order_words() {
  return fmt::format(
      "The largest saving comes first, and one that is less sure counts less: medium {:.0f} %, low "
      "{:.0f} % of it. Gains do not add up: each is for that point alone.",
      kMediumWeight * 100, kLowWeight * 100);
}

}  // namespace gpuwhy
