// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison that attribute the difference to families, buckets and kernels.
//
// Each table states what its rows omit, so that its sum is the measured difference.
#include "report/comparison/comparison_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "report/comparison/comparison_tables.h"

namespace gpuwhy {
namespace {

// "cuda:0", or "cuda:0 -> cuda:1" if the sides ran on different ones.
std::string device_words(const LedgerChange& ledger) {
  const bool is_same = ledger.base.device == ledger.candidate.device;
  return is_same ? ledger.base.device : ledger.base.device + " -> " + ledger.candidate.device;
}

// A bucket of a ledger, a kind of cause in it, or the window.
struct LedgerLine {
  const LedgerChange& ledger;
  std::string name;
  TimeChange sides;
};

ChangeColumns<LedgerLine> ledger_columns() {
  return {{{"stage", "stage", CellFormat::kName},
           [](const LedgerLine& row) { return row.ledger.base.stage.text(); }},
          {{"GPU", "device", CellFormat::kText},
           [](const LedgerLine& row) { return device_words(row.ledger); }},
          {{"bucket", "bucket", CellFormat::kText, false, true}, &LedgerLine::name},
          {{"base", "base_ns", CellFormat::kDuration},
           [](const LedgerLine& row) { return row.sides.base_ns; }},
          {{"candidate", "candidate_ns", CellFormat::kDuration},
           [](const LedgerLine& row) { return row.sides.candidate_ns; }},
          {{"difference", "difference_ns", CellFormat::kDifference, true},
           [](const LedgerLine& row) { return row.sides.difference_ns(); }}};
}

// What differs in a ledger, and its window; `key` is its place.
void add_ledger(const LedgerChange& ledger, const std::string& key, ReportTable& table) {
  const auto add = [&](const std::string& name, const TimeChange& sides,
                       const std::string& place) -> ReportRow& {
    ReportRow& row = add_row(ledger_columns(), {ledger, name, sides}, key + place, table);
    if (ledger.base.stage.kind == RowKind::kRecording) {
      row.cells[0] = text_value("whole recording");
    }
    return row;
  };
  const std::span<const Bucket> buckets = buckets_by_name();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (ledger.difference_ns(buckets[i]) != 0) {
      add(bucket_in_words(buckets[i]), ledger.sides_of(buckets[i]), fmt::format("buckets[{}].", i));
    }
    const std::vector<KindChange>& kinds = ledger.kinds_of(buckets[i]);
    for (std::size_t k = 0; buckets[i] == Bucket::kLaunchLate && k < kinds.size(); ++k) {
      if (kinds[k].difference_ns() != 0) {
        add("- " + kind_in_words(word_of(kinds[k].kind)), kinds[k],
            fmt::format("buckets[{}].kinds[{}].", i, k));
      }
    }
  }
  add("= window", {ledger.base.window_ns, ledger.candidate.window_ns}, "").is_sum = true;
}

ChangeColumns<KernelChange> kernel_columns() {
  using C = KernelChange;
  return {
      {{"difference", "difference_ns", CellFormat::kDifference, true}, &C::difference_ns},
      {{"by launches", "launches_ns", CellFormat::kDifference}, &C::calls_ns},
      {{"by duration", "duration_ns", CellFormat::kDifference}, &C::duration_ns},
      {{"calls", "calls", CellFormat::kCount}, calls_of<C>},
      {{"what", "kind", CellFormat::kText},
       [](const C& row) {
         return kind_name(row.kind) + std::string(row.has_other_shapes() ? ", other shapes" : "");
       }},
      {{"family", "family", CellFormat::kText}, [](const C& row) { return row.named().family; }},
      {{"stage", "stage", CellFormat::kName},
       [](const C& row) { return row.named().stage.text(); }},
      {{"GPU", "device", CellFormat::kText}, [](const C& row) { return row.named().device; }},
      {{"significant", "p", CellFormat::kText}, sureness<C>},
      {{"kernel", "kernel", CellFormat::kName, false, true}, [](const C& row) {
         const bool is_swapped = row.kind == C::Kind::kSwapped;
         return row.named().short_name + (is_swapped ? " -> " + row.candidate.short_name : "");
       }}};
}

// Whether two ledgers have the same times, to a thousandth of the longer one.
bool are_alike(const LedgerRow& a, const LedgerRow& b) {
  constexpr std::int64_t kParts = 1000;
  const std::int64_t most_ns = std::max(a.window_ns, b.window_ns) / kParts;
  const auto is_near = [&](std::int64_t x, std::int64_t y) { return std::abs(x - y) <= most_ns; };
  return is_near(a.window_ns, b.window_ns) &&
         std::ranges::equal(a.buckets_ns, b.buckets_ns, is_near);
}

// The stage that fills the whole recording, so that a row of the recording says nothing new;
// nullptr: none does.
const LedgerChange* same_stage(const Comparison& comparison, const LedgerChange& capture) {
  if (capture.base.stage.kind != RowKind::kRecording) {
    return nullptr;
  }
  const auto same = std::ranges::find_if(comparison.ledgers, [&](const LedgerChange& row) {
    return row.base.stage.kind == RowKind::kStage && row.base.device == capture.base.device &&
           are_alike(row.base, capture.base) && are_alike(row.candidate, capture.candidate);
  });
  return same == comparison.ledgers.end() ? nullptr : &*same;
}

}  // namespace

TotalChange kernel_total(const Comparison& comparison) {
  return {comparison.kernel_time, sum_of_differences(comparison.kernels)};
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
  ReportTable table = empty_table(ledger_columns());
  for (std::size_t i = 0; i < comparison.ledgers.size(); ++i) {
    const LedgerChange& ledger = comparison.ledgers[i];
    // The stage `all` is the capture by another name.
    if (ledger.base.stage.kind == RowKind::kUnmarked) {
      continue;
    }
    if (const LedgerChange* same = same_stage(comparison, ledger)) {
      section.notes.push_back(fmt::format("The whole recording on {} has the times of '{}'.",
                                          device_words(ledger),
                                          printable_name(same->base.stage.text())));
      continue;
    }
    add_ledger(ledger, fmt::format("ledgers[{}].", i), table);
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
  ReportTable table = empty_table(kernel_columns());
  const std::int64_t shown_ns =
      add_moved(kernel_columns(), comparison.kernels, "kernels", top, table);
  const TotalChange total = kernel_total(comparison);
  section.notes.push_back(
      fmt::format("{} of {} rows: {} of {}. All rows sum to the difference{}.", table.rows.size(),
                  comparison.kernels.size(), shown({shown_ns, CellFormat::kDifference, ""}),
                  shown({total.difference_ns(), CellFormat::kDifference, ""}),
                  total.not_in_rows_ns() == 0
                      ? ""
                      : fmt::format(" but for {}, which no row has",
                                    shown({total.not_in_rows_ns(), CellFormat::kDifference, ""}))));
  add_pace_note(comparison, section);
  section.notes.push_back(median_note(comparison));
  section.tables.push_back(std::move(table));
  if (!is_tested(comparison)) {
    drop_column("p", section.tables.back());
  }
  return section;
}

Section runs_section(const Comparison& comparison) {
  constexpr std::size_t kMost = 100;
  Section section;
  section.id = "runs";
  section.title = "Runs";
  ReportTable table;
  table.columns = {{"side", "side", CellFormat::kText},
                   {"run", "run", CellFormat::kName, false, true},
                   {"note", "note", CellFormat::kText}};
  const auto add_side = [&](const char* side, const std::vector<std::string>& runs,
                            const std::string& median) {
    for (std::size_t i = 0; i < std::min(runs.size(), kMost); ++i) {
      table.rows.push_back(
          {{text_value(side),
            {runs[i], CellFormat::kName, fmt::format("{}.runs[{}]", side, i)},
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

}  // namespace gpuwhy
