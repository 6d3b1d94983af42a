// SPDX-License-Identifier: Apache-2.0
//
// The one reader of row names.
#include "results/row.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

// The first word is that of a stage without a name.
bool is_row_word(std::string_view text) {
  return std::ranges::find(kRowWords, text) != kRowWords.end();
}

}  // namespace

RowName row_name(std::string_view text) {
  const auto word = std::ranges::find(kRowWords, text);
  return word == kRowWords.end() ? RowName{RowKind::kStage, std::string(text)}
                                 : RowName{static_cast<RowKind>(word - kRowWords.begin())};
}

RowName parse_stage_name(std::string_view given, std::string_view option) {
  if (is_row_word(given)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{} cannot name a stage '{}': {}", option, given,
                    given.empty() ? "it needs a name" : "rows of gpuwhy's own are called so"),
        fmt::format("another name, as my_{}", given.empty() ? "stage" : given));
  }
  return {RowKind::kStage, std::string(given)};
}

RowName recorded_stage(std::string_view given) {
  return {RowKind::kStage, std::string(given) + (is_row_word(given) ? " (marked)" : "")};
}

}  // namespace gpuwhy
