// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison that attribute the difference to operators and parts of the model.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/comparison/comparison_parts.h"
#include "report/comparison/comparison_tables.h"

namespace gpuwhy {
namespace {

ReportTable operators_table(const OperatorComparison& operators, const TotalChange& total,
                            std::size_t top) {
  using C = OperatorChange;
  const ChangeColumns<C> columns = {
      {{"difference", "difference_ns", CellFormat::kDifference, true}, &C::difference_ns},
      {{"by calls", "calls_ns", CellFormat::kDifference}, &C::calls_ns},
      {{"by duration", "duration_ns", CellFormat::kDifference}, &C::duration_ns},
      {{"calls", "calls", CellFormat::kCount}, calls_of<C>},
      {{"stage", "stage", CellFormat::kName}, [](const C& row) { return row.base.stage.text(); }},
      {{"significant", "p", CellFormat::kText}, sureness<C>},
      {{"operator", "operator", CellFormat::kName, false, true},
       [](const C& row) { return row.base.name; }},
      {{"input shapes", "shape", CellFormat::kText}, [](const C& row) { return row.base.shape; }}};
  ReportTable table = empty_table(columns, "By operator");
  const std::int64_t shown_ns = add_moved(columns, operators.rows, "operators.rows", top, table);
  add_others(operators.rows.size() - table.rows.size(), "other row", "other rows",
             total.rows_ns - shown_ns, table);
  add_rest("in no operator", total.not_in_rows_ns(), "operators.not_in_rows_ns", table);
  add_sum(total, "operators.", table);
  return table;
}

ReportTable model_parts_table(const ModelPassChange& pass, const std::string& key,
                              std::size_t top) {
  using C = ModelPartChange;
  // Time of a part in one layer; what is outside of layers has none.
  const auto in_layer = [layers = pass.num_layers](const C& row, std::int64_t time_ns) {
    return row.place == "layer" && layers > 0 ? CellValue((time_ns + layers / 2) / layers)
                                              : CellValue("");
  };
  const auto kernels = [](const C& row) {
    const bool has_both = !row.base_kernel.empty() && !row.candidate_kernel.empty();
    return row.base_kernel == row.candidate_kernel
               ? row.base_kernel
               : row.base_kernel + (has_both ? " -> " : "") + row.candidate_kernel;
  };
  const ChangeColumns<C> columns = {
      {{"difference", "difference_ns", CellFormat::kDifference, true}, &C::difference_ns},
      {{"base", "base_ns", CellFormat::kDuration}, &C::base_ns},
      {{"candidate", "candidate_ns", CellFormat::kDuration}, &C::candidate_ns},
      {{"base per layer", "", CellFormat::kDuration},
       [=](const C& row) { return in_layer(row, row.base_ns); }},
      {{"candidate per layer", "", CellFormat::kDuration},
       [=](const C& row) { return in_layer(row, row.candidate_ns); }},
      {{"place", "place", CellFormat::kText}, &C::place},
      {{"part", "part", CellFormat::kText, false, true},
       [](const C& row) { return row.part.empty() ? "in no part" : row.part; }},
      {{"kernel", "kernel", CellFormat::kName}, kernels}};
  ReportTable table = empty_table(
      columns, fmt::format("{}, {} layers: kernel time of one pass", pass.pass, pass.num_layers));
  const std::int64_t shown_ns = add_moved(columns, pass.parts, key + "parts", top, table);
  add_others(pass.parts.size() - table.rows.size(), "other", "others",
             pass.difference_ns() - shown_ns, table);
  add_sum(pass, key, table);
  return table;
}

}  // namespace

TotalChange operator_total(const OperatorComparison& operators) {
  return {operators, sum_of_differences(operators.rows)};
}

bool has_model(const Comparison& comparison) {
  return !comparison.model.passes.empty();
}

Section model_moves_section(const Comparison& comparison, std::size_t top) {
  Section section;
  section.id = "model";
  section.title = "Where the difference is, by part of the model";
  if (comparison.model.passes.empty()) {
    section.missing = fmt::format("n/a ({})", printable(comparison.model.missing));
    return section;
  }
  for (std::size_t i = 0; i < comparison.model.passes.size(); ++i) {
    section.tables.push_back(
        model_parts_table(comparison.model.passes[i], fmt::format("model.passes[{}].", i), top));
  }
  section.notes.emplace_back("Kernels are matched by their place in a pass, whatever their names.");
  section.notes.push_back(median_note(comparison));
  return section;
}

bool has_operators(const Comparison& comparison) {
  return !comparison.operators.rows.empty() || comparison.kernels.empty();
}

Section operator_moves_section(const Comparison& comparison, std::size_t top) {
  Section section;
  section.id = "operators";
  section.title = "Where the difference is, by operator";
  const OperatorComparison& operators = comparison.operators;
  if (operators.rows.empty()) {
    section.missing = fmt::format("n/a ({}{})", printable(operators.missing),
                                  comparison.kernels.empty() && comparison.ledgers.empty()
                                      ? ", and no GPU work was recorded on both sides"
                                      : "");
    return section;
  }
  const TotalChange total = operator_total(operators);
  if (operators.stages.size() > 1) {
    section.tables.push_back(parts_table(operators.stages, "operators.stages", "stage", total,
                                         "operators.", "in no operator"));
    section.tables.back().title = "By stage";
  }
  // Kinds tell more than operators only where each has several.
  if (operators.kinds.size() * 2 <= operators.rows.size()) {
    section.tables.push_back(parts_table(operators.kinds, "operators.kinds", "kind", total,
                                         "operators.", "in no operator"));
    section.tables.back().title = "By kind";
  }
  section.tables.push_back(operators_table(operators, total, top));
  if (!is_tested(comparison)) {
    drop_column("p", section.tables.back());
  }
  section.notes.push_back(printable(operators.time_of));
  if (std::ranges::any_of(operators.rows,
                          [](const OperatorChange& row) { return !row.base.shape.empty(); })) {
    section.notes.emplace_back(
        "Operators whose input shapes both sides recorded have a row per shape; other rows may mix "
        "shapes.");
  } else {
    drop_column("shape", section.tables.back());
  }
  section.notes.push_back(median_note(comparison));
  return section;
}

}  // namespace gpuwhy
