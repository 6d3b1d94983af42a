// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"

namespace gpuwhy {

// Addresses of values in a JSON document that stay the same when rows move:
//   capture.duration_ns      ledgers[stage=decode,device=cuda:0].buckets_ns.sync kernels[3].calls
// A row is selected by its contents or by its index. A text with a comma, bracket, equals sign or
// quote in it is written as a JSON string.

// One step: a key of an object, then a row of the array under it.
struct PathStep {
  std::string name;
  bool has_row = false;
  std::size_t row = SIZE_MAX;                                // by place, unless SIZE_MAX
  std::vector<std::pair<std::string, std::string>> choices;  // by what it holds
};

// Throws kUsage if the text is not a path.
std::vector<PathStep> parse_path(std::string_view text);

// A text as it appears in brackets: unchanged, or as a JSON string.
std::string path_value(const std::string& value);

// The value at the path, or null. If several rows match, the first.
const Json* find_path(const Json& document, const std::vector<PathStep>& path);

// The path without row selectors: "ledgers[].buckets_ns.sync".
std::string path_pattern(const std::vector<PathStep>& path);

}  // namespace gpuwhy
