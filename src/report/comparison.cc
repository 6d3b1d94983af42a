// SPDX-License-Identifier: Apache-2.0
//
// JSON forms of a comparison, for scripts and for dashboards, and the exit code of its verdict.
#include "report/comparison.h"

#include <algorithm>

#include "base/json.h"
#include "report/ci.h"
#include "report/comparison_parts.h"

namespace gpuwhy {
namespace {

Json side_json(const std::vector<std::string>& runs, const std::string& median_run,
               const SideRate& rate) {
  return {{"runs", runs},
          {"median_run", median_run},
          {"first_recorded", text_or_null(rate.first_recorded)},
          {"last_recorded", text_or_null(rate.last_recorded)},
          {"tokens_per_s", number_or_null(rate.tokens_per_s)},
          {"gpus", rate.num_gpus > 0 ? Json(rate.num_gpus) : Json(nullptr)}};
}

// Null where a figure is not known: scripts must not take a zero for one.
Json metric_json(const MetricChange& row) {
  // Less of a share or a number may be better or worse.
  const bool has_direction = row.unit == "ns" || row.is_larger_better;
  return {{"key", row.key},
          {"unit", row.unit},
          {"gated", row.is_gated},
          {"larger_is_better", has_direction ? Json(row.is_larger_better) : Json(nullptr)},
          {"base", number_or_null(row.base)},
          {"candidate", number_or_null(row.candidate)},
          {"missing_runs", row.missing_runs},
          {"ratio", number_or_null(row.ratio)},
          {"ratio_low", number_or_null(row.ratio_low)},
          {"ratio_high", number_or_null(row.ratio_high)},
          {"interval_level", number_or_null(row.interval_level)},
          {"p", number_or_null(row.p)},
          {"method", text_or_null(row.method)},
          {"limit_fraction", row.limit_fraction},
          {"budget_fraction", row.has_change_budget ? Json(row.limit_fraction) : Json(nullptr)},
          {"at_most", number_or_null(row.at_most)},
          {"at_least", number_or_null(row.at_least)},
          {"change", change_name(row.change)},
          {"reason", text_or_null(row.reason)},
          {"repeats_needed", number_or_null(row.repeats_needed)}};
}

Json kernel_change_json(const KernelChange& row) {
  const KernelAmount& named = row.named();
  const bool is_renamed = row.kind == KernelChange::Kind::kSwapped;
  return {{"kind", kind_name(row.kind)},
          {"stage", named.stage.text()},
          {"device", named.device},
          {"family", named.family},
          {"kernel", named.short_name},
          {"replaced_by", is_renamed ? Json(row.candidate.short_name) : Json(nullptr)},
          {"shapes_changed", row.has_other_shapes()},
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

Json ledger_change_json(const LedgerChange& row) {
  Json buckets = Json::array();
  for (std::size_t i = 0; i < row.base.buckets_ns.size(); ++i) {
    // Both sides list the same buckets in the same order.
    const auto& [name, before] = row.base.buckets_ns[i];
    const std::int64_t after = row.candidate.buckets_ns[i].second;
    const auto kinds =
        std::ranges::find(row.kinds, name, [](const auto& one) { return one.first; });
    buckets.push_back(
        {{"bucket", name},
         {"base_ns", before},
         {"candidate_ns", after},
         {"difference_ns", after - before},
         {"kinds", kinds == row.kinds.end() ? Json::array() : parts_json(kinds->second, "kind")}});
  }
  return {{"stage", row.base.stage.text()},
          {"device", row.base.device},
          {"candidate_device", row.candidate.device},
          {"base_ns", row.base.window_ns},
          {"candidate_ns", row.candidate.window_ns},
          {"difference_ns", row.candidate.window_ns - row.base.window_ns},
          {"buckets", buckets}};
}

// Runs that were given twice and count once.
Json repeated_json(const std::vector<RepeatedRun>& repeated) {
  Json rows = Json::array();
  for (const RepeatedRun& run : repeated) {
    rows.push_back({{"run", run.label}, {"same_as", run.same_as}});
  }
  return rows;
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

// The rows sum to the difference: what is in no row is a number of its own.
Json total_json(const TotalChange& total) {
  return {{"base_ns", total.base_ns},
          {"candidate_ns", total.candidate_ns},
          {"difference_ns", total.difference_ns()},
          {"rows_ns", total.rows_ns},
          {"not_in_rows_ns", total.not_in_rows_ns()}};
}

Json operator_change_json(const OperatorChange& row) {
  return {{"stage", row.base.stage.text()},
          {"operator", row.base.name},
          {"shape", text_or_null(row.base.shape)},
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
  Json json = {{"missing", nullptr}, {"time_of", text_or_null(operators.time_of)}};
  json.update(total_json(operator_total(operators)));
  json["stages"] = parts_json(operators.stages, "stage");
  json["kinds"] = parts_json(operators.kinds, "kind");
  json["rows"] = Json::array();
  for (const OperatorChange& row : operators.rows) {
    json["rows"].push_back(operator_change_json(row));
  }
  return json;
}

Json model_part_json(const ModelPartChange& row) {
  return {{"place", text_or_null(row.place)},
          {"part", text_or_null(row.part)},
          {"base_ns", row.base_ns},
          {"candidate_ns", row.candidate_ns},
          {"difference_ns", row.difference_ns()},
          {"base_kernel", text_or_null(row.base_kernel)},
          {"candidate_kernel", text_or_null(row.candidate_kernel)}};
}

Json pace_json(const std::optional<PaceChange>& pace) {
  return pace ? Json{{"base_ns", pace->base_ns},
                     {"candidate_ns", pace->candidate_ns},
                     {"work_ratio", pace->work_ratio},
                     {"time_ratio", pace->time_ratio()}}
              : Json(nullptr);
}

// Times are of one pass, all layers together.
Json model_json(const ModelComparison& model) {
  Json json = {{"missing", text_or_null(model.missing)}, {"passes", Json::array()}};
  for (const ModelPassChange& pass : model.passes) {
    Json parts = Json::array();
    for (const ModelPartChange& row : pass.parts) {
      parts.push_back(model_part_json(row));
    }
    json["passes"].push_back({{"pass", pass.pass},
                              {"layers", pass.num_layers},
                              {"base_passes", pass.base_passes},
                              {"candidate_passes", pass.candidate_passes},
                              {"base_ns", pass.base_ns()},
                              {"candidate_ns", pass.candidate_ns()},
                              {"difference_ns", pass.candidate_ns() - pass.base_ns()},
                              {"parts", parts}});
  }
  return json;
}

}  // namespace

// The document of compare and gate. The terminal page, the HTML page and the CI forms are all made
// from it, so that they cannot disagree.
std::string comparison_json(const Comparison& comparison) {
  Json json = json_document("compare", 1);
  json["verdict"] = decision_name(comparison.verdict);
  json["exit_code"] = static_cast<int>(exit_code_of(comparison));
  json["sentence"] = comparison.sentence();
  json["cause"] = text_or_null(cause_sentence(comparison));
  json["promise"] = text_or_null(promise_sentence(comparison));
  json["worth"] = text_or_null(worth_sentence(comparison));
  json["base"] = side_json(comparison.base, comparison.base_median, comparison.base_rate);
  json["candidate"] =
      side_json(comparison.candidate, comparison.candidate_median, comparison.candidate_rate);
  json["paired_steps"] = comparison.steps && comparison.steps->pairs > 0
                             ? Json{{"stage", comparison.steps->stage.text()},
                                    {"pairs", comparison.steps->pairs},
                                    {"shorter", comparison.steps->shorter},
                                    {"longer", comparison.steps->longer}}
                             : Json(nullptr);
  json["repeated_runs"] = repeated_json(comparison.repeated);
  json["fingerprint"] = facts_json(comparison.facts);
  json["metrics"] = Json::array();
  for (const MetricChange& row : comparison.metrics) {
    json["metrics"].push_back(metric_json(row));
  }
  json["pace"] = pace_json(comparison.pace);
  json["moved_waits"] = Json::array();
  for (const MovedWait& row : comparison.moved_waits) {
    json["moved_waits"].push_back({{"stage", row.stage.text()},
                                   {"bucket", row.bucket},
                                   {"from", row.from},
                                   {"to", row.to},
                                   {"less_ns", row.less_ns},
                                   {"more_ns", row.more_ns}});
  }
  json["ledgers"] = Json::array();
  for (const LedgerChange& row : comparison.ledgers) {
    json["ledgers"].push_back(ledger_change_json(row));
  }
  json["kernel_time"] = total_json(kernel_total(comparison));
  json["stages"] = parts_json(comparison.stages, "stage");
  json["families"] = parts_json(comparison.families, "family");
  json["kernels"] = Json::array();
  for (const KernelChange& row : comparison.kernels) {
    json["kernels"].push_back(kernel_change_json(row));
  }
  json["operators"] = operators_change_json(comparison.operators);
  json["model"] = model_json(comparison.model);
  return to_json_text(json);
}

std::string failure_json(const std::string& error, const std::string& hint, int exit_code) {
  Json json = json_document("error", 1);
  json["exit_code"] = exit_code;
  json["error"] = error;
  json["hint"] = text_or_null(hint);
  return to_json_text(json);
}

ExitCode exit_code_of(const Comparison& comparison) {
  switch (comparison.verdict) {
    case Decision::kPass:
      return kExitOk;
    case Decision::kRegress:
      return kExitRegression;
    case Decision::kInconclusive:
      return kExitInconclusive;
    case Decision::kInvalid:
      break;
  }
  return has_failed_run(comparison) ? kExitIncomplete : kExitNotComparable;
}

const char* measure_name(const MetricChange& row) {
  return row.unit == "ns" ? "latency_ns" : row.unit == "1/s" ? "throughput_per_s" : "value";
}

std::string bencher_comparison(const Comparison& comparison) {
  Json document = Json::object();
  for (const MetricChange& row : comparison.metrics) {
    if (!row.is_gated || !row.candidate) {
      continue;
    }
    Json& result = document[dashboard_name(row.key)][measure_name(row)];
    result["value"] = *row.candidate;
    if (row.base && row.ratio_low && row.ratio_high) {
      result["lower_value"] = *row.base * *row.ratio_low;
      result["upper_value"] = *row.base * *row.ratio_high;
    }
  }
  return to_json_text(document);
}

std::string google_benchmark_comparison(const Comparison& comparison) {
  Json benchmarks = Json::array();
  const std::size_t runs = comparison.candidate.size();
  for (const MetricChange& row : comparison.metrics) {
    if (!row.is_gated || row.unit != "ns" || !row.candidate) {
      continue;
    }
    const std::string name = dashboard_name(row.key);
    const double time_ns = *row.candidate;
    benchmarks.push_back({{"name", name + "_median"},
                          {"run_name", name},
                          {"run_type", "aggregate"},
                          {"aggregate_name", "median"},
                          {"aggregate_unit", "time"},
                          {"repetitions", runs},
                          {"threads", 1},
                          {"iterations", runs},
                          {"real_time", time_ns},
                          {"cpu_time", time_ns},
                          {"time_unit", "ns"}});
  }
  return to_json_text({{"context", {{"executable", "gpuwhy"}, {"library_build_type", "release"}}},
                       {"benchmarks", benchmarks}});
}

std::string self_test_json(const SelfTest& test) {
  Json json = json_document("gate_self_test", 1);
  json["runs"] = test.num_runs;
  json["repeated_runs"] = repeated_json(test.repeated);
  json["runs_a_side"] = test.runs_a_side;
  json["deals"] = test.deals;
  json["alarms"] = test.alarms;
  json["passes"] = test.passes;
  json["inconclusive"] = test.inconclusive;
  json["can_alarm"] = test.can_alarm;
  json["spreads"] = Json::array();
  for (const MetricSpread& row : test.spreads) {
    json["spreads"].push_back({{"key", row.key},
                               {"unit", row.unit},
                               {"low", row.low},
                               {"median", row.median},
                               {"high", row.high}});
  }
  return to_json_text(json);
}

}  // namespace gpuwhy
