// SPDX-License-Identifier: Apache-2.0
//
// Which field of a summary stands in which column of its file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/duration_steps.h"
#include "fleet/rank_summary.h"
#include "fleet/table_file.h"

namespace llmprof {

template <typename Row, std::size_t NumTexts, std::size_t NumNumbers>
struct SummaryFields {
  std::array<std::pair<const char*, std::string Row::*>, NumTexts>
      texts;  // the first: always there
  std::array<std::pair<const char*, std::int64_t Row::*>, NumNumbers> numbers;
};

inline constexpr SummaryFields<RankIdentity, 10, 5> kIdentityFields = {
    {{{"rank.run_id", &RankIdentity::run_id},
      {"rank.node", &RankIdentity::node},
      {"rank.gpu", &RankIdentity::gpu},
      {"rank.model", &RankIdentity::model},
      {"rank.engine", &RankIdentity::engine},
      {"rank.engine_version", &RankIdentity::engine_version},
      {"rank.driver_version", &RankIdentity::driver_version},
      {"rank.llmprof_version", &RankIdentity::llmprof_version},
      {"rank.recorded_by", &RankIdentity::recorded_by},
      {"rank.communicators_by", &RankIdentity::communicators_by}}},
    {{{"rank.rank", &RankIdentity::rank},
      {"rank.num_ranks", &RankIdentity::num_ranks},
      {"rank.attempt", &RankIdentity::attempt},
      {"rank.started_unix_s", &RankIdentity::started_unix_s},
      {"rank.exit_code", &RankIdentity::exit_code}}}};

inline constexpr SummaryFields<StageCell, 1, 11> kStageFields = {
    {{{"stage.stage", &StageCell::stage}}},
    {{{"stage.instances", &StageCell::instances},
      {"stage.total_ns", &StageCell::total_ns},
      {"stage.min_ns", &StageCell::min_ns},
      {"stage.max_ns", &StageCell::max_ns},
      {"stage.tokens", &StageCell::tokens},
      {"stage.kernel_ns", &StageCell::kernel_ns},
      {"stage.window_ns", &StageCell::window_ns},
      {"stage.model_flops", &StageCell::model_flops},
      {"stage.peak_flops", &StageCell::peak_flops},
      {"stage.model_bytes", &StageCell::model_bytes},
      {"stage.peak_bytes", &StageCell::peak_bytes}}}};

inline constexpr SummaryFields<KernelCell, 3, 4> kKernelFields = {
    {{{"kernel.stage", &KernelCell::stage},
      {"kernel.kernel", &KernelCell::kernel},
      {"kernel.family", &KernelCell::family}}},
    {{{"kernel.calls", &KernelCell::calls},
      {"kernel.total_ns", &KernelCell::total_ns},
      {"kernel.min_ns", &KernelCell::min_ns},
      {"kernel.max_ns", &KernelCell::max_ns}}}};

inline constexpr SummaryFields<CollectiveCall, 3, 3> kCollectiveFields = {
    {{{"collective.communicator", &CollectiveCall::communicator},
      {"collective.stage", &CollectiveCall::stage},
      {"collective.kernel", &CollectiveCall::kernel}}},
    {{{"collective.sequence", &CollectiveCall::sequence},
      {"collective.arrival_ns", &CollectiveCall::arrival_ns},
      {"collective.duration_ns", &CollectiveCall::duration_ns}}}};

std::string bucket_column(std::size_t bucket);  // "stage.<bucket>_ns"

// Histograms of durations (analysis/duration_steps.h): filled steps a kernel row, then all steps
// and their launches in the order of rows.
inline constexpr const char* kHistogramSizes = "kernel.histogram_size";
inline constexpr const char* kHistogramSteps = "kernel.histogram_step";
inline constexpr const char* kHistogramLaunches = "kernel.histogram_launches";

class HistogramColumns {
 public:
  HistogramColumns(const TableFile& file, std::size_t num_rows);  // throws kInput

  std::size_t begin(std::size_t row) const { return offsets_[row]; }
  std::size_t end(std::size_t row) const { return offsets_[row + 1]; }
  int step(std::size_t at) const { return static_cast<int>(steps_[at]); }
  std::int64_t count(std::size_t at) const { return counts_[at]; }

 private:
  std::vector<std::size_t> offsets_;
  std::vector<std::int64_t> steps_;
  std::vector<std::int64_t> counts_;
};

}  // namespace llmprof
