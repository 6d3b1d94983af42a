// SPDX-License-Identifier: Apache-2.0
//
// Answers of the tools: parts of metrics.json, small enough to read.
//
// Every row has a `key`; the key of a number in it is that, a dot and the field's name, which
// `explain` takes. What a recording does not tell is {"cannot_answer": reason, "next": hint}.
#pragma once

#include <cstddef>
#include <string>

#include "base/json_fwd.h"

namespace gpuwhy {

// Which rows of kernels are wanted; empty: all.
struct KernelChoice {
  std::string stage;
  std::string family;
  std::string name;  // a part of the kernel's name
  std::size_t top = 20;
};

Json cannot_answer(const std::string& reason, const std::string& next);

// What was recorded, the verdict, and how many rows the other answers have.
Json open_answer(const Json& metrics);
Json findings_answer(const Json& metrics);
// Stages and steps; of one stage if it is given.
Json steps_answer(const Json& metrics, const std::string& stage, bool has_durations);
Json layers_answer(const Json& metrics);
Json kernels_answer(const Json& metrics, const KernelChoice& choice);

}  // namespace gpuwhy
