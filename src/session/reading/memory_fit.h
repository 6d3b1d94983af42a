// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/timeline/reading_need.h"
#include "capture/system.h"
#include "results/diagnostic.h"

namespace gpuwhy {

class InputFile;

// "12,345,678".
std::string with_commas(std::uint64_t number);

// Advice on where a recording can be analyzed that does not fit here.
std::string elsewhere(const ReadingNeed& plan);

// How a recording is read within a limit.
struct MemoryFit {
  // Absent: all of it fits. Else it fits with coarse_picture(), and this is what to say of it.
  std::optional<Diagnostic> shortage;
  unsigned files_at_once = 1;
};

// Holds the plan for a recording, in one file or several, against a limit. Throws kEnvironment
// where not even a coarse picture fits.
MemoryFit fit_into_memory(const std::vector<InputFile>& files, std::uint64_t limit_bytes,
                          const PlannedOutput& output, unsigned num_threads);

// One line for doctor: the largest recording that can be analyzed here.
std::string largest_recording(const System& system);

}  // namespace gpuwhy
