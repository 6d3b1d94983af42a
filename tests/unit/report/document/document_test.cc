// SPDX-License-Identifier: Apache-2.0
//
// Reports of metrics that are whole, have parts missing, or come from somebody who means ill.
#include "report/document/document.h"

#include <algorithm>
#include <random>

#include "analysis/efficiency/latencies.h"
#include "analysis/idle/busy_row.h"
#include "analysis/operators/operators.h"
#include "analysis/timeline/timeline.h"
#include "base/error.h"
#include "base/json.h"
#include "base/json_path.h"
#include "base/text.h"
#include "report/comparison/ci.h"
#include "report/comparison/run_summary.h"
#include "report/sections/files.h"
#include "report/sections/sections.h"
#include "report/words/glossary.h"
#include "results/json.h"
#include "results/results.h"
#include "testing.h"

namespace gpuwhy {
namespace {

const std::vector<std::string> kHostile = {"a|b",
                                           "`code`",
                                           "line\nbreak",
                                           "\r\n# heading",
                                           "</td><script>alert(1)</script>",
                                           "[link](javascript:x)",
                                           "![i](http://x/y.png)",
                                           std::string("nul\0here", 8),
                                           "\x1b[31mred",
                                           "\xe2\x80\xaeright to left",
                                           "bad \xff\xfe utf-8",
                                           "***",
                                           "~~gone~~",
                                           "\\|",
                                           "\\`",
                                           "&lt;",
                                           std::string(4096, 'T') + "<float, 128>",
                                           "| --- | --- |",
                                           "<!-- -->"};

StageTimes times(const std::string& stage) {
  StageTimes row;
  row.stage = row_name(stage);
  row.n = 20;
  row.total_ns = 20'000'000;
  row.mean_ns = 1e6;
  row.std_ns = 1e4;
  row.p50_ns = 1'000'000;
  row.p99_ns = 1'100'000;
  row.tokens = 20;
  row.tokens_per_s = 1000;
  return row;
}

// An analysis in which every part is there; `name` stands wherever untrusted text may.
Analysis whole(const std::string& name = "gemv_kernel") {
  Analysis analysis;
  analysis.capture.has_cuda = true;
  analysis.capture.format_name = "nsys SQLite";
  analysis.capture.tool_version = name;
  analysis.tool_messages = {name};
  analysis.capture.duration_ns = 30'000'000;
  analysis.capture.kernel_ns = 12'000'000;
  analysis.capture.stage_source = "NVTX domain LLM";
  for (const char* stage : {"prefill", "decode", "vision"}) {
    StageRow row;
    row.stage = row_name(stage);
    row.num_instances = 3;
    row.total_ns = 15'000'000;
    row.median_ns = 5'000'000;
    row.max_ns = 6'000'000;
    row.first_ns = 6'000'000;
    row.steady_mean_ns = 4'500'000;
    row.tokens = 77;
    analysis.stages.push_back(row);
  }
  analysis.stage_times = {times("prefill"), times("decode")};
  analysis.baseline = {times("prefill"), times("decode_step"), times(name)};
  analysis.overhead = {{row_name("decode"), 1e6, 1.4e6, 0.4}};
  analysis.devices = {{.device = "cuda:0",
                       .name = name,
                       .busy_ns = 12'000'000,
                       .num_kernels = 40,
                       .busy_stage = {}}};
  LedgerRow ledger{{}, row_name("decode"), "cuda:0", 3};
  ledger.window_ns = 15'000'000;
  ledger.buckets_ns[static_cast<std::size_t>(Bucket::kCompute)] = 5'000'000;
  ledger.buckets_ns[static_cast<std::size_t>(Bucket::kLaunchLate)] = 10'000'000;
  set_base(ledger);
  analysis.ledgers = {ledger};
  KernelRow kernel;
  kernel.kernel_name = kernel.short_name = name;
  kernel.stage = row_name(name);
  kernel.family = "gemv";
  kernel.device = "cuda:0";
  kernel.total_ns = 12'000'000;
  kernel.calls = 40;
  kernel.kernel_fraction = 1;
  analysis.kernels = {kernel};
  analysis.families = {{"gemv", 12'000'000, 40}, {"other", 1, 1}};
  analysis.unmatched_names = {name};
  Operators& operators = analysis.operators.emplace();
  operators.source = name;
  operators.covered_ns = 11'000'000;
  operators.whole_ns = 12'000'000;
  operators.layers = {{name, 11'000'000, 3}};
  OperatorRow op;
  op.name = name;
  op.stage = row_name("decode");
  op.total_ns = 11'000'000;
  op.calls = 3;
  operators.rows = {op};
  finish_operators(true, operators);
  Efficiency efficiency;
  efficiency.model = name;
  efficiency.gpu = "H100";
  efficiency.num_gpus = 1;
  StageEfficiency stage;
  stage.stage = row_name("decode");
  stage.passes = 3;
  stage.wall_ns = 15'000'000;
  stage.busy_ns = 5'000'000;
  stage.flops = 1'000'000;
  stage.bytes = 2'000'000;
  stage.bound_ns = 1e6;
  stage.mfu = {0.001, 0.003};
  stage.mbu = {0.06, 0.2};
  stage.sol = {0.06, 0.2};
  stage.side = "memory";
  stage.verdict = "GPU mostly idle";
  efficiency.stages = {stage};
  efficiency.notes = {name};
  analysis.efficiency = efficiency;
  CountersRow counters;
  counters.tool_version = name;
  CounterRow measured;
  measured.kernel_name = measured.short_name = name;
  measured.covered_ns = 12'000'000;
  measured.covered_fraction = 1;
  measured.confidence = "low";
  measured.winnable_ns = 1e6;
  counters.kernels = {measured};
  counters.coverage = {{"decode", 12'000'000, 12'000'000}, {"total", 12'000'000, 12'000'000}};
  analysis.counters = counters;
  analysis.data_quality = {{"open_range", Severity::kWarning, 1, name}};
  return analysis;
}

// As complete() leaves it.
Results finished(Analysis analysis) {
  Findings findings = find_findings(analysis, {});
  analysis.findings = std::move(findings.found);
  analysis.silent_rules = std::move(findings.silent);
  analysis.aggregates = latencies_of(analysis);
  analysis.verdict = verdict_of(analysis);
  return analysis;
}

Results whole_metrics(const std::string& name = "gemv_kernel") {
  RunFacts run;
  run.environment.emplace().cpu = name;
  run.environment->memory_bytes = 1024;
  run.contract = {{"no_marks", "nsys", false, name, ""}};
  Results results = finished(whole(name));
  add_run(run, results);
  return results;
}

std::vector<Document> documents(const Results& metrics) {
  SectionOptions options;
  options.files = {"metrics.json"};
  return {report_document(metrics, options), stakeholder_document(metrics, options),
          kernels_document(metrics, options), operators_document(metrics, options)};
}

void expect_all_sections(const Results& metrics, const std::string& what) {
  const std::string summary = markdown_text(stakeholder_document(metrics, {}));
  for (const char* heading :
       {"# Stakeholder Summary\n", "## Executive Summary\n", "## Recommendations\n",
        "## Environment\n", "## Aggregates\n", "## Per-Stage Timings\n", "## MFU\n",
        "## Stage Takeaways\n", "## Top Operators\n", "## Top Kernels\n"}) {
    ASSERT_THAT(summary, HasSubstr(heading)) << what;
  }
  for (const Document& document : documents(metrics)) {
    for (const Section& section : document.sections) {
      const bool has_content = !section.paragraphs.empty() || !section.facts.empty() ||
                               !section.advice.empty() || !section.notes.empty() ||
                               !section.links.empty() ||
                               std::any_of(section.tables.begin(), section.tables.end(),
                                           [](const ReportTable& t) { return !t.rows.empty(); });
      ASSERT_TRUE(has_content || section.missing.size() > 20)
          << what << ": " << section.title << " is empty and does not say why";
    }
  }
}

// Columns without a value go first, then headings break, then names are truncated.
TEST(TerminalTable, IsFittedToTheWidth) {
  Document document;
  Section& section = document.sections.emplace_back();
  section.id = "kernels";
  section.title = "Kernels";
  ReportTable& table = section.tables.emplace_back();
  table.columns = {{"stage", "", CellFormat::kText},
                   {"kernels per layer", "", CellFormat::kCount},
                   {"never known", "", CellFormat::kDuration},
                   {"kernel", "", CellFormat::kName}};
  ReportRow& row = table.rows.emplace_back();
  row.cells = {{std::string(30, 's'), CellFormat::kText, ""},
               {12.0, CellFormat::kCount, ""},
               {std::monostate(), CellFormat::kDuration, ""},
               {std::string(50, 'k'), CellFormat::kName, ""}};
  const auto widest = [&](std::size_t width) {
    std::size_t most = 0;
    const std::string text = terminal_text(document, {width, false});
    for (const std::string_view line : split(text, '\n')) {
      most = std::max(most, display_width(line));
    }
    return most;
  };
  EXPECT_THAT(terminal_text(document, {0, false}), HasSubstr("never known"));
  EXPECT_THAT(terminal_text(document, {80, false}), Not(HasSubstr("never known")));
  EXPECT_THAT(terminal_text(document, {80, false}), HasSubstr("kernels per layer"));
  EXPECT_THAT(terminal_text(document, {60, false}), Not(HasSubstr("kernels per layer")));
  for (const std::size_t width : {160U, 100U, 80U, 60U, 48U}) {
    EXPECT_LE(widest(width), width) << terminal_text(document, {width, false});
  }
}

TEST(Report, EverySectionIsThereWhateverIsMissing) {
  const Json metrics = metrics_json(whole_metrics());
  expect_all_sections(metrics_from_json(metrics), "nothing missing");
  expect_all_sections(finished({}), "nothing recorded");
  expect_all_sections(Results{}, "an empty file");
  std::vector<std::string> keys;
  for (const auto& [key, value] : metrics.items()) {
    keys.push_back(key);
  }
  ASSERT_GT(keys.size(), 20U);
  for (const std::string& first : keys) {
    for (const std::string& second : keys) {
      Json less = metrics;
      less.erase(first);
      less.erase(second);
      expect_all_sections(metrics_from_json(less), "without " + first + " and " + second);
    }
  }
}

// A bundle may come from anyone: values are replaced by every kind of value, and are refused or
// reported.
TEST(Report, NoTypeOfAnyValueIsTrusted) {
  const std::vector<Json> wrong = {nullptr,
                                   true,
                                   -5,
                                   1e300,
                                   "text",
                                   Json::array({1, nullptr, "x"}),
                                   Json{{"a", Json::array()}},
                                   Json::array({Json::object()})};
  const Json metrics = metrics_json(whole_metrics());
  int count = 0;
  int num_refused = 0;
  const Json flat = metrics.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    Json json = metrics;
    json[Json::json_pointer(pointer)] = wrong[static_cast<std::size_t>(count++) % wrong.size()];
    Results changed;
    try {
      changed = metrics_from_json(json);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      ++num_refused;
      continue;
    }
    expect_all_sections(changed, pointer);
    EXPECT_FALSE(terminal_text(terminal_document(changed, {}), {80}).empty());
    EXPECT_TRUE(parse_json(document_json(report_document(changed, {})), "").is_object());
    EXPECT_TRUE(parse_json(bencher_json(changed), "").is_object());
    EXPECT_TRUE(parse_json(google_benchmark_json(changed), "").is_object());
  }
  EXPECT_GT(count, 150);
  EXPECT_GT(num_refused, 100);
}

// Cells of a row of a markdown table: what stands between bars that are not escaped.
std::size_t count_cells(const std::string& line) {
  std::size_t bars = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '|') {
      ++bars;
    }
  }
  return bars - 1;
}

// Code spans taken out: what they contain is shown as it is.
std::string outside_code(const std::string& markdown) {
  std::string text;
  bool is_code = false;
  for (std::size_t i = 0; i < markdown.size(); ++i) {
    const bool is_escaped = i > 0 && markdown[i - 1] == '\\' && !is_code;
    is_code = markdown[i] == '`' && !is_escaped ? !is_code : is_code && markdown[i] != '\n';
    text += is_code ? ' ' : markdown[i];
  }
  return text;
}

TEST(Report, AStrangersTextStaysInItsCell) {
  for (const std::string& name : kHostile) {
    const Results metrics = whole_metrics(name);
    const Results plain = whole_metrics("plain");
    for (std::size_t d = 0; d < 4; ++d) {
      const std::string text = markdown_text(documents(metrics)[d]);
      const std::string expected = markdown_text(documents(plain)[d]);
      // As many lines of every kind as with a harmless name: none was made, none swallowed.
      const auto shape = [](const std::string& markdown) {
        std::vector<std::pair<char, std::size_t>> lines;
        std::size_t start = 0;
        while (start < markdown.size()) {
          const std::size_t end = std::min(markdown.find('\n', start), markdown.size());
          const std::string line = markdown.substr(start, end - start);
          const char kind = line.empty() ? ' ' : line[0];
          const bool is_own =
              kind == '|' || kind == '#' || kind == '-' || kind == '1' || kind == ' ';
          lines.emplace_back(is_own ? kind : 'x', kind == '|' ? count_cells(line) : 0);
          start = end + 1;
        }
        return lines;
      };
      EXPECT_EQ(shape(text), shape(expected)) << "name " << name.substr(0, 20) << "\n" << text;
      EXPECT_THAT(outside_code(text), Not(HasSubstr("<script")));
      EXPECT_THAT(outside_code(text), Not(ContainsRegex("[^\\\\]\\]\\((http|java)")));
      EXPECT_EQ(text.find('\x1b'), std::string::npos);
      EXPECT_EQ(text.find('\0'), std::string::npos);
      EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
      EXPECT_LT(text.size(), expected.size() + 40 * 4200);
    }
    const std::string terminal = terminal_text(terminal_document(metrics, {}));
    EXPECT_EQ(terminal.find('\x1b'), std::string::npos);
    const std::string harmless = terminal_text(terminal_document(whole_metrics("plain"), {}));
    EXPECT_EQ(std::count(terminal.begin(), terminal.end(), '\n'),
              std::count(harmless.begin(), harmless.end(), '\n'));
  }
}

// The same numbers everywhere: what the JSON of the report holds is what metrics.json has under
// that key, and what the other writers print.
TEST(Report, EveryFigureHasItsHomeInMetricsJson) {
  const Json metrics = metrics_json(whole_metrics("odd, \"name\"]="));
  const Document document = report_document(metrics_from_json(metrics), {});
  const Json json = parse_json(document_json(document), "");
  const std::string markdown = markdown_text(document);
  int count = 0;
  const auto check = [&](const Json& value) {
    if (value.at("key").get<std::string>().empty()) {
      return;
    }
    const Json* home = find_path(metrics, parse_path(value.at("key").get<std::string>()));
    if (value.at("value").is_null() && home == nullptr) {
      return;
    }
    ASSERT_NE(home, nullptr) << value;
    EXPECT_EQ(*home, value.at("value")) << value;
    if (value.at("unit") != Json("text")) {
      EXPECT_THAT(markdown, HasSubstr(value.at("text").get<std::string>()));
    }
    ++count;
  };
  for (const Json& section : json.at("sections")) {
    for (const Json& fact : section.at("facts")) {
      check(fact);
    }
    for (const Json& table : section.at("tables")) {
      for (const Json& row : table.at("rows")) {
        for (const Json& cell : row.at("cells")) {
          check(cell);
        }
      }
    }
  }
  EXPECT_GT(count, 60);
}

TEST(Report, EvidenceOfFindingsCanBeFollowed) {
  const Json metrics = metrics_json(whole_metrics("odd, \"name\"]="));
  int count = 0;
  for (const Json& finding : metrics.at("findings")) {
    for (const Json& key : finding.at("evidence")) {
      EXPECT_NE(find_path(metrics, parse_path(key.get<std::string>())), nullptr) << key;
      ++count;
    }
  }
  EXPECT_GT(count, 3);
}

TEST(Report, AStepSummaryIsNeverTooLong) {
  Results metrics = whole_metrics();
  EXPECT_LT(github_summary(metrics).size(), 200'000U);
  metrics.findings.resize(1000, metrics.findings.at(0));
  const std::string text = github_summary(metrics);
  EXPECT_LE(text.size(), 200'200U);
  EXPECT_THAT(text, HasSubstr("left out"));
}

KernelRow kernel_on(const std::string& device, const std::vector<ShapeRow>& sizes) {
  KernelRow row;
  row.kernel_name = row.short_name = "gemm";
  row.device = device;
  row.stage = row_name("decode");
  row.kernel_fraction = 0.5;
  row.num_shapes = static_cast<std::int64_t>(sizes.size());
  for (const ShapeRow& size : sizes) {
    row.shapes.push_back(size.shape);
    row.calls += size.calls;
    row.total_ns += size.total_ns;
  }
  if (sizes.size() > 1) {
    row.by_shape = sizes;  // one size is not listed
  }
  return row;
}

TEST(Report, SizesOfAKernelAreAddedUpOverGpus) {
  Results metrics;
  metrics.devices.resize(2);
  SectionOptions options;
  options.is_terminal = true;
  const auto text = [&] { return terminal_text(terminal_document(metrics, options), {200}); };
  const ShapeRow small{{10, 1000, 100, 100}, "1x1x1"};
  const ShapeRow large{{10, 100'000, 10'000, 10'000}, "9x1x1"};
  metrics.kernels = {kernel_on("cuda:0", {large, small}), kernel_on("cuda:1", {small})};
  EXPECT_THAT(text(), HasSubstr("10 calls of 10.0 us, 20 of 100 ns\n"));
  metrics.kernels = {kernel_on("cuda:0", {large}), kernel_on("cuda:1", {small})};
  EXPECT_THAT(text(), HasSubstr("10 calls of 10.0 us, 10 of 100 ns\n"));
  // Two sizes on each GPU are four sizes in all.
  const ShapeRow other{{1, 200, 200, 200}, "3x1x1"};
  const ShapeRow fourth{{1, 150, 150, 150}, "4x1x1"};
  metrics.kernels = {kernel_on("cuda:0", {large, small}), kernel_on("cuda:1", {other, fourth})};
  EXPECT_THAT(text(), HasSubstr("10 calls of 10.0 us, 10 of 100 ns, 1 of 200 ns, 1 more"));
}

TEST(Report, ASavingIsWorthHoursOfADayOnlyWhereItIsAShareOfAllTime) {
  Results metrics = whole_metrics();
  Finding finding;
  finding.id = FindingId::kLaunchBound;
  finding.saving_ns = 250'000'000;
  finding.window_ns = 1'000'000'000;
  finding.stage = row_name("steady");
  metrics.findings = {finding};
  const auto text = [&] { return markdown_text(stakeholder_document(metrics, {})); };
  metrics.devices.resize(1);
  metrics.devices[0].num_kernels = 1;
  EXPECT_THAT(text(), HasSubstr("on 1 GPU would save up to 6.0 GPU-hours per day (25.0 % of 24)"));
  metrics.devices.resize(3, metrics.devices[0]);
  metrics.devices[2].num_kernels = 0;
  EXPECT_THAT(text(), HasSubstr("on 2 GPUs would save up to 12.0 GPU-hours per day (25.0 % of 48)"))
      << "a GPU that did nothing does not count";
  SectionOptions priced;
  priced.gpu_hour_price = {2.5, "EUR"};
  const std::string worth = markdown_text(stakeholder_document(metrics, priced));
  EXPECT_THAT(worth, HasSubstr("(25.0 % of 48), worth 30.00 EUR per day at 2.50 EUR per GPU-hour. "
                               "Basis: 1.00 s of the steady phase."));
  EXPECT_THAT(worth, HasSubstr("| worth per day at most |"));
  EXPECT_THAT(worth, HasSubstr("| 30.00 EUR |"));
  EXPECT_THAT(html_text(section_document(metrics, {"findings"}, priced)),
              HasSubstr("worth up to 30.00 EUR per day"));
  metrics.findings[0].window_ns = 4'000'000;
  metrics.findings[0].saving_ns = 1'000'000;
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, priced)),
              HasSubstr("4.00 ms are too little to stand for a day"));
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, priced)), Not(HasSubstr("GPU-hours")));
  metrics.findings[0].stage = row_name("decode");
  EXPECT_THAT(text(), Not(HasSubstr("GPU-hours")));
}

// A recording of a server often holds one step, which has no period.
TEST(Stakeholder, OneStepOfAServerHasASpeed) {
  Results metrics = whole_metrics();
  metrics.aggregates.ttft = {};
  metrics.aggregates.tpot = {};
  metrics.aggregates.tpot.reason = "a step alone has no period";
  metrics.aggregates.decode_tokens_per_s.reset();
  metrics.stages.assign(1, {});
  metrics.stages[0].stage = row_name("decode");
  metrics.stages[0].num_instances = 1;
  metrics.stages[0].tokens = 32;
  metrics.steps.clear();
  metrics.ledgers.assign(1, {});
  metrics.ledgers[0].stage = row_name("decode");
  metrics.ledgers[0].window_ns = 474'000'000;
  metrics.ledgers[0].buckets_ns[static_cast<std::size_t>(Bucket::kUnrecorded)] = 464'000'000;
  const auto text = [&] { return markdown_text(stakeholder_document(metrics, {})); };
  EXPECT_THAT(
      text(),
      HasSubstr(
          "A decode step makes 32 tokens in 10.0 ms: at best 3,200 tokens per second, "
          "10.0 ms per token for each user (one step was recorded, so the time between steps is not known)."));
  metrics.stages[0].stage = row_name("mixed");
  metrics.ledgers[0].stage = row_name("mixed");
  EXPECT_THAT(
      text(),
      HasSubstr(
          "A step that reads prompts and makes tokens handles 32 tokens in "
          "10.0 ms: at best 3,200 tokens per second (one step was recorded, so the time between steps is not known)."));
  metrics.stages[0].tokens.reset();
  EXPECT_THAT(text(), HasSubstr("The mixed that was recorded took 10.0 ms on the GPU."));
  metrics.stages[0].stage = row_name("decode");
  metrics.stages[0].tokens = 32;
  const std::string report =
      markdown_text(section_document(metrics, {"aggregates"}, SectionOptions()));
  EXPECT_THAT(report, HasSubstr("tokens per second in decode: n/a (a step alone has no period)"));
  metrics.stages[0].tokens.reset();
  EXPECT_THAT(markdown_text(section_document(metrics, {"aggregates"}, SectionOptions())),
              HasSubstr("tokens per second in decode: n/a (the marks carry no token counts)"));
}

// A summary of kernels names no GPU: what it lacks says nothing about what it has.
TEST(Stakeholder, KernelsWithoutAGpuAreGpuWork) {
  Results metrics;
  metrics.capture.file = "kernels.csv";
  metrics.capture.kernel_ns = 1'000'000;
  metrics.verdict.sentence = "1.00 ms of kernels.";
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, {})), HasSubstr("without GPU work"));
  KernelRow kernel;
  kernel.kernel_name = kernel.short_name = "gemm";
  kernel.total_ns = 1'000'000;
  metrics.kernels = {kernel};
  const std::string text = markdown_text(stakeholder_document(metrics, {}));
  EXPECT_THAT(text, Not(HasSubstr("without GPU work")));
  EXPECT_THAT(text, HasSubstr("on a GPU that the recording does not name"));
  EXPECT_THAT(text, AllOf(HasSubstr("- recorded: n/a (a summary of kernels has no times)"),
                          HasSubstr("- GPUs: n/a (the recording names none)"),
                          HasSubstr("Next: analyze the recording that it was made from.")));
}

TEST(Report, AFileOfKernelsHasWholeNamesAndPeopleReadShortOnes) {
  Results metrics = whole_metrics();
  const std::string name = "void kernel<" + std::string(1000, 'x') + ">(Parameters<a|b>)";
  metrics.kernels.resize(1);
  metrics.kernels[0].kernel_name = name;
  metrics.kernels[0].short_name = "kernel";
  const auto files = report_files(metrics, {}, Timeline());
  const auto text_of = [&](std::string_view wanted) {
    return std::ranges::find(files, wanted, &std::pair<std::string, std::string>::first)->second;
  };
  EXPECT_THAT(text_of("kernels.md"),
              AllOf(HasSubstr("| kernel_name | total_ms | calls | mean_ms | device | short_name |"),
                    HasSubstr("| `" + name.substr(0, name.size() - 4) + "\\|b>)` |")));
  EXPECT_THAT(text_of("report.md"),
              AllOf(HasSubstr("| short_name | total_ms | calls | mean_ms | device |"),
                    Not(HasSubstr("xxx"))));
}

TEST(Report, ReportAndKernelsHaveAsManyKernels) {
  Results metrics = whole_metrics();
  metrics.kernels.assign(60, metrics.kernels.at(0));
  for (std::size_t i = 0; i < 60; ++i) {
    metrics.kernels[i].kernel_name = std::to_string(i);
  }
  for (const std::size_t wanted : {std::size_t{5}, kKernelRows, std::size_t{55}}) {
    for (const auto& [file, text] : report_files(metrics, {}, Timeline(), nullptr, {}, wanted)) {
      if (file == "report.md" || file == "kernels.md") {
        EXPECT_THAT(text, HasSubstr(std::to_string(wanted) + " of 60 rows by total time")) << file;
      }
    }
  }
}

TEST(Report, AKernelOfTwoStagesIsOneRowOfAFileAndOneOfTwoGpusIsTwo) {
  Results metrics = whole_metrics();
  metrics.kernels.assign(3, metrics.kernels.at(0));
  for (KernelRow& kernel : metrics.kernels) {
    kernel.kernel_name = kernel.short_name = "gemm";
    kernel.device = "cuda:0";
    kernel.total_ns = 1'000'000;
    kernel.calls = 10;
  }
  metrics.kernels[0].stage = row_name("prefill");
  metrics.kernels[1].stage = row_name("decode");
  metrics.kernels[2].device = "cuda:1";
  for (const auto& [file, text] : report_files(metrics, {}, Timeline())) {
    if (file == "kernels.md") {
      EXPECT_THAT(
          text, HasSubstr("| `gemm` | 2.000000 | 20 | 0.100000 | cuda:0 | `gemm` | `2 stages` |"));
      EXPECT_THAT(text, HasSubstr("| `gemm` | 1.000000 | 10 | 0.100000 | cuda:1 |"));
    }
  }
}

TEST(Stakeholder, OnePartOfAJobStandsForAllOfItsGpus) {
  Results metrics = whole_metrics();
  metrics.stages.resize(1);
  metrics.stages[0].is_nested = false;
  metrics.devices.resize(1);
  metrics.devices[0].num_kernels = 10;
  metrics.capture.world_size = 64;
  metrics.findings.resize(1);
  metrics.findings[0].id = FindingId::kLaunchBound;
  metrics.findings[0].is_blocker = false;
  metrics.findings[0].confidence = Confidence::kLow;
  metrics.findings[0].saving_ns = 500'000'000;
  metrics.findings[0].window_ns = 1'000'000'000;
  SectionOptions options;
  options.gpu_hour_price = {2.5, ""};
  const std::string text = markdown_text(stakeholder_document(metrics, options));
  EXPECT_THAT(text, HasSubstr("(one part of a job on 64 GPUs)"));
  EXPECT_THAT(text, HasSubstr("an upper bound of low confidence, seldom reached, not a forecast"));
  EXPECT_THAT(text, HasSubstr("on 64 GPUs, if the others are like this one, would save up to 768.0 "
                              "GPU-hours per day (50.0 % of 1536), worth 1920.00 per day"));
}

TEST(Stakeholder, APriceGivesTheCostOfAMillionTokens) {
  Results metrics = whole_metrics();
  metrics.devices.resize(1);
  metrics.devices[0].num_kernels = 10;
  metrics.aggregates.decode_tokens_per_s = 1000;
  SectionOptions options;
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, options)),
              Not(HasSubstr("a million tokens")));
  options.gpu_hour_price = {3.6, ""};
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, options)),
              HasSubstr("At 3.60 per GPU-hour, a million tokens cost 1.00 on 1 GPU."));
  // A recorded step of a few milliseconds is too little.
  metrics.aggregates.source = "the recording";
  metrics.ledgers.assign(1, {});
  metrics.ledgers[0].stage = row_name("decode");
  metrics.ledgers[0].window_ns = 10'000'000;
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, options)),
              Not(HasSubstr("a million tokens")));
  metrics.ledgers[0].window_ns = 2'000'000'000;
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, options)),
              HasSubstr("cost 1.00 on 1 GPU (from 2.00 s recorded)."));
}

TEST(Stakeholder, ARecordingWithoutAGpuHasItsDateAndItsEndings) {
  Results metrics;
  metrics.capture.file = "cpu.sqlite";
  metrics.capture.recorded = "2026-11-02 14:03:05 UTC";
  metrics.capture.tool = "Nsight Systems";
  metrics.verdict.sentence = "No CUDA activity was recorded. nsys says: not started correctly.";
  metrics.verdict.told = 0;
  Finding blocker;
  blocker.id = FindingId::kNoGpuActivity;
  blocker.is_blocker = true;
  blocker.sentence = "no CUDA activity was recorded. nsys says: not started correctly.";
  blocker.advice.text = "gpuwhy doctor checks driver and tools";
  blocker.confidence = Confidence::kHigh;
  metrics.findings = {blocker};
  const std::string text = markdown_text(stakeholder_document(metrics, {}));
  EXPECT_THAT(text,
              HasSubstr("cpu.sqlite, without GPU work, recorded on 2026-11-02 14:03:05 UTC with "
                        "Nsight Systems."));
  EXPECT_THAT(text, HasSubstr("\ngpuwhy doctor checks")) << "a command is not capitalized";
  for (const Document& document :
       {section_document(metrics, {"findings"}, {}), stakeholder_document(metrics, {})}) {
    EXPECT_THAT(markdown_text(document), Not(HasSubstr("..")));
    EXPECT_THAT(html_text(document), Not(HasSubstr("..")));
  }
}

TEST(Report, AnOpportunityHasItsEffortAndRiskAndTheOrderIsExplained) {
  Results metrics = whole_metrics();
  Finding finding;
  finding.id = FindingId::kLaunchBound;
  finding.stage = row_name("steady");
  finding.saving_ns = 250;
  finding.window_ns = 1000;
  finding.confidence = Confidence::kHigh;
  finding.advice.text = "launch fewer";
  metrics.findings = {finding, finding};
  metrics.findings[1].id = FindingId::kFusion;
  metrics.findings[1].advice = {.text = "fuse them", .after = FindingId::kLaunchBound};
  const Document document = section_document(metrics, {"findings"}, {});
  for (const std::string& text : {markdown_text(document), html_text(document)}) {
    EXPECT_THAT(text, HasSubstr("Effort: a setting, or days in own code. Risk: low."));
    EXPECT_THAT(text, HasSubstr("The largest saving comes first"));
  }
  EXPECT_THAT(
      markdown_text(stakeholder_document(metrics, {})),
      HasSubstr("fuse them (first solve: The GPU waits for the processor to hand it work)"));
}

// The first point is the surest, which need not have the largest bound.
TEST(Stakeholder, SaysWhichPointItsSpeedUpIsOf) {
  Results metrics = whole_metrics();
  Finding finding;
  finding.id = FindingId::kHostWork;
  finding.stage = row_name("steady");
  finding.saving_ns = 200'000'000;
  finding.window_ns = 1'000'000'000;
  finding.confidence = Confidence::kHigh;
  finding.advice.text = "load data while the GPU works";
  metrics.findings = {finding, finding};
  metrics.findings[1].id = FindingId::kFusion;
  metrics.findings[1].saving_ns = 400'000'000;
  metrics.findings[1].confidence = Confidence::kLow;
  metrics.findings[1].advice = {.text = "torch.compile", .same_as = FindingId::kHostWork};
  metrics.verdict.sentence =
      "cuda:0 waited ('enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__').";
  const std::string text = markdown_text(stakeholder_document(metrics, {}));
  EXPECT_THAT(text, HasSubstr("Up to 1.25 times as fast, if the first point below were solved "
                              "completely: The GPU waits while the processor does other work."));
  EXPECT_THAT(text, HasSubstr("The largest bound below is 1.67x (Many small steps read and write "
                              "the same data), which is less sure: low confidence."));
  EXPECT_THAT(text, HasSubstr("also fixed by the same change as \"The GPU waits while the "
                              "processor does other work\": torch.compile"));
  EXPECT_THAT(text, HasSubstr("waited (loading data with PyTorch's DataLoader)."));
}

TEST(Stakeholder, AModelThatDoesNotFitIsNotCalledTheModel) {
  Results metrics = whole_metrics();
  metrics.efficiency.emplace();
  metrics.efficiency->model = "some_model";
  metrics.capture.command = "serve";
  metrics.data_quality = {{"model_mismatch", Severity::kWarning, 1, "MFU is n/a: another model"}};
  const std::string text = markdown_text(stakeholder_document(metrics, {}));
  EXPECT_THAT(text, HasSubstr("\nMFU is n/a: another model.\n"));
  EXPECT_THAT(text, HasSubstr("- model: n/a (the one that was named is not the recorded one)"));
  EXPECT_THAT(text.substr(0, text.find("## MFU")), Not(HasSubstr("some_model")));
}

TEST(Report, AGpuWithoutANameHasTheGenerationThatItsKernelsProve) {
  Results metrics = whole_metrics();
  metrics.devices.resize(1);
  metrics.devices[0].device = "cuda:0";
  metrics.devices[0].name.clear();
  metrics.kernels.resize(1);
  metrics.kernels[0].device = "cuda:0";
  metrics.kernels[0].kernel_name = "nvjet_hsh_128x128_tn";
  SectionOptions options;
  options.is_terminal = true;
  const auto text = [&] {
    return terminal_text(section_document(metrics, {"summary"}, options), {});
  };
  EXPECT_THAT(text(),
              HasSubstr("n/a (not named in the recording; its kernels are of Hopper (sm_90))"));
  EXPECT_THAT(
      markdown_text(stakeholder_document(metrics, {})),
      HasSubstr("a GPU that the recording does not name; its kernels are of Hopper (sm_90)"));
  metrics.kernels[0].kernel_name = "sm80_xmma_gemm";
  EXPECT_THAT(text(), HasSubstr("n/a (not named in the recording)"))
      << "kernels for Ampere also run on later GPUs";
}

TEST(Report, TheSummaryNamesNoDeviceAndNoRule) {
  Results metrics = whole_metrics();
  metrics.devices.resize(1);
  metrics.devices[0].device = "cuda:0";
  metrics.verdict = {Verdict::Kind::kBusy, "cuda:0", "was busy 20 % of 1 s."};
  metrics.verdict.top = {FindingId::kLaunchBound, ", up to 2x faster."};
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, {})),
              HasSubstr("\nThe GPU was busy 20 % of 1 s.\n"));
  metrics.devices.resize(2);
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, {})),
              HasSubstr("\nThe busiest of 2 GPUs was busy 20 % of 1 s.\n"));
}

TEST(Report, TheSummaryTellsTheTimeOfAProgramUnlessItFailed) {
  Results metrics;
  metrics.aggregates.program_ns = 700'000'000;
  metrics.verdict.sentence = "There is no recording: the program exited with code 1.";
  metrics.verdict.told = 0;
  Finding blocker;
  blocker.id = FindingId::kNoGpuActivity;
  blocker.is_blocker = true;
  blocker.sentence = "there is no recording: the program exited with code 1";
  blocker.advice.text = "fix the program";
  metrics.findings = {blocker};
  const auto text = [&] { return markdown_text(stakeholder_document(metrics, {})); };
  EXPECT_THAT(text(), HasSubstr("The program runs for 700 ms without a profiler."));
  EXPECT_THAT(text(), HasSubstr("\nFix the program.\n")) << "the reason is said once";
  metrics.contract = {{"workload_failed", "baseline", true, "it failed", ""}};
  EXPECT_THAT(text(), Not(HasSubstr("The program runs for")));
}

TEST(Report, OnlyTheTerminalNamesTheRuleOfTheTopOpportunity) {
  Results metrics = whole_metrics();
  Finding finding;
  finding.id = FindingId::kLaunchBound;
  metrics.findings = {finding};
  metrics.verdict.sentence = "cuda:0 was idle.";
  metrics.verdict.top = {FindingId::kLaunchBound, ", up to 2x faster."};
  SectionOptions options;
  EXPECT_THAT(markdown_text(section_document(metrics, {"summary"}, options)),
              HasSubstr("Top opportunity: The GPU waits for the processor to hand it work, up to"));
  options.is_terminal = true;
  EXPECT_THAT(terminal_text(section_document(metrics, {"summary"}, options), {200}),
              HasSubstr("Top opportunity: launch_bound, up to"));
}

TEST(Report, AFailedRunIsNeverFast) {
  Results metrics = whole_metrics();
  EXPECT_EQ(summary_of_run("run", metrics, Json()).absent, "");
  metrics.contract = {{"no_marks", "baseline", false, "no stage was marked", ""},
                      {"workload_failed", "baseline", true, "the program exited with code 1", ""}};
  EXPECT_EQ(summary_of_run("run", metrics, Json()).absent, "the program exited with code 1");
  // A baseline keeps it.
  EXPECT_EQ(compared_part(metrics_json(metrics)).at("contract").size(), 2U);
}

TEST(Report, AnOverrideOnOneSideOnlyIsADifference) {
  const Results metrics = whole_metrics();
  const auto side = [&](const char* inputs) {
    RunSummary run = summary_of_run("run", metrics, parse_json(inputs, ""));
    run.identity = "";  // the numbers of two runs would differ
    return std::vector{run};
  };
  const auto plain = side(R"({"overrides": ["artifacts.dir=a"]})");
  const auto changed = side(R"({"overrides": ["workload.environment.X=1"]})");
  const auto facts = check_comparable(plain, changed, {});
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0].base, "none");
  EXPECT_EQ(facts[0].candidate, "workload.environment.X=1");
  EXPECT_FALSE(facts[0].breaks);
  EXPECT_TRUE(check_comparable(side("null"), changed, {}).empty()) << "not a run of gpuwhy";
}

TEST(Report, TheSummaryOfARunNamesItsCommand) {
  Results metrics = whole_metrics();
  metrics.capture.command = "python3 generate.py";
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, {})), HasSubstr("python3 generate.py"));
  metrics.efficiency.reset();
  EXPECT_THAT(markdown_text(stakeholder_document(metrics, {})),
              HasSubstr("\npython3 generate.py, recorded "));
}

TEST(Report, DashboardsGetTheFiguresOfMetricsJson) {
  const Results metrics = whole_metrics();
  const Json bencher = parse_json(bencher_json(metrics), "");
  EXPECT_EQ(bencher.at("ttft/mean").at("latency_ns").at("value"),
            Json(*metrics.aggregates.ttft.mean_ns));
  EXPECT_EQ(bencher.at("ttft/mean").at("latency_ns").at("upper_value"), Json(1.01e6));
  EXPECT_EQ(bencher.at("decode/mbu").at("fraction").at("value"), Json(0.06));
  const Json rows = parse_json(google_benchmark_json(metrics), "").at("benchmarks");
  const auto tpot = std::find_if(
      rows.begin(), rows.end(), [](const Json& row) { return row.at("name") == Json("tpot/p50"); });
  ASSERT_NE(tpot, rows.end());
  EXPECT_EQ(tpot->at("real_time"), Json(1e6));
  EXPECT_EQ(tpot->at("iterations"), Json(20));
  // A rate or a share is a counter of a row with a time: a row of 0 ns would be a result.
  EXPECT_EQ(tpot->at("items_per_second"), Json(*metrics.aggregates.decode_tokens_per_s));
  for (const Json& row : rows) {
    EXPECT_GT(row.at("real_time").get<double>(), 0) << to_json_line(row);
    // Both forms name a time alike.
    EXPECT_EQ(bencher.at(row.at("name").get<std::string>()).at("latency_ns").at("value"),
              row.at("real_time"));
  }
}

TEST(Glossary, HasEveryBucketAndFindsWordsAsPeopleTypeThem) {
  for (const char* const bucket : kBucketNames) {
    ASSERT_NE(find_term(bucket), nullptr) << bucket;
    ASSERT_NE(bucket_label(bucket), "") << bucket;
  }
  ASSERT_NE(find_term("launch-bound"), nullptr);
  EXPECT_EQ(find_term("whole recording"), find_term("capture"));
  EXPECT_EQ(find_term("unmarked"), find_term("outside"));
  EXPECT_NE(find_term("unmarked"), nullptr);
  EXPECT_EQ(find_term("Launch Bound")->name, "launch_bound");
  EXPECT_EQ(find_term("MFU")->kind, "term");
  for (const char* word :
       {"SM", "GEMM", "tensor cores", "tensor core", "NVTX", "CUDA graphs", "occupancy", "warps",
        "roofline", "KV cache", "prefill", "decode", "MBU"}) {
    EXPECT_NE(find_term(word), nullptr) << word;
  }
  EXPECT_EQ(find_term("nosuch"), nullptr);
  EXPECT_EQ(bucket_label("launch_late"), "waiting for CPU launch");
}

// Fills every table that a terminal can show.
Results with_all_tables() {
  Results metrics = whole_metrics();
  metrics.possible_marks.resize(1);
  metrics.compositions.resize(4);
  metrics.host_phases.resize(1);
  metrics.ranges.resize(1);
  metrics.gemm_rates.resize(1);
  StructureSummary& structure = metrics.structure.emplace();
  structure.passes.resize(1);
  structure.parts.resize(1);
  structure.parts[0].pass_fraction = 1;
  structure.parts[0].weight_bytes = 1;
  return metrics;
}

TEST(Glossary, ExplainsEveryNameThatIsShown) {
  const auto is_known = [](std::string_view name) {
    return find_term(name) != nullptr || find_column(name) != nullptr;
  };
  for (const std::string_view label : bucket_labels()) {
    EXPECT_TRUE(is_known(label)) << label;
  }
  for (const char* name : {"steady", "startup", "ending", "capture", "confidence",
                           "CPU did other work", "steady mean", "Top opportunities"}) {
    EXPECT_TRUE(is_known(name)) << name;
  }
  const Results metrics = with_all_tables();
  std::size_t num_columns = 0;
  for (const bool is_terminal : {true, false}) {
    SectionOptions options;
    options.is_terminal = is_terminal;
    options.has_all_parts = true;
    for (const Section& section : section_document(metrics, section_ids(), options).sections) {
      for (const ReportTable& table : section.tables) {
        for (const ReportColumn& column : table.columns) {
          EXPECT_TRUE(is_known(column.title)) << section.id << ": " << column.title;
          ++num_columns;
        }
      }
    }
  }
  EXPECT_GT(num_columns, 100U);
}

TEST(Terminal, NoSentenceIsWiderThanTheWindow) {
  const Results metrics = whole_metrics();
  const std::string text = terminal_text(terminal_document(metrics, {}), {60});
  for (const std::string_view line : split(text, '\n')) {
    if (line.find("->") != std::string_view::npos) {
      EXPECT_LE(display_width(line), 60U) << line;
    }
  }
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(terminal_text(terminal_document(metrics, {}), {60, true}), HasSubstr("\x1b[1m"));
}

TEST(Report, WhatACpuProgramLacksIsSaidOnce) {
  const std::string text = markdown_text(report_document(Results{}, {}));
  EXPECT_THAT(text, HasSubstr("no GPU activity was recorded, so these sections are empty: Profiler "
                              "overhead, Where GPU time goes, by stage, MFU"));
  EXPECT_THAT(text, Not(HasSubstr("## Top Kernels")));
  EXPECT_THAT(markdown_text(report_document(whole_metrics(), {})), HasSubstr("## Top Kernels"));
}

TEST(Stakeholder, SaysWhenHowLongAStepTakesAndWhatTheProfilerDoes) {
  Results metrics = whole_metrics();
  metrics.capture.recorded = "2026-11-02 14:03:05 UTC";
  metrics.aggregates.ttft = {};
  metrics.aggregates.tpot = {};
  metrics.stages.assign(1, {});
  metrics.stages[0].stage = row_name("step");
  metrics.stages[0].num_instances = 12;
  metrics.stages[0].median_ns = 10'000'000;
  metrics.overhead.reset();
  const auto text = [&] { return markdown_text(stakeholder_document(metrics, {})); };
  EXPECT_THAT(text(), HasSubstr("recorded on 2026-11-02 14:03:05 UTC for "));
  EXPECT_THAT(text(), HasSubstr("One step takes 10.0 ms (median of 12)."));
  EXPECT_THAT(text(), HasSubstr("how much is not known here"));
  metrics.overhead = {{row_name("step"), 10e6, 12e6, 0.2}};
  metrics.aggregates.source = "the recording";
  EXPECT_THAT(text(), HasSubstr("which made the program up to 20.0 % slower"));
  metrics.aggregates.source = "the baseline pass";
  EXPECT_THAT(text(), HasSubstr("The times are of a run without a profiler."));
  metrics.stages.clear();
  metrics.structure.emplace().passes.resize(1);
  metrics.structure->passes[0].pass = "forward";
  metrics.structure->passes[0].num_passes = 9;
  metrics.structure->passes[0].num_layers = 32;
  metrics.structure->passes[0].period_ns = 5'000'000;
  EXPECT_THAT(
      text(),
      HasSubstr(
          "A new forward pass through the model (32 layers) begins every 5.00 ms (median over 9 passes)."));
}

TEST(Stakeholder, HasNoIdsAndNoKeys) {
  const Results metrics = whole_metrics();
  const std::string text = markdown_text(stakeholder_document(metrics, {}));
  for (const Finding& finding : metrics.findings) {
    EXPECT_THAT(text, Not(HasSubstr(word_of(finding.id))));
  }
  EXPECT_THAT(text, Not(HasSubstr("ledgers[")));
}

}  // namespace
}  // namespace gpuwhy
