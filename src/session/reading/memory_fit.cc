// SPDX-License-Identifier: Apache-2.0
//
// Memory limits for the analysis of a recording, checked before the file is read.
//
// Otherwise the process may be killed after half an hour.
#include "session/reading/memory_fit.h"

#include <fmt/format.h>

#include "analysis/timeline/timeline.h"
#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/machine.h"
#include "ingest/ingest.h"

namespace gpuwhy {
namespace {

// Memory to look for: the next power of two above the peak, with a quarter to spare.
std::uint64_t machine_bytes(std::uint64_t peak_bytes) {
  std::uint64_t size = kGiB;
  while (size < peak_bytes + peak_bytes / 4) {
    size *= 2;
  }
  return size;
}

}  // namespace

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) {
    text.insert(at - 3, ",");
  }
  return text;
}

std::string elsewhere(const ReadingNeed& plan) {
  return fmt::format(
      "analyse it on a machine with {} of memory, which needs neither GPU nor nsys for it; or "
      "record fewer steps",
      format_bytes(machine_bytes(plan.peak_bytes)));
}

MemoryFit fit_into_memory(const std::vector<InputFile>& files, std::uint64_t limit_bytes,
                          const PlannedOutput& output, unsigned num_threads) {
  TraceOutline outline = outline_trace(files.front());
  for (std::size_t i = 1; i < files.size(); ++i) {
    outline.add(outline_trace(files[i]));
  }
  const ReadingNeed plan = reading_need(outline, output);
  MemoryFit fit;
  fit.files_at_once = files_at_once(plan, {files.size(), num_threads, limit_bytes});
  if (plan.peak_bytes <= limit_bytes) {
    return fit;
  }
  if (plan.coarse_peak_bytes > limit_bytes) {
    throw Error(
        ErrorKind::kEnvironment,
        fmt::format("{}{} needs {} of memory for its {}{} events, and {} are allowed",
                    files.front().path().string(),
                    files.size() > 1 ? fmt::format(" with {} more", files.size() - 1) : "",
                    format_bytes(plan.coarse_peak_bytes), outline.is_estimate ? "about " : "",
                    with_commas(outline.num_events()), format_bytes(limit_bytes)),
        fmt::format("--memory-limit {} if the machine has it; else {}", plan.coarse_peak_bytes,
                    elsewhere(plan)));
  }
  fit.shortage =
      Diagnostic{"memory_limit", Severity::kInfo, 1,
                 fmt::format("the timeline of report.html has fewer columns and slices, to stay "
                             "within --memory-limit ({} of {} planned): figures are whole",
                             format_bytes(limit_bytes), format_bytes(plan.peak_bytes))};
  return fit;
}

std::string largest_recording(const System& system) {
  const auto memory = available_memory_bytes(system);
  if (!memory) {
    return "n/a (/proc/meminfo does not say what is free)";
  }
  // Exports of nsys 2022 to 2026 had 65 to 160 bytes per event.
  constexpr std::uint64_t kExportedBytes = 65;
  const std::uint64_t events = events_that_fit(*memory);
  return fmt::format(
      "recordings of up to {} M events, exports of {} or more, can be analysed in the {} that are "
      "free",
      events / 1'000'000, format_bytes(events * kExportedBytes), format_bytes(*memory));
}

}  // namespace gpuwhy
