// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/document/document.h"
#include "report/sections/worth.h"

namespace gpuwhy {

struct Results;

// What sections show, and for which output.
struct SectionOptions {
  std::size_t top = 10;                         // rows of kernels and operators
  std::size_t num_findings = 3;                 // of the summary
  bool is_terminal = false;                     // names stand last, where they may be cut
  bool has_whole_names = false;                 // of kernels, for other tools
  bool merges_stages = false;                   // one row per kernel and GPU, as in the files
  bool has_all_parts = false;                   // of the model, also those that take little time
  bool is_verbose = false;                      // rules that could not speak
  std::vector<std::string> files;               // that stand beside the report
  std::optional<GpuPrice> gpu_hour_price = {};  // what a saving is worth

  // With all rows also all findings.
  void set_top(std::size_t rows) {
    top = rows;
    num_findings = rows == SIZE_MAX ? SIZE_MAX : num_findings;
  }
};

// A section without content says why, and how to fill it.

// report.md: everything, most urgent first.
Document report_document(const Results& metrics, const SectionOptions& options);
// stakeholder_summary.md: for a reader who has never seen a trace.
Document stakeholder_document(const Results& metrics, const SectionOptions& options);
// The text of report.html below its views: complete without them.
Document page_document(const Results& metrics, const SectionOptions& options);
Document kernels_document(const Results& metrics, const SectionOptions& options);
Document operators_document(const Results& metrics, const SectionOptions& options);
// What a person reads first on a terminal; empty sections are omitted.
Document terminal_document(const Results& metrics, const SectionOptions& options);
// The same for a run that just ended.
Document run_document(const Results& metrics);

// Sections by id; throws kUsage with the list of ids.
Document section_document(const Results& metrics, const std::vector<std::string>& ids,
                          const SectionOptions& options);
std::vector<std::string> section_ids();

}  // namespace gpuwhy
