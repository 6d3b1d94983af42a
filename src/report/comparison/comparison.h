// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "base/exit_code.h"
#include "compare/compare.h"
#include "report/document/document.h"

namespace gpuwhy {

// Every number of a comparison.
std::string comparison_json(const Comparison& comparison);

// `top` rows of kernels; metrics that decide, that changed, or all of them.
Document comparison_document(const Comparison& comparison, std::size_t top, bool has_all_metrics);

// One HTML file that needs neither network nor scripts; every number in it that carries a key
// (data-key) is the value of the JSON there.
std::string comparison_page(const Comparison& comparison, std::size_t top);

// "regress: slower: time per token (p50) +5.00 % ...", on one line.
std::string verdict_line(const Comparison& comparison);

// What `gpuwhy gate` exits with for this verdict.
ExitCode exit_code_of(const Comparison& comparison);

// For a job's summary page and for dashboards, as report/comparison/ci.h does of one run.
std::string github_comparison(const Comparison& comparison);
// A line that GitHub shows at the job: an error, or a warning where nothing was decided. Empty for
// a pass.
std::string github_annotation(const Comparison& comparison);
std::string github_error(const std::string& error);
std::string gitlab_comparison(const Comparison& comparison);
std::string bencher_comparison(const Comparison& comparison);
std::string google_benchmark_comparison(const Comparison& comparison);
// A test report: one case per metric that decides, and one for whether the runs can be judged.
// What is not decided is skipped, because more runs are needed and nothing failed.
std::string junit_comparison(const Comparison& comparison);

// A check of the gate on runs of one build.
std::string self_test_json(const SelfTest& test);

// What a file has where there is no comparison: the error, as JSON, a page, Markdown and JUnit.
std::string failure_json(const std::string& error, const std::string& hint, int exit_code);
std::string failure_page(const std::string& error, const std::string& hint);
std::string failure_markdown(const std::string& error, const std::string& hint);
std::string junit_failure(const std::string& error);

}  // namespace gpuwhy
