// SPDX-License-Identifier: Apache-2.0
//
// The summary of a run for comparisons, derived from its metrics.
//
// TTFT and the time of a decode step decide if they were marked: they are what users wait for, and
// the p50 of a run is not affected by its worst step. Otherwise the median duration of each stage
// decides. Everything else is compared and shown.
#include "report/comparison/run_summary.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_path.h"
#include "base/sha256.h"
#include "base/text.h"
#include "compare/decision.h"
#include "report/document/member_table.h"
#include "report/document/section_parts.h"
#include "report/sections/speed.h"
#include "results/catalog.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// How a metric is judged, the stage whose lengths it is made of, and the one it is the time of.
struct MetricForm {
  const char* unit = "ns";
  bool is_larger_better = false;
  bool is_gated = false;
  std::string steps = {};
  RowName stage = {RowKind::kRecording};
};

// A comparison prints what another program may have written.
RowName printable_row(const RowName& row) {
  return {row.kind, printable(row.stage)};
}

void add_metric(std::string key, const std::optional<double>& value, const MetricForm& form,
                RunSummary& run) {
  if (value) {
    // All of the work of a recording without marks is one stage.
    run.metrics.push_back({std::move(key), form.unit, *value, form.is_larger_better, form.is_gated,
                           form.steps,
                           form.stage.kind == RowKind::kUnmarked ? RowName{RowKind::kRecording}
                                                                 : printable_row(form.stage)});
  }
}

// A member of a row of metrics.json, by its path there.
template <typename Row, typename... Members>
void add_member(const std::string& row_path, const Row& row, MetricForm form, RunSummary& run,
                Members... members) {
  if constexpr (requires { row.stage; }) {
    form.stage = row.stage;
  }
  const ReportValue value{cell_at(&row, members...), CellFormat::kText, ""};
  add_metric(row_path + "." + path_of<Row>(members...), value.number(), form, run);
}

MetricForm form_of_path(const std::string& key) {
  const MetricInfo* info = metric_info(path_pattern(parse_path(key)));
  const std::string_view unit = info == nullptr ? "" : info->unit;
  if (unit == "ns") {
    return {};
  }
  if (unit.ends_with("/s")) {
    return {"1/s", true, false};
  }
  return {unit == "fraction" ? "fraction" : "number", false, false};
}

// Less time is better, and a higher rate; a share or a number may be either.
bool has_direction(std::string_view unit) {
  return unit == "ns" || unit == "1/s";
}

// The stage whose instances are decode steps.
std::string step_stage(const Results& metrics) {
  const bool has_steps = std::ranges::any_of(metrics.stages, [](const StageRow& row) {
    return role_of(row.stage) == StageRole::kDecodeStep;
  });
  return has_steps ? "decode_step" : "decode";
}

// Calls `add` with each row and its path.
template <typename Row, typename Add>
void for_each_row(const MetricRows<Row>& array, const Add& add) {
  for (std::size_t i = 0; array.rows != nullptr && i < array.rows->size(); ++i) {
    add((*array.rows)[i], row_path(array.path, (*array.rows)[i], i));
  }
}

// Results that decide if they were measured; returns whether there are any.
bool add_aggregates(const Results& metrics, RunSummary& run) {
  const Latencies& aggregates = metrics.aggregates;
  // Durations in the recording are not those of the pass without a profiler.
  const bool is_recorded = aggregates.source == "the recording";
  const auto add = [&](const MetricForm& form, auto... members) {
    add_member("aggregates", aggregates, form, run, members...);
  };
  using A = Latencies;
  add({"ns", false, true, is_recorded ? "prefill" : "", row_name("prefill")}, &A::ttft,
      &Latency::p50_ns);
  const MetricForm of_token{"ns", false, true, is_recorded ? step_stage(metrics) : "",
                            row_name("decode")};
  add(of_token, &A::tpot, &Latency::p50_ns);
  const bool has_gate = !run.metrics.empty();
  // A program without marks is judged by its whole length.
  const bool has_stages = metrics.baseline && !metrics.baseline->empty();
  add({"ns", false, !has_gate && !has_stages && metrics.kernels.empty()}, &A::program_ns);
  add({"ns", false, false, "", of_token.stage}, &A::tpot, &Latency::p99_ns);
  add({"1/s", true, false}, &A::decode_tokens_per_s);
  return has_gate;
}

// What clients measured. It is shown; a budget makes it decide.
void add_requests(const Results& metrics, RunSummary& run) {
  if (!metrics.requests) {
    return;
  }
  using S = RequestsSummary;
  const auto add = [&](const MetricForm& form, auto... members) {
    add_member("requests", *metrics.requests, form, run, members...);
  };
  for (const auto member : {&S::ttft, &S::itl}) {
    add({}, member, &RequestTimes::p50_ns);
    add({}, member, &RequestTimes::p99_ns);
  }
  add({"1/s", true, false}, &S::output_tokens_per_s_per_gpu);
  add({"fraction", true, false}, &S::goodput, &Goodput::good_fraction);
  add({"1/s", true, false}, &S::goodput, &Goodput::good_per_s);
}

// Whether a run's steps of this stage are periods, from one to the next, and not durations.
bool are_periods(const StepRow& row) {
  return row.periods_ns && !row.periods_ns->empty();
}

void add_metrics(const Results& metrics, RunSummary& run) {
  // One level of metrics is gated, the best there is: time to first token and per token, else stage
  // times without a profiler, else stage times of the recording.
  const bool has_gate = add_aggregates(metrics, run);
  add_requests(metrics, run);
  const bool has_baseline = metrics.baseline && !metrics.baseline->empty();
  for_each_row(rows_at(metrics, &Results::baseline), [&](const StageTimes& row, const auto& path) {
    add_member(path, row, {"ns", false, !has_gate}, run, &StageTimes::p50_ns);
  });
  for_each_row(rows_at(metrics, &Results::stages), [&](const StageRow& row, const auto& path) {
    const bool is_gated = !has_gate && !has_baseline && !row.is_nested;
    // The steps of a run are periods where there are any, and these are not what a mark lasts.
    const auto steps = std::ranges::find(metrics.steps, row.stage, &StepRow::stage);
    const bool has_periods = steps != metrics.steps.end() && are_periods(*steps);
    add_member(path, row, {"ns", false, is_gated, has_periods ? "" : printable(row.stage.text())},
               run, &StageRow::median_ns);
    add_member(path, row, {}, run, &StageRow::kernel_ns);
  });
  // These decide where marks end before the GPU work does: see choose_deciding_times().
  for (const StepRow& row : metrics.steps) {
    if (row.stage.kind != RowKind::kUnmarked) {
      const std::string stage = printable(row.stage.text());
      const std::string path = fmt::format("steps[stage={}]", stage);
      add_member(path, row, {"ns", false, false, are_periods(row) ? stage : ""}, run,
                 &StepRow::period_median_ns);
      add_member(path, row, {}, run, &StepRow::gpu_window_median_ns);
    }
  }
  // Without marks, passes of the model are the steps there are: a recording that a clock ended has
  // the same length however slow they are.
  constexpr std::int64_t kLeastPasses = 4;
  for_each_row(rows_at(metrics, &Results::structure, &StructureSummary::passes),
               [&](const PassRow& row, const auto& path) {
                 const bool is_gated =
                     !has_gate && !has_baseline && !run.is_marked && row.num_passes >= kLeastPasses;
                 add_member(path, row, {"ns", false, is_gated}, run, &PassRow::period_ns);
               });
  for_each_row(
      rows_at(metrics, &Results::efficiency, &Efficiency::stages),
      [&](const StageEfficiency& row, const auto& path) {
        for (const auto ratio : {&StageEfficiency::mfu, &StageEfficiency::mbu}) {
          add_member(path, row, {"fraction", true, false}, run, ratio, &TwoClocks::wall_fraction);
        }
      });
  for_each_row(rows_at(metrics, &Results::ledgers), [&](const LedgerRow& row, const auto& path) {
    add_member(path, row, {}, run, &LedgerRow::window_ns);
    const std::string buckets = path + "." + path_of<LedgerRow>(&LedgerRow::buckets_ns);
    for (std::size_t i = 0; i < kNumBuckets; ++i) {
      add_metric(fmt::format("{}.{}", buckets, kBucketNames[i]),
                 static_cast<double>(row.buckets_ns[i]), {"ns", false, false, "", row.stage}, run);
    }
  });
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

// What was overridden, "none" if nothing was: one side of an A/B run has no override. The location
// of a bundle is not a property of the work.
std::string override_text(const Json& overrides) {
  if (!overrides.is_array()) {
    return "";  // not a run of gpuwhy
  }
  Json kept = Json::array();
  for (const Json& word : overrides) {
    if (!word.is_string() || !word.get<std::string>().starts_with("artifacts.")) {
      kept.push_back(word);
    }
  }
  return kept.empty() ? "none" : words_of(kept);
}

// "2 x NVIDIA H100"; names that a recording lacks are those of the machine; without a GPU the
// processor is the device.
std::string device_text(const Results& metrics) {
  std::map<std::string, int> names;
  for (const DeviceRow& device : metrics.devices) {
    if (device.num_kernels > 0) {
      ++names[device.name.empty() ? "unnamed" : printable(device.name)];
    }
  }
  if (names.empty() && metrics.environment) {
    for (const MachineGpu& gpu : metrics.environment->gpus) {
      ++names[printable(gpu.name)];
    }
  }
  std::string text;
  for (const auto& [name, number] : names) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", number, name);
  }
  const std::string cpu = metrics.environment ? printable(metrics.environment->cpu) : "";
  return text.empty() && !cpu.empty() ? "no GPU, " + cpu : text;
}

// Facts that decide whether two runs may be compared: see comparable_facts().
void add_facts(const Results& metrics, const Json& inputs, RunSummary& run) {
  const Environment machine = metrics.environment.value_or(Environment{});
  run.facts = {
      {"gpu", device_text(metrics)},
      {"model", metrics.efficiency ? printable(metrics.efficiency->model) : ""},
      {"inputs", words_of(field_of(inputs, "manifest"))},
      {"format", printable(metrics.capture.format_name)},
      {"timing", printable(metrics.aggregates.source)},
      {"graphs", run.launches == 0                     ? ""
                 : metrics.capture.opaque_graph_ns > 0 ? "recorded as a whole"
                                                       : "none as a whole"},
      {"command", words_of(field_of(inputs, "command"))},
      {"overrides", override_text(field_of(inputs, "overrides"))},
      {"stage_source", printable(metrics.capture.stage_source)},
      {"driver", printable(machine.driver_version)},
      {"cpu", printable(machine.cpu)},
      {"system", printable(machine.distribution)},
      {"profiler", printable(metrics.capture.tool_version)},
  };
}

// Untrusted numbers may be anything. Amounts of a run are summed and subtracted: rows whose sum
// exceeds thirty years, or is negative, are dropped.
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

// Rows that another program may have written: texts are printed, and numbers added up.
template <typename Row>
void clean(Row& row);
void clean(std::string& text) {
  text = printable(text);
}
void clean(RowName& row) {
  row = printable_row(row);
}
void clean(std::int64_t& amount) {
  amount = bounded(amount);
}
template <typename T>
void clean(std::vector<T>& list) {
  std::ranges::for_each(list, [](T& one) { clean(one); });
}
void clean(BucketTimes& times) {
  std::ranges::transform(times, times.begin(), bounded);
}
template <typename Row>
void clean(Row& row) {
  if constexpr (requires { describe(&row, [](auto&&...) {}); }) {
    describe(&row, [&](const char* /*key*/, auto member, const Field& /*field*/) {
      if constexpr (std::is_member_object_pointer_v<decltype(member)>) {
        clean(row.*member);
      }
    });
  }
}
template <typename Row>
Row cleaned(Row row) {
  clean(row);
  return row;
}

// Those whose times can be added up.
template <typename Row>
std::vector<Row> addable(const std::vector<Row>& rows) {
  std::vector<Row> kept;
  std::int64_t sum_ns = 0;
  std::int64_t sum_calls = 0;
  for (const Row& row : rows) {
    bool may_keep = may_add(row.total_ns, sum_ns);
    if constexpr (requires { row.calls; }) {
      may_keep = may_keep && may_add(row.calls, sum_calls);
    }
    if (may_keep) {
      kept.push_back(row);
    }
  }
  return kept;
}

void add_stages(const Results& metrics, RunSummary& run) {
  for (const StageRow& row : metrics.stages) {
    const auto steps = std::ranges::find(metrics.steps, row.stage, &StepRow::stage);
    const std::optional<StepTime> step = step_time(metrics, row);
    run.stages.push_back(
        {cleaned(row),
         steps != metrics.steps.end() && steps->gpu_work_median_ns.value_or(0) > row.median_ns,
         step && row.stage.kind != RowKind::kUnmarked ? step->key : std::string()});
  }
  if (metrics.stages.empty() && metrics.baseline) {
    for (const StageTimes& row : *metrics.baseline) {
      ComparedStage& stage = run.stages.emplace_back();
      stage.stage = printable_row(row.stage);
      stage.num_instances = row.n;
      stage.tokens = row.tokens;
    }
  }
  run.is_marked = !run.stages.empty() &&
                  !(run.stages.size() == 1 && run.stages[0].stage.kind == RowKind::kUnmarked);
}

// Rates of operators that have one row: sizes do not say in which of several stages they were.
std::map<std::string, std::vector<const GemmRate*>> rates_by_operator(const Results& metrics) {
  std::map<std::string, int> num_rows;
  for (const OperatorRow& row : metrics.operators->rows) {
    ++num_rows[row.name];
  }
  std::map<std::string, std::vector<const GemmRate*>> rates;
  for (const GemmRate& rate : metrics.gemm_rates) {
    if (const auto rows = num_rows.find(rate.op); rows != num_rows.end() && rows->second == 1) {
      rates[rate.op].push_back(&rate);
    }
  }
  return rates;
}

// An operator's row by the sizes of its inputs, if all of its calls have known ones; else none.
std::vector<ShapedOperator> by_shape(const OperatorRow& row,
                                     const std::vector<const GemmRate*>& rates) {
  std::vector<ShapedOperator> shapes;
  std::int64_t sum_ns = 0;
  std::int64_t sum_calls = 0;
  for (const GemmRate* rate : rates) {
    if (!may_add(rate->total_ns, sum_ns) || !may_add(rate->calls, sum_calls)) {
      return {};
    }
    ShapedOperator& shaped = shapes.emplace_back(ShapedOperator{cleaned(row), ""});
    shaped.total_ns = rate->total_ns;
    shaped.calls = rate->calls;
    shaped.shape = printable(rate->dims + (rate->dtype.empty() ? "" : ", " + rate->dtype));
  }
  return sum_ns == row.total_ns && sum_calls == row.calls ? shapes : std::vector<ShapedOperator>();
}

void add_operators(const Results& metrics, RunSummary& run) {
  if (!metrics.operators) {
    return;
  }
  run.operators_whole_ns = bounded(metrics.operators->whole_ns);
  run.operators_time = word_of(metrics.operators->time_of);
  std::map<std::string, std::vector<const GemmRate*>> rates = rates_by_operator(metrics);
  for (const OperatorRow& row : addable(metrics.operators->rows)) {
    const std::vector<ShapedOperator> shapes = by_shape(row, rates[row.name]);
    run.operators.insert(run.operators.end(), shapes.begin(), shapes.end());
    if (shapes.empty()) {
      run.operators.push_back({cleaned(row), ""});
    }
  }
}

// Two runs never agree in every nanosecond, so equal numbers are one run, wherever it lies.
std::string identity_of(const RunSummary& run) {
  std::string text = fmt::format("{} {} {}\n", run.launches, run.kernel_ns, run.recording_ns);
  for (const RunMetric& metric : run.metrics) {
    text += fmt::format("{}={}\n", metric.key, metric.value);
  }
  for (const StepRow& row : run.steps) {
    text += fmt::format("{}: {} {}\n", row.stage.text(), fmt::join(row.durations_ns, " "),
                        fmt::join(row.periods_ns.value_or(std::vector<std::int64_t>()), " "));
  }
  for (const KernelRow& row : run.kernels) {
    text += fmt::format("{} {} {} {} {}\n", row.kernel_name, row.device, row.stage.text(),
                        row.total_ns, row.calls);
  }
  for (const ShapedOperator& row : run.operators) {
    text += fmt::format("{} {} {} {}\n", row.name, row.stage.text(), row.total_ns, row.calls);
  }
  return sha256_hex(text);
}

// The members of an object of metrics.json that a file keeps.
template <typename T, typename... Members>
Json kept(const Json& object, Members... members) {
  Json part = Json::object();
  ((part[path_of<T>(members)] = field_of(object, path_of<T>(members))), ...);
  return part;
}

// The same of all rows of an array.
template <typename Row, typename... Members>
void keep_rows(Json& rows, Members... members) {
  rows = rows.is_array() ? rows : Json::array();
  for (Json& row : rows) {
    row = kept<Row>(row, members...);
  }
}

void add_promises(const Results& metrics, RunSummary& run) {
  for (const Finding& finding : metrics.findings) {
    const auto stage = std::ranges::find(metrics.stages, finding.stage, &StageRow::stage);
    if (finding.saving_ns > 0 && stage != metrics.stages.end() &&
        finding.id != FindingId::kUnknown) {
      run.promises.push_back({cleaned(finding), bounded(stage->num_instances)});
    }
  }
}

}  // namespace

RunSummary summary_of_run(const std::string& label, const Results& metrics, const Json& inputs) {
  RunSummary run;
  run.label = label;
  run.kernel_ns = bounded(metrics.capture.kernel_ns);
  run.recorded = printable(metrics.capture.recorded);
  run.num_gpus = num_working_gpus(metrics);
  run.tokens_per_s = tokens_per_s(metrics);
  run.kernels = cleaned(addable(metrics.kernels));
  for (const KernelRow& row : run.kernels) {
    run.launches += row.calls;
  }
  run.steps = cleaned(metrics.steps);
  run.ledgers = cleaned(metrics.ledgers);
  for (const LedgerRow& row : run.ledgers) {
    if (row.stage.kind == RowKind::kRecording) {
      run.recording_ns = std::max(run.recording_ns, row.window_ns);
    }
  }
  run.idle = cleaned(addable(metrics.idle_causes));
  if (metrics.structure) {
    run.passes = cleaned(metrics.structure->passes);
    run.parts = cleaned(addable(metrics.structure->parts));
  }
  add_stages(metrics, run);
  add_facts(metrics, inputs, run);
  add_metrics(metrics, run);
  add_operators(metrics, run);
  add_promises(metrics, run);
  // A run that measured nothing is kept, with the reason: the verdict then says that it is not
  // known.
  const bool has_time = std::any_of(run.metrics.begin(), run.metrics.end(),
                                    [](const RunMetric& metric) { return metric.value > 0; });
  const bool is_timed = metrics.aggregates.program_ns.value_or(0) > 0;
  if (run.launches == 0 && ((!run.is_marked && !is_timed) || !has_time)) {
    run.absent = metrics.verdict.sentence.empty() ? "no kernel and no stage"
                                                  : printable(text_of_member(metrics.verdict));
  }
  // A program that failed early is fast.
  const std::vector<BreachRow> breaches = metrics.contract.value_or(std::vector<BreachRow>());
  const auto failed = std::ranges::find_if(breaches, &BreachRow::is_fatal);
  if (failed != breaches.end()) {
    run.absent = printable(failed->sentence);
  }
  // Half a recording has half of the kernel time.
  const auto lost = std::ranges::find_if(metrics.findings, [](const Finding& finding) {
    return finding.is_blocker &&
           (finding.id == FindingId::kDataLoss || finding.id == FindingId::kImpossibleRows);
  });
  if (lost != metrics.findings.end() && run.absent.empty()) {
    run.absent = printable(lost->sentence);
  }
  run.is_without_kernels = run.launches == 0 && run.kernel_ns == 0 && failed == breaches.end() &&
                           lost == metrics.findings.end();
  // Runs that failed may well be alike.
  run.identity = run.absent.empty() ? identity_of(run) : "";
  return run;
}

// Results that are named in a budget but are not part of the usual set.
void add_budgeted(const std::vector<MetricBudget>& budgets, const Json& metrics, RunSummary& run) {
  // Where nothing was recorded, the sums of the recording are 0 and were not measured.
  const Json* format = find_path(metrics, parse_path("capture.format"));
  const bool is_recorded = format == nullptr || *format != Json("");
  for (const MetricBudget& budget : budgets) {
    const Json* value = find_metric(run, budget.key) != nullptr
                            ? nullptr
                            : find_path(metrics, parse_path(budget.key));
    if (value == nullptr || !value->is_number() ||
        (budget.key.starts_with("capture.") && !is_recorded)) {
      continue;
    }
    MetricForm form = form_of_path(budget.key);
    const std::vector<PathStep> path = parse_path(budget.key);
    for (const PathStep& step : path) {
      if (!step.choices.empty() && step.choices.front().first == "stage") {
        form.stage = row_name(step.choices.front().second);
      }
    }
    // A relative limit needs to know which direction is worse.
    if (budget.change_fraction && !has_direction(form.unit)) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("budget {}: it is not known whether more is better; use at_most or at_least",
                      printable(budget.key)),
          "give it {at_most: NUMBER} or {at_least: NUMBER} in place of change");
    }
    add_metric(budget.key, value->get<double>(), form, run);
  }
}

// The part of metrics.json that a baseline keeps: enough to compare, without the rest.
Json compared_part(const Json& metrics) {
  using M = Results;
  using Q = RequestsSummary;
  using E = Efficiency;
  using I = IdleRow;
  using K = KernelRow;
  using O = Operators;
  using R = OperatorRow;
  using G = GemmRate;
  using S = StructureSummary;
  using P = PassRow;
  using L = LayerPartRow;
  Json part = {{"schema", field_of(metrics, "schema")},
               {"schema_version", field_of(metrics, "schema_version")}};
  part.update(kept<M>(metrics, &M::verdict, &M::contract, &M::capture, &M::environment,
                      &M::aggregates, &M::devices, &M::stages, &M::steps, &M::baseline, &M::ledgers,
                      &M::efficiency, &M::kernels, &M::operators, &M::gemm_rates, &M::structure));
  if (const Json& requests = field_of(metrics, path_of<M>(&M::requests)); requests.is_object()) {
    part[path_of<M>(&M::requests)] =
        kept<Q>(requests, &Q::ttft, &Q::itl, &Q::output_tokens_per_s_per_gpu, &Q::goodput);
  }
  part.update(kept<M>(metrics, &M::idle_causes));
  Json& efficiency = part[path_of<M>(&M::efficiency)];
  efficiency = kept<E>(efficiency, &E::model, &E::stages);
  keep_rows<I>(part[path_of<M>(&M::idle_causes)], &I::stage, &I::device, &I::bucket, &I::kind,
               &I::scope, &I::total_ns);
  keep_rows<K>(part[path_of<M>(&M::kernels)], &K::kernel_name, &K::short_name, &K::device,
               &K::stage, &K::family, &K::total_ns, &K::calls, &K::num_shapes, &K::shapes,
               &K::by_shape);
  Json& operators = part[path_of<M>(&M::operators)];
  operators = kept<O>(operators, &O::time_of, &O::whole_ns, &O::rows);
  keep_rows<R>(operators[path_of<O>(&O::rows)], &R::name, &R::stage, &R::total_ns, &R::calls);
  keep_rows<G>(part[path_of<M>(&M::gemm_rates)], &G::op, &G::dims, &G::dtype, &G::calls,
               &G::total_ns);
  Json& structure = part[path_of<M>(&M::structure)];
  structure = kept<S>(structure, &S::passes, &S::parts);
  keep_rows<P>(structure[path_of<S>(&S::passes)], &P::pass, &P::num_passes, &P::num_layers,
               &P::is_backward, &P::kernel_ns, &P::period_ns);
  keep_rows<L>(structure[path_of<S>(&S::parts)], &L::pass, &L::place, &L::part, &L::short_name,
               &L::total_ns);
  return part;
}

}  // namespace gpuwhy
