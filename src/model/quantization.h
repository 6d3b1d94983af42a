// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fwd.h"
#include "model/llm.h"

namespace gpuwhy {

// Sets the stored width and the execution type of each part of `llm`, from the dtype and
// quantization_config in `root` or `text` (the mapping of the language model). An unknown method
// leaves a note and the dtype's width.
void read_widths(const Json& root, const Json& text, Llm& llm);

}  // namespace gpuwhy
