// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/json_fwd.h"
#include "report/document.h"

namespace gpuwhy {

// A merge's JSON ("gpuwhy.fleet") as a document, with `top` rows per table.
Document fleet_document(const Json& fleet, std::size_t top);

// The same as a self-contained page without scripts, with a heat map of ranks and stages.
std::string fleet_page(const Json& fleet, std::size_t top);

}  // namespace gpuwhy
