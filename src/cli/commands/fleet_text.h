// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/json_fwd.h"

namespace gpuwhy {

// An answer of fleet/history/queries.h as lines for a person; names are made safe to show.
std::string fleet_text(const Json& answer, std::size_t width);

}  // namespace gpuwhy
