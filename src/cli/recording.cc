// SPDX-License-Identifier: Apache-2.0
//
// From a file to its analysis: what analyze and kernels share.
#include "cli/recording.h"

#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "config/presets.h"
#include "ingest/ingest.h"

namespace llmprof {

Analysis analyze_recording(const std::string& path, unsigned num_threads) {
  const Rules rules =
      rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml"));
  return analyze(load_trace(path, num_threads), rules);
}

std::size_t positive_number(const std::string& option, const std::string& text) {
  std::size_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || value == 0) {
    throw Error(ErrorKind::kUsage, fmt::format("{} takes a whole number of at least 1, not '{}'",
                                               option, printable(text)));
  }
  return value;
}

}  // namespace llmprof
