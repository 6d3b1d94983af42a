// SPDX-License-Identifier: Apache-2.0
//
// The time of a step, and what follows from it: tokens per second, the worth of a saving in a day.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "results/results.h"

namespace gpuwhy {

// Whether a stage is work of its own: no part of another, and not idle.
bool is_work(const StageRow& stage);

// The marked stage that takes most time; nullptr: none is marked.
const StageRow* main_stage(const Results& metrics);

// A pass of the model that repeats; nullptr: none was recognized.
const PassRow* repeated_pass(const Results& metrics);

// The time of a step, and its key in metrics.json.
struct StepTime {
  std::int64_t time_ns = 0;
  std::string key;         // empty: it is made of several numbers
  bool is_period = false;  // from one to the next
};

// The length of one instance of a stage, as reports and comparisons give it: its period on the GPU
// where several follow each other, else its time on the GPU without what was not recorded. nullopt
// if nothing tells.
std::optional<StepTime> step_time(const Results& metrics, const StageRow& stage);

// GPUs on which a kernel ran.
std::int64_t num_working_gpus(const Results& metrics);

// Tokens per second of a stage whose marks carry token counts.
std::optional<double> tokens_per_s(const Results& metrics, const StageRow& stage);
// Tokens per second while tokens are made; nullopt where they are not counted.
std::optional<double> tokens_per_s(const Results& metrics);

// What a saving is worth if the program runs all day as it was recorded.
struct DayWorth {
  double share = 0;               // of the day
  std::int64_t num_gpus = 0;      // a shorter job frees all of its GPUs
  std::int64_t num_recorded = 0;  // of them
  bool is_one_step = false;       // one was recorded, and stands for all

  double day_h() const { return 24.0 * static_cast<double>(num_gpus); }
  double saved_h() const { return share * day_h(); }
};

// Less than this does not show how a day goes on.
inline constexpr std::int64_t kLeastBasisNs = 100'000'000;

// A share of the whole recording, of its steady phase or of the only stage there is, is a share of
// a day that goes on like it; a share of one stage among others is not, nor one of a few
// milliseconds. Nullopt then.
std::optional<DayWorth> worth_of_day(const Results& metrics, const Finding& finding);

// Whether there is no worth because too little was recorded.
bool is_too_short_for_a_day(const Results& metrics, const Finding& finding);

}  // namespace gpuwhy
