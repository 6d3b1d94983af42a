// SPDX-License-Identifier: Apache-2.0
//
// The files of a report.
//
// All of them are always written, so that a reader finds the expected file, with the reason for
// anything missing.
#include "report/sections/files.h"

#include "analysis/timeline/timeline.h"
#include "base/json.h"
#include "bundle/layout.h"
#include "report/document/page.h"
#include "report/sections/sections.h"
#include "results/json.h"
#include "results/results.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kOperatorRows = 50;

struct ReportParts {
  const Results& metrics;
  const Json json;
  const std::vector<std::string>& beside;
  const Timeline& timeline;
  PassTimer* timer;
  const std::optional<GpuPrice>& price;
  std::size_t kernel_rows;
};

// What the file `self` links to: the other files for people, metrics.json, and those beside it.
std::vector<std::string> files_other_than(const char* self, const ReportParts& parts) {
  std::vector<std::string> files = report_file_names();
  std::erase(files, self);
  std::erase(files, layout::kMetrics);
  files.emplace_back(layout::kMetrics);
  files.insert(files.end(), parts.beside.begin(), parts.beside.end());
  return files;
}

std::string page_text(const ReportParts& parts) {
  const PassTimer::Scope pass(parts.timer, "page");
  return page_html(parts.metrics, parts.json, parts.timeline,
                   files_other_than(layout::kPage, parts), parts.price);
}

std::string report_text(const ReportParts& parts) {
  SectionOptions options;
  options.gpu_hour_price = parts.price;
  options.top = parts.kernel_rows;
  options.merges_stages = true;
  options.files = files_other_than(layout::kReport, parts);
  return markdown_text(report_document(parts.metrics, options));
}

std::string stakeholders_text(const ReportParts& parts) {
  SectionOptions options;
  options.gpu_hour_price = parts.price;
  options.merges_stages = true;
  return markdown_text(stakeholder_document(parts.metrics, options));
}

std::string kernels_text(const ReportParts& parts) {
  SectionOptions options;
  options.top = parts.kernel_rows;
  options.has_whole_names = true;
  options.merges_stages = true;
  return markdown_text(kernels_document(parts.metrics, options));
}

std::string operators_text(const ReportParts& parts) {
  SectionOptions options;
  options.top = kOperatorRows;
  return markdown_text(operators_document(parts.metrics, options));
}

struct ReportFile {
  const char* name;
  std::string (*text)(const ReportParts&);
};

constexpr ReportFile kReportFiles[] = {
    {layout::kMetrics, [](const ReportParts& parts) { return to_json_text(parts.json); }},
    {layout::kPage, page_text},
    {layout::kReport, report_text},
    {layout::kStakeholders, stakeholders_text},
    {layout::kKernels, kernels_text},
    {layout::kOperators, operators_text}};

}  // namespace

std::vector<std::string> report_file_names() {
  std::vector<std::string> names;
  for (const ReportFile& file : kReportFiles) {
    names.emplace_back(file.name);
  }
  return names;
}

std::vector<std::pair<std::string, std::string>> report_files(
    const Results& metrics, const std::vector<std::string>& beside, const Timeline& timeline,
    PassTimer* timer, const std::optional<GpuPrice>& price, std::size_t kernel_rows) {
  const ReportParts parts{metrics,    metrics_json(metrics), beside, timeline, timer, price,
                          kernel_rows};
  std::vector<std::pair<std::string, std::string>> files;
  for (const ReportFile& file : kReportFiles) {
    files.emplace_back(file.name, file.text(parts));
  }
  return files;
}

std::string report_page(const Results& metrics, const Timeline& timeline) {
  return page_html(metrics, metrics_json(metrics), timeline, {});
}

}  // namespace gpuwhy
