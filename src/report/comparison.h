// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/json_fwd.h"
#include "compare/compare.h"
#include "report/document.h"

namespace llmprof {

// A comparison as numbers; every other output is derived from it.
Json comparison_json(const Comparison& comparison);

// `top` rows of kernels; metrics that decide or changed, or all of them.
Document comparison_document(const Json& comparison, std::size_t top, bool has_all_metrics);

// One HTML file without network access or scripts. Every number with a key (data-key) is the value
// of the JSON at that path.
std::string comparison_page(const Json& comparison, std::size_t top);

// For a job's summary page and for dashboards, like report/ci.h for one run.
std::string github_comparison(const Json& comparison);
Json bencher_comparison(const Json& comparison);
Json google_benchmark_comparison(const Json& comparison);

}  // namespace llmprof
