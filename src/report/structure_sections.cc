// SPDX-License-Identifier: Apache-2.0
//
// The section on the model: passes, layers, and the parts of a layer.
#include <fmt/format.h>

#include "base/text.h"
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
                   {"pass", Unit::kDuration, &Row::pass_ns},
                   {"its kernels", Unit::kDuration, &Row::work_ns},
                   {"one layer", Unit::kDuration, &Row::layer_ns}});
}

ReportTable part_table(const Metrics& metrics, bool has_all) {
  using Row = PartSummary;
  std::vector<MemberColumn<Row>> columns;
  if (metrics.structure->passes.size() > 1) {
    columns.push_back({"pass", Unit::kText, &Row::pass});
  }
  columns.insert(columns.end(), {{"place", Unit::kText, &Row::place},
                                 {"part", Unit::kText, &Row::part},
                                 {"mean", Unit::kDuration, &Row::mean_ns},
                                 {"launches", Unit::kCount, &Row::launches},
                                 {"of pass", Unit::kFraction, &Row::pass_fraction},
                                 {"kernel", Unit::kName, &Row::short_name}});
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
  if (!options.is_terminal || options.has_all_parts) {
    ReportTable parts = part_table(metrics, options.has_all_parts);
    parts.title = options.has_all_parts ? "Kernels of a pass, in order"
                                        : "Kernels of a pass, in order; those above 0.2 % of it";
    section.tables.push_back(std::move(parts));
  }
  return section;
}

}  // namespace llmprof
