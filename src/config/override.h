// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace gpuwhy {

// One override argument, parsed:
//   run.mode=light            kSet: a known key, or a preset group as profiling/ncu=light
//   +model.note=x  ++...      kAdd: the key may be new
//   ~pipeline.nsys.sample     kRemove
struct Override {
  enum class Action { kSet, kAdd, kRemove };

  std::string argument;  // as typed
  Action action = Action::kSet;
  std::string key;
  std::string value;  // as typed after the first '='

  std::string origin() const { return "override " + argument; }
};

// Throws kUsage if the argument is not an override.
Override parse_override(const std::string& argument);

// The value as YAML reads it: null, true, 42, [cuda, nvtx], {a: 1}, "quoted", or the text itself.
// Throws kUsage.
Json parse_value(const Override& given);

}  // namespace gpuwhy
