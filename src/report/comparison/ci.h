// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gpuwhy {

struct Results;

// Output for continuous integration, derived from the metrics.

// Markdown for a job's summary page. Whole sections are dropped, last first, until it is small
// enough (GitHub rejects a step summary above 1 MiB and shows little of a long one).
std::string github_summary(const Results& metrics);

// The name of a metric on a dashboard, the same for one run and for a gate: "tpot/p50" for
// aggregates.tpot.p50_ns. Others: the key.
std::string dashboard_name(const std::string& key);

// Bencher Metric Format: benchmark -> measure -> value, with bounds if a spread is known.
std::string bencher_json(const Results& metrics);

// A number with its name, as metrics reports have it.
struct MetricsReportRow {
  std::string name;     // "tpot/p50"
  std::string measure;  // "latency_ns"
  double value = 0;
};
// OpenMetrics text, which GitLab shows in a merge request (artifacts:reports:metrics).
std::string metrics_report(const std::vector<MetricsReportRow>& rows);
std::string gitlab_metrics(const Results& metrics);

// The format of Google Benchmark's --benchmark_format=json, which many dashboards read. It knows
// times only: a rate or share is a counter of the row whose time it belongs to, never a row with a
// time of 0.
std::string google_benchmark_json(const Results& metrics);

}  // namespace gpuwhy
