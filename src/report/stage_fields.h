// SPDX-License-Identifier: Apache-2.0
//
// Field descriptions of capture, findings, stages and ledgers: see metric_fields.h.
#pragma once

#include "report/metrics.h"
#include "results/field.h"

namespace gpuwhy {

inline constexpr const char* kFindingIds[] = {"no_gpu_activity",
                                              "graph_opaque",
                                              "data_loss",
                                              "impossible_rows",
                                              "graph_capture",
                                              "calls_missing",
                                              "few_kernels",
                                              "largest_part",
                                              "graph_idle",
                                              "unrecorded_work",
                                              "unfused_attention",
                                              "flash_attention_2",
                                              "layout_conversion",
                                              "empty_sms",
                                              "launch_bound",
                                              "host_work",
                                              "allocation",
                                              "blocked_call",
                                              "first_use",
                                              "idle_at_start",
                                              "host_sync",
                                              "exposed_comm",
                                              "exposed_copy",
                                              "queue_wait",
                                              "started_late",
                                              "rank_skew",
                                              "gemm_off_tensor_cores",
                                              "fusion",
                                              "sampling",
                                              "kv_cache_copy",
                                              "decode_off_memory_roof",
                                              "prefill_off_compute_roof",
                                              "low_occupancy",
                                              "attention_off_roof",
                                              "gemv_memory_bound",
                                              "profiler_overhead",
                                              "first_range_stretch",
                                              "other_family",
                                              "other_gpu_users",
                                              "clocks_not_locked"};
inline constexpr const char* kConfidences[] = {"high", "medium", "low"};

template <typename F>
void describe(const Finding*, F&& f) {
  using T = Finding;
  f("id", &T::id, one_of(plain("a stable name of the rule"), kFindingIds));
  f("stage", &T::stage, plain("the stage it is about"));
  f("device", &T::device, maybe("the GPU it is about"));
  f("blocker", &T::is_blocker, plain("the recording must be fixed before other figures mean much"));
  f("saving_ns", &T::saving_ns,
    number("ns", "", "", "findings.saving",
           "what fixing it saves at most; the keys under evidence hold it"));
  f("window_ns", &T::window_ns,
    number("ns", "", "", "findings.window", "the window it is a part of"));
  f("saving_fraction", &T::saving_fraction,
    is_part(number("fraction", "", "", "findings.saving", "saving_ns / window_ns")));
  f("bucket", &T::bucket, maybe("the bucket of the ledger in which that time lies"));
  f("overlaps", &T::overlaps, plain("a finding above saves time of the same bucket"));
  f("bound", &T::bound, maybe("how saving_ns comes about, with numbers"));
  f("confidence", &T::confidence, one_of(plain("how sure the saving is"), kConfidences));
  f("sentence", &T::sentence, plain("what was found"));
  f("next", &T::next, plain("what to do"));
  f("evidence", &T::evidence, items(plain("keys of this file it rests on"), 1));
}

template <typename F>
void describe(const SilentRule*, F&& f) {
  f("id", &SilentRule::id, plain("a rule that could not be checked"));
  f("reason", &SilentRule::reason, plain("why not"));
}

}  // namespace gpuwhy
