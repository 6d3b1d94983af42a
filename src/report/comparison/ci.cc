// SPDX-License-Identifier: Apache-2.0
//
// Output formats for dashboards: a handful of figures worth tracking over time.
//
// Everything else is in metrics.json.
#include "report/comparison/ci.h"

#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "report/sections/sections.h"
#include "report/sections/speed.h"
#include "results/results.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kLongestSummary = 200'000;

// One figure of a dashboard: benchmark, measure, value.
struct Measure {
  std::string benchmark;  // "decode/kernels"
  const char* measure;    // "latency_ns", "throughput_per_s", "fraction"
  double value = 0;
  std::optional<double> spread;  // a standard deviation
  std::int64_t n = 1;
  std::string row_of_time = "";  // in Google Benchmark: the row that gets it as a counter
  std::string counter = "";      // its name there
};

void add(const std::optional<double>& value, std::string benchmark, const char* measure,
         std::vector<Measure>& measures, std::int64_t n = 1) {
  if (value) {
    measures.push_back({std::move(benchmark), measure, *value, std::nullopt, n});
  }
}

// A time of 0 is one that was not measured, and a dashboard would divide by it.
void add_time(std::int64_t time_ns, std::string benchmark, std::int64_t n,
              std::vector<Measure>& measures) {
  if (time_ns > 0) {
    measures.push_back(
        {std::move(benchmark), "latency_ns", static_cast<double>(time_ns), std::nullopt, n});
  }
}

void add_latency(const Latency& latency, const std::string& name, std::vector<Measure>& measures) {
  if (latency.mean_ns) {
    measures.push_back({name + "/mean", "latency_ns", *latency.mean_ns, latency.std_ns, latency.n});
  }
  add(latency.p50_ns, name + "/p50", "latency_ns", measures, latency.n);
  add(latency.p99_ns, name + "/p99", "latency_ns", measures, latency.n);
}

std::vector<Measure> measures_of(const Results& metrics) {
  std::vector<Measure> measures;
  add_latency(metrics.aggregates.ttft, "ttft", measures);
  add_latency(metrics.aggregates.tpot, "tpot", measures);
  if (const std::optional<double> rate = metrics.aggregates.decode_tokens_per_s) {
    measures.push_back({dashboard_name("aggregates.decode_tokens_per_s"), "throughput_per_s", *rate,
                        std::nullopt, 1, "tpot/p50", "items_per_second"});
  }
  add(metrics.aggregates.program_ns, dashboard_name("aggregates.program_ns"), "latency_ns",
      measures);
  for (const StageRow& stage : metrics.stages) {
    add_time(stage.median_ns, printable(stage.stage.text()) + "/median", stage.num_instances,
             measures);
    if (const auto step = step_time(metrics, stage);
        step && stage.stage.kind != RowKind::kUnmarked) {
      add_time(step->time_ns, printable(stage.stage.text()) + "/step", stage.num_instances,
               measures);
    }
    add_time(stage.kernel_ns, printable(stage.stage.text()) + "/kernels", stage.num_instances,
             measures);
  }
  for (const LedgerRow& row : metrics.ledgers) {
    add_time(row.window_ns, printable(row.stage.text()) + "/" + printable(row.device) + "/window",
             row.num_instances, measures);
  }
  if (metrics.efficiency) {
    for (const StageEfficiency& stage : metrics.efficiency->stages) {
      const std::string name = printable(stage.stage.text());
      for (const auto& [word, share] :
           {std::pair("mfu", stage.mfu.wall_fraction), std::pair("mbu", stage.mbu.wall_fraction)}) {
        if (share) {
          measures.push_back(
              {name + "/" + word, "fraction", *share, std::nullopt, 1, name + "/kernels", word});
        }
      }
    }
  }
  return measures;
}

}  // namespace

std::string github_summary(const Results& metrics) {
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
    text = printable(text_of_member(metrics.verdict)).substr(0, kLongestSummary / 2) + "\n";
  }
  return left_out == 0 ? text
                       : text + "\n" + std::to_string(left_out) +
                             " sections were left out: gpuwhy report BUNDLE shows them.\n";
}

std::string dashboard_name(const std::string& key) {
  if (key == "aggregates.ttft.p50_ns") {
    return "ttft/p50";
  }
  if (key == "aggregates.tpot.p50_ns") {
    return "tpot/p50";
  }
  if (key == "aggregates.decode_tokens_per_s") {
    return "decode";
  }
  if (key == "aggregates.program_ns") {
    return "program";
  }
  if (key == "pace.time_ns") {
    return "pace";
  }
  struct Form {
    std::string_view before;
    std::string_view after;
    std::string_view name;
  };
  constexpr Form kForms[] = {{"stages[stage=", "].host_median_ns", "/median"},
                             {"steps[stage=", "].period_median_ns", "/step"}};
  for (const Form& form : kForms) {
    if (key.starts_with(form.before) && key.ends_with(form.after)) {
      const std::size_t length = key.size() - form.before.size() - form.after.size();
      return printable(key.substr(form.before.size(), length) + std::string(form.name));
    }
  }
  return printable(key);
}

std::string metrics_report(const std::vector<MetricsReportRow>& rows) {
  const auto quoted = [](const std::string& name) {
    std::string text;
    for (const char c : printable(name)) {
      text += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return text;
  };
  std::string text = "# TYPE gpuwhy gauge\n";
  for (const MetricsReportRow& row : rows) {
    text += fmt::format("gpuwhy{{name=\"{}\",measure=\"{}\"}} {}\n", quoted(row.name), row.measure,
                        row.value);
  }
  return text + "# EOF\n";
}

std::string gitlab_metrics(const Results& metrics) {
  std::vector<MetricsReportRow> rows;
  for (const Measure& measure : measures_of(metrics)) {
    rows.push_back({measure.benchmark, measure.measure, measure.value});
  }
  return metrics_report(rows);
}

std::string bencher_json(const Results& metrics) {
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

std::string google_benchmark_json(const Results& metrics) {
  const std::vector<Measure> measures = measures_of(metrics);
  Json benchmarks = Json::array();
  for (const Measure& measure : measures) {
    if (!measure.row_of_time.empty()) {
      continue;
    }
    Json row = {{"name", measure.benchmark}, {"run_name", measure.benchmark},
                {"run_type", "iteration"},   {"repetitions", 1},
                {"repetition_index", 0},     {"threads", 1},
                {"iterations", measure.n},   {"real_time", measure.value},
                {"cpu_time", measure.value}, {"time_unit", "ns"}};
    for (const Measure& counter : measures) {
      if (counter.row_of_time == measure.benchmark) {
        row[counter.counter] = counter.value;
      }
    }
    benchmarks.push_back(row);
  }
  return to_json_text({{"context", {{"executable", "gpuwhy"}, {"library_build_type", "release"}}},
                       {"benchmarks", benchmarks}});
}

}  // namespace gpuwhy
