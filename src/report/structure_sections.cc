// SPDX-License-Identifier: Apache-2.0
//
// The section on the model: passes, layers, and the parts of a layer.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/member_table.h"
#include "report/section_makers.h"

namespace llmprof {
namespace {

constexpr double kSmallPart = 0.002;  // of a pass: left out unless all rows are shown

ReportTable pass_table(const Metrics& metrics) {
  using Row = PassSummary;
  return table_of(rows_at(metrics, &Metrics::structure, &StructureSummary::passes),
                  {{"pass", Unit::kText, &Row::pass},
                   {"passes", Unit::kCount, &Row::num_passes},
                   {"layers", Unit::kCount, &Row::num_layers},
                   {"kernels per layer", Unit::kCount, &Row::layer_kernels},
                   {"pass time", Unit::kDuration, &Row::pass_ns},
                   {"period", Unit::kDuration, &Row::period_ns},
                   {"its kernels", Unit::kDuration, &Row::work_ns},
                   {"one layer", Unit::kDuration, &Row::layer_ns}});
}

ReportTable part_table(const Metrics& metrics, bool has_all) {
  using Row = PartSummary;
  std::vector<MemberColumn<Row>> columns;
  if (metrics.structure->passes.size() > 1) {
    columns.push_back({"pass", Unit::kText, &Row::pass});
  }
  const bool has_costs =
      std::any_of(metrics.structure->parts.begin(), metrics.structure->parts.end(),
                  [](const Row& row) { return row.weight_bytes.has_value(); });
  columns.insert(columns.end(), {{"place", Unit::kText, &Row::place},
                                 {"part", Unit::kText, &Row::part},
                                 {"mean", Unit::kDuration, &Row::mean_ns},
                                 {"launches", Unit::kCount, &Row::launches},
                                 {"of pass", Unit::kFraction, &Row::pass_fraction}});
  if (has_costs) {
    columns.insert(columns.end(), {{"weights", Unit::kBytes, &Row::weight_bytes},
                                   {"bytes/s", Unit::kBytes, &Row::bytes_per_s},
                                   {"of roof", Unit::kFraction, &Row::roof_fraction},
                                   {"above roof", Unit::kDuration, &Row::above_roof_ns}});
  }
  columns.push_back({"kernel", Unit::kName, &Row::short_name});
  return table_of(rows_at(metrics, &Metrics::structure, &StructureSummary::parts), columns,
                  SIZE_MAX,
                  [=](const Row& row) { return has_all || row.pass_fraction >= kSmallPart; });
}

}  // namespace

Section model_section(const Metrics& metrics, const SectionOptions& options) {
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
  for (const PassSummary& pass : structure.passes) {
    std::string note = fmt::format("{}: {}.", pass.pass, pass.signs);
    if (!pass.layer_kinds.empty()) {
      note += fmt::format(" Kinds of layers: {}.", pass.layer_kinds);
    }
    section.notes.push_back(std::move(note));
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
                                        printable(slow.part))));
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

}  // namespace llmprof
