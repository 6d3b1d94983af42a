// SPDX-License-Identifier: Apache-2.0
//
// Forms that other people's dashboards read. A handful of figures that are worth a line over time;
// everything else is in metrics.json.
#include "report/ci.h"

#include <optional>
#include <vector>

#include "base/text.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

constexpr std::size_t kLongestSummary = 200'000;

struct Measure {
  std::string benchmark;  // "decode/kernels"
  const char* measure;    // "latency_ns", "throughput_per_s", "fraction"
  double value = 0;
  std::optional<double> spread;  // a standard deviation
  std::int64_t n = 1;
};

void add(const Json& row, const char* field, std::string benchmark, const char* measure,
         std::vector<Measure>& measures, std::int64_t n = 1) {
  const Json& value = field_of(row, field);
  if (value.is_number()) {
    measures.push_back({std::move(benchmark), measure, value.get<double>(), std::nullopt, n});
  }
}

void add_times(const Json& metrics, const char* name, std::vector<Measure>& measures) {
  const Json& times = field_of(metrics, std::string("aggregates.") + name);
  add(times, "mean_ns", name, "latency_ns", measures, integer_of(times, "n"));
  if (!measures.empty() && measures.back().benchmark == name &&
      field_of(times, "std_ns").is_number()) {
    measures.back().spread = number_of(times, "std_ns");
  }
  add(times, "p99_ns", std::string(name) + "/p99", "latency_ns", measures, integer_of(times, "n"));
}

std::vector<Measure> measures_of(const Json& metrics) {
  std::vector<Measure> measures;
  add_times(metrics, "ttft", measures);
  add_times(metrics, "tpot", measures);
  add(field_of(metrics, "aggregates"), "decode_tokens_per_s", "decode", "throughput_per_s",
      measures);
  // Of a recording without kernels their time is not 0 but unknown.
  const bool has_kernels = integer_of(metrics, "capture.kernel_ns") > 0;
  for (const Json& stage : rows_of(metrics, "stages")) {
    if (!has_kernels) {
      break;
    }
    add(stage, "kernel_ns", text_of(stage, "stage") + "/kernels", "latency_ns", measures,
        integer_of(stage, "instances"));
  }
  for (const Json& row : rows_of(metrics, "ledgers")) {
    add(row, "window_ns", text_of(row, "stage") + "/" + text_of(row, "device") + "/window",
        "latency_ns", measures, integer_of(row, "instances"));
  }
  for (const Json& stage : rows_of(metrics, "efficiency.stages")) {
    add(stage, "mfu.wall_fraction", text_of(stage, "stage") + "/mfu", "fraction", measures);
    add(stage, "mbu.wall_fraction", text_of(stage, "stage") + "/mbu", "fraction", measures);
  }
  return measures;
}

}  // namespace

std::string github_summary(const Json& metrics) {
  Document document = report_document(metrics, {});
  // A job's page has no files beside it.
  std::erase_if(document.sections, [](const Section& section) { return section.id == "files"; });
  std::string text = markdown_text(document);
  std::size_t left_out = 0;
  while (text.size() > kLongestSummary && document.sections.size() > 1) {
    document.sections.pop_back();
    ++left_out;
    text = markdown_text(document);
  }
  if (text.size() > kLongestSummary) {
    text = text_of(metrics, "verdict").substr(0, kLongestSummary / 2) + "\n";
  }
  return left_out == 0 ? text
                       : text + "\n" + std::to_string(left_out) +
                             " sections were left out: llmprof report BUNDLE shows them.\n";
}

Json bencher_json(const Json& metrics) {
  Json document = Json::object();
  for (const Measure& measure : measures_of(metrics)) {
    Json& row = document[measure.benchmark][measure.measure];
    row["value"] = measure.value;
    if (measure.spread) {
      row["lower_value"] = measure.value - *measure.spread;
      row["upper_value"] = measure.value + *measure.spread;
    }
  }
  return document;
}

Json google_benchmark_json(const Json& metrics) {
  Json benchmarks = Json::array();
  for (const Measure& measure : measures_of(metrics)) {
    Json row = {{"name", measure.benchmark}, {"run_name", measure.benchmark},
                {"run_type", "iteration"},   {"repetitions", 1},
                {"repetition_index", 0},     {"threads", 1},
                {"iterations", measure.n}};
    const bool is_time = std::string_view(measure.measure) == "latency_ns";
    row["real_time"] = is_time ? measure.value : 0.0;
    row["cpu_time"] = is_time ? measure.value : 0.0;
    row["time_unit"] = "ns";
    if (!is_time) {
      row[measure.measure] = measure.value;
    }
    benchmarks.push_back(row);
  }
  return {{"context", {{"executable", "llmprof"}, {"library_build_type", "release"}}},
          {"benchmarks", benchmarks}};
}

}  // namespace llmprof
