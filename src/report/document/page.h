// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "report/sections/worth.h"

namespace gpuwhy {

struct Timeline;

struct Results;

// A larger page is a nuisance in mail and slow to open.
inline constexpr std::size_t kPageBudgetBytes = 2'000'000;

// report.html: one self-contained file, without network or server. `files` are those it links to;
// `json` is metrics_json(metrics).
std::string page_html(const Results& metrics, const Json& json, const Timeline& timeline,
                      const std::vector<std::string>& files,
                      const std::optional<GpuPrice>& price = {});

// The data of the page's views: two texts for script elements that are not executed.
struct PageData {
  std::string json;    // gzip, base64: metrics.json as far as it fits, and what the planes hold
  std::string planes;  // gzip, base64: the timeline's numbers, byte plane by byte plane
};
PageData page_data(const Results& metrics, const Json& json, const Timeline& timeline,
                   std::size_t budget_bytes);

}  // namespace gpuwhy
