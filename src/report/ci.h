// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace llmprof {

struct Metrics;

// What continuous integration reads, made of the metrics.

// Markdown for a job's summary page; whole sections are left out, last first, until it is small
// enough (GitHub refuses a step summary above 1 MiB and shows little of a long one).
std::string github_summary(const Metrics& metrics);

// Bencher Metric Format: benchmark -> measure -> value, with bounds where a spread is known.
Json bencher_json(const Metrics& metrics);

// The form of Google Benchmark's --benchmark_format=json, which many dashboards read.
Json google_benchmark_json(const Metrics& metrics);

}  // namespace llmprof
