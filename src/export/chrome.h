// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "export/event_walk.h"
#include "export/overlay.h"

namespace gpuwhy {

// Writes the recording as JSON trace events, for chrome://tracing, speedscope and scripts. The
// contents are those of trace.pftrace, at five times the size. Throws kFailure if it cannot be
// written.
ExportedTrace write_chrome_trace(const Profile& profile, const std::filesystem::path& path,
                                 std::uint64_t budget_bytes = kTraceBudgetBytes);

}  // namespace gpuwhy
