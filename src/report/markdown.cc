// SPDX-License-Identifier: Apache-2.0
//
// Markdown that renders on GitHub and reads in a plain viewer. Kernel names come from strangers and
// hold every character a table or a code span is made of: a name never leaves its cell.
#include <fmt/format.h>

#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "report/report.h"

namespace llmprof {
namespace {

// A code span, in which only the two characters matter that end it or the cell.
std::string code_cell(std::string_view name) {
  std::string cell;
  for (const char c : printable(name)) {
    if (c == '|') {
      cell += "\\|";
    } else if (c == '`') {
      cell += '\'';
    } else {
      cell += c;
    }
  }
  return "`" + (cell.empty() ? " " : cell) + "`";
}

}  // namespace

std::string kernel_markdown(const Analysis& analysis, std::size_t top) {
  const std::vector<KernelRecord> records = top_n_kernels(analysis.kernels, top);
  const bool has_counters = analysis.counters.has_value();
  std::string text = fmt::format(
      "# Kernels\n\n{} of {} rows, by total time. Durations are from Nsight Systems; share is of "
      "all "
      "kernel time.{}\n\n| kernel_name | total_ms | calls | mean_ms | device | stage | family | "
      "share "
      "|{}\n|---|---:|---:|---:|---|---|---|---:|{}\n",
      records.size(), analysis.kernels.size(),
      has_counters
          ? " What bounds a kernel, and how much of its time counters cover, is from Nsight "
            "Compute."
          : " What bounds a kernel: n/a (needs an ncu capture).",
      has_counters ? " bound | covered |" : "", has_counters ? "---|---:|" : "");
  for (const KernelRecord& record : records) {
    text +=
        fmt::format("| {} | {:.6f} | {} | {:.6f} | {} | {} | {} | {} |",
                    code_cell(record.short_name), record.total_ms(), record.calls, record.mean_ms(),
                    record.device, printable(record.stage), printable(record.family),
                    format_fraction(fraction_of(record.total_ns, analysis.kernel_ns)));
    if (has_counters) {
      text += fmt::format(" {} | {} |", bound_text(analysis, record),
                          format_fraction(fraction_of(record.covered_ns, record.total_ns)));
    }
    text += "\n";
  }
  if (records.empty()) {
    text += "\n" + verdict(analysis) + "\n";
  }
  return text;
}

void write_kernel_markdown(const Analysis& analysis, const std::filesystem::path& path,
                           std::size_t top) {
  write_file(path, kernel_markdown(analysis, top));
}

std::string kernels_csv(const std::vector<KernelRecord>& records) {
  std::string text = "kernel_name,device,stage,family,total_ns,calls,mean_ns,min_ns,max_ns\n";
  for (const KernelRecord& record : records) {
    const double mean_ns = static_cast<double>(record.total_ns) /
                           static_cast<double>(std::max<std::int64_t>(record.calls, 1));
    text += fmt::format("{},{},{},{},{},{},{:.1f},{},{}\n", csv_cell(record.kernel_name),
                        record.device, csv_cell(record.stage), csv_cell(record.family),
                        record.total_ns, record.calls, mean_ns, record.min_ns, record.max_ns);
  }
  return text;
}

std::string ranges_csv(const std::vector<RangeTotal>& ranges) {
  std::string text = "range,instances,kernels,kernel_ns\n";
  for (const RangeTotal& range : ranges) {
    text += fmt::format("{},{},{},{}\n", csv_cell(range.range), range.instances, range.kernels,
                        range.kernel_ns);
  }
  return text;
}

}  // namespace llmprof
