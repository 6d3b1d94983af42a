// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "export/event_walk.h"
#include "export/overlay.h"

namespace gpuwhy {

// Writes trace.pftrace: the recording as Perfetto TrackEvents, for ui.perfetto.dev and
// trace_processor. docs/formats.md describes the contents. Throws kFailure if it cannot be written.
ExportedTrace write_pftrace(const Profile& profile, const std::filesystem::path& path,
                            std::uint64_t budget_bytes = kTraceBudgetBytes);

}  // namespace gpuwhy
