// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuwhy {

// A range as the program describes it at its start.
struct BeginningRange {
  std::uint16_t domain = 0;
  std::uint32_t registered_name = 0;  // as register_name() gave it; 0: look at `name`
  const char* name = nullptr;         // nullptr: it has none; need not outlive the call
  std::size_t name_bytes = 0;
  std::uint8_t payload_flags = 0;  // kRangeHasInteger, kRangeHasDouble or neither
  std::uint64_t payload = 0;
};

// Opens the range file. False if nothing can be recorded in this process. May be called repeatedly.
bool start_recorder();

// The depth of the range in its domain and thread, from 0; negative on error.
int push_range(const BeginningRange& range);
int pop_range(std::uint16_t domain);

// A number with which any thread may end the range; 0 if it was lost.
std::uint64_t start_range(const BeginningRange& range);
void end_range(std::uint64_t number);

}  // namespace gpuwhy
