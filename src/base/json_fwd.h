// SPDX-License-Identifier: Apache-2.0
//
// The name of the JSON type, for those who only pass values on: parsing all of the library takes a
// compiler three seconds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace gpuwhy {

// The tree of plain values that configuration, provenance and every JSON output share. Keys keep
// their order, so that a file reads the way it was written and two runs give the same bytes.
using Json = nlohmann::ordered_json;

// A value that is held without the library.
using SharedJson = std::shared_ptr<const Json>;

// Indented by two, ending in a newline. Bytes that are not UTF-8 become U+FFFD: a kernel name must
// never make a report unreadable.
std::string to_json_text(const Json& value);

// The same on one line, without a newline.
std::string to_json_line(const Json& value);

// An object on one line, without a newline.
using JsonField = std::pair<std::string_view, std::variant<std::string, std::int64_t, SharedJson>>;
std::string json_object_line(const std::vector<JsonField>& fields);

// A number as JSON writes it.
std::string json_number(double value);

}  // namespace gpuwhy
