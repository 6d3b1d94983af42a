// SPDX-License-Identifier: Apache-2.0
//
// How fast a run is, in sentences: the first token, each further one, tokens per second, a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/results.h"

namespace gpuwhy {

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

// The time that a reader asks for first: of a step of the main stage, else of a pass of the model.
struct HeadlineTime {
  std::string label;
  StepTime step;
  std::string note;                         // what it is the time of
  std::optional<double> tokens_per_s = {};  // where the marks carry token counts
  std::string rate_note;                    // how many tokens one step has
};

// nullopt where no step is marked and no pass was recognized.
std::optional<HeadlineTime> headline_time(const Results& metrics);

// The most important first; empty where nothing that repeats or is marked was recorded, or where
// the recording must be repeated before its times mean anything.
std::vector<std::string> speed_sentences(const Results& metrics);

// What is said where there are none: how long the program ran, or why the time of a step is not
// known and what to type.
std::vector<std::string> no_speed_sentences(const Results& metrics);

// Tokens per second while tokens are made; nullopt where they are not counted.
std::optional<double> tokens_per_s(const Results& metrics);

// Why tokens per second in decode are not known.
std::string no_rate_reason(const Results& metrics);

}  // namespace gpuwhy
