// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison that attribute the difference to operators and parts of the model.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/comparison_parts.h"
#include "report/comparison_tables.h"

namespace gpuwhy {
namespace {

ReportRow operator_row(const OperatorChange& row, std::size_t place) {
  const std::string key = fmt::format("operators.rows[{}].", place);
  return {{difference_of(row.difference_ns(), key + "difference_ns"),
           difference_of(row.calls_ns, key + "calls_ns"),
           difference_of(row.duration_ns, key + "duration_ns"),
           calls_of(row),
           {row.base.stage.text(), CellFormat::kName, key + "stage"},
           text_value(sureness(row)),
           {row.base.name, CellFormat::kName, key + "operator"},
           {row.base.shape, CellFormat::kText, key + "shape"}},
          "",
          false};
}

// A row of the operator table that is not an operator.
ReportRow other_operators_row(ReportValue difference, std::string name, bool is_sum) {
  return {
      {std::move(difference), no_value(CellFormat::kDifference), no_value(CellFormat::kDifference),
       text_value(""), text_value(""), text_value(""), text_value(std::move(name)), text_value("")},
      "",
      is_sum};
}

ReportTable operators_table(const OperatorComparison& operators, const TotalChange& total,
                            std::size_t top) {
  ReportTable table;
  table.title = "By operator";
  table.columns = {{"difference", "difference_ns", CellFormat::kDifference, true},
                   {"by calls", "calls_ns", CellFormat::kDifference},
                   {"by duration", "duration_ns", CellFormat::kDifference},
                   {"calls", "calls", CellFormat::kCount},
                   {"stage", "stage", CellFormat::kName},
                   {"significant", "p", CellFormat::kText},
                   {"operator", "operator", CellFormat::kName, false, true},
                   {"input shapes", "shape", CellFormat::kText}};
  const std::int64_t shown_ns = add_moved(operators.rows, top, operator_row, table);
  const std::size_t others = operators.rows.size() - table.rows.size();
  if (others > 0) {
    table.rows.push_back(other_operators_row(
        difference_of(total.rows_ns - shown_ns),
        fmt::format("{} other {}", others, others == 1 ? "row" : "rows"), false));
  }
  table.rows.push_back(other_operators_row(
      difference_of(total.not_in_rows_ns(), "operators.not_in_rows_ns"), "in no operator", false));
  table.rows.push_back(other_operators_row(
      difference_of(total.difference_ns(), "operators.difference_ns"), "= all", true));
  return table;
}

// Time of a part in one layer; what is outside of layers has none.
ReportValue layer_time(const ModelPartChange& part, std::int64_t time_ns, std::int64_t num_layers) {
  return part.place == "layer" && num_layers > 0
             ? duration_of((time_ns + num_layers / 2) / num_layers, "")
             : no_value(CellFormat::kDuration);
}

ReportTable model_parts_table(const ModelPassChange& pass, const std::string& key,
                              std::size_t top) {
  ReportTable table;
  table.title = fmt::format("{}, {} layers: kernel time of one pass", pass.pass, pass.num_layers);
  table.columns = {{"difference", "difference_ns", CellFormat::kDifference, true},
                   {"base", "base_ns", CellFormat::kDuration},
                   {"candidate", "candidate_ns", CellFormat::kDuration},
                   {"base per layer", "base_layer", CellFormat::kDuration},
                   {"candidate per layer", "candidate_layer", CellFormat::kDuration},
                   {"place", "place", CellFormat::kText},
                   {"part", "part", CellFormat::kText, false, true},
                   {"kernel", "kernel", CellFormat::kName}};
  std::int64_t shown_ns = 0;
  for (std::size_t i = 0; i < pass.parts.size() && table.rows.size() < top; ++i) {
    const ModelPartChange& part = pass.parts[i];
    if (part.difference_ns() == 0) {
      continue;
    }
    const std::string at = fmt::format("{}parts[{}].", key, i);
    const std::string arrow =
        part.base_kernel.empty() || part.candidate_kernel.empty() ? "" : " -> ";
    table.rows.push_back({{difference_of(part.difference_ns(), at + "difference_ns"),
                           duration_of(part.base_ns, at + "base_ns"),
                           duration_of(part.candidate_ns, at + "candidate_ns"),
                           layer_time(part, part.base_ns, pass.num_layers),
                           layer_time(part, part.candidate_ns, pass.num_layers),
                           text_value(part.place),
                           text_value(part.part.empty() ? "in no part" : part.part),
                           {part.base_kernel == part.candidate_kernel
                                ? part.base_kernel
                                : part.base_kernel + arrow + part.candidate_kernel,
                            CellFormat::kName, ""}},
                          "",
                          false});
    shown_ns += part.difference_ns();
  }
  const auto add = [&](ReportValue difference, ReportValue base, ReportValue candidate,
                       std::string label, bool is_sum) {
    table.rows.push_back({{std::move(difference), std::move(base), std::move(candidate),
                           no_value(CellFormat::kDuration), no_value(CellFormat::kDuration),
                           text_value(""), text_value(std::move(label)), text_value("")},
                          "",
                          is_sum});
  };
  const std::int64_t whole_ns = pass.candidate_ns() - pass.base_ns();
  if (const std::size_t others = pass.parts.size() - table.rows.size(); others > 0) {
    add(difference_of(whole_ns - shown_ns), no_value(CellFormat::kDuration),
        no_value(CellFormat::kDuration),
        fmt::format("{} {}", others, others == 1 ? "other" : "others"), false);
  }
  add(difference_of(whole_ns, key + "difference_ns"), duration_of(pass.base_ns(), key + "base_ns"),
      duration_of(pass.candidate_ns(), key + "candidate_ns"), "= all", true);
  return table;
}

}  // namespace

TotalChange operator_total(const OperatorComparison& operators) {
  return {operators.base_ns, operators.candidate_ns, sum_of_differences(operators.rows)};
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
    drop_sureness(section.tables.back());
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
