// SPDX-License-Identifier: Apache-2.0
//
// Parser of ncu's output without --csv: tables meant for reading.
//
// Lines are classified by indentation and first word; columns begin where the ruler above the table
// says. Kernel lines of 2022 have a time and no shape, later ones "(grid)x(block)". Rules are
// sentences broken over lines and are not read. A launch is numbered by its position in the text.
#include <algorithm>

#include "base/text.h"
#include "ingest/ncu/ncu_csv.h"

namespace gpuwhy {
namespace {

// The columns of a ruler "---- ---- ----": five in a summary, which ends with the average. Empty
// for any other line.
std::vector<std::size_t> ruler_of(std::string_view line) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '-' && line[i] != ' ') {
      return {};
    }
    if (line[i] == '-' && (i == 0 || line[i - 1] == ' ')) {
      starts.push_back(i);
    }
  }
  return starts.size() == 3 || starts.size() == 5 ? starts : std::vector<std::size_t>();
}

// The word after `mark`, up to a comma: "7" after ", Stream ".
std::string_view behind(std::string_view line, std::string_view mark) {
  const std::size_t at = line.rfind(mark);
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = line.substr(at + mark.size());
  return trim(rest.substr(0, rest.find(',')));
}

// Line-by-line state machine: process, kernel, section, ruler, metrics.
class TextReader {
 public:
  explicit TextReader(const NcuVisit& visit) : visit_(visit) {}

  // The line's form tells what it is: process, kernel, device, section, ruler of a table, row.
  void read_line(std::string_view line) {
    if (line.starts_with('[')) {
      row_.pid = line.substr(1, std::min(line.find(']'), line.size()) - 1);
      row_.process = trim(line.substr(std::min(line.find(']') + 1, line.size())));
      row_.process = row_.process.substr(0, row_.process.rfind('@'));
    } else if (line.starts_with("  ") && (line.find(", Context ") != std::string_view::npos ||
                                          line.find(", Invocations ") != std::string_view::npos)) {
      read_kernel(trim(line));
    } else if (line.starts_with("  Device ")) {
      device_ = behind(line, "  Device ");
      compute_capability_ = behind(line, ", CC ");
    } else if (trim(line).starts_with("Section: ")) {
      num_kernels_ = std::max<std::size_t>(num_kernels_, 1);  // the kernel's line was cut off
      row_.section = trim(line).substr(9);
      columns_.clear();
      has_rows_ = false;
    } else if (const auto ruler = ruler_of(line); !ruler.empty()) {
      // A second ruler after rows ends the table.
      columns_ = has_rows_ ? std::vector<std::size_t>() : ruler;
      has_rows_ = false;
    } else if (!columns_.empty()) {
      read_metric(line);
    }
  }

  std::size_t num_kernels() const { return num_kernels_; }

 private:
  void read_kernel(std::string_view line) {
    id_ = std::to_string(num_kernels_++);
    row_.id = id_;
    row_.context = behind(line, ", Context ");
    row_.stream = behind(line, ", Stream ");
    const std::size_t summary = line.rfind(", Invocations ");
    const bool is_summary = summary != std::string_view::npos;
    row_.device = is_summary ? device_ : behind(line, ", Device ");
    row_.compute_capability = is_summary ? compute_capability_ : behind(line, ", CC ");
    row_.invocations = behind(line, ", Invocations ");
    row_.grid = row_.block = {};
    row_.kernel = line.substr(0, is_summary ? summary : line.rfind(", Context "));
    // "name (grid)x(block)": the shape is split off the name.
    const std::size_t cross = row_.kernel.rfind(")x(");
    if (cross != std::string_view::npos && row_.kernel.ends_with(')')) {
      const std::size_t open = row_.kernel.rfind('(', cross);
      if (open != std::string_view::npos) {
        row_.grid = row_.kernel.substr(open, cross + 1 - open);
        row_.block = row_.kernel.substr(cross + 2);
        row_.kernel = trim(row_.kernel.substr(0, open));
      }
    } else {
      row_.kernel = row_.kernel.substr(0, row_.kernel.rfind(','));  // the time
    }
    columns_.clear();
  }

  // Values are right-aligned: a long unit may extend into the column before it, never into the
  // next.
  void read_metric(std::string_view line) {
    if (line.size() <= columns_.back() || trim(line).starts_with("Metric Name")) {
      return;
    }
    row_.metric = trim(line.substr(0, columns_[1]));
    row_.unit = trim(line.substr(columns_[1], columns_[2] - columns_[1]));
    row_.value = trim(line.substr(columns_.back()));
    if (!row_.metric.empty()) {
      has_rows_ = true;
      visit_(row_);
    }
  }

  const NcuVisit& visit_;
  NcuRow row_;
  std::string id_;
  std::string_view device_;  // of a summary, before its kernels
  std::string_view compute_capability_;
  std::vector<std::size_t> columns_;
  bool has_rows_ = false;  // since the last ruler
  std::size_t num_kernels_ = 0;
};

}  // namespace

std::size_t each_ncu_text_row(std::string_view text, const NcuVisit& visit) {
  TextReader reader(visit);
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    reader.read_line(line);
  }
  return reader.num_kernels();
}

}  // namespace gpuwhy
