// SPDX-License-Identifier: Apache-2.0
//
// Kernels, what bounds them, and the operators behind them.
#include <fmt/format.h>

#include "base/units.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

// On a terminal names come last, where a narrow window cuts them; in files they come first, as the
// specification has it, with milliseconds that scripts can read.
std::vector<ReportColumn> kernel_columns(bool is_terminal, bool has_counters,
                                         bool has_several_gpus) {
  if (is_terminal) {
    std::vector<ReportColumn> columns = {{"share", "kernel_fraction", Unit::kFraction},
                                         {"total", "total_ns", Unit::kDuration},
                                         {"calls", "calls", Unit::kCount},
                                         {"mean", "mean_ns", Unit::kDuration},
                                         {"family", "family", Unit::kText},
                                         {"stage", "stage", Unit::kName}};
    if (has_counters) {
      columns.push_back({"bound", "bound", Unit::kText});
    }
    if (has_several_gpus) {
      columns.push_back({"GPU", "device", Unit::kText});
    }
    columns.push_back({"kernel", "short_name", Unit::kName});
    return columns;
  }
  std::vector<ReportColumn> columns = {
      {"kernel_name", "short_name", Unit::kName}, {"total_ms", "total_ns", Unit::kMilliseconds},
      {"calls", "calls", Unit::kCount},           {"mean_ms", "mean_ns", Unit::kMilliseconds},
      {"device", "device", Unit::kText},          {"stage", "stage", Unit::kName},
      {"family", "family", Unit::kText},          {"share", "kernel_fraction", Unit::kFraction}};
  if (has_counters) {
    columns.push_back({"bound", "bound", Unit::kText});
    columns.push_back({"covered", "covered_fraction", Unit::kFraction});
  }
  return columns;
}

bool has_counters(const Json& metrics) {
  return field_of(metrics, "counters.kernels").is_array();
}

std::vector<ReportColumn> operator_columns(bool is_terminal) {
  if (is_terminal) {
    return {{"share", "share_fraction", Unit::kFraction},
            {"total", "total_ns", Unit::kDuration},
            {"calls", "calls", Unit::kCount},
            {"mean", "mean_ns", Unit::kDuration},
            {"kernels", "kernels", Unit::kCount},
            {"stage", "stage", Unit::kName},
            {"operator", "name", Unit::kName}};
  }
  return {{"operator", "name", Unit::kName},
          {"total_ms", "total_ns", Unit::kMilliseconds},
          {"calls", "calls", Unit::kCount},
          {"mean_ms", "mean_ns", Unit::kMilliseconds},
          {"share", "share_fraction", Unit::kFraction},
          {"kernels", "kernels", Unit::kCount},
          {"stage", "stage", Unit::kName}};
}

bool is_covered(const Json& row) {
  return integer_of(row, "covered_ns") > 0;
}

}  // namespace

Section kernels_section(const Json& metrics, const SectionOptions& options) {
  Section section;
  ReportTable table = table_of(metrics, "kernels",
                               kernel_columns(options.is_terminal, has_counters(metrics),
                                              rows_of(metrics, "devices").size() > 1),
                               options.top);
  if (table.rows.empty()) {
    section.missing = fmt::format("n/a ({}); llmprof doctor says what a recording needs",
                                  text_of(metrics, "verdict"));
    return section;
  }
  const std::string count = fmt::format("{} of {} rows by total time", table.rows.size(),
                                        rows_of(metrics, "kernels").size());
  if (options.is_terminal) {
    table.title = count;
  } else {
    section.paragraphs.push_back(fmt::format(
        "{}. Durations are from {}; share is of all kernel time. {}", count, tool_of(metrics),
        has_counters(metrics) ? "What bounds a kernel, and how much of its time "
                                "counters cover, is from Nsight Compute."
                              : "What bounds a kernel: n/a (needs an ncu capture)."));
  }
  section.tables.push_back(std::move(table));
  return section;
}

Section counters_section(const Json& metrics, const SectionOptions& options) {
  Section section;
  if (!has_counters(metrics)) {
    section.missing =
        "n/a (needs an ncu capture); llmprof run makes one on a GPU, llmprof analyze --ncu FILE "
        "takes "
        "yours";
    return section;
  }
  const Json& coverage = rows_of(metrics, "counters.coverage");
  std::string text = "Share of GPU time that counters cover";
  std::string separator = ": ";
  for (const Json& row : coverage) {
    // A recording without stages has one row and the sum, which are the same.
    if (coverage.size() > 2 || text_of(row, "stage") == "total") {
      text += fmt::format("{}{} {}", separator, text_of(row, "stage"),
                          format_fraction(number_of(row, "fraction")));
      separator = ", ";
    }
  }
  section.paragraphs.push_back(text);
  ReportTable table = table_of(metrics, "counters.kernels",
                               {{"bound", "bound", Unit::kText},
                                {"covers", "covered_fraction", Unit::kFraction},
                                {"can win", "winnable_ns", Unit::kDuration},
                                {"sure", "confidence", Unit::kText},
                                {"kernel", "short_name", Unit::kName}},
                               options.top, is_covered);
  std::size_t place = 0;
  std::size_t num_unused = 0;
  std::vector<std::string> unused;
  for (const Json& row : rows_of(metrics, "counters.kernels")) {
    if (is_covered(row)) {
      if (place < table.rows.size()) {
        table.rows[place++].detail =
            text_of(row, "bound_reason") + "; " + text_of(row, "confidence_reason");
      }
    } else if (++num_unused <= options.top) {
      const std::string reason = text_of(row, "match_reason");
      unused.push_back(text_of(row, "short_name") + ": " +
                       (reason.empty() ? text_of(row, "confidence_reason") : reason));
    }
  }
  section.tables.push_back(std::move(table));
  if (num_unused > 0) {
    section.notes.push_back(fmt::format("Counters not used: {} of {} profiled launches", num_unused,
                                        rows_of(metrics, "counters.kernels").size()));
    section.notes.insert(section.notes.end(), unused.begin(), unused.end());
  }
  return section;
}

Section operators_section(const Json& metrics, const SectionOptions& options) {
  Section section;
  ReportTable table =
      table_of(metrics, "operators.rows", operator_columns(options.is_terminal), options.top);
  if (table.rows.empty()) {
    section.missing =
        "n/a (nothing in the recording names operators); record PyTorch under nsys profile "
        "--pytorch=autograd-shapes-nvtx, or analyze a trace of the PyTorch profiler";
    return section;
  }
  section.paragraphs.push_back(
      fmt::format("{} of {} rows, {}; {}. They cover {} of {}.", table.rows.size(),
                  rows_of(metrics, "operators.rows").size(), text_of(metrics, "operators.source"),
                  text_of(metrics, "operators.time_of"),
                  format_fraction(fraction_of(integer_of(metrics, "operators.covered_ns"),
                                              integer_of(metrics, "operators.whole_ns"))),
                  shown(value_at(metrics, "operators.whole_ns", Unit::kDuration))));
  section.tables.push_back(std::move(table));
  if (!rows_of(metrics, "operators.layers").empty() && !options.is_terminal) {
    section.tables.push_back(table_of(metrics, "operators.layers",
                                      {{"layer", "layer", Unit::kName},
                                       {"total_ms", "total_ns", Unit::kMilliseconds},
                                       {"calls", "calls", Unit::kCount}}));
    section.tables.back().title = "By layer";
  }
  return section;
}

}  // namespace llmprof
