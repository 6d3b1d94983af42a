// SPDX-License-Identifier: Apache-2.0
//
// The section on the model: passes, layers, and the parts of a layer.
#include <algorithm>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "report/document/member_table.h"
#include "report/sections/section_makers.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

constexpr double kSmallPart = 0.002;  // of a pass: left out unless all rows are shown

ReportTable pass_table(const Results& metrics) {
  using Row = PassRow;
  const std::vector<Row>& rows = metrics.structure->passes;
  std::vector<MemberColumn<Row>> columns = {{"pass", CellFormat::kText, &Row::pass}};
  if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.kind.empty(); })) {
    columns.push_back({"kind", CellFormat::kText, &Row::kind});
  }
  columns.insert(columns.end(), {{"passes", CellFormat::kCount, &Row::num_passes},
                                 {"layers", CellFormat::kCount, &Row::num_layers},
                                 {"kernels per layer", CellFormat::kCount, &Row::layer_kernels},
                                 {"pass time", CellFormat::kDuration, &Row::pass_ns},
                                 {"period", CellFormat::kDuration, &Row::period_ns},
                                 {"its kernels", CellFormat::kDuration, &Row::work_ns},
                                 {"one layer", CellFormat::kDuration, &Row::layer_ns}});
  return table_of(rows_at(metrics, &Results::structure, &StructureSummary::passes), columns);
}

std::string recovered_text(const char* name, const RecoveredTimes& times) {
  return times.p50_ns && times.p99_ns
             ? fmt::format(" {}: p50 {}, p99 {}, n {}.", name, format_duration_ns(*times.p50_ns),
                           format_duration_ns(*times.p99_ns), times.n)
             : "";
}

// Lines on passes as steps. Times are left to the marks where these have them.
void add_recovered(const Results& metrics, const RecoveredSteps& steps,
                   std::vector<std::string>& notes) {
  if (!steps.reason.empty()) {
    // Marks have told it already.
    const bool is_marked =
        std::any_of(metrics.stages.begin(), metrics.stages.end(), [](const auto& stage) {
          return role_of(stage.stage) == StageRole::kPrefill || is_decode(stage.stage);
        });
    if (!is_marked) {
      notes.push_back(fmt::format("Prefill or decode: n/a ({}).", printable(steps.reason)));
    }
    return;
  }
  std::vector<std::string> signs;
  signs.reserve(steps.signs.size());
  for (const std::string& sign : steps.signs) {
    signs.push_back(printable_name(sign));
  }
  if (steps.num_prefill + steps.num_decode == 0) {
    return;
  }
  notes.push_back(fmt::format("Passes of prefill: {}, of decode: {}. Signs: {}.", steps.num_prefill,
                              steps.num_decode, fmt::join(signs, "; ")));
  std::string times;
  if (metrics.aggregates.ttft.n == 0) {
    times += recovered_text("Time to first token", steps.ttft);
  }
  if (metrics.aggregates.tpot.n == 0) {
    times += recovered_text("Time per output token", steps.tpot);
    if (steps.decode_tokens_per_s) {
      times += fmt::format(" Tokens per second: {:.1f}.", *steps.decode_tokens_per_s);
    }
  }
  if (!times.empty()) {
    notes.push_back(fmt::format("Recovered from the order of kernels:{}", times));
  }
  if (steps.agrees_with_marks) {
    notes.push_back(fmt::format("{} of {} marked steps are one pass of the same kind.",
                                steps.agrees_with_marks->num_same,
                                steps.agrees_with_marks->num_steps));
  }
}

ReportTable part_table(const Results& metrics, bool has_all) {
  using Row = LayerPartRow;
  std::vector<MemberColumn<Row>> columns;
  if (metrics.structure->passes.size() > 1) {
    columns.push_back({"pass", CellFormat::kText, &Row::pass});
  }
  const bool has_costs =
      std::any_of(metrics.structure->parts.begin(), metrics.structure->parts.end(),
                  [](const Row& row) { return row.read_bytes().has_value(); });
  columns.insert(columns.end(), {{"place", CellFormat::kText, &Row::place},
                                 {"part", CellFormat::kText, &Row::part},
                                 {"mean", CellFormat::kDuration, &Row::mean_ns},
                                 {"launches", CellFormat::kCount, &Row::launches},
                                 {"of pass", CellFormat::kFraction, &Row::pass_fraction}});
  if (has_costs) {
    columns.insert(columns.end(), {{"reads", CellFormat::kBytes, &Row::read_bytes},
                                   {"reached", CellFormat::kBytesPerSecond, &Row::bytes_per_s},
                                   {"of roof", CellFormat::kFraction, &Row::roof_fraction},
                                   {"above roof", CellFormat::kDuration, &Row::above_roof_ns}});
  }
  columns.push_back({"kernel", CellFormat::kName, &Row::short_name});
  return table_of(rows_at(metrics, &Results::structure, &StructureSummary::parts), columns,
                  SIZE_MAX,
                  [=](const Row& row) { return has_all || row.pass_fraction >= kSmallPart; });
}

}  // namespace

Section model_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  if (!metrics.structure || metrics.structure->passes.empty()) {
    section.missing =
        fmt::format("n/a ({})", metrics.structure ? printable(metrics.structure->reason)
                                                  : "no kernels were recorded");
    return section;
  }
  const StructureSummary& structure = *metrics.structure;
  section.paragraphs.push_back(
      fmt::format("Read from the order of kernels, without marks. {} of {} kernels are in a pass.",
                  structure.num_in_passes, structure.num_kernels));
  section.tables.push_back(pass_table(metrics));
  for (const PassRow& pass : structure.passes) {
    std::string note = fmt::format("{}: {}.", pass.pass, pass.signs);
    if (!pass.layer_kinds.empty()) {
      note += fmt::format(" Kinds of layers: {}.", pass.layer_kinds);
    }
    section.notes.push_back(std::move(note));
  }
  if (structure.recovered) {
    add_recovered(metrics, *structure.recovered, section.notes);
  }
  for (const SlowPass& slow : structure.slow_passes) {
    section.notes.push_back(fmt::format("{} pass {} on {} took {}, {} more than the median: {}.",
                                        slow.pass, slow.number, slow.device,
                                        format_duration_ns(slow.duration_ns),
                                        format_duration_ns(slow.duration_ns - slow.median_ns),
                                        slow.why.empty() ? "spread over many places" : slow.why));
  }
  for (const SlowLayer& slow : structure.slow_layers) {
    section.notes.push_back(fmt::format(
        "layer {} of {} takes {}, {} more than the median of its kind{}.", slow.layer, slow.pass,
        format_duration_ns(slow.median_ns),
        format_duration_ns(slow.median_ns - slow.kind_median_ns),
        slow.part.empty() ? ""
                          : fmt::format(": {} in {}", format_duration_ns(slow.part_extra_ns),
                                        printable_name(slow.part))));
  }
  if (!structure.cost_reason.empty()) {
    section.notes.push_back(
        fmt::format("Cost of the parts: n/a ({}).", printable(structure.cost_reason)));
  }
  if (!options.is_terminal || options.has_all_parts) {
    ReportTable parts = part_table(metrics, options.has_all_parts);
    parts.title = options.has_all_parts ? "Kernels of a pass, in order"
                                        : "Kernels of a pass, in order; those above 0.2 % of it";
    section.tables.push_back(std::move(parts));
  }
  return section;
}

}  // namespace gpuwhy
