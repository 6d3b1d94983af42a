// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison that attribute the difference to families, buckets, kernels, operators
// and parts of the model.
//
// Each table states what its rows omit, so that its sum is the measured difference.
#include "report/comparison_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/glossary.h"

namespace llmprof {
namespace {

ReportValue difference_of(std::int64_t difference_ns, std::string key = "") {
  return {difference_ns, Unit::kDifference, std::move(key)};
}

ReportValue duration_of(std::int64_t duration_ns, std::string key) {
  return {duration_ns, Unit::kDuration, std::move(key)};
}

ReportValue no_value(Unit unit) {
  return {"", unit, ""};
}

// Whether a kernel or operator moved beyond noise, in words.
template <typename Row>
std::string sureness(const Row& row) {
  if (!row.p) {
    return "n/a";
  }
  return fmt::format("{} (p {:.2g}, adjusted {:.2g})",
                     row.is_significant ? "beyond noise" : "within noise", *row.p,
                     row.adjusted_p.value_or(0));
}

template <typename Row>
ReportValue calls_of(const Row& row) {
  return {fmt::format("{} -> {}", row.base.calls, row.candidate.calls), Unit::kCount, ""};
}

template <typename Row>
std::int64_t sum_of_differences(const std::vector<Row>& rows) {
  std::int64_t sum_ns = 0;
  for (const Row& row : rows) {
    sum_ns += row.difference_ns();
  }
  return sum_ns;
}

// Names with a base, a candidate and a difference each; the largest, the others, the rest, the sum.
// `name` is the field that holds a row's name, `rest` what is said of time in no row.
ReportTable parts_table(const std::vector<PartChange>& parts, const std::string& array,
                        const std::string& name, const TotalChange& total,
                        const std::string& total_key, const char* rest) {
  constexpr std::size_t kMost = 12;
  ReportTable table;
  table.columns = {{name, name, Unit::kText, false, true},
                   {"difference", "difference_ns", Unit::kDifference, true},
                   {"base", "base_ns", Unit::kDuration},
                   {"candidate", "candidate_ns", Unit::kDuration}};
  std::int64_t others_ns = 0;
  std::size_t others = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartChange& part = parts[i];
    const std::string key = fmt::format("{}[{}].", array, i);
    if (part.difference_ns() != 0 && table.rows.size() < kMost) {
      table.rows.push_back({{{part.name, Unit::kText, key + name},
                             difference_of(part.difference_ns(), key + "difference_ns"),
                             duration_of(part.base_ns, key + "base_ns"),
                             duration_of(part.candidate_ns, key + "candidate_ns")},
                            "",
                            false});
    } else {
      others_ns += part.difference_ns();
      ++others;
    }
  }
  const auto add = [&](const std::string& label, std::int64_t difference_ns) {
    table.rows.push_back({{text_value(label), difference_of(difference_ns),
                           no_value(Unit::kDuration), no_value(Unit::kDuration)},
                          "",
                          false});
  };
  if (others > 0) {
    add(fmt::format("{} {}", others, others == 1 ? "other" : "others"), others_ns);
  }
  if (const std::int64_t rest_ns = total.difference_ns() - sum_of_differences(parts);
      rest_ns != 0) {
    add(rest, rest_ns);
  }
  table.rows.push_back(
      {{text_value("= all"), difference_of(total.difference_ns(), total_key + "difference_ns"),
        duration_of(total.base_ns, total_key + "base_ns"),
        duration_of(total.candidate_ns, total_key + "candidate_ns")},
       "",
       true});
  return table;
}

// "cuda:0", or "cuda:0 -> cuda:1" if the sides ran on different ones.
std::string device_words(const LedgerChange& ledger) {
  const bool is_same = ledger.base.device == ledger.candidate.device;
  return is_same ? ledger.base.device : ledger.base.device + " -> " + ledger.candidate.device;
}

// A bucket of a ledger, or its window; `ledger_key` and `key` are their places.
ReportRow bucket_row(const LedgerChange& ledger, const std::string& ledger_key,
                     const PartChange& part, const std::string& key) {
  return {{{ledger.base.stage, Unit::kName, ledger_key + "stage"},
           {device_words(ledger), Unit::kText, ledger_key + "device"},
           text_value(bucket_in_words(part.name)),
           duration_of(part.base_ns, key + "base_ns"),
           duration_of(part.candidate_ns, key + "candidate_ns"),
           difference_of(part.difference_ns(), key + "difference_ns")},
          "",
          key == ledger_key};
}

// What is known of the time in a bucket, by kind of cause.
void add_kinds(const LedgerChange& ledger, const std::string& ledger_key, std::size_t place,
               ReportTable& table) {
  const std::string& bucket = ledger.base.buckets_ns[place].first;
  for (const auto& [of, kinds] : ledger.kinds) {
    for (std::size_t i = 0; of == bucket && i < kinds.size(); ++i) {
      if (kinds[i].difference_ns() != 0) {
        PartChange kind = kinds[i];
        kind.name = "- " + kind_in_words(kind.name);
        table.rows.push_back(
            bucket_row(ledger, ledger_key, kind,
                       fmt::format("{}buckets[{}].kinds[{}].", ledger_key, place, i)));
      }
    }
  }
}

ReportRow kernel_row(const KernelChange& row, std::size_t place) {
  const std::string key = fmt::format("kernels[{}].", place);
  const KernelAmount& named = row.named();
  const bool is_swapped = row.kind == KernelChange::Kind::kSwapped;
  return {{difference_of(row.difference_ns(), key + "difference_ns"),
           difference_of(row.launches_ns, key + "launches_ns"),
           difference_of(row.duration_ns, key + "duration_ns"),
           calls_of(row),
           text_value(std::string(kind_name(row.kind)) +
                      (row.has_other_shapes() ? ", other shapes" : "")),
           {named.family, Unit::kText, key + "family"},
           {named.stage, Unit::kName, key + "stage"},
           {named.device, Unit::kText, key + "device"},
           text_value(sureness(row)),
           {named.short_name + (is_swapped ? " -> " + row.candidate.short_name : ""), Unit::kName,
            key + "kernel"}},
          "",
          false};
}

ReportRow operator_row(const OperatorChange& row, std::size_t place) {
  const std::string key = fmt::format("operators.rows[{}].", place);
  return {{difference_of(row.difference_ns(), key + "difference_ns"),
           difference_of(row.calls_ns, key + "calls_ns"),
           difference_of(row.duration_ns, key + "duration_ns"),
           calls_of(row),
           {row.base.stage, Unit::kName, key + "stage"},
           text_value(sureness(row)),
           {row.base.name, Unit::kName, key + "operator"},
           {row.base.shape, Unit::kText, key + "shape"}},
          "",
          false};
}

// A row of the operator table that is not an operator.
ReportRow other_operators_row(ReportValue difference, std::string name, bool is_sum) {
  return {
      {std::move(difference), no_value(Unit::kDifference), no_value(Unit::kDifference),
       text_value(""), text_value(""), text_value(""), text_value(std::move(name)), text_value("")},
      "",
      is_sum};
}

// Adds the first `top` rows that differ; returns the sum of their differences.
template <typename Row>
std::int64_t add_moved(const std::vector<Row>& rows, std::size_t top,
                       ReportRow (*row_of)(const Row&, std::size_t), ReportTable& table) {
  std::int64_t shown_ns = 0;
  for (std::size_t i = 0; i < rows.size() && table.rows.size() < top; ++i) {
    if (rows[i].difference_ns() != 0) {
      table.rows.push_back(row_of(rows[i], i));
      shown_ns += rows[i].difference_ns();
    }
  }
  return shown_ns;
}

ReportTable operators_table(const OperatorComparison& operators, const TotalChange& total,
                            std::size_t top) {
  ReportTable table;
  table.title = "By operator";
  table.columns = {{"difference", "difference_ns", Unit::kDifference, true},
                   {"by calls", "calls_ns", Unit::kDifference},
                   {"by duration", "duration_ns", Unit::kDifference},
                   {"calls", "calls", Unit::kCount},
                   {"stage", "stage", Unit::kName},
                   {"significant", "p", Unit::kText},
                   {"operator", "operator", Unit::kName, false, true},
                   {"input shapes", "shape", Unit::kText}};
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
             : no_value(Unit::kDuration);
}

ReportTable model_parts_table(const ModelPassChange& pass, const std::string& key,
                              std::size_t top) {
  ReportTable table;
  table.title = fmt::format("{}, {} layers: kernel time of one pass", pass.pass, pass.num_layers);
  table.columns = {{"difference", "difference_ns", Unit::kDifference, true},
                   {"base", "base_ns", Unit::kDuration},
                   {"candidate", "candidate_ns", Unit::kDuration},
                   {"base per layer", "base_layer", Unit::kDuration},
                   {"candidate per layer", "candidate_layer", Unit::kDuration},
                   {"place", "place", Unit::kText},
                   {"part", "part", Unit::kText, false, true},
                   {"kernel", "kernel", Unit::kName}};
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
                            Unit::kName, ""}},
                          "",
                          false});
    shown_ns += part.difference_ns();
  }
  const auto add = [&](ReportValue difference, ReportValue base, ReportValue candidate,
                       std::string label, bool is_sum) {
    table.rows.push_back(
        {{std::move(difference), std::move(base), std::move(candidate), no_value(Unit::kDuration),
          no_value(Unit::kDuration), text_value(""), text_value(std::move(label)), text_value("")},
         "",
         is_sum});
  };
  const std::int64_t whole_ns = pass.candidate_ns() - pass.base_ns();
  if (const std::size_t others = pass.parts.size() - table.rows.size(); others > 0) {
    add(difference_of(whole_ns - shown_ns), no_value(Unit::kDuration), no_value(Unit::kDuration),
        fmt::format("{} {}", others, others == 1 ? "other" : "others"), false);
  }
  add(difference_of(whole_ns, key + "difference_ns"), duration_of(pass.base_ns(), key + "base_ns"),
      duration_of(pass.candidate_ns(), key + "candidate_ns"), "= all", true);
  return table;
}

bool is_tested(const Comparison& comparison) {
  return comparison.base.size() > 1 && comparison.candidate.size() > 1;
}

void drop_column(std::string_view field, ReportTable& table) {
  const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                   [&](const ReportColumn& one) { return one.field == field; });
  const std::ptrdiff_t place = column - table.columns.begin();
  table.columns.erase(column);
  for (ReportRow& row : table.rows) {
    row.cells.erase(row.cells.begin() + place);
  }
}

// Removes the column if no row was tested.
void drop_sureness(ReportTable& table) {
  drop_column("p", table);
}

// Rows are of all the work in a recording: where that is less, so is their time.
void add_pace_note(const Comparison& comparison, Section& section) {
  if (comparison.pace && comparison.pace->work_ratio < 1) {
    section.notes.push_back(fmt::format(
        "The candidate did {:.1f} % less work in the same time, so less time in a row is "
        "not more speed.",
        (1 - comparison.pace->work_ratio) * 100));
  } else if (comparison.pace) {
    section.notes.push_back(fmt::format(
        "The candidate did {:.1f} % more work in the same time, so more time in a row is "
        "not less speed.",
        (comparison.pace->work_ratio - 1) * 100));
  }
}

std::string median_note(const Comparison& comparison) {
  return fmt::format("Based on one run per side: {} and {}.{}", printable(comparison.base_median),
                     printable(comparison.candidate_median),
                     is_tested(comparison) ? "" : " Noise is unknown with one run per side.");
}

}  // namespace

std::string bucket_in_words(const std::string& bucket) {
  return bucket == "launch_late" ? "waiting for the CPU" : std::string(bucket_label(bucket));
}

TotalChange kernel_total(const Comparison& comparison) {
  return {comparison.base_kernel_ns, comparison.candidate_kernel_ns,
          sum_of_differences(comparison.kernels)};
}

TotalChange operator_total(const OperatorComparison& operators) {
  return {operators.base_ns, operators.candidate_ns, sum_of_differences(operators.rows)};
}

Section families_section(const Comparison& comparison) {
  Section section;
  section.id = "families";
  section.title = "Where the difference went, by family of kernels";
  if (comparison.kernels.empty()) {
    section.missing = "n/a (no kernels were recorded)";
    return section;
  }
  section.tables.push_back(parts_table(comparison.families, "families", "family",
                                       kernel_total(comparison), "kernel_time.",
                                       "in no kernel's row"));
  add_pace_note(comparison, section);
  section.notes.push_back(median_note(comparison));
  return section;
}

Section buckets_section(const Comparison& comparison) {
  Section section;
  section.id = "where";
  section.title = "Where the difference is, by bucket";
  ReportTable table;
  table.columns = {{"stage", "stage", Unit::kName},
                   {"GPU", "device", Unit::kText},
                   {"bucket", "bucket", Unit::kText, false, true},
                   {"base", "base_ns", Unit::kDuration},
                   {"candidate", "candidate_ns", Unit::kDuration},
                   {"difference", "difference_ns", Unit::kDifference, true}};
  for (std::size_t i = 0; i < comparison.ledgers.size(); ++i) {
    const LedgerChange& ledger = comparison.ledgers[i];
    const std::string ledger_key = fmt::format("ledgers[{}].", i);
    // The stage `all` is the capture by another name.
    if (ledger.base.stage == "all") {
      continue;
    }
    for (std::size_t j = 0; j < ledger.base.buckets_ns.size(); ++j) {
      const auto& [name, base_ns] = ledger.base.buckets_ns[j];
      const PartChange bucket{name, base_ns, ledger.candidate.buckets_ns[j].second};
      if (bucket.difference_ns() != 0) {
        table.rows.push_back(
            bucket_row(ledger, ledger_key, bucket, fmt::format("{}buckets[{}].", ledger_key, j)));
      }
      if (name == "launch_late") {
        add_kinds(ledger, ledger_key, j, table);
      }
    }
    table.rows.push_back(bucket_row(ledger, ledger_key,
                                    {"= window", ledger.base.window_ns, ledger.candidate.window_ns},
                                    ledger_key));
  }
  if (table.rows.empty()) {
    section.missing =
        fmt::format("n/a ({})", comparison.ledgers.empty() ? printable(comparison.ledgers_missing)
                                                           : "no bucket differs");
  } else {
    section.tables.push_back(std::move(table));
    add_pace_note(comparison, section);
  }
  return section;
}

Section moved_section(const Comparison& comparison, std::size_t top) {
  Section section;
  section.id = "kernels";
  section.title = "Where the difference is, by kernel";
  if (comparison.kernels.empty()) {
    section.missing = "n/a (no kernels were recorded)";
    return section;
  }
  ReportTable table;
  table.columns = {{"difference", "difference_ns", Unit::kDifference, true},
                   {"by launches", "launches_ns", Unit::kDifference},
                   {"by duration", "duration_ns", Unit::kDifference},
                   {"calls", "calls", Unit::kCount},
                   {"what", "kind", Unit::kText},
                   {"family", "family", Unit::kText},
                   {"stage", "stage", Unit::kName},
                   {"GPU", "device", Unit::kText},
                   {"significant", "p", Unit::kText},
                   {"kernel", "kernel", Unit::kName, false, true}};
  const std::int64_t shown_ns = add_moved(comparison.kernels, top, kernel_row, table);
  const TotalChange total = kernel_total(comparison);
  section.notes.push_back(
      fmt::format("{} of {} rows: {} of {}. All rows sum to the difference{}.", table.rows.size(),
                  comparison.kernels.size(), shown({shown_ns, Unit::kDifference, ""}),
                  shown({total.difference_ns(), Unit::kDifference, ""}),
                  total.not_in_rows_ns() == 0
                      ? ""
                      : fmt::format(" but for {}, which no row has",
                                    shown({total.not_in_rows_ns(), Unit::kDifference, ""}))));
  add_pace_note(comparison, section);
  section.notes.push_back(median_note(comparison));
  section.tables.push_back(std::move(table));
  if (!is_tested(comparison)) {
    drop_sureness(section.tables.back());
  }
  return section;
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

Section runs_section(const Comparison& comparison) {
  constexpr std::size_t kMost = 100;
  Section section;
  section.id = "runs";
  section.title = "Runs";
  ReportTable table;
  table.columns = {{"side", "side", Unit::kText},
                   {"run", "run", Unit::kName, false, true},
                   {"note", "note", Unit::kText}};
  const auto add_side = [&](const char* side, const std::vector<std::string>& runs,
                            const std::string& median) {
    for (std::size_t i = 0; i < std::min(runs.size(), kMost); ++i) {
      table.rows.push_back(
          {{text_value(side),
            {runs[i], Unit::kName, fmt::format("{}.runs[{}]", side, i)},
            text_value(runs[i] == median ? "median run, used for the breakdown" : "")},
           "",
           false});
    }
    if (runs.size() > kMost) {
      section.notes.push_back(fmt::format("{} more runs of the {}", runs.size() - kMost, side));
    }
  };
  add_side("base", comparison.base, comparison.base_median);
  add_side("candidate", comparison.candidate, comparison.candidate_median);
  section.tables.push_back(std::move(table));
  return section;
}

std::string reasons_of(const std::string& sentence) {
  for (const std::string_view said : {"slower: ", "faster: ", "not decided: ", "not comparable: ",
                                      "not judged: ", "outside its limit: "}) {
    if (sentence.starts_with(said)) {
      return sentence.substr(said.size());
    }
  }
  return sentence;
}

}  // namespace llmprof
