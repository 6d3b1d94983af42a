// SPDX-License-Identifier: Apache-2.0
//
// JSON forms of a comparison, for scripts and for dashboards, and the exit code of its verdict.
#include "report/comparison/comparison.h"

#include <algorithm>

#include "base/json.h"
#include "report/comparison/ci.h"
#include "report/comparison/comparison_parts.h"

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

void add_sides(const TimeChange& sides, Json& json) {
  json["base_ns"] = sides.base_ns;
  json["candidate_ns"] = sides.candidate_ns;
  json["difference_ns"] = sides.difference_ns();
}

// What kernels and operators share; `calls_key` is the part of the difference due to their number.
template <typename Row>
void add_change(const RowChange<Row>& row, const char* calls_key, Json& json) {
  json["base_ns"] = row.base.total_ns;
  json["candidate_ns"] = row.candidate.total_ns;
  json["base_calls"] = row.base.calls;
  json["candidate_calls"] = row.candidate.calls;
  json["difference_ns"] = row.difference_ns();
  json[calls_key] = row.calls_ns;
  json["duration_ns"] = row.duration_ns;
  json["p"] = number_or_null(row.p);
  json["adjusted_p"] = number_or_null(row.adjusted_p);
  json["significant"] = row.p ? Json(row.is_significant) : Json(nullptr);
}

Json kernel_change_json(const KernelChange& row) {
  const KernelRow& named = row.named();
  const bool is_renamed = row.kind == KernelChange::Kind::kSwapped;
  Json json = {{"kind", kind_name(row.kind)},
               {"stage", named.stage.text()},
               {"device", named.device},
               {"family", named.family},
               {"kernel", named.short_name},
               {"replaced_by", is_renamed ? Json(row.candidate.short_name) : Json(nullptr)},
               {"shapes_changed", row.has_other_shapes()}};
  add_change(row, "launches_ns", json);
  return json;
}

Json part_json(const char* what, const std::string& name, const TimeChange& sides) {
  Json json = {{what, name}};
  add_sides(sides, json);
  return json;
}

// An array of what `json_of` makes of the rows.
template <typename Rows, typename JsonOf>
Json array_of(const Rows& rows, const JsonOf& json_of) {
  Json json = Json::array();
  for (const auto& row : rows) {
    json.push_back(json_of(row));
  }
  return json;
}

Json parts_json(const std::vector<PartChange>& parts, const char* what) {
  return array_of(parts, [&](const PartChange& part) { return part_json(what, part.name, part); });
}

Json ledger_change_json(const LedgerChange& row) {
  Json json = {{"stage", row.base.stage.text()},
               {"device", row.base.device},
               {"candidate_device", row.candidate.device}};
  add_sides({row.base.window_ns, row.candidate.window_ns}, json);
  json["buckets"] = array_of(buckets_by_name(), [&](Bucket bucket) {
    Json of_bucket = part_json("bucket", word_of(bucket), row.sides_of(bucket));
    of_bucket["kinds"] = array_of(row.kinds_of(bucket), [](const KindChange& kind) {
      return part_json("kind", word_of(kind.kind), kind);
    });
    return of_bucket;
  });
  return json;
}

// Runs that were given twice and count once.
Json repeated_json(const std::vector<RepeatedRun>& repeated) {
  return array_of(repeated, [](const RepeatedRun& run) {
    return Json{{"run", run.label}, {"same_as", run.same_as}};
  });
}

Json fact_json(const FactDifference& fact) {
  return {{"fact", fact.fact},
          {"base", fact.base},
          {"candidate", fact.candidate},
          {"breaks", fact.breaks},
          {"sentence", text_or_null(fact.sentence)}};
}

// The rows sum to the difference: what is in no row is a number of its own.
void add_total(const TotalChange& total, Json& json) {
  add_sides(total, json);
  json["rows_ns"] = total.rows_ns;
  json["not_in_rows_ns"] = total.not_in_rows_ns();
}

Json operator_change_json(const OperatorChange& row) {
  Json json = {{"stage", row.base.stage.text()},
               {"operator", row.base.name},
               {"shape", text_or_null(row.base.shape)}};
  add_change(row, "calls_ns", json);
  return json;
}

Json operators_change_json(const OperatorComparison& operators) {
  if (!operators.missing.empty()) {
    return {{"missing", operators.missing}, {"rows", Json::array()}};
  }
  Json json = {{"missing", nullptr}, {"time_of", text_or_null(operators.time_of)}};
  add_total(operator_total(operators), json);
  json["stages"] = parts_json(operators.stages, "stage");
  json["kinds"] = parts_json(operators.kinds, "kind");
  json["rows"] = array_of(operators.rows, operator_change_json);
  return json;
}

Json model_part_json(const ModelPartChange& row) {
  Json json = {{"place", text_or_null(row.place)}, {"part", text_or_null(row.part)}};
  add_sides(row, json);
  json["base_kernel"] = text_or_null(row.base_kernel);
  json["candidate_kernel"] = text_or_null(row.candidate_kernel);
  return json;
}

// Times are of one pass, all layers together.
Json model_pass_json(const ModelPassChange& pass) {
  Json json = {{"pass", pass.pass},
               {"layers", pass.num_layers},
               {"base_passes", pass.base_passes},
               {"candidate_passes", pass.candidate_passes}};
  add_sides(pass, json);
  json["parts"] = array_of(pass.parts, model_part_json);
  return json;
}

Json moved_wait_json(const MovedWait& row) {
  return {{"stage", row.stage.text()}, {"bucket", word_of(row.bucket)},
          {"from", row.from},          {"to", row.to},
          {"less_ns", row.less_ns},    {"more_ns", row.more_ns}};
}

Json pace_json(const std::optional<PaceChange>& pace) {
  return pace ? Json{{"base_ns", pace->base_ns},
                     {"candidate_ns", pace->candidate_ns},
                     {"work_ratio", pace->work_ratio},
                     {"time_ratio", pace->time_ratio()}}
              : Json(nullptr);
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
  json["fingerprint"] = array_of(comparison.facts, fact_json);
  json["metrics"] = array_of(comparison.metrics, metric_json);
  json["pace"] = pace_json(comparison.pace);
  json["moved_waits"] = array_of(comparison.moved_waits, moved_wait_json);
  json["ledgers"] = array_of(comparison.ledgers, ledger_change_json);
  add_total(kernel_total(comparison), json["kernel_time"]);
  json["stages"] = parts_json(comparison.stages, "stage");
  json["families"] = parts_json(comparison.families, "family");
  json["kernels"] = array_of(comparison.kernels, kernel_change_json);
  json["operators"] = operators_change_json(comparison.operators);
  json["model"] = {{"missing", text_or_null(comparison.model.missing)},
                   {"passes", array_of(comparison.model.passes, model_pass_json)}};
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
  json["spreads"] = array_of(test.spreads, [](const MetricSpread& row) {
    return Json{{"key", row.key},
                {"unit", row.unit},
                {"low", row.low},
                {"median", row.median},
                {"high", row.high}};
  });
  return to_json_text(json);
}

}  // namespace gpuwhy
