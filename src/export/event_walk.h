// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/file.h"
#include "export/event_sink.h"
#include "export/overlay.h"
#include "results/diagnostic.h"

namespace gpuwhy {

// The default size limit of a trace file.
inline constexpr std::uint64_t kTraceBudgetBytes = 200'000'000;

// Statistics of an export.
struct ExportedTrace {
  std::uint64_t size_bytes = 0;
  std::int64_t num_slices = 0;  // with marks
  Diagnostics left_out;         // what did not fit the budget; empty: complete
};

// Sends a whole recording to a sink: stages, the ledger, the model's passes, layers and parts, GPU
// work by GPU and stream, NVTX ranges and API calls by thread. Parts that do not fit `budget_bytes`
// are omitted as a whole, API calls first. GPU work loses its arguments before it loses slices, and
// slices only after a point in time that is reported.
ExportedTrace tell_recording(const Overlay& overlay, EventSink& sink, std::uint64_t budget_bytes);

// Writes a recording to a file with the sink of its format.
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

}  // namespace gpuwhy
