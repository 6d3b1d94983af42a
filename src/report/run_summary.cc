// SPDX-License-Identifier: Apache-2.0
//
// metrics.json to the summary that comparisons read.
//
// TTFT and the time of a decode step decide where they were marked: they are what users wait for,
// and p50 of a run is a value that its worst step does not move. Without them the median length of
// each stage decides. Everything else is compared and shown.
#include "report/run_summary.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json_path.h"
#include "base/text.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

struct MetricForm {
  const char* unit = "ns";
  bool is_larger_better = false;
  bool is_gated = false;
};

void add_metric(const std::string& row, const Json& values, const char* field,
                const MetricForm& form, RunSummary& run, const std::string& steps = "") {
  const Json& value = field_of(values, field);
  if (value.is_number()) {
    run.metrics.push_back({row + "." + field, form.unit, value.get<double>(), form.is_larger_better,
                           form.is_gated, steps});
  }
}

// Names carry their unit.
MetricForm form_of_name(std::string_view key) {
  if (key.ends_with("_ns") || key.find("buckets_ns.") != std::string_view::npos) {
    return {};
  }
  if (key.ends_with("_per_s")) {
    return {"1/s", true, false};
  }
  return {key.ends_with("_fraction") ? "fraction" : "number", false, false};
}

// Less time is better, and more a second; a share or a number may be either.
bool has_direction(std::string_view unit) {
  return unit == "ns" || unit == "1/s";
}

bool is_nested(const Json& row) {
  return field_of(row, "nested") == Json(true);
}

// The stage whose instances are decode steps.
std::string step_stage(const Json& metrics) {
  const Json& stages = rows_of(metrics, "stages");
  const bool has_steps = std::any_of(stages.begin(), stages.end(), [](const Json& row) {
    return text_of(row, "stage") == "decode_step";
  });
  return has_steps ? "decode_step" : "decode";
}

void add_metrics(const Json& metrics, RunSummary& run) {
  const Json& aggregates = field_of(metrics, "aggregates");
  const Json& ttft = field_of(aggregates, "ttft");
  const Json& tpot = field_of(aggregates, "tpot");
  const MetricForm gate{"ns", false, true};
  // Lengths in the recording are not those of the pass without a profiler.
  const bool is_recorded = text_of(aggregates, "source") == "the recording";
  add_metric("aggregates.ttft", ttft, "p50_ns", gate, run, is_recorded ? "prefill" : "");
  add_metric("aggregates.tpot", tpot, "p50_ns", gate, run, is_recorded ? step_stage(metrics) : "");
  const bool has_gate = !run.metrics.empty();
  add_metric("aggregates.tpot", tpot, "p99_ns", {}, run);
  add_metric("aggregates", aggregates, "decode_tokens_per_s", {"1/s", true, false}, run);
  const bool has_baseline = !rows_of(metrics, "baseline").empty();
  for (const Json& row : rows_of(metrics, "baseline")) {
    add_metric("baseline[" + row_choice(row, {"stage"}) + "]", row, "p50_ns",
               {"ns", false, !has_gate}, run);
  }
  for (const Json& row : rows_of(metrics, "stages")) {
    const std::string key = "stages[" + row_choice(row, {"stage"}) + "]";
    const bool is_gated = !has_gate && !has_baseline && !is_nested(row);
    add_metric(key, row, "host_median_ns", {"ns", false, is_gated}, run, text_of(row, "stage"));
    add_metric(key, row, "kernel_ns", {}, run);
  }
  for (const Json& row : rows_of(metrics, "efficiency.stages")) {
    const std::string key = "efficiency.stages[" + row_choice(row, {"stage"}) + "]";
    add_metric(key, row, "mfu.wall_fraction", {"fraction", true, false}, run);
    add_metric(key, row, "mbu.wall_fraction", {"fraction", true, false}, run);
  }
  for (const Json& row : rows_of(metrics, "ledgers")) {
    const std::string key = "ledgers[" + row_choice(row, {"stage", "device"}) + "]";
    add_metric(key, row, "window_ns", {}, run);
    const Json& buckets = field_of(row, "buckets_ns");
    if (buckets.is_object()) {
      for (const auto& [bucket, time] : buckets.items()) {
        add_metric(key + ".buckets_ns", buckets, bucket.c_str(), {}, run);
      }
    }
  }
}

std::string words_of(const Json& list) {
  if (!list.is_array()) {
    return list.is_string() ? list.get<std::string>() : "";
  }
  std::string text;
  for (const Json& word : list) {
    text += (text.empty() ? "" : " ") +
            (word.is_string() ? word.get<std::string>() : to_json_line(word));
  }
  return text;
}

// Where a bundle lies is no fact of the work.
Json without_places(const Json& overrides) {
  Json kept = Json::array();
  for (const Json& word : overrides.is_array() ? overrides : Json::array()) {
    if (!word.is_string() || !word.get<std::string>().starts_with("artifacts.")) {
      kept.push_back(word);
    }
  }
  return kept;
}

// "2 x NVIDIA H100"; what a recording does not name is told by the machine; without a GPU the
// processor is the device.
std::string device_text(const Json& metrics) {
  std::vector<std::pair<std::string, int>> names;
  const auto count = [&](const std::string& name) {
    const auto known = std::find_if(names.begin(), names.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (known == names.end()) {
      names.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  };
  for (const Json& row : rows_of(metrics, "devices")) {
    if (integer_of(row, "kernels") > 0) {
      const std::string name = text_of(row, "name");
      count(name.empty() ? "unnamed" : name);
    }
  }
  if (names.empty()) {
    for (const Json& row : rows_of(metrics, "environment.gpus")) {
      count(text_of(row, "name"));
    }
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const auto& [name, number] : names) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", number, name);
  }
  const std::string cpu = text_of(metrics, "environment.cpu");
  return text.empty() && !cpu.empty() ? "no GPU, " + cpu : text;
}

void add_facts(const Json& metrics, const Json& inputs, RunSummary& run) {
  const Json& capture = field_of(metrics, "capture");
  const bool is_opaque = integer_of(capture, "opaque_graph_ns") > 0;
  run.facts = {
      {"gpu", device_text(metrics)},
      {"model", text_of(metrics, "efficiency.model")},
      {"inputs", words_of(field_of(inputs, "manifest"))},
      {"format", text_of(capture, "format")},
      {"timing", text_of(metrics, "aggregates.source")},
      {"graphs", run.launches == 0 ? ""
                 : is_opaque       ? "recorded as a whole"
                                   : "none as a whole"},
      {"command", words_of(field_of(inputs, "command"))},
      {"overrides", words_of(without_places(field_of(inputs, "overrides")))},
      {"stage_source", text_of(capture, "stage_source")},
      {"driver", text_of(metrics, "environment.driver_version")},
      {"cpu", text_of(metrics, "environment.cpu")},
      {"system", text_of(metrics, "environment.distribution")},
      {"profiler", text_of(capture, "tool_version")},
  };
}

void add_stages(const Json& metrics, RunSummary& run) {
  const bool is_recorded = !rows_of(metrics, "stages").empty();
  for (const Json& row : rows_of(metrics, is_recorded ? "stages" : "baseline")) {
    StageAmount& stage = run.stages.emplace_back();
    stage.stage = text_of(row, "stage");
    stage.instances = integer_of(row, is_recorded ? "instances" : "n");
    stage.kernel_ns = integer_of(row, "kernel_ns");
    if (field_of(row, "tokens").is_number_integer()) {
      stage.tokens = integer_of(row, "tokens");
    }
  }
  run.is_marked = !run.stages.empty() && !(run.stages.size() == 1 && run.stages[0].stage == "all");
}

void add_steps(const Json& metrics, RunSummary& run) {
  for (const Json& row : rows_of(metrics, "steps")) {
    StageLengths& lengths = run.steps.emplace_back();
    lengths.stage = text_of(row, "stage");
    for (const Json& duration : rows_of(row, "durations_ns")) {
      if (duration.is_number()) {
        lengths.durations_ns.push_back(duration.get<double>());
      }
    }
  }
}

// A stranger's numbers may be anything. Amounts of a run are summed and subtracted: rows whose sum
// is beyond thirty years, or below nothing, are left out.
bool may_add(std::int64_t part, std::int64_t& sum) {
  constexpr std::int64_t kLongest = 1'000'000'000'000'000'000;
  if (part < 0 || part > kLongest - sum) {
    return false;
  }
  sum += part;
  return true;
}

std::int64_t bounded(std::int64_t amount) {
  std::int64_t none = 0;
  return may_add(amount, none) ? amount : 0;
}

void add_kernels(const Json& metrics, RunSummary& run) {
  std::int64_t sum_ns = 0;
  for (const Json& row : rows_of(metrics, "kernels")) {
    const std::int64_t calls = integer_of(row, "calls");
    if (!may_add(integer_of(row, "total_ns"), sum_ns) || !may_add(calls, run.launches)) {
      continue;
    }
    run.kernels.push_back({text_of(row, "kernel_name"), text_of(row, "short_name"),
                           text_of(row, "device"), text_of(row, "stage"), text_of(row, "family"),
                           words_of(field_of(row, "shapes")), integer_of(row, "total_ns"), calls});
  }
}

void add_operators(const Json& metrics, RunSummary& run) {
  const Json& operators = field_of(metrics, "operators");
  run.operators_whole_ns = bounded(integer_of(operators, "whole_ns"));
  run.operators_time = text_of(operators, "time_of");
  std::int64_t sum_ns = 0;
  std::int64_t sum_calls = 0;
  for (const Json& row : rows_of(operators, "rows")) {
    const std::int64_t total_ns = integer_of(row, "total_ns");
    const std::int64_t calls = integer_of(row, "calls");
    if (may_add(total_ns, sum_ns) && may_add(calls, sum_calls)) {
      run.operators.push_back({text_of(row, "name"), text_of(row, "stage"), total_ns, calls});
    }
  }
}

void add_ledgers(const Json& metrics, RunSummary& run) {
  for (const Json& row : rows_of(metrics, "ledgers")) {
    LedgerAmount& ledger = run.ledgers.emplace_back();
    ledger.stage = text_of(row, "stage");
    ledger.device = text_of(row, "device");
    ledger.window_ns = bounded(integer_of(row, "window_ns"));
    const Json& buckets = field_of(row, "buckets_ns");
    if (buckets.is_object()) {
      for (const auto& [name, time] : buckets.items()) {
        ledger.buckets_ns.emplace_back(
            name, time.is_number_integer() ? bounded(time.get<std::int64_t>()) : 0);
      }
    }
  }
}

}  // namespace

RunSummary summary_of_run(const std::string& label, const Json& metrics, const Json& inputs) {
  RunSummary run;
  run.label = label;
  run.kernel_ns = bounded(integer_of(metrics, "capture.kernel_ns"));
  add_kernels(metrics, run);
  add_stages(metrics, run);
  add_facts(metrics, inputs, run);
  add_metrics(metrics, run);
  add_steps(metrics, run);
  add_ledgers(metrics, run);
  add_operators(metrics, run);
  const bool has_time = std::any_of(run.metrics.begin(), run.metrics.end(),
                                    [](const RunMetric& metric) { return metric.value > 0; });
  if (run.launches == 0 && (!run.is_marked || !has_time)) {
    const std::string verdict = text_of(metrics, "verdict");
    run.absent = verdict.empty() ? "no kernel and no stage" : verdict;
  }
  return run;
}

void add_budgeted(const std::vector<MetricBudget>& budgets, const Json& metrics, RunSummary& run) {
  for (const MetricBudget& budget : budgets) {
    const bool is_known =
        std::any_of(run.metrics.begin(), run.metrics.end(),
                    [&](const RunMetric& metric) { return metric.key == budget.key; });
    const Json* value = is_known ? nullptr : find_path(metrics, parse_path(budget.key));
    if (value == nullptr || !value->is_number()) {
      continue;
    }
    const MetricForm form = form_of_name(budget.key);
    if (budget.change_fraction && !has_direction(form.unit)) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("the budget of {}: nobody knows whether more of it is better or worse",
                      printable(budget.key)),
          "give it {at_most: NUMBER} or {at_least: NUMBER} in place of change");
    }
    run.metrics.push_back(
        {budget.key, form.unit, value->get<double>(), form.is_larger_better, false, ""});
  }
}

Json compared_part(const Json& metrics) {
  Json part = Json::object();
  for (const char* key : {"schema", "schema_version", "verdict", "capture", "environment",
                          "aggregates", "devices", "stages", "steps", "baseline", "ledgers"}) {
    part[key] = field_of(metrics, key);
  }
  part["efficiency"] = {{"model", field_of(metrics, "efficiency.model")},
                        {"stages", field_of(metrics, "efficiency.stages")}};
  part["kernels"] = Json::array();
  for (const Json& row : rows_of(metrics, "kernels")) {
    Json kernel = Json::object();
    for (const char* key : {"kernel_name", "short_name", "device", "stage", "family", "total_ns",
                            "calls", "shapes"}) {
      kernel[key] = field_of(row, key);
    }
    part["kernels"].push_back(std::move(kernel));
  }
  const Json& operators = field_of(metrics, "operators");
  part["operators"] = {{"time_of", field_of(operators, "time_of")},
                       {"whole_ns", field_of(operators, "whole_ns")},
                       {"rows", Json::array()}};
  for (const Json& row : rows_of(operators, "rows")) {
    part["operators"]["rows"].push_back({{"name", field_of(row, "name")},
                                         {"stage", field_of(row, "stage")},
                                         {"total_ns", field_of(row, "total_ns")},
                                         {"calls", field_of(row, "calls")}});
  }
  return part;
}

}  // namespace llmprof
