// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace llmprof {

// What a program says of a range when it begins.
struct BeginningRange {
  std::uint16_t domain = 0;
  std::uint32_t registered_name = 0;  // as register_name() gave it; 0: look at `name`
  const char* name = nullptr;         // nullptr: it has none; need not outlive the call
  std::size_t name_bytes = 0;
  std::uint8_t payload_flags = 0;  // kRangeHasInteger, kRangeHasDouble or neither
  std::uint64_t payload = 0;
};

// The library cannot record anything in this process: false. Any number of calls.
bool start_recorder();

// The depth of the range in its domain and thread, from 0; negative on error.
int push_range(const BeginningRange& range);
int pop_range(std::uint16_t domain);

// The number by which any thread may end it; 0 when it was lost.
std::uint64_t start_range(const BeginningRange& range);
void end_range(std::uint64_t number);

}  // namespace llmprof
