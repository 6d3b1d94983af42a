// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison that attribute the difference to families, buckets and kernels.
//
// Each table states what its rows omit, so that its sum is the measured difference.
#include "report/comparison_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "report/comparison_tables.h"
#include "report/glossary.h"

namespace gpuwhy {
namespace {

// "cuda:0", or "cuda:0 -> cuda:1" if the sides ran on different ones.
std::string device_words(const LedgerChange& ledger) {
  const bool is_same = ledger.base.device == ledger.candidate.device;
  return is_same ? ledger.base.device : ledger.base.device + " -> " + ledger.candidate.device;
}

// A bucket of a ledger, or its window; `ledger_key` and `key` are their places.
ReportRow bucket_row(const LedgerChange& ledger, const std::string& ledger_key,
                     const PartChange& part, const std::string& key) {
  const ReportValue stage =
      ledger.base.stage.kind == RowKind::kRecording
          ? text_value("whole recording")
          : ReportValue{ledger.base.stage.text(), CellFormat::kName, ledger_key + "stage"};
  return {{stage,
           {device_words(ledger), CellFormat::kText, ledger_key + "device"},
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
           {named.family, CellFormat::kText, key + "family"},
           {named.stage.text(), CellFormat::kName, key + "stage"},
           {named.device, CellFormat::kText, key + "device"},
           text_value(sureness(row)),
           {named.short_name + (is_swapped ? " -> " + row.candidate.short_name : ""),
            CellFormat::kName, key + "kernel"}},
          "",
          false};
}

// Whether two ledgers have the same times, to a thousandth of the longer one.
bool are_alike(const LedgerAmount& a, const LedgerAmount& b) {
  constexpr std::int64_t kParts = 1000;
  const std::int64_t most_ns = std::max(a.window_ns, b.window_ns) / kParts;
  const auto is_near = [&](std::int64_t x, std::int64_t y) { return std::abs(x - y) <= most_ns; };
  return is_near(a.window_ns, b.window_ns) &&
         std::ranges::equal(a.buckets_ns, b.buckets_ns, [&](const auto& one, const auto& other) {
           return one.first == other.first && is_near(one.second, other.second);
         });
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

std::string bucket_in_words(const std::string& bucket) {
  return bucket == "launch_late" ? "waiting for the CPU" : std::string(bucket_label(bucket));
}

TotalChange kernel_total(const Comparison& comparison) {
  return {comparison.base_kernel_ns, comparison.candidate_kernel_ns,
          sum_of_differences(comparison.kernels)};
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
  table.columns = {{"stage", "stage", CellFormat::kName},
                   {"GPU", "device", CellFormat::kText},
                   {"bucket", "bucket", CellFormat::kText, false, true},
                   {"base", "base_ns", CellFormat::kDuration},
                   {"candidate", "candidate_ns", CellFormat::kDuration},
                   {"difference", "difference_ns", CellFormat::kDifference, true}};
  for (std::size_t i = 0; i < comparison.ledgers.size(); ++i) {
    const LedgerChange& ledger = comparison.ledgers[i];
    const std::string ledger_key = fmt::format("ledgers[{}].", i);
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
  table.columns = {{"difference", "difference_ns", CellFormat::kDifference, true},
                   {"by launches", "launches_ns", CellFormat::kDifference},
                   {"by duration", "duration_ns", CellFormat::kDifference},
                   {"calls", "calls", CellFormat::kCount},
                   {"what", "kind", CellFormat::kText},
                   {"family", "family", CellFormat::kText},
                   {"stage", "stage", CellFormat::kName},
                   {"GPU", "device", CellFormat::kText},
                   {"significant", "p", CellFormat::kText},
                   {"kernel", "kernel", CellFormat::kName, false, true}};
  const std::int64_t shown_ns = add_moved(comparison.kernels, top, kernel_row, table);
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
    drop_sureness(section.tables.back());
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
