// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "capture/tools.h"

namespace gpuwhy {

// An NVTX range as a program writes it; the default domain is empty.
struct StageMark {
  std::string domain;
  std::string name;

  auto operator<=>(const StageMark&) const = default;
  std::string text() const { return domain + ":" + name; }
};

// One mark as a pass without profilers saw it. Both tools need to know how it was made.
struct SeenMark {
  StageMark mark;
  std::int64_t count = 0;
  bool is_registered = false;  // always a registered string: nsys ignores others by default
  bool is_push_pop = false;
  bool is_start_end = false;
};

// The user's choice of what starts the recording.
struct TriggerWish {
  enum class Kind {
    kAuto,             // the widest mark seen, if any
    kEverything,       // everything is recorded
    kCudaProfilerApi,  // the program calls cudaProfilerStart
    kMark,
  };
  Kind kind = Kind::kAuto;
  StageMark mark;
};

// Parses "auto", "none", "cuda_profiler_api" or "DOMAIN:RANGE" (":RANGE" in the default domain;
// "DOMAIN@RANGE" is accepted too). Throws kUsage, with the reason, for what no tool could match:
// wildcards, several ranges, no name, range and domain swapped.
TriggerWish parse_trigger(std::string_view text);

// What starts the recording.
struct CaptureTrigger {
  TriggerWish::Kind kind = TriggerWish::Kind::kEverything;  // never kAuto
  StageMark mark;
  bool is_registered = false;
  std::string reason;            // a sentence: why this gate
  std::int64_t num_entries = 0;  // in the baseline pass; 0 if no such pass looked
};

// `seen` is null if no pass looked. Throws kContract if the range is known not to occur.
CaptureTrigger choose_trigger(const TriggerWish& wish, const std::vector<SeenMark>* seen);

// For nsys: RANGE@DOMAIN, only one. The recording continues to the end of the program, which is not
// killed.
std::vector<std::string> nsys_trigger_options(const CaptureTrigger& gate);
std::map<std::string, std::string> nsys_trigger_environment(const CaptureTrigger& gate);

// For ncu: DOMAIN@RANGE/ for push/pop ranges, DOMAIN@RANGE for start/end ranges, any number of
// them.
std::vector<std::string> ncu_gate_options(const std::vector<SeenMark>& marks, const NcuTool& ncu);

}  // namespace gpuwhy
