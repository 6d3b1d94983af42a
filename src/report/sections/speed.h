// SPDX-License-Identifier: Apache-2.0
//
// How fast a run is, in sentences: the first token, each further one, tokens per second, a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/step_time.h"

namespace gpuwhy {

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

// Why tokens per second in decode are not known.
std::string no_rate_reason(const Results& metrics);

}  // namespace gpuwhy
