// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/json_fwd.h"
#include "compare/compare.h"
#include "report/document.h"

namespace llmprof {

// Every number of a comparison.
Json comparison_json(const Comparison& comparison);

// `top` rows of kernels; metrics that decide, that changed, or all of them.
Document comparison_document(const Comparison& comparison, std::size_t top, bool has_all_metrics);

// One HTML file that needs neither network nor scripts; every number in it that carries a key
// (data-key) is the value of the JSON there.
std::string comparison_page(const Comparison& comparison, std::size_t top);

// For a job's summary page and for dashboards, as report/ci.h does of one run.
std::string github_comparison(const Comparison& comparison);
Json bencher_comparison(const Comparison& comparison);
Json google_benchmark_comparison(const Comparison& comparison);

}  // namespace llmprof
