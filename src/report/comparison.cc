// SPDX-License-Identifier: Apache-2.0
//
// JSON form of a comparison, and its output formats for dashboards.
#include "report/comparison.h"

#include <algorithm>

#include "report/section_parts.h"

namespace llmprof {
namespace {

// Null where a figure is not known: scripts must not take a zero for one.
Json metric_json(const MetricChange& row) {
  return {{"key", row.key},
          {"unit", row.unit},
          {"gated", row.is_gated},
          {"larger_is_better", row.is_larger_better},
          {"base", number_or_null(row.base)},
          {"candidate", number_or_null(row.candidate)},
          {"ratio", number_or_null(row.ratio)},
          {"ratio_low", number_or_null(row.ratio_low)},
          {"ratio_high", number_or_null(row.ratio_high)},
          {"p", number_or_null(row.p)},
          {"method", text_or_null(row.method)},
          {"limit_fraction", row.limit_fraction},
          {"change", change_name(row.change)},
          {"reason", text_or_null(row.reason)},
          {"repeats_needed", number_or_null(row.repeats_needed)}};
}

Json kernel_change_json(const KernelChange& row) {
  // A new kernel has no base to take its name from.
  const bool is_new = row.kind == KernelChange::Kind::kNew;
  const KernelAmount& named = is_new ? row.candidate : row.base;
  const bool is_renamed = row.kind == KernelChange::Kind::kSwapped;
  return {{"kind", kind_name(row.kind)},
          {"stage", named.stage},
          {"device", named.device},
          {"family", named.family},
          {"kernel", named.short_name},
          {"replaced_by", is_renamed ? Json(row.candidate.short_name) : Json(nullptr)},
          {"shapes_changed", row.base.calls > 0 && row.candidate.calls > 0 &&
                                 row.base.shapes != row.candidate.shapes},
          {"base_ns", row.base.total_ns},
          {"candidate_ns", row.candidate.total_ns},
          {"base_calls", row.base.calls},
          {"candidate_calls", row.candidate.calls},
          {"difference_ns", row.difference_ns()},
          {"launches_ns", row.launches_ns},
          {"duration_ns", row.duration_ns},
          {"p", number_or_null(row.p)},
          {"adjusted_p", number_or_null(row.adjusted_p)},
          {"significant", row.p ? Json(row.is_significant) : Json(nullptr)}};
}

Json ledger_change_json(const LedgerChange& row) {
  Json buckets = Json::array();
  for (std::size_t i = 0; i < row.base.buckets_ns.size(); ++i) {
    // Both sides list the same buckets in the same order.
    const auto& [name, before] = row.base.buckets_ns[i];
    const std::int64_t after = row.candidate.buckets_ns[i].second;
    buckets.push_back({{"bucket", name},
                       {"base_ns", before},
                       {"candidate_ns", after},
                       {"difference_ns", after - before}});
  }
  return {{"stage", row.base.stage},
          {"device", row.base.device},
          {"base_ns", row.base.window_ns},
          {"candidate_ns", row.candidate.window_ns},
          {"difference_ns", row.candidate.window_ns - row.base.window_ns},
          {"buckets", buckets}};
}

Json facts_json(const std::vector<FactDifference>& facts) {
  Json rows = Json::array();
  for (const FactDifference& fact : facts) {
    rows.push_back({{"fact", fact.fact},
                    {"base", fact.base},
                    {"candidate", fact.candidate},
                    {"breaks", fact.breaks},
                    {"sentence", text_or_null(fact.sentence)}});
  }
  return rows;
}

// All rows sum to this; the remainder is a separate number.
Json kernel_sum_json(const Comparison& comparison) {
  std::int64_t rows_ns = 0;
  for (const KernelChange& row : comparison.kernels) {
    rows_ns += row.difference_ns();
  }
  const std::int64_t whole = comparison.candidate_kernel_ns - comparison.base_kernel_ns;
  return {{"base_ns", comparison.base_kernel_ns},
          {"candidate_ns", comparison.candidate_kernel_ns},
          {"difference_ns", whole},
          {"rows_ns", rows_ns},
          {"not_in_rows_ns", whole - rows_ns}};
}

Json parts_json(const std::vector<PartChange>& parts, const char* what) {
  Json rows = Json::array();
  for (const PartChange& part : parts) {
    rows.push_back({{what, part.name},
                    {"base_ns", part.base_ns},
                    {"candidate_ns", part.candidate_ns},
                    {"difference_ns", part.difference_ns()}});
  }
  return rows;
}

Json operator_change_json(const OperatorChange& row) {
  return {{"stage", row.base.stage},
          {"operator", row.base.name},
          {"base_ns", row.base.total_ns},
          {"candidate_ns", row.candidate.total_ns},
          {"base_calls", row.base.calls},
          {"candidate_calls", row.candidate.calls},
          {"difference_ns", row.difference_ns()},
          {"calls_ns", row.calls_ns},
          {"duration_ns", row.duration_ns},
          {"p", number_or_null(row.p)},
          {"adjusted_p", number_or_null(row.adjusted_p)},
          {"significant", row.p ? Json(row.is_significant) : Json(nullptr)}};
}

Json operators_change_json(const OperatorComparison& operators) {
  if (!operators.missing.empty()) {
    return {{"missing", operators.missing}, {"rows", Json::array()}};
  }
  // Rows and remainder sum exactly to the difference of the wholes.
  Json rows = Json::array();
  std::int64_t rows_ns = 0;
  for (const OperatorChange& row : operators.rows) {
    rows.push_back(operator_change_json(row));
    rows_ns += row.difference_ns();
  }
  const std::int64_t whole = operators.candidate_ns - operators.base_ns;
  return {{"missing", nullptr},
          {"time_of", text_or_null(operators.time_of)},
          {"base_ns", operators.base_ns},
          {"candidate_ns", operators.candidate_ns},
          {"difference_ns", whole},
          {"rows_ns", rows_ns},
          {"not_in_rows_ns", whole - rows_ns},
          {"stages", parts_json(operators.stages, "stage")},
          {"kinds", parts_json(operators.kinds, "kind")},
          {"rows", rows}};
}

}  // namespace

// The document of compare and gate. The terminal page, the HTML page and the CI forms are all made
// from it, so that they cannot disagree.
Json comparison_json(const Comparison& comparison) {
  Json json = json_document("compare", 1);
  json["verdict"] = verdict_name(comparison.verdict);
  json["sentence"] = comparison.sentence;
  json["base"] = {{"runs", comparison.base}, {"median_run", comparison.base_median}};
  json["candidate"] = {{"runs", comparison.candidate}, {"median_run", comparison.candidate_median}};
  json["fingerprint"] = facts_json(comparison.facts);
  json["metrics"] = Json::array();
  for (const MetricChange& row : comparison.metrics) {
    json["metrics"].push_back(metric_json(row));
  }
  json["ledgers"] = Json::array();
  for (const LedgerChange& row : comparison.ledgers) {
    json["ledgers"].push_back(ledger_change_json(row));
  }
  json["kernel_time"] = kernel_sum_json(comparison);
  json["stages"] = parts_json(comparison.stages, "stage");
  json["families"] = parts_json(comparison.families, "family");
  json["kernels"] = Json::array();
  for (const KernelChange& row : comparison.kernels) {
    json["kernels"].push_back(kernel_change_json(row));
  }
  json["operators"] = operators_change_json(comparison.operators);
  return json;
}

std::string github_comparison(const Json& comparison) {
  constexpr std::size_t kRows = 20;  // a page has 1 MiB at most, and nobody reads more
  return markdown_text(comparison_document(comparison, kRows, false));
}

// Only gated metrics: a dashboard that alarms on others would contradict the verdict.
Json bencher_comparison(const Json& comparison) {
  Json document = Json::object();
  for (const Json& row : rows_of(comparison, "metrics")) {
    if (field_of(row, "gated") != Json(true)) {
      continue;
    }
    const std::string unit = text_of(row, "unit");
    const char* measure = unit == "ns"    ? "latency_ns"
                          : unit == "1/s" ? "throughput_per_s"
                                          : "value";
    Json& made = document[text_of(row, "key")][measure];
    made["value"] = field_of(row, "candidate");
    if (field_of(row, "ratio_low").is_number() && field_of(row, "ratio_high").is_number()) {
      made["lower_value"] = number_of(row, "base") * number_of(row, "ratio_low");
      made["upper_value"] = number_of(row, "base") * number_of(row, "ratio_high");
    }
  }
  return document;
}

// Only times: the format has no other unit.
Json google_benchmark_comparison(const Json& comparison) {
  Json benchmarks = Json::array();
  const auto runs = static_cast<std::int64_t>(rows_of(comparison, "candidate.runs").size());
  for (const Json& row : rows_of(comparison, "metrics")) {
    if (field_of(row, "gated") != Json(true) || text_of(row, "unit") != "ns") {
      continue;
    }
    benchmarks.push_back({{"name", text_of(row, "key") + "_median"},
                          {"run_name", text_of(row, "key")},
                          {"run_type", "aggregate"},
                          {"aggregate_name", "median"},
                          {"aggregate_unit", "time"},
                          {"repetitions", runs},
                          {"threads", 1},
                          {"iterations", runs},
                          {"real_time", field_of(row, "candidate")},
                          {"cpu_time", field_of(row, "candidate")},
                          {"time_unit", "ns"}});
  }
  return {{"context", {{"executable", "llmprof"}, {"library_build_type", "release"}}},
          {"benchmarks", benchmarks}};
}

}  // namespace llmprof
