// SPDX-License-Identifier: Apache-2.0
//
// What the rules behind find_findings() share. A rule looks at an analysis and adds findings, or
// says why it cannot speak.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/findings/findings.h"

namespace llmprof {

// Below these a finding is noise on a list that people must act on. Ours, not measured.
inline constexpr double kLeastIdleShare = 0.05;     // of the window: waits for the host
inline constexpr double kLeastExposedShare = 0.01;  // communication, copies, synchronising calls
inline constexpr double kLeastKernelShare = 0.03;   // kernels that could be fewer or faster

struct FindingContext {
  const Analysis& analysis;
  const FindingFacts& facts;
  // The rows a rule looks at: stages that are not nested; start-up and steady part, or the capture,
  // where none is marked; of a summary without times one that is all compute.
  const std::vector<StageLedger>& scopes;
  Findings& findings;

  // A finding on a stage and device of the ledger that saves `saving_ns` at most, out of `bucket`.
  Finding& add(const char* id, const StageLedger& row, Bucket bucket, std::int64_t saving_ns) const;
  // One that saves no time of its own.
  Finding& note(const char* id, const std::string& stage) const;
  // A recording that must be mended first.
  Finding& block(const char* id) const;
  void silent(const char* id, const std::string& reason) const;
};

// What `saving_ns` is a part of: the stage's window; of what comes before the model, the capture's.
std::int64_t window_of(const Analysis& analysis, const StageLedger& row);

// Whether a kernel's time lies in the row. Kernels of a recording without stages count in its
// steady part.
bool is_kernel_in(const KernelRecord& kernel, const StageLedger& row);

// "1.20 ms (12.3 %) of decode on cuda:0".
std::string time_in(const FindingContext& context, std::int64_t time_ns, const StageLedger& row);

// Of the recording itself.
void check_gpu_activity(const FindingContext& context);
void check_opaque_graphs(const FindingContext& context);
void check_data_loss(const FindingContext& context);
void check_overhead(const FindingContext& context);
void check_first_range(const FindingContext& context);
void check_other_family(const FindingContext& context);
void check_other_users(const FindingContext& context);
void check_clocks(const FindingContext& context);
// Of time without compute.
void check_buckets(const FindingContext& context);
void check_idle_at_start(const FindingContext& context);
void check_rank_skew(const FindingContext& context);
void check_pageable_copies(const FindingContext& context);
// Of kernels.
void check_tensor_cores(const FindingContext& context);
void check_fusion(const FindingContext& context);
void check_families(const FindingContext& context);
void check_roofs(const FindingContext& context);
void check_counters(const FindingContext& context);

}  // namespace llmprof
