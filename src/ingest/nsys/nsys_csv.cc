// SPDX-License-Identifier: Apache-2.0
//
// Importer of nsys kernel summaries in CSV.
//
// nsys stats prints progress messages before the table. Headings contain the unit, which --timeunit
// changes: "Total Time (ns)". Old releases write "Average" instead of "Avg (ns)". Rows have no
// timestamps, so there is nothing to say about stages, gaps or overlap.
#include "ingest/nsys/nsys_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "ingest/ingest.h"
#include "ingest/ncu/ncu_units.h"
#include "trace/left_out.h"

namespace gpuwhy {
namespace {

using Cells = std::vector<std::string_view>;

// No program has this many kernels; such a file is not a summary.
constexpr std::size_t kMostSummaryRows = 100'000;

struct SummaryColumn {
  std::size_t at = SIZE_MAX;
  double factor = 1;  // to nanoseconds

  std::optional<std::int64_t> number(const Cells& cells) const {
    const auto value = at < cells.size() ? parse_number(trim(cells[at])) : std::nullopt;
    // No kernel runs for a day, and the sum of all rows must not overflow.
    if (!value || !(std::abs(*value * factor) < 9e13)) {
      return std::nullopt;
    }
    return std::llround(*value * factor);
  }
};

struct SummaryHeadings {
  SummaryColumn total, instances, minimum, median, maximum, grid, block, name;

  bool is_kernel_summary() const {
    return total.at != SIZE_MAX && instances.at != SIZE_MAX && name.at != SIZE_MAX;
  }
};

// The unit in parentheses becomes a factor to nanoseconds.
SummaryHeadings headings_of(const Cells& cells) {
  SummaryHeadings headings;
  const std::pair<std::string_view, SummaryColumn*> known[] = {
      {"Total Time", &headings.total}, {"Instances", &headings.instances},
      {"Min", &headings.minimum},      {"Minimum", &headings.minimum},
      {"Med", &headings.median},       {"Median", &headings.median},
      {"Max", &headings.maximum},      {"Maximum", &headings.maximum},
      {"GridXYZ", &headings.grid},     {"BlockXYZ", &headings.block},
      {"Name", &headings.name}};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t open = std::min(cells[i].find('('), cells[i].size());
    const std::string_view word = trim(cells[i].substr(0, open));
    for (const auto& [text, column] : known) {
      if (word == text) {
        column->at = i;
        if (open < cells[i].size()) {
          const std::string_view unit = cells[i].substr(open + 1);
          column->factor = unit_scale(unit.substr(0, unit.find(')'))).factor;
        }
      }
    }
  }
  return headings;
}

// From "  20   32    1".
bool read_dimensions(std::string_view text, std::int32_t (&dims)[3]) {
  for (std::int32_t& dim : dims) {
    text = trim(text);
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (failure != std::errc() || dim < 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  return true;
}

std::optional<LaunchShape> shape_of(const SummaryHeadings& headings, const Cells& cells) {
  LaunchShape shape;
  const bool is_shape = headings.grid.at < cells.size() && headings.block.at < cells.size() &&
                        read_dimensions(cells[headings.grid.at], shape.grid) &&
                        read_dimensions(cells[headings.block.at], shape.block);
  return is_shape ? std::optional(shape) : std::nullopt;
}

bool is_summary_heading(std::string_view line) {
  return line.find("Total Time") != std::string_view::npos &&
         line.find("Instances") != std::string_view::npos &&
         line.find("Name") != std::string_view::npos && line.find(',') != std::string_view::npos;
}

bool is_kernel_summary(const InputFile& file) {
  // Databases and reports contain zero bytes and have other extensions.
  return file.path().extension() == ".csv" && file.head().find('\0') == std::string_view::npos;
}

Recording load_kernel_summary(const InputFile& file, unsigned /*num_threads*/) {
  return with_context(file.path().string(),
                      [&] { return parse_nsys_csv(read_file(file.path(), kGiB)); });
}

TraceOutline outline_kernel_summary(const InputFile& file) {
  TraceOutline outline;
  std::error_code ignored;
  outline.file_bytes = std::filesystem::file_size(file.path(), ignored);
  outline.text_bytes = outline.file_bytes;  // what is kept of it is names
  outline.source = "its format: one row per kernel, no events";
  return outline;
}

}  // namespace

KernelSummary parse_nsys_csv(std::string_view text) {
  CsvReader reader(text);
  // nsys stats prints messages before the table; everything up to the heading is skipped.
  while (!reader.is_done() && !is_summary_heading(reader.peek_line())) {
    reader.skip_line();
  }
  const SummaryHeadings headings =
      reader.is_done() ? SummaryHeadings() : headings_of(reader.next());
  if (!headings.is_kernel_summary()) {
    throw Error(ErrorKind::kInput, "no kernel summary of nsys stats in it",
                "print one with nsys stats --report cuda_gpu_kern_sum --format csv FILE.nsys-rep");
  }
  KernelSummary summary;
  std::int64_t num_bad = 0;
  // An empty line ends the table: further reports may follow in the same file.
  while (!reader.is_done() && !reader.peek_line().empty() &&
         summary.rows.size() < kMostSummaryRows) {
    const Cells& cells = reader.next();
    const auto total = headings.total.number(cells);
    const auto instances = headings.instances.number(cells);
    if (!total || !instances || headings.name.at >= cells.size() || *total < 0 || *instances < 0) {
      ++num_bad;
      continue;
    }
    summary.rows.push_back({std::string(cells[headings.name.at]), *total, *instances,
                            headings.minimum.number(cells), headings.median.number(cells),
                            headings.maximum.number(cells), shape_of(headings, cells)});
  }
  if (num_bad > 0) {
    summary.diagnostics.push_back(
        {"summary_row_damaged",
         is_large_part(num_bad, num_bad + static_cast<std::int64_t>(summary.rows.size()))
             ? Severity::kImpossible
             : Severity::kWarning,
         num_bad,
         fmt::format("left out {} of the kernel summary: no number where one belongs, or one "
                     "below 0",
                     count_of(num_bad, "damaged row"))});
  }
  return summary;
}

const Importer kNsysCsv = {
    {.name = "nsys kernel summary",
     .tool = "Nsight Systems",
     .tool_id = "nsys",
     .kind = "kernel summary (CSV)",
     .made_with = "nsys stats --report cuda_gpu_kern_sum --format csv FILE.nsys-rep",
     .has_events = false},
    is_kernel_summary,
    load_kernel_summary,
    outline_kernel_summary};

}  // namespace gpuwhy
