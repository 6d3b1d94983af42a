// SPDX-License-Identifier: Apache-2.0
//
// JSON parser for objects with very many keys, such as checkpoint indexes (one key per tensor).
//
// Its time is linear in the file size. json.cc counts depth in the library's parser callback, which
// walks through all earlier siblings whenever an object ends. Here brackets are counted in the text
// before it is parsed.
#include "base/sorted_json.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace llmprof {
namespace {

// The largest number of open brackets, outside of strings.
int depth_of(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool is_string = false;
  for (std::size_t i = 0; i < text.size() && deepest <= kDeepestJson; ++i) {
    const char c = text[i];
    if (is_string) {
      i += c == '\\' ? 1 : 0;
      is_string = c != '"';
    } else if (c == '"') {
      is_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

SortedJson parse_sorted_json(std::string_view text, const std::string& name) {
  if (depth_of(text) > kDeepestJson) {
    throw Error(ErrorKind::kInput, fmt::format("{} is nested deeper than {}", name, kDeepestJson));
  }
  try {
    return SortedJson::parse(text);
  } catch (const SortedJson::parse_error& error) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is not valid JSON (at byte {})", name, error.byte));
  } catch (const SortedJson::exception& error) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not usable JSON: {}", name, error.what()));
  }
}

}  // namespace llmprof
