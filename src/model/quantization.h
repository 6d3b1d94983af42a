// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "model/llm.h"

namespace llmprof {

// Sets how wide each part of `llm` is stored and in what it executes, from the dtype and
// quantization_config of `root` or `text` (the mapping of the language model). A method that is not
// known leaves a note and the dtype's width.
void read_widths(const Json& root, const Json& text, Llm& llm);

}  // namespace llmprof
