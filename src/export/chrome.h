// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "export/event_walk.h"
#include "export/overlay.h"

namespace llmprof {

// The recording as JSON trace events, for chrome://tracing, speedscope and scripts: what
// trace.pftrace holds, five times as large. Throws kFailure when it cannot be written.
ExportedTrace write_chrome_trace(const Profile& profile, const std::filesystem::path& path,
                                 std::uint64_t budget_bytes = kTraceBudgetBytes);

}  // namespace llmprof
