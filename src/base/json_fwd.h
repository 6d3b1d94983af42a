// SPDX-License-Identifier: Apache-2.0
//
// The name of the JSON type, for headers that only mention it: parsing all of the library takes a
// compiler three seconds.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace llmprof {

// The tree of plain values that configuration, provenance and every JSON output share. Keys keep
// their order, so that a file reads the way it was written and two runs give the same bytes.
using Json = nlohmann::ordered_json;

// A number as JSON writes it.
std::string json_number(double value);

}  // namespace llmprof
