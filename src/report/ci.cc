// SPDX-License-Identifier: Apache-2.0
//
// Output formats for dashboards: a handful of figures worth tracking over time.
//
// Everything else is in metrics.json.
#include "report/ci.h"

#include <optional>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "report/metrics.h"
#include "report/sections.h"

namespace llmprof {
namespace {

constexpr std::size_t kLongestSummary = 200'000;

// One figure of a dashboard: benchmark, measure, value.
struct Measure {
  std::string benchmark;  // "decode/kernels"
  const char* measure;    // "latency_ns", "throughput_per_s", "fraction"
  double value = 0;
  std::optional<double> spread;  // a standard deviation
  std::int64_t n = 1;
};

void add(const std::optional<double>& value, std::string benchmark, const char* measure,
         std::vector<Measure>& measures, std::int64_t n = 1) {
  if (value) {
    measures.push_back({std::move(benchmark), measure, *value, std::nullopt, n});
  }
}

void add_latency(const LatencyMetrics& latency, const std::string& name,
                 std::vector<Measure>& measures) {
  if (latency.mean_ns) {
    measures.push_back({name, "latency_ns", *latency.mean_ns, latency.std_ns, latency.n});
  }
  add(latency.p99_ns, name + "/p99", "latency_ns", measures, latency.n);
}

std::vector<Measure> measures_of(const Metrics& metrics) {
  std::vector<Measure> measures;
  add_latency(metrics.aggregates.ttft, "ttft", measures);
  add_latency(metrics.aggregates.tpot, "tpot", measures);
  add(metrics.aggregates.decode_tokens_per_s, "decode", "throughput_per_s", measures);
  // Without kernels, their time is unknown, not 0.
  if (metrics.capture.kernel_ns > 0) {
    for (const StageSummary& stage : metrics.stages) {
      add(static_cast<double>(stage.kernel_ns), printable(stage.stage) + "/kernels", "latency_ns",
          measures, stage.num_instances);
    }
  }
  for (const LedgerMetrics& row : metrics.ledgers) {
    add(static_cast<double>(row.window_ns),
        printable(row.stage) + "/" + printable(row.device) + "/window", "latency_ns", measures,
        row.num_instances);
  }
  if (metrics.efficiency) {
    for (const StageEfficiency& stage : metrics.efficiency->stages) {
      add(stage.mfu.wall_fraction, printable(stage.stage) + "/mfu", "fraction", measures);
      add(stage.mbu.wall_fraction, printable(stage.stage) + "/mbu", "fraction", measures);
    }
  }
  return measures;
}

}  // namespace

std::string github_summary(const Metrics& metrics) {
  Document document = report_document(metrics, {});
  // A job's page has no files next to it.
  std::erase_if(document.sections, [](const Section& section) { return section.id == "files"; });
  std::string text = markdown_text(document);
  std::size_t left_out = 0;
  // Sections are dropped from the end, the least important first.
  while (text.size() > kLongestSummary && document.sections.size() > 1) {
    document.sections.pop_back();
    ++left_out;
    text = markdown_text(document);
  }
  if (text.size() > kLongestSummary) {
    text = printable(metrics.verdict).substr(0, kLongestSummary / 2) + "\n";
  }
  return left_out == 0 ? text
                       : text + "\n" + std::to_string(left_out) +
                             " sections were left out: llmprof report BUNDLE shows them.\n";
}

std::string bencher_json(const Metrics& metrics) {
  Json document = Json::object();
  for (const Measure& measure : measures_of(metrics)) {
    Json& row = document[measure.benchmark][measure.measure];
    row["value"] = measure.value;
    if (measure.spread) {
      row["lower_value"] = measure.value - *measure.spread;
      row["upper_value"] = measure.value + *measure.spread;
    }
  }
  return to_json_text(document);
}

std::string google_benchmark_json(const Metrics& metrics) {
  Json benchmarks = Json::array();
  for (const Measure& measure : measures_of(metrics)) {
    Json row = {{"name", measure.benchmark}, {"run_name", measure.benchmark},
                {"run_type", "iteration"},   {"repetitions", 1},
                {"repetition_index", 0},     {"threads", 1},
                {"iterations", measure.n}};
    // Google Benchmark knows only times; other measures go into a counter of the same row.
    const bool is_time = std::string_view(measure.measure) == "latency_ns";
    row["real_time"] = is_time ? measure.value : 0.0;
    row["cpu_time"] = is_time ? measure.value : 0.0;
    row["time_unit"] = "ns";
    if (!is_time) {
      row[measure.measure] = measure.value;
    }
    benchmarks.push_back(row);
  }
  return to_json_text({{"context", {{"executable", "llmprof"}, {"library_build_type", "release"}}},
                       {"benchmarks", benchmarks}});
}

}  // namespace llmprof
