// SPDX-License-Identifier: Apache-2.0
//
// The page of a comparison without a browser: names stay names, and every number is the JSON's.

#include "base/gzip_base64.h"
#include "base/json.h"
#include "base/json_path.h"
#include "base/sha256.h"
#include "compare/compared_rows.h"
#include "report/comparison/ci.h"
#include "report/comparison/comparison.h"
#include "report/comparison/run_summary.h"
#include "report/document/section_parts.h"
#include "results/json.h"
#include "results/results.h"
#include "testing.h"

namespace gpuwhy {
namespace {

KernelRow kernel(const std::string& name, const std::string& family, std::int64_t total_ns) {
  return kernel_row(name, "decode", family, 10, total_ns);
}

RunSummary make_run(const std::string& name, double tpot_ns, std::int64_t gemm_ns) {
  RunSummary run;
  run.label = name;
  run.is_marked = true;
  run.launches = 30;
  run.facts = {{"gpu", "1 x " + name}, {"command", name + std::to_string(gemm_ns)}};
  run.stages = {stage_row("decode", 100, 100)};
  run.metrics = {{"aggregates.tpot.p50_ns", "ns", tpot_ns, false, true, ""},
                 {"stages[stage=\"" + name + "\"].kernel_ns", "ns", tpot_ns / 2, false, false, ""}};
  run.kernels = {kernel(name + "_gemm", "gemm", gemm_ns), kernel(name, name, 300),
                 kernel("norm", "norm", 200)};
  run.kernel_ns = gemm_ns + 300 + 200 + 7;
  run.ledgers = {
      ledger_row(row_name(name), "cuda:0", {{Bucket::kCompute, gemm_ns}, {Bucket::kSync, 1000}})};
  run.operators = {operator_row(name, row_name("decode"), gemm_ns, 3),
                   operator_row("ADD x", row_name("decode"), 50, 1)};
  run.operators_whole_ns = gemm_ns + 60;
  run.operators_time = name;
  return run;
}

Comparison comparison_of(const std::string& name, std::size_t repeats) {
  std::vector<RunSummary> base;
  std::vector<RunSummary> candidate;
  for (std::size_t i = 0; i < repeats; ++i) {
    const auto shift = static_cast<std::int64_t>(i);
    base.push_back(make_run(name, 1e7 + static_cast<double>(i), 4000 + shift));
    candidate.push_back(make_run(name, 1.1e7 + static_cast<double>(i), 4700 + shift));
    base.back().kernels[2].total_ns += 20 * (shift % 3);  // noise
    candidate.back().kernels[2].total_ns += 20 * ((shift + 1) % 3);
    candidate.back().kernels[0] = kernel(name + "_gemm_fast", "gemm", 4700 + shift);
  }
  return compare_runs(base, candidate, {});
}

std::string unescaped(std::string text) {
  for (const auto& [entity, character] :
       {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}}) {
    for (std::size_t at = text.find(entity); at != std::string::npos;
         at = text.find(entity, at + 1)) {
      text.replace(at, std::string(entity).size(), character);
    }
  }
  return text;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// What stands between `before`, which must be at `at`, and `end`; moves behind it.
std::string taken(const std::string& page, std::size_t& at, std::string_view before, char end) {
  EXPECT_EQ(page.compare(at, before.size(), before), 0) << page.substr(at, 80);
  const std::size_t begin = at + before.size();
  const std::size_t stop = std::min(page.find(end, begin), page.size() - 1);
  at = stop + (end == '"' ? 1 : 0);
  return page.substr(begin, stop - begin);
}

// Every number that names its key, with the words it is shown in.
void expect_numbers_of(const Comparison& comparison, const std::string& page,
                       std::size_t at_least) {
  const Json json = parse_json(comparison_json(comparison), "");
  std::size_t count = 0;
  std::size_t at = 0;
  while ((at = page.find("data-key=\"", at)) != std::string::npos) {
    const std::string key = unescaped(taken(page, at, "data-key=\"", '"'));
    const std::string value = unescaped(taken(page, at, " data-value=\"", '"'));
    const std::string words = unescaped(taken(page, at, ">", '<'));
    const Json* truth = find_path(json, parse_path(key));
    ASSERT_NE(truth, nullptr) << key;
    EXPECT_EQ(to_json_line(*truth), value) << key;
    const CellFormat unit =
        key.ends_with(".ratio") || key.ends_with("ratio_low") || key.ends_with("ratio_high")
            ? CellFormat::kRatio
        : key.ends_with("difference_ns") || key.ends_with("launches_ns") ||
                key.ends_with("calls_ns") || key.ends_with("duration_ns") ||
                key.ends_with("not_in_rows_ns")
            ? CellFormat::kDifference
            : CellFormat::kDuration;
    EXPECT_EQ(words, shown({cell_of(*truth), unit, ""})) << key;
    ++count;
  }
  EXPECT_GE(count, at_least);
  EXPECT_EQ(count, count_of(page, "data-value="));
}

TEST(ComparisonPage, EveryNumberIsTheJsons) {
  const Comparison comparison = comparison_of("kernel", 6);
  EXPECT_EQ(comparison.verdict, Decision::kRegress);
  const std::string page = comparison_page(comparison, 20);
  expect_numbers_of(comparison, page, 37);
  EXPECT_THAT(page, HasSubstr(">Slower</h2>"));
  EXPECT_THAT(page, HasSubstr("Time per token (p50)"));
  EXPECT_THAT(page, HasSubstr("kernel_gemm -&gt; kernel_gemm_fast"));  // a swap is one row
  EXPECT_THAT(page, HasSubstr("beyond noise (p 0.0022, adjusted"));
  EXPECT_THAT(page, HasSubstr("within noise (p 1, adjusted 1)"));
  EXPECT_THAT(page, HasSubstr("in no operator"));
}

TEST(ComparisonPage, PartsSumToTheMeasuredDifference) {
  const Json comparison = parse_json(comparison_json(comparison_of("kernel", 6)), "");
  std::int64_t sum = integer_of(comparison, "kernel_time.not_in_rows_ns");
  for (const Json& row : rows_of(comparison, "families")) {
    sum += integer_of(row, "difference_ns");
  }
  EXPECT_EQ(sum, integer_of(comparison, "kernel_time.difference_ns"));
  EXPECT_EQ(sum, 700);
  sum = integer_of(comparison, "operators.not_in_rows_ns");
  for (const Json& row : rows_of(comparison, "operators.rows")) {
    sum += integer_of(row, "difference_ns");
  }
  EXPECT_EQ(sum, integer_of(comparison, "operators.difference_ns"));
}

TEST(ComparisonPage, WithinNoiseIsSaidInWords) {
  std::vector<RunSummary> runs;
  for (int i = 0; i < 6; ++i) {
    runs.push_back(make_run("kernel", 1e7 + i, 4000));
  }
  const std::string page =
      comparison_page(compare_runs(runs, std::vector<RunSummary>(runs), {}), 20);
  EXPECT_THAT(page, HasSubstr(">No slower</h2>"));
  EXPECT_THAT(page, HasSubstr("<div class=\"tile-value\">within noise</div>"));
  const Comparison one = comparison_of("kernel", 1);
  EXPECT_THAT(comparison_page(one, 20), HasSubstr("<div class=\"tile-value\">not decided</div>"));
  EXPECT_THAT(comparison_page(one, 20), HasSubstr("Noise is unknown with one run per side"));
}

TEST(ComparisonPage, OneChangeIsPrintedWithTheLevelOfItsInterval) {
  Comparison comparison = comparison_of("kernel", 6);
  comparison.metrics[0].ratio = 1.0873;  // as skewed runs have it: not the ratio of the medians
  comparison.model.passes = {
      {{4000, 3200},
       "forward",
       2,
       10,
       12,
       {{{3000, 2400}, "layer", "qkv", "a", "a"}, {{1000, 800}, "", "", "b", "b"}}}};
  const std::string page = comparison_page(comparison, 20);
  EXPECT_THAT(page,
              HasSubstr("Time per token (p50) +8.73 % (medians 10.0 ms -&gt; 11.0 ms); one "
                        "forward pass (2 layers) 4.00 us -&gt; 3.20 us of kernel time (-20.0 %)"));
  EXPECT_THAT(page, Not(HasSubstr("+10.0 %)")));
  EXPECT_THAT(page, HasSubstr("(98 % interval)"));
  EXPECT_THAT(page, HasSubstr("(98 %)</td>"));
  EXPECT_LT(page.find("by bucket</h2>"), page.find("by family of kernels</h2>"));
  EXPECT_LT(page.find("by family of kernels</h2>"), page.find("by kernel</h2>"));
}

TEST(ComparisonPage, LimitsAloneSayWhatTheLimitIs) {
  CompareOptions options;
  MetricBudget budget;
  budget.key = "aggregates.tpot.p50_ns";
  budget.at_most = 9e6;
  options.budgets = {budget};
  const Comparison comparison = judge_limits({make_run("kernel", 1e7, 4000)}, options);
  const std::string page = comparison_page(comparison, 20);
  expect_numbers_of(comparison, page, 2);
  EXPECT_THAT(page, HasSubstr("<h1>kernel: Outside its limits</h1>"));
  EXPECT_THAT(page, HasSubstr("Time per token (p50) 10.0 ms (at most 9.00 ms)."));
  EXPECT_THAT(page, Not(HasSubstr("n/a")));
  EXPECT_THAT(page, Not(HasSubstr("Slower")));
  EXPECT_THAT(page, Not(HasSubstr("WORSE")));
}

TEST(ComparisonPage, DashboardsGetTheNamesThatAReportGives) {
  const Comparison comparison = comparison_of("kernel", 6);
  const Json bencher = parse_json(bencher_comparison(comparison), "");
  EXPECT_EQ(bencher.at("tpot/p50").at("latency_ns").at("value"),
            Json(*comparison.metrics[0].candidate));
  const Json rows = parse_json(google_benchmark_comparison(comparison), "").at("benchmarks");
  EXPECT_EQ(rows.at(0).at("run_name"), Json("tpot/p50"));
  EXPECT_EQ(dashboard_name("stages[stage=decode].host_median_ns"), "decode/median");
}

TEST(ComparisonPage, NamesStayNames) {
  for (const std::string name :
       {"</script><script>x", "</title><script>", "{{core}}", "\" onload=\"x", "<img src=x>", "]]>",
        "a&b<i>", "bidi\u202etxt", "]\"=,[", "' style='x"}) {
    const Comparison comparison = comparison_of(name, 6);
    const std::string page = comparison_page(comparison, 20);
    EXPECT_THAT(page, Not(HasSubstr("<script"))) << name;
    EXPECT_THAT(page, Not(HasSubstr("<img"))) << name;
    EXPECT_THAT(page, Not(HasSubstr("<i>"))) << name;
    EXPECT_THAT(page, Not(HasSubstr("\u202e"))) << name;
    EXPECT_THAT(page, Not(HasSubstr("\" onload"))) << name;
    EXPECT_THAT(page, Not(HasSubstr("' style"))) << name;
    EXPECT_EQ(count_of(page, "<style>"), 1U) << name;
    EXPECT_EQ(count_of(page, "<main"), 1U) << name;
    expect_numbers_of(comparison, page, 37);
  }
}

TEST(ComparisonPage, ThePolicyAllowsTheStyleAndNothingElse) {
  const std::string page = comparison_page(comparison_of("kernel", 6), 20);
  const std::size_t open = page.find("<style>") + 7;
  const std::string style = page.substr(open, page.find("</style>") - open);
  EXPECT_GT(style.size(), 1000U);
  EXPECT_THAT(page,
              HasSubstr("content=\"default-src 'none'; style-src 'sha256-" +
                        base64(sha256_bytes(style)) + "'; base-uri 'none'; form-action 'none'\""));
  EXPECT_THAT(page, Not(HasSubstr(" style=")));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
}

TEST(RunSummary, NumbersOfStrangersStayWithinWhatCanBeSummed) {
  const std::int64_t huge = INT64_MAX;
  const Json row = {{"total_ns", huge}, {"calls", huge}, {"name", "a"}, {"stage", "decode"}};
  const Json small = {{"total_ns", 5}, {"calls", -1}, {"name", "b"}, {"stage", "decode"}};
  const Json kept = {{"total_ns", 5}, {"calls", 2}, {"name", "c"}, {"stage", "decode"}};
  const Json metrics = {
      {"capture", {{"kernel_ns", huge}}},
      {"kernels", {row, small, kept, kept}},
      {"ledgers", {{{"stage", "a"}, {"window_ns", huge}, {"buckets_ns", {{"sync", -huge}}}}}},
      {"operators", {{"whole_ns", huge}, {"rows", {row, small, kept}}}}};
  const RunSummary run = summary_of_run("run", metrics_from_json(metrics), nullptr);
  EXPECT_EQ(run.kernels.size(), 2U);
  EXPECT_EQ(run.launches, 4);
  ASSERT_EQ(run.operators.size(), 1U);
  EXPECT_EQ(run.operators[0].name, "c");
  EXPECT_EQ(run.operators_whole_ns, 0);
  EXPECT_EQ(run.ledgers[0].buckets_ns, BucketTimes());
}

TEST(RunSummary, AProgramWithoutMarksIsJudgedByItsLength) {
  const Json metrics = {{"aggregates", {{"program_ns", 355'000'000}}}};
  const RunSummary run = summary_of_run("run", metrics_from_json(metrics), nullptr);
  EXPECT_EQ(run.absent, "");
  ASSERT_EQ(run.metrics.size(), 1U);
  EXPECT_EQ(run.metrics[0].key, "aggregates.program_ns");
  EXPECT_TRUE(run.metrics[0].is_gated);
  EXPECT_EQ(metric_label(run.metrics[0].key), "length of the program");
  EXPECT_NE(summary_of_run("run", metrics_from_json(Json::object()), nullptr).absent, "");
}

TEST(RunSummary, BudgetsMayNameAnyNumber) {
  const Json metrics = {
      {"capture", {{"kernel_ns", 7}, {"format", "x"}}},
      {"devices", {{{"device", "cuda:0"}, {"busy_fraction", 0.5}, {"kernels", 3}}}}};
  const auto with = [&](const MetricBudget& budget) {
    RunSummary run = summary_of_run("run", metrics_from_json(metrics), nullptr);
    add_budgeted({budget, budget}, metrics, run);
    return run.metrics;
  };
  MetricBudget budget;
  budget.at_most = 1;
  const std::tuple<const char*, double, const char*> numbers[] = {
      {"capture.kernel_ns", 7, "ns"},
      {"devices[device=cuda:0].busy_fraction", 0.5, "fraction"},
      {"devices[0].kernels", 3, "number"}};
  for (const auto& [key, value, unit] : numbers) {
    budget.key = key;
    const std::vector<RunMetric> found = with(budget);
    ASSERT_EQ(found.size(), 1U) << key;
    EXPECT_EQ(found[0].key, key);
    EXPECT_EQ(found[0].value, value);
    EXPECT_EQ(found[0].unit, unit);
    EXPECT_FALSE(found[0].is_larger_better);
  }
  for (const char* key : {"capture.nosuch", "capture.format", "devices[device=cuda:1].kernels"}) {
    budget.key = key;
    EXPECT_TRUE(with(budget).empty()) << key;
  }
  budget.key = "capture..kernel_ns";
  expect_error([&] { with(budget); }, ErrorKind::kUsage, HasSubstr("not a key"),
               HasSubstr("keys look like"));
}

TEST(RunSummary, AChangeIsBudgetedOnlyWhereItsDirectionIsKnown) {
  const Json metrics = {{"capture", {{"kernel_ns", 7}}}, {"devices", {{{"busy_fraction", 0.5}}}}};
  RunSummary run = summary_of_run("run", metrics_from_json(metrics), nullptr);
  MetricBudget budget;
  budget.change_fraction = 0.02;
  budget.key = "capture.kernel_ns";
  add_budgeted({budget}, metrics, run);
  EXPECT_EQ(run.metrics.size(), 1U);
  budget.key = "devices[0].busy_fraction";
  expect_error([&] { add_budgeted({budget}, metrics, run); }, ErrorKind::kUsage,
               HasSubstr("whether more is better"), HasSubstr("at_least"));
}

TEST(RunSummary, ABaselineKeepsOperators) {
  const Json metrics = {
      {"operators",
       {{"whole_ns", 9},
        {"time_of", "the time is the host's"},
        {"layers", Json::array()},
        {"rows",
         {{{"name", "ADD"}, {"stage", "decode"}, {"total_ns", 5}, {"calls", 2}, {"flops", 1}}}}}}};
  const RunSummary run = summary_of_run("run", metrics_from_json(compared_part(metrics)), nullptr);
  ASSERT_EQ(run.operators.size(), 1U);
  EXPECT_EQ(run.operators[0].calls, 2);
  EXPECT_EQ(run.operators_whole_ns, 9);
  EXPECT_EQ(run.operators_time, "the time is the host's");
}

// On a phone a row is a card: its cells say what they are, and its name is in words.
TEST(ComparisonPage, CellsSayWhatTheyAre) {
  std::vector<RunSummary> base(1, make_run("a", 1e7, 4000));
  base[0].metrics.push_back(
      {"ledgers[stage=decode,device=cuda:0].buckets_ns.launch_late", "ns", 5, false, false, ""});
  const std::string page = comparison_page(compare_runs(base, base, {}), 10);
  EXPECT_THAT(page, HasSubstr("<table class=\"cards\">"));
  EXPECT_THAT(page, HasSubstr("<td class=\"n\" data-label=\"candidate\""));
  EXPECT_THAT(page, HasSubstr("<td class=\"name\">waiting for CPU launch (decode, cuda:0)</td>"));
}

TEST(ComparisonPage, AFailedRunHasAPageWithoutNumbers) {
  RunSummary failed = make_run("failed", 1e6, 400);
  failed.absent = "the program exited with code 1";
  const Comparison comparison = compare_runs({make_run("a", 1e7, 4000)}, {failed}, {});
  const std::string page = comparison_page(comparison, 10);
  EXPECT_THAT(page, HasSubstr("Nothing was compared: a run failed or is empty."));
  EXPECT_THAT(page, HasSubstr("the program exited with code 1"));
  EXPECT_THAT(page, Not(HasSubstr("1.00 ms")));
  EXPECT_THAT(page, Not(HasSubstr("by kernel")));
}

// The sizes of inputs stand with the rates of products; only where they are those of all calls do
// they divide an operator's row.
TEST(RunSummary, OperatorsAreDividedByShapesThatAreAllKnown) {
  Results metrics;
  metrics.operators.emplace().rows.resize(1);
  OperatorRow& row = metrics.operators->rows[0];
  row.name = "aten::mm";
  row.total_ns = 30;
  row.calls = 3;
  metrics.gemm_rates.resize(2);
  GemmRate& large = metrics.gemm_rates[0];
  GemmRate& small = metrics.gemm_rates[1];
  large.op = small.op = "aten::mm";
  large.dims = "8x8 x 8x8";
  large.dtype = "bf16";
  large.calls = 2;
  large.total_ns = 18;
  small.dims = "4x8 x 8x8";
  small.calls = 1;
  small.total_ns = 12;
  const auto summary = [&] { return summary_of_run("run", metrics, Json::object()); };
  const RunSummary run = summary();
  ASSERT_EQ(run.operators.size(), 2U);
  EXPECT_EQ(run.operators[0].shape, "8x8 x 8x8, bf16");
  EXPECT_EQ(run.operators[0].calls, 2);
  EXPECT_EQ(run.operators[1].shape, "4x8 x 8x8");
  EXPECT_EQ(run.operators[1].total_ns, 12);
  row.calls = 4;
  ASSERT_EQ(summary().operators.size(), 1U);
  EXPECT_EQ(summary().operators[0].shape, "");
}

// For a reader who knows neither metrics nor tests.
TEST(ComparisonPage, SaysInPlainWordsWhatChangedAndWhetherItMayBeChance) {
  EXPECT_THAT(comparison_page(comparison_of("run", 1), 10),
              HasSubstr("was 10.0 ms before and is 11.0 ms now, 10.0 % more. Whether that is more "
                        "than chance is not known: there is one run of each. Repeat both."));
  EXPECT_THAT(comparison_page(comparison_of("run", 8), 10),
              HasSubstr("10.0 % more. That is a change for the worse, beyond chance."));
  RunSummary base = make_run("run", 1e7, 4000);
  RunSummary candidate = make_run("run", 1e7, 4000);
  base.metrics = {{"stages[stage=step].host_median_ns", "ns", 152e6, false, true, ""}};
  candidate.metrics = {{"stages[stage=step].host_median_ns", "ns", 126e6, false, true, ""}};
  EXPECT_THAT(comparison_page(compare_runs({base}, {candidate}, {}), 10),
              HasSubstr("Step (median length on the CPU) was 152 ms before and is 126 ms now"));
}

}  // namespace
}  // namespace gpuwhy
