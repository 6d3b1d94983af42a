// SPDX-License-Identifier: Apache-2.0
//
// Rows of runs, with what tests of comparisons say of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compare/compare.h"

namespace gpuwhy {

inline ShapedOperator operator_row(const std::string& name, const RowName& stage,
                                   std::int64_t total_ns, std::int64_t calls,
                                   const std::string& shape = "") {
  ShapedOperator row;
  row.name = name;
  row.stage = stage;
  row.total_ns = total_ns;
  row.calls = calls;
  row.shape = shape;
  return row;
}

inline LedgerRow ledger_row(const RowName& stage, const std::string& device,
                            const std::vector<std::pair<Bucket, std::int64_t>>& buckets) {
  LedgerRow row;
  row.stage = stage;
  row.device = device;
  for (const auto& [bucket, time_ns] : buckets) {
    row.buckets_ns[static_cast<std::size_t>(bucket)] = time_ns;
    row.window_ns += time_ns;
  }
  return row;
}

inline IdleRow idle_row(const RowName& stage, const std::string& device, IdleKind kind,
                        const std::string& scope, std::int64_t total_ns) {
  IdleRow row;
  row.stage = stage;
  row.device = device;
  row.kind = kind;
  row.scope = scope;
  row.total_ns = total_ns;
  return row;
}

inline KernelRow kernel_row(const std::string& name, const std::string& stage,
                            const std::string& family, std::int64_t calls, std::int64_t total_ns) {
  KernelRow row;
  row.kernel_name = row.short_name = name;
  row.device = "cuda:0";
  row.stage = row_name(stage);
  row.family = family;
  row.calls = calls;
  row.total_ns = total_ns;
  return row;
}

inline ComparedStage stage_row(const std::string& stage, std::int64_t num_instances,
                               std::optional<std::int64_t> tokens = {}) {
  ComparedStage row;
  row.stage = row_name(stage);
  row.num_instances = num_instances;
  row.tokens = tokens;
  return row;
}

inline StepRow step_row(const std::string& stage, const std::vector<double>& lengths_ns) {
  StepRow row;
  row.stage = row_name(stage);
  row.durations_ns.assign(lengths_ns.begin(), lengths_ns.end());
  return row;
}

inline PromisedSaving promise(FindingId id, const RowName& stage, Bucket bucket,
                              std::int64_t saving_ns, std::int64_t num_steps) {
  PromisedSaving saving;
  saving.id = id;
  saving.stage = stage;
  saving.device = "cuda:0";
  saving.bucket = bucket;
  saving.saving_ns = saving_ns;
  saving.num_steps = num_steps;
  return saving;
}

}  // namespace gpuwhy
