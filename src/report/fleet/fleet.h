// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/document/document.h"
#include "results/fleet.h"

namespace gpuwhy {

// A section of a job's report, with its title in a page's list of sections.
struct FleetSection {
  Section section;
  const char* short_title;
  bool is_known = true;  // false: the summaries do not hold it
};
std::string fleet_title(const FleetReport& report);
// `top` rows per table.
std::vector<FleetSection> fleet_sections(const FleetReport& report, std::size_t top);

// A merge's report as a document.
Document fleet_document(const FleetReport& report, std::size_t top);

// The same as a self-contained page without scripts, with a heat map of ranks and stages.
std::string fleet_page(const FleetReport& report, std::size_t top);

}  // namespace gpuwhy
