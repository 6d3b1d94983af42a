// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "compare/compare.h"
#include "report/document.h"

namespace llmprof {

// Every number of a comparison.
std::string comparison_json(const Comparison& comparison);

// `top` rows of kernels; metrics that decide, that changed, or all of them.
Document comparison_document(const Comparison& comparison, std::size_t top, bool has_all_metrics);

// One HTML file that needs neither network nor scripts; every number in it that carries a key
// (data-key) is the value of the JSON there.
std::string comparison_page(const Comparison& comparison, std::size_t top);

// For a job's summary page and for dashboards, as report/ci.h does of one run.
std::string github_comparison(const Comparison& comparison);
std::string bencher_comparison(const Comparison& comparison);
std::string google_benchmark_comparison(const Comparison& comparison);

// A check of the gate on runs of one build.
std::string self_test_json(const SelfTest& test, std::size_t num_runs);

}  // namespace llmprof
