// SPDX-License-Identifier: Apache-2.0
//
// JSON parser for objects with very many keys, such as checkpoint indexes (one key per tensor).
#include "base/sorted_json.h"

#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"

namespace gpuwhy {

SortedJson parse_sorted_json(std::string_view text, const std::string& name) {
  check_json_size(text, name, std::numeric_limits<std::size_t>::max());
  try {
    return SortedJson::parse(text);
  } catch (const SortedJson::parse_error& error) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is not valid JSON (at byte {})", name, error.byte));
  } catch (const SortedJson::exception& error) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not usable JSON: {}", name, error.what()));
  }
}

}  // namespace gpuwhy
