// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace llmprof {

struct Metrics;

// Output for continuous integration, derived from the metrics.

// Markdown for a job's summary page. Whole sections are dropped, last first, until it is small
// enough (GitHub rejects a step summary above 1 MiB and shows little of a long one).
std::string github_summary(const Metrics& metrics);

// Bencher Metric Format: benchmark -> measure -> value, with bounds if a spread is known.
std::string bencher_json(const Metrics& metrics);

// The format of Google Benchmark's --benchmark_format=json, which many dashboards read.
std::string google_benchmark_json(const Metrics& metrics);

}  // namespace llmprof
