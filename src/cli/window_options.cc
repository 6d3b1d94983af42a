// SPDX-License-Identifier: Apache-2.0
//
// Options of commands that record a part of a server's work, spelled alike in each.
#include "cli/window_options.h"

#include <fmt/format.h>

namespace gpuwhy {
namespace {

constexpr std::int64_t kMostSteps = 1'000'000;
constexpr std::int64_t kMostSeconds = 3600;

}  // namespace

Option window_steps_option(RecordingPeriod& wish) {
  return at_most(
      kMostSteps,
      {"--steps", "N", "Record N steps by the engine's own count (vLLM, SGLang, TensorRT-LLM)",
       &wish.num_steps});
}

Option window_seconds_option(RecordingPeriod& wish) {
  return at_most(kMostSeconds,
                 {"--seconds", "N", "Record N seconds (default: as long as the client runs)",
                  &wish.num_seconds});
}

Option window_after_option(RecordingPeriod& wish) {
  return at_most(
      kMostSeconds,
      {"--after", "SECONDS", "Begin to record this long after the load began (default: before it)",
       &wish.after_s});
}

Option window_stage_option(RecordingPeriod& wish) {
  return one_of({"prefill", "decode"},
                {"--stage", "NAME",
                 "Record prefill or decode steps: the default load is mostly of them, and the "
                 "recording must have them",
                 &wish.stage});
}

std::vector<std::pair<std::string, std::string>> window_words(const RecordingPeriod& wish) {
  std::vector<std::pair<std::string, std::string>> words;
  if (wish.num_steps) {
    words.emplace_back("--steps", fmt::format("{}", *wish.num_steps));
  }
  if (wish.num_seconds) {
    words.emplace_back("--seconds", fmt::format("{}", *wish.num_seconds));
  }
  if (wish.after_s) {
    words.emplace_back("--after", fmt::format("{}", *wish.after_s));
  }
  if (!wish.stage.empty()) {
    words.emplace_back("--stage", wish.stage);
  }
  return words;
}

}  // namespace gpuwhy
