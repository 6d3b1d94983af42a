// SPDX-License-Identifier: Apache-2.0
//
// The table of report sections, and the documents made of them.
//
// A new section is a file with its function and one line here; writers do not change.
#include "report/sections/sections.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "report/sections/section_makers.h"

namespace gpuwhy {

// One line a section, in the order of every document: its function is ID_section().
// clang-format off
#define GPUWHY_SECTIONS(SECTION) \
  SECTION(summary, "Executive Summary", kReport | kPage | kTerminal | kRun) \
  SECTION(recommendations, "Recommendations", kAsked) \
  SECTION(aggregates, "Aggregates", kPage) \
  SECTION(findings, "Top opportunities (upper bounds, largest and surest first)", kReport | kPage | kTerminal | kRun) \
  SECTION(requests, "Requests", kReport | kPage | kTerminal | kQuiet) \
  SECTION(stages, "Per-Stage Timings", kReport | kPage | kTerminal) \
  SECTION(baseline, "Stages, unprofiled", kTerminal | kRun) \
  SECTION(overhead, "Profiler overhead", kReport | kPage | kTerminal | kRun | kNeedsGpu) \
  SECTION(ledger, "Where GPU time goes, by stage", kReport | kPage | kTerminal | kNeedsGpu) \
  SECTION(host_phases, "CPU time in a step", kReport | kPage | kTerminal | kQuiet) \
  SECTION(efficiency, "MFU", kReport | kPage | kTerminal | kNeedsGpu) \
  SECTION(takeaways, "Stage Takeaways", kAsked) \
  SECTION(model, "Model: passes, layers and parts", kReport | kPage | kTerminal | kQuiet) \
  SECTION(families, "Kernel families", kReport | kTerminal | kNeedsGpu) \
  SECTION(kernels, "Top Kernels", kReport | kPage | kTerminal | kNeedsGpu) \
  SECTION(counters, "Kernel bottlenecks", kReport | kPage | kTerminal | kNeedsGpu) \
  SECTION(operators, "Top Operators", kReport | kPage | kTerminal) \
  SECTION(gemm_rates, "GEMM and attention rates", kReport | kPage | kTerminal | kQuiet) \
  SECTION(ranges, "Ranges", kAsked) \
  SECTION(environment, "Environment", kReport | kPage) \
  SECTION(quality, "Data quality", kReport | kPage | kTerminal) \
  SECTION(files, "Files", kReport | kPage)
// clang-format on

#define DECLARE(id, title, places) \
  Section id##_section(const Results& metrics, const SectionOptions& options);
GPUWHY_SECTIONS(DECLARE)
#undef DECLARE

namespace {

// The documents that have a section, and what happens where it has nothing to say.
enum Places : unsigned {
  kAsked = 0,  // by its id alone
  kReport = 1,
  kPage = 2,
  kTerminal = 4,
  kRun = 8,     // what a run prints at its end
  kQuiet = 16,  // left out where it is empty: most programs mark no phases, many have no layers
  kNeedsGpu = 32,
};

struct SectionRow {
  const char* id;
  const char* title;
  Section (*make)(const Results& metrics, const SectionOptions& options);
  unsigned places;
};

#define ROW(id, title, places) {#id, title, id##_section, places},
constexpr SectionRow kSections[] = {GPUWHY_SECTIONS(ROW)};
#undef ROW

const SectionRow* find_section(std::string_view id) {
  const auto* row = std::ranges::find(kSections, id, &SectionRow::id);
  return row == std::end(kSections) ? nullptr : row;
}

Section section_of(const SectionRow& row, const Results& metrics, const SectionOptions& options) {
  Section section = row.make(metrics, options);
  section.id = row.id;
  section.title = section.title.empty() ? row.title : section.title;
  return section;
}

Document document_of(const char* title, Places place, const Results& metrics,
                     const SectionOptions& options) {
  Document document{title, {}};
  for (const SectionRow& row : kSections) {
    if ((row.places & place) != 0) {
      Section section = section_of(row, metrics, options);
      if (section.missing.empty() || (row.places & kQuiet) == 0) {
        document.sections.push_back(std::move(section));
      }
    }
  }
  return document;
}

void leave_out_missing(Document& document) {
  std::erase_if(document.sections, [](const Section& section) { return !section.missing.empty(); });
}

// A program that runs on the CPU alone lacks all of these for one reason, which is said once.
Document with_gpu_parts_in_one(const Results& metrics, Document document) {
  if (has_gpu_work(metrics)) {
    return document;
  }
  const auto is_gone = [&](const Section& section) {
    return section.id != "gpu" && !section.missing.empty() &&
           (find_section(section.id)->places & kNeedsGpu) != 0;
  };
  const auto first = std::ranges::find_if(document.sections, is_gone);
  if (first == document.sections.end()) {
    return document;
  }
  Section gpu;
  gpu.id = "gpu";
  gpu.title = "GPU";
  std::vector<std::string> titles;
  for (const Section& section : document.sections) {
    if (is_gone(section)) {
      titles.push_back(section.title);
    }
  }
  gpu.missing = fmt::format(
      "n/a (no GPU activity was recorded, so these sections are empty: {}); gpuwhy doctor says "
      "what a recording needs",
      fmt::join(titles, ", "));
  *first = std::move(gpu);
  std::erase_if(document.sections, is_gone);
  return document;
}

Document titled(const char* title, Document document) {
  document.title = title;
  return document;
}

}  // namespace

std::vector<std::string> section_ids() {
  std::vector<std::string> ids;
  for (const SectionRow& row : kSections) {
    ids.emplace_back(row.id);
  }
  return ids;
}

Document report_document(const Results& metrics, const SectionOptions& options) {
  return with_gpu_parts_in_one(metrics, document_of("Report", kReport, metrics, options));
}

Document page_document(const Results& metrics, const SectionOptions& options) {
  return document_of("gpuwhy report", kPage, metrics, options);
}

Document kernels_document(const Results& metrics, const SectionOptions& options) {
  return titled("Kernels", section_document(metrics, {"kernels"}, options));
}

Document operators_document(const Results& metrics, const SectionOptions& options) {
  return titled("Operators", section_document(metrics, {"operators"}, options));
}

Document terminal_document(const Results& metrics, const SectionOptions& options) {
  Document document = document_of("", kTerminal, metrics, options);
  leave_out_missing(document);
  return document;
}

Document run_document(const Results& metrics) {
  SectionOptions options;
  options.is_terminal = true;
  Document document = document_of("", kRun, metrics, options);
  leave_out_missing(document);
  // Without a recording there is one finding, which says what the summary says.
  if (metrics.verdict.kind == Verdict::Kind::kNoRecording) {
    std::erase_if(document.sections,
                  [](const Section& section) { return section.id == "findings"; });
  }
  return document;
}

Document section_document(const Results& metrics, const std::vector<std::string>& ids,
                          const SectionOptions& options) {
  Document document;
  for (const std::string& id : ids) {
    const SectionRow* row = find_section(id);
    if (row == nullptr) {
      throw Error(ErrorKind::kUsage, fmt::format("there is no section '{}'", printable(id)),
                  fmt::format("there are: {}", fmt::join(section_ids(), ", ")));
    }
    document.sections.push_back(section_of(*row, metrics, options));
  }
  return document;
}

}  // namespace gpuwhy
