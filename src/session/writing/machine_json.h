// SPDX-License-Identifier: Apache-2.0
//
// Facts of capture/ as JSON, for doctor and for a bundle's env.json, with the same keys.
#pragma once

#include <optional>

#include "base/json_fwd.h"
#include "capture/machine.h"
#include "capture/tools.h"

namespace gpuwhy {

// Facts of the machine; null if not known.
Json machine_json(const MachineFacts& machine);

// {"nsys": {...} or null, "ncu": {...} or null}
Json tools_json(const std::optional<NsysTool>& nsys, const std::optional<NcuTool>& ncu);

}  // namespace gpuwhy
