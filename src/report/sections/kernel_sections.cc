// SPDX-License-Identifier: Apache-2.0
//
// Sections on kernels, their bottlenecks, and the operators behind them.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"
#include "report/document/member_table.h"
#include "report/sections/section_makers.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kUnmarked = "unmarked";  // launched in no stage
constexpr double kLeastShare = 0.03;                // of a kernel that has a line of details

// On a terminal, names come last, where a narrow window truncates them. In files they come first,
// with milliseconds that scripts can read. `kernel_name` is the whole name, as in metrics.json:
// what nsys and ncu --kernel-name take; people read the short one.
std::vector<MemberColumn<KernelRow>> kernel_columns(const SectionOptions& options,
                                                    const Results& metrics) {
  using Row = KernelRow;
  const MemberColumn<Row> bound = {"bound", CellFormat::kText, &Row::bound};
  std::vector<MemberColumn<Row>> columns;
  if (options.is_terminal) {
    columns = {{"share", CellFormat::kFraction, &Row::kernel_fraction},
               {"total", CellFormat::kDuration, &Row::total_ns},
               {"calls", CellFormat::kCount, &Row::calls},
               {"mean", CellFormat::kDuration, &Row::mean_ns},
               {"family", CellFormat::kText, &Row::family},
               {"stage", CellFormat::kName, &Row::stage}};
    if (metrics.counters) {
      columns.push_back(bound);
    }
    if (metrics.devices.size() > 1) {
      columns.push_back({"GPU", CellFormat::kText, &Row::device});
    }
    columns.push_back({"kernel", CellFormat::kName, &Row::short_name});
    return columns;
  }
  const MemberColumn<Row> short_name = {"short_name", CellFormat::kName, &Row::short_name};
  const MemberColumn<Row> whole_name = {"kernel_name", CellFormat::kWholeName, &Row::kernel_name};
  columns = {options.has_whole_names ? whole_name : short_name,
             {"total_ms", CellFormat::kMilliseconds, &Row::total_ns},
             {"calls", CellFormat::kCount, &Row::calls},
             {"mean_ms", CellFormat::kMilliseconds, &Row::mean_ns},
             {"device", CellFormat::kText, &Row::device}};
  if (options.has_whole_names) {
    columns.push_back(short_name);
  }
  columns.push_back({"stage", CellFormat::kName, &Row::stage});
  columns.push_back({"family", CellFormat::kText, &Row::family});
  columns.push_back({"share", CellFormat::kFraction, &Row::kernel_fraction});
  if (metrics.counters) {
    columns.push_back(bound);
    columns.push_back({"covered", CellFormat::kFraction, &Row::covered_fraction});
  }
  return columns;
}

// The terminal shows the name last, where a long one can be cut off; a page shows it first.
std::vector<MemberColumn<OperatorRow>> operator_columns(bool is_terminal) {
  using Row = OperatorRow;
  if (is_terminal) {
    return {{"share", CellFormat::kFraction, &Row::share_fraction},
            {"total", CellFormat::kDuration, &Row::total_ns},
            {"calls", CellFormat::kCount, &Row::calls},
            {"mean", CellFormat::kDuration, &Row::mean_ns},
            {"kernels", CellFormat::kCount, &Row::num_kernels},
            {"stage", CellFormat::kName, &Row::stage},
            {"operator", CellFormat::kName, &Row::name}};
  }
  return {{"operator", CellFormat::kName, &Row::name},
          {"total_ms", CellFormat::kMilliseconds, &Row::total_ns},
          {"calls", CellFormat::kCount, &Row::calls},
          {"mean_ms", CellFormat::kMilliseconds, &Row::mean_ns},
          {"share", CellFormat::kFraction, &Row::share_fraction},
          {"kernels", CellFormat::kCount, &Row::num_kernels},
          {"stage", CellFormat::kName, &Row::stage}};
}

std::string coverage_text(const std::vector<StageCoverage>& coverage) {
  std::string text;
  for (const StageCoverage& row : coverage) {
    // A recording without stages has one row and the sum, which are equal.
    if (coverage.size() > 2 || row.stage == "total") {
      text += fmt::format("{}{} {}", text.empty() ? ": " : ", ", printable_name(row.stage),
                          format_fraction(row.fraction()));
    }
  }
  return "Share of GPU time that counters cover" + text;
}

// "60 calls of 7.87 ms, 60 of 156 us": a mean over sizes that differ would mislead.
std::string sizes_text(const KernelRow& row) {
  constexpr double kApart = 2;
  constexpr std::size_t kMostSizes = 3;
  const auto [shortest, longest] = std::minmax_element(
      row.by_shape.begin(), row.by_shape.end(),
      [](const ShapeRow& a, const ShapeRow& b) { return a.mean_ns() < b.mean_ns(); });
  if (row.by_shape.empty() || row.kernel_fraction < kLeastShare ||
      longest->mean_ns() < kApart * shortest->mean_ns()) {
    return "";
  }
  std::string text = "by grid and block:";
  for (std::size_t i = 0; i < std::min(kMostSizes, row.by_shape.size()); ++i) {
    const ShapeRow& one = row.by_shape[i];
    text += fmt::format("{} {}{} of {}", i == 0 ? "" : ",", one.calls,
                        i > 0            ? ""
                        : one.calls == 1 ? " call"
                                         : " calls",
                        format_duration_ns(std::llround(one.mean_ns())));
  }
  if (row.num_shapes > static_cast<std::int64_t>(kMostSizes)) {
    text += fmt::format(", {} more", row.num_shapes - static_cast<std::int64_t>(kMostSizes));
  }
  return text;
}

// Launches by size. A row whose launches have one size does not list it.
std::vector<ShapeRow> sizes_of(const KernelRow& row) {
  if (row.by_shape.empty() && row.num_shapes == 1 && row.shapes.size() == 1) {
    return {{row, row.shapes[0]}};
  }
  return row.by_shape;
}

bool has_all_sizes(const KernelRow& row) {
  return static_cast<std::int64_t>(sizes_of(row).size()) == row.num_shapes;
}

// Adds the launches of `other`, the same kernel in another stage or on another GPU. The number of
// sizes is that of both together; where a list was cut, at least the larger of the two.
void add_launches(const KernelRow& other, KernelRow& row) {
  const bool has_all = has_all_sizes(row) && has_all_sizes(other);
  row.by_shape = sizes_of(row);
  row.add(other);
  row.kernel_fraction += other.kernel_fraction;
  row.covered_ns += other.covered_ns;
  for (const ShapeRow& one : sizes_of(other)) {
    const auto same = std::find_if(row.by_shape.begin(), row.by_shape.end(),
                                   [&](const ShapeRow& mine) { return mine.shape == one.shape; });
    if (same == row.by_shape.end()) {
      row.by_shape.push_back(one);
    } else {
      same->add(one);
    }
  }
  const auto num_listed = static_cast<std::int64_t>(row.by_shape.size());
  row.num_shapes = has_all ? num_listed : std::max({row.num_shapes, other.num_shapes, num_listed});
}

// The rows of one kernel as one row, and what each stage has of it.
struct MergedKernel {
  KernelRow row;
  std::set<std::string_view> gpus;
  std::map<std::string_view, std::pair<std::int64_t, std::int64_t>> stages;  // calls, total_ns
};

// "by stage: step 120 calls of 52.6 us, unmarked 52 of 53.6 us", the largest first.
std::string stages_text(const MergedKernel& kernel) {
  std::vector<std::pair<std::string_view, std::pair<std::int64_t, std::int64_t>>> stages(
      kernel.stages.begin(), kernel.stages.end());
  if (kernel.row.kernel_fraction < kLeastShare) {
    return "";
  }
  std::stable_sort(stages.begin(), stages.end(),
                   [](const auto& x, const auto& y) { return x.second.second > y.second.second; });
  std::string text;
  for (const auto& [stage, sums] : stages) {
    const auto [calls, total_ns] = sums;
    text += fmt::format("{} {} {}{} of {}", text.empty() ? "by stage:" : ",", printable_name(stage),
                        calls,
                        !text.empty() ? ""
                        : calls == 1  ? " call"
                                      : " calls",
                        format_duration_ns(total_ns / std::max<std::int64_t>(calls, 1)));
  }
  return text;
}

// Ranks of a job run the same kernels, and so do its stages. One row for each kernel, by total
// time, so that eight GPUs do not fill the table with one kernel; in files one for each GPU, which
// have a column for it.
std::vector<MergedKernel> merged_kernels(const std::vector<KernelRow>& rows, bool by_gpu) {
  std::vector<MergedKernel> merged;
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> places;
  for (const KernelRow& row : rows) {
    const std::string_view gpu = by_gpu ? std::string_view(row.device) : std::string_view();
    const auto [place, is_new] =
        places.try_emplace(std::pair(std::string_view(row.kernel_name), gpu), merged.size());
    if (is_new) {
      merged.push_back({row, {}, {}});
    } else {
      add_launches(row, merged[place->second].row);
    }
    MergedKernel& kernel = merged[place->second];
    const std::string_view stage =
        row.stage.kind == RowKind::kOutside ? kUnmarked : std::string_view(row.stage.text());
    kernel.gpus.insert(row.device);
    kernel.stages[stage].first += row.calls;
    kernel.stages[stage].second += row.total_ns;
  }
  for (MergedKernel& kernel : merged) {
    if (kernel.gpus.size() > 1) {
      kernel.row.device = fmt::format("{} GPUs", kernel.gpus.size());
    }
    kernel.row.stage = {RowKind::kStage, kernel.stages.size() == 1
                                             ? std::string(kernel.stages.begin()->first)
                                             : fmt::format("{} stages", kernel.stages.size())};
    std::stable_sort(kernel.row.by_shape.begin(), kernel.row.by_shape.end(),
                     [](const ShapeRow& x, const ShapeRow& y) { return x.total_ns > y.total_ns; });
  }
  std::stable_sort(merged.begin(), merged.end(), [](const MergedKernel& a, const MergedKernel& b) {
    return a.row.total_ns > b.row.total_ns;
  });
  return merged;
}

bool is_covered(const CounterRow& row) {
  return row.covered_ns > 0;
}

}  // namespace

// The first table an engineer looks for: what kind of kernels the GPU runs.
Section families_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  ReportTable table;
  table.columns = {{"share", "", CellFormat::kFraction},
                   {"total", "total_ns", CellFormat::kDuration},
                   {"calls", "calls", CellFormat::kCount},
                   {"family", "family", CellFormat::kText}};
  for (const FamilyRow& family : metrics.families) {
    if (table.rows.size() == options.top) {
      break;
    }
    const std::string key = fmt::format("families[family={}].", path_value(family.family));
    table.rows.push_back(
        {{{fraction_of(family.total_ns, metrics.capture.kernel_ns), CellFormat::kFraction, ""},
          {family.total_ns, CellFormat::kDuration, key + "total_ns"},
          {family.calls, CellFormat::kCount, key + "calls"},
          {family.family, CellFormat::kText, key + "family"}},
         "",
         false});
  }
  if (table.rows.empty()) {
    section.missing = "n/a (no kernel was recorded)";
    return section;
  }
  section.tables.push_back(std::move(table));
  return section;
}

Section ranges_section(const Results& metrics, const SectionOptions& options) {
  using Row = RangeTotal;
  Section section;
  ReportTable table = table_of(rows_at(metrics, &Results::ranges),
                               {{"CPU total", CellFormat::kDuration, &Row::host_ns},
                                {"own", CellFormat::kDuration, &Row::host_own_ns},
                                {"count", CellFormat::kCount, &Row::instances},
                                {"longest", CellFormat::kDuration, &Row::longest_ns},
                                {"at", CellFormat::kDuration, &Row::longest_start_ns},
                                {"kernel time", CellFormat::kDuration, &Row::kernel_ns},
                                {"range", CellFormat::kName, &Row::range}},
                               options.top);
  // The mean has no key: it follows from two others.
  const auto after_instances = std::ptrdiff_t{3};
  table.columns.insert(table.columns.begin() + after_instances,
                       {"mean", "", CellFormat::kDuration, false, false});
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const RangeTotal& range = metrics.ranges[i];
    table.rows[i].cells.insert(
        table.rows[i].cells.begin() + after_instances,
        {range.instances > 0 ? CellValue(range.host_ns / range.instances) : CellValue(),
         CellFormat::kDuration, ""});
  }
  if (table.rows.empty()) {
    section.missing =
        "n/a (the recording has no NVTX ranges or annotations); docs/marking.md says how to add them";
    return section;
  }
  table.title = fmt::format(
      "{} of {} ranges by kernel time; own: CPU time outside nested ranges; longest: the slowest "
      "instance and when it began, as --from counts; kernel time: of what its thread launched, also in nested ranges "
      "(and autograd for it, where its operators are recorded)",
      table.rows.size(), metrics.ranges.size());
  section.tables.push_back(std::move(table));
  return section;
}

Section kernels_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  const bool is_merged = options.is_terminal || options.merges_stages;
  const std::vector<MergedKernel> kernels =
      is_merged ? merged_kernels(metrics.kernels, !options.is_terminal)
                : std::vector<MergedKernel>();
  std::vector<KernelRow> merged;
  merged.reserve(kernels.size());
  for (const MergedKernel& kernel : kernels) {
    merged.push_back(kernel.row);
  }
  MetricRows<KernelRow> rows = rows_at(metrics, &Results::kernels);
  rows.rows = is_merged ? &merged : rows.rows;
  ReportTable table = table_of(rows, kernel_columns(options, metrics), options.top);
  // Without kernels the verdict says why, for example that the recording holds no GPU work.
  if (table.rows.empty()) {
    section.missing = fmt::format("n/a ({}); gpuwhy doctor says what a recording needs",
                                  printable(text_of_member(metrics.verdict)));
    return section;
  }
  for (std::size_t i = 0; options.is_terminal && i < table.rows.size(); ++i) {
    table.rows[i].detail =
        kernels[i].stages.size() > 1 ? stages_text(kernels[i]) : sizes_text(kernels[i].row);
  }
  const std::string count =
      fmt::format("{} of {} rows by total time", table.rows.size(), rows.rows->size());
  if (options.is_terminal) {
    table.title = count;
  } else {
    section.paragraphs.push_back(fmt::format(
        "{}. Durations are from {}; share is of all kernel time. {}", count, tool_of(metrics),
        metrics.counters
            ? "Bottlenecks, and the share of time that counters cover, are from Nsight "
              "Compute."
            : "Bottlenecks: n/a (needs an ncu capture)."));
  }
  const auto is_numbered = [](const KernelRow& row) {
    return row.short_name.find(" #") != std::string::npos;
  };
  if (options.is_terminal &&
      std::any_of(rows.rows->begin(),
                  rows.rows->begin() + static_cast<std::ptrdiff_t>(table.rows.size()),
                  is_numbered)) {
    section.notes.emplace_back(
        "#1, #2: kernels that differ beyond the short name; gpuwhy table kernels --format csv has whole names.");
  }
  section.tables.push_back(std::move(table));
  return section;
}

Section counters_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  if (!metrics.counters) {
    section.missing =
        "n/a (needs an ncu capture); gpuwhy run makes one on a GPU, gpuwhy analyze --ncu FILE "
        "takes yours";
    return section;
  }
  using Row = CounterRow;
  section.paragraphs.push_back(coverage_text(metrics.counters->coverage));
  ReportTable table = table_of(rows_at(metrics, &Results::counters, &CountersRow::kernels),
                               {{"bound", CellFormat::kText, &Row::bound},
                                {"GPU time", CellFormat::kFraction, &Row::covered_fraction},
                                {"potential saving", CellFormat::kDuration, &Row::winnable_ns},
                                {"confidence", CellFormat::kText, &Row::confidence},
                                {"kernel", CellFormat::kName, &Row::short_name}},
                               options.top, is_covered);
  // The reasons are added as details of the rows that are shown; unused results are listed below.
  std::size_t place = 0;
  std::size_t num_unused = 0;
  std::vector<std::string> unused;
  for (const Row& row : metrics.counters->kernels) {
    if (is_covered(row)) {
      if (place < table.rows.size()) {
        table.rows[place++].detail =
            printable(row.bound_reason) + "; " + printable(row.confidence_reason);
      }
    } else if (++num_unused <= options.top) {
      unused.push_back(
          printable_name(row.short_name) + ": " +
          printable(row.match_reason.empty() ? row.confidence_reason : row.match_reason));
    }
  }
  section.tables.push_back(std::move(table));
  if (num_unused > 0) {
    section.notes.push_back(fmt::format("Counters not used: {} of {} profiled launches", num_unused,
                                        metrics.counters->kernels.size()));
    section.notes.insert(section.notes.end(), unused.begin(), unused.end());
  }
  return section;
}

// "421 of 421 kernels of CUDA graphs have names: 421 by order".
std::string graph_names_text(const GraphNames& names) {
  const std::pair<std::int64_t, const char*> routes[] = {
      {names.by_nvtx, "by the NVTX ranges open at their capture"},
      {names.by_annotations, "by annotations of their nodes"},
      {names.by_order, "by the order of launches in a capture trace"}};
  std::vector<std::string> parts;
  for (const auto& [count, route] : routes) {
    if (count > 0) {
      parts.push_back(fmt::format("{} {}", count, route));
    }
  }
  return fmt::format("{} of {} kernels of CUDA graphs have names{}{}.", names.named(),
                     names.num_kernels, parts.empty() ? "" : ": ", fmt::join(parts, ", "));
}

// Operators come from marks of the recording or from a table of the program itself; `source` says
// which.
Section operators_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  ReportTable table = table_of(rows_at(metrics, &Results::operators, &Operators::rows),
                               operator_columns(options.is_terminal), options.top);
  if (table.rows.empty()) {
    section.missing =
        "n/a (nothing in the recording names operators); record PyTorch under nsys profile "
        "--pytorch=autograd-shapes-nvtx, or analyze a trace of the PyTorch profiler";
    return section;
  }
  const Operators& operators = *metrics.operators;
  if (metrics.graph_names) {
    section.notes.push_back(graph_names_text(*metrics.graph_names));
    if (metrics.graph_names->named() < metrics.graph_names->num_kernels) {
      section.notes.emplace_back(
          "Kernels without a name count for what launched the graph. --capture-trace FILE or "
          "--annotations FILE may name them (docs/marking.md).");
    }
  }
  section.paragraphs.push_back(
      fmt::format("{} of {}, {}; {}. They cover {} of {}.", table.rows.size(),
                  count_of(static_cast<std::int64_t>(operators.rows.size()), "row"),
                  printable(operators.source), word_of(operators.time_of),
                  format_fraction(fraction_of(operators.covered_ns, operators.whole_ns)),
                  shown({operators.whole_ns, CellFormat::kDuration, ""})));
  section.tables.push_back(std::move(table));
  if (!operators.layers.empty() && !options.is_terminal) {
    using Row = LayerTotal;
    section.tables.push_back(table_of(rows_at(metrics, &Results::operators, &Operators::layers),
                                      {{"layer", CellFormat::kName, &Row::layer},
                                       {"total_ms", CellFormat::kMilliseconds, &Row::total_ns},
                                       {"calls", CellFormat::kCount, &Row::calls}}));
    section.tables.back().title = "By layer";
  }
  return section;
}

// What each product and attention reached, from the sizes that the recording has.
Section gemm_rates_section(const Results& metrics, const SectionOptions& options) {
  using Row = GemmRate;
  Section section;
  const CellFormat time = options.is_terminal ? CellFormat::kDuration : CellFormat::kMilliseconds;
  ReportTable table = table_of(rows_at(metrics, &Results::gemm_rates),
                               {{"of peak", CellFormat::kFraction, &Row::peak_fraction},
                                {"TFLOP/s", CellFormat::kTeraflops, &Row::flops_per_s},
                                {options.is_terminal ? "total" : "total_ms", time, &Row::total_ns},
                                {"calls", CellFormat::kCount, &Row::calls},
                                {"type", CellFormat::kName, &Row::dtype},
                                {"operator", CellFormat::kName, &Row::op},
                                {"sizes", CellFormat::kName, &Row::dims}},
                               options.top);
  if (table.rows.empty()) {
    section.missing =
        "n/a (no operator has the sizes of its inputs); record with torch.profiler's "
        "record_shapes=True";
    return section;
  }
  section.paragraphs.push_back(
      fmt::format("{} of {} rows by total time; times are of the kernels that an operator launched "
                  "itself.",
                  table.rows.size(), metrics.gemm_rates.size()));
  // Most rows lack a share for the same reason.
  for (const Row& row : metrics.gemm_rates) {
    if (!row.reason.empty()) {
      section.notes.push_back("Without a share of the peak: " + printable(row.reason) + ".");
      break;
    }
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace gpuwhy
