// SPDX-License-Identifier: Apache-2.0
//
// The table of report sections, and the documents made of them.
//
// A new section is one function and one row here; writers do not change.
#include "report/sections.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "report/section_makers.h"

namespace gpuwhy {
namespace {

struct SectionRow {
  const char* id;
  const char* title;
  Section (*make)(const Metrics& metrics, const SectionOptions& options);
};

constexpr SectionRow kSections[] = {
    {"summary", "Executive Summary", summary_section},
    {"findings", "Top opportunities (upper bounds, largest and surest first)", findings_section},
    {"environment", "Environment", environment_section},
    {"aggregates", "Aggregates", aggregates_section},
    {"baseline", "Stages, unprofiled", baseline_section},
    {"requests", "Requests", requests_section},
    {"stages", "Per-Stage Timings", stages_section},
    {"overhead", "Profiler overhead", overhead_section},
    {"host_phases", "CPU time in a step", host_phases_section},
    {"ledger", "Where GPU time goes, by stage", ledger_section},
    {"efficiency", "MFU", efficiency_section},
    {"takeaways", "Stage Takeaways", takeaways_section},
    {"model", "Model: passes, layers and parts", model_section},
    {"operators", "Top Operators", operators_section},
    {"gemm_rates", "GEMM and attention rates", gemm_rates_section},
    {"families", "Kernel families", families_section},
    {"kernels", "Top Kernels", kernels_section},
    {"ranges", "Ranges", ranges_section},
    {"counters", "Kernel bottlenecks", counters_section},
    {"recommendations", "Recommendations", recommendations_section},
    {"quality", "Data quality", quality_section},
    {"files", "Files", files_section},
};

Document document_of(const char* title, const std::vector<std::string>& ids, const Metrics& metrics,
                     const SectionOptions& options) {
  Document document{title, {}};
  for (const std::string& id : ids) {
    const auto* row = std::find_if(std::begin(kSections), std::end(kSections),
                                   [&](const SectionRow& one) { return one.id == id; });
    if (row == std::end(kSections)) {
      throw Error(ErrorKind::kUsage, fmt::format("there is no section '{}'", printable(id)),
                  fmt::format("there are: {}", fmt::join(section_ids(), ", ")));
    }
    Section section = row->make(metrics, options);
    section.id = row->id;
    section.title = section.title.empty() ? row->title : section.title;
    document.sections.push_back(std::move(section));
  }
  return document;
}

void leave_out_missing(Document& document) {
  std::erase_if(document.sections, [](const Section& section) { return !section.missing.empty(); });
}

// Most programs mark no phases, many have no layers: a heading that says so would be in every
// report.
Document without_empty_parts(Document document) {
  std::erase_if(document.sections, [](const Section& section) {
    return (section.id == "host_phases" || section.id == "model" || section.id == "gemm_rates" ||
            section.id == "requests") &&
           !section.missing.empty();
  });
  return document;
}

// A program that runs on the CPU alone lacks all of these for one reason, which is said once.
Document with_gpu_parts_in_one(const Metrics& metrics, Document document) {
  constexpr std::string_view kGpuParts[] = {"ledger",  "efficiency", "families",
                                            "kernels", "counters",   "overhead"};
  if (has_gpu_work(metrics)) {
    return document;
  }
  const auto is_gone = [&](const Section& section) {
    return !section.missing.empty() && std::ranges::count(kGpuParts, section.id) > 0;
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

}  // namespace

std::vector<std::string> section_ids() {
  std::vector<std::string> ids;
  for (const SectionRow& row : kSections) {
    ids.emplace_back(row.id);
  }
  return ids;
}

Document report_document(const Metrics& metrics, const SectionOptions& options) {
  return with_gpu_parts_in_one(
      metrics, without_empty_parts(document_of(
                   "Report",
                   {"summary", "files", "findings", "requests", "stages", "overhead", "efficiency",
                    "ledger", "host_phases", "model", "families", "kernels", "counters",
                    "operators", "gemm_rates", "environment", "quality"},
                   metrics, options)));
}

Document page_document(const Metrics& metrics, const SectionOptions& options) {
  return without_empty_parts(
      document_of("gpuwhy report",
                  {"summary", "aggregates", "findings", "requests", "stages", "ledger",
                   "host_phases", "efficiency", "model", "kernels", "counters", "operators",
                   "gemm_rates", "overhead", "environment", "quality", "files"},
                  metrics, options));
}

Document kernels_document(const Metrics& metrics, const SectionOptions& options) {
  return document_of("Kernels", {"kernels"}, metrics, options);
}

Document operators_document(const Metrics& metrics, const SectionOptions& options) {
  return document_of("Operators", {"operators"}, metrics, options);
}

Document terminal_document(const Metrics& metrics, const SectionOptions& options) {
  Document document =
      document_of("",
                  {"summary", "findings", "requests", "stages", "baseline", "overhead", "ledger",
                   "host_phases", "efficiency", "model", "families", "kernels", "counters",
                   "operators", "gemm_rates", "quality"},
                  metrics, options);
  leave_out_missing(document);
  return document;
}

Document run_document(const Metrics& metrics) {
  SectionOptions options;
  options.is_terminal = true;
  Document document =
      document_of("", {"summary", "findings", "baseline", "overhead"}, metrics, options);
  leave_out_missing(document);
  // Without a recording there is one finding, which says what the summary says.
  if (metrics.verdict.kind == Verdict::Kind::kNoRecording) {
    std::erase_if(document.sections,
                  [](const Section& section) { return section.id == "findings"; });
  }
  return document;
}

Document section_document(const Metrics& metrics, const std::vector<std::string>& ids,
                          const SectionOptions& options) {
  return document_of("", ids, metrics, options);
}

}  // namespace gpuwhy
