// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/json_fwd.h"
#include "report/document.h"

namespace llmprof {

// A merge's JSON ("llmprof.fleet") for people: `top` rows a table.
Document fleet_document(const Json& fleet, std::size_t top);

// The same as a page that needs no other file and no script, with the heat map of ranks and stages.
std::string fleet_page(const Json& fleet, std::size_t top);

}  // namespace llmprof
