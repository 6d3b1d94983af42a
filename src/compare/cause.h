// SPDX-License-Identifier: Apache-2.0
//
// Where a change comes from, which saving that a finding promised came true, and what the change
// costs. Numbers only: the words are the report's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/compare.h"

namespace gpuwhy {

// The first metric that decides and was measured on both sides; nullptr: none.
const MetricChange* first_gate(const Comparison& comparison);
bool has_fact(const Comparison& comparison, std::string_view name);

// A part of a change: a bucket, a kind of idle time in it, or an operator.
struct CausePart {
  std::int64_t difference_ns = 0;
  std::optional<Bucket> bucket = {};  // nullopt: an operator
  std::optional<IdleKind> kind = {};  // nullopt: what no kind of the bucket has
  std::string name = {};              // of the operator; of the range that most of a kind was in
  std::optional<PartChange> family =
      {};  // of kernels, that has most of the change of the compute time
};

// The parts that changed most, of what changed as the deciding metric did.
struct Cause {
  enum class Of { kStage, kPace, kOperators };
  Of of = Of::kStage;
  std::vector<CausePart>
      parts;  // the largest first; of the pace: from the most growth to the least
  std::int64_t base_ns = 0;
  std::int64_t difference_ns = 0;  // of the whole, of which the parts explain most
  RowName stage = {};
  std::string device = {};
  int num_gpus = 0;  // of the pace: whose times are summed
};
// nullopt where few parts do not explain most of the change, or the sides did other work.
std::optional<Cause> cause_of(const Comparison& comparison);

// A saving that a finding of the base promised, and that came true.
struct KeptPromise {
  PromisedSaving promise;
  RowName stage;
  std::int64_t fall_ns = 0;              // by which the time that the finding is about fell
  double promised_ns = 0;                // of a step
  double gain_ns = 0;                    // by which a step got shorter
  bool has_means = false;                // that is the mean step, else the median
  std::optional<CausePart> growth = {};  // other waiting that grew most
};
// nullopt unless that is sure.
std::optional<KeptPromise> kept_promise(const Comparison& comparison);

// Seconds of one of what the first metric times.
struct TimedWork {
  RowName stage;  // the recording: the whole program
  double base_s = 0;
  double candidate_s = 0;
  bool is_mean = false;  // else a median
};
std::optional<TimedWork> timed_work(const Comparison& comparison);

}  // namespace gpuwhy
