// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpuwhy {

// True if a tool listens. Looks for one at the first call; calls must not overlap.
bool open_marks_tool();

// A range of domain LLM whose text is not known before, from here to pop_mark().
void push_text_mark(const char* text, std::int64_t tokens);
void pop_mark();

}  // namespace gpuwhy
