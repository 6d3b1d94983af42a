// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/file.h"
#include "export/event_sink.h"
#include "export/overlay.h"
#include "trace/diagnostics.h"

namespace llmprof {

inline constexpr std::uint64_t kTraceBudgetBytes = 200'000'000;

// What an export of a whole recording wrote.
struct ExportedTrace {
  std::uint64_t size_bytes = 0;
  std::int64_t num_slices = 0;  // with marks
  Diagnostics left_out;         // what the budget had no room for; empty: nothing
};

// Tells all of a recording to a sink: GPU work by GPU and stream, the ledger, stages, NVTX ranges
// and API calls by thread, in this order. What does not fit into `budget_bytes` is left out as a
// whole, from the end: API calls first. GPU work loses its arguments before it loses slices, and
// slices only behind a moment that is told.
ExportedTrace tell_recording(const Overlay& overlay, EventSink& sink, std::uint64_t budget_bytes);

// The same into a file, by the sink of its format.
template <typename Sink>
ExportedTrace write_recording(const Profile& profile, const std::filesystem::path& path,
                              std::uint64_t budget_bytes) {
  const Overlay overlay(profile);
  FileWriter file(path);
  Sink sink(overlay.texts(), file);
  ExportedTrace written = tell_recording(overlay, sink, budget_bytes);
  file.commit();
  return written;
}

}  // namespace llmprof
