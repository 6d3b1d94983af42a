// SPDX-License-Identifier: Apache-2.0
//
// Names of metrics, changes and verdicts as people read them.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "compare/compare.h"

namespace gpuwhy {
namespace {

// A key with a name in it, and the words around that name.
struct KeyWords {
  std::string_view before;
  std::string_view after;
  std::string_view words_before;
  std::string_view words_after;
};

constexpr std::array<KeyWords, 5> kKeyWords = {{
    {"stages[stage=", "].host_median_ns", "", " (median)"},
    {"steps[stage=", "].period_median_ns", "", " time (median)"},
    {"steps[stage=", "].gpu_window_median_ns", "", " on the GPU (median)"},
    {"baseline[stage=", "].p50_ns", "", " without a profiler (p50)"},
    {"structure.passes[pass=", "].period_median_ns", "time from one ",
     " pass to the next (median)"},
}};

}  // namespace

std::span<const Bucket> buckets_by_name() {
  static const auto kSorted = [] {
    std::array<Bucket, kNumBuckets> buckets{};
    for (std::size_t i = 0; i < kNumBuckets; ++i) {
      buckets[i] = static_cast<Bucket>(i);
    }
    std::ranges::sort(buckets, {}, [](Bucket bucket) { return std::string_view(word_of(bucket)); });
    return buckets;
  }();
  return kSorted;
}

std::string metric_label(const std::string& key) {
  constexpr std::array<std::pair<std::string_view, const char*>, 5> kWhole = {{
      {"aggregates.ttft.p50_ns", "time to first token (p50)"},
      {"aggregates.tpot.p50_ns", "time per token (p50)"},
      {kProgramKey, "length of the program"},
      {kLengthKey, "length of the recording"},
      {kPaceKey, "time for the same work"},
  }};
  for (const auto& [whole, words] : kWhole) {
    if (key == whole) {
      return words;
    }
  }
  for (const KeyWords& one : kKeyWords) {
    if (key.starts_with(one.before) && key.ends_with(one.after)) {
      const std::string name =
          key.substr(one.before.size(), key.size() - one.before.size() - one.after.size());
      // "decode" is a stage, and its time that of one step.
      const bool is_period = one.words_after == " time (median)";
      if (is_period && !name.ends_with("step")) {
        return fmt::format("{} step{}", name, one.words_after);
      }
      return fmt::format("{}{}{}", one.words_before, name, one.words_after);
    }
  }
  // The one instance of a stage.
  constexpr std::string_view kLedger = "ledgers[stage=";
  const std::size_t comma = key.find(",device=");
  if (key.starts_with(kLedger) && comma != std::string::npos && key.ends_with("].window_ns")) {
    return key.substr(kLedger.size(), comma - kLedger.size()) + " on the GPU";
  }
  // The first line of a report has another: that of a stage or of the steady phase.
  if (key.starts_with("devices[") && key.ends_with("].busy_fraction")) {
    return key + " (of the whole recording)";
  }
  return key;
}

const char* change_name(Change change) {
  switch (change) {
    case Change::kSame:
      return "same";
    case Change::kWorse:
      return "worse";
    case Change::kBetter:
      return "better";
    case Change::kUnclear:
      return "unclear";
    case Change::kNotJudged:
      return "not judged";
  }
  return "";
}

const char* kind_name(KernelChange::Kind kind) {
  switch (kind) {
    case KernelChange::Kind::kSame:
      return "same kernel";
    case KernelChange::Kind::kSwapped:
      return "swapped";
    case KernelChange::Kind::kGone:
      return "gone";
    case KernelChange::Kind::kNew:
      return "new";
  }
  return "";
}

const char* decision_name(Decision verdict) {
  switch (verdict) {
    case Decision::kPass:
      return "pass";
    case Decision::kRegress:
      return "regress";
    case Decision::kInconclusive:
      return "inconclusive";
    case Decision::kInvalid:
      return "invalid";
  }
  return "";
}

}  // namespace gpuwhy
