// SPDX-License-Identifier: Apache-2.0
//
// The files of a report.
//
// All of them are always written, so that a reader finds the expected file, with the reason for
// anything missing.
#include "base/json.h"
#include "report/metrics.h"
#include "report/page.h"
#include "report/sections.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kOperatorRows = 50;

}  // namespace

std::vector<std::pair<std::string, std::string>> report_files(
    const Metrics& metrics, const std::vector<std::string>& beside, const Timeline& timeline,
    PassTimer* timer, const std::optional<GpuPrice>& price, std::size_t kernel_rows) {
  SectionOptions for_managers;
  for_managers.gpu_hour_price = price;
  for_managers.merges_stages = true;
  SectionOptions options;
  options.gpu_hour_price = price;
  options.top = kernel_rows;
  options.merges_stages = true;
  SectionOptions of_kernels;
  of_kernels.top = kernel_rows;
  of_kernels.has_whole_names = true;
  of_kernels.merges_stages = true;
  SectionOptions of_operators;
  of_operators.top = kOperatorRows;
  options.files = {"report.html", "stakeholder_summary.md", "kernels.md", "operators.md",
                   "metrics.json"};
  options.files.insert(options.files.end(), beside.begin(), beside.end());
  std::vector<std::string> of_page = options.files;
  of_page[0] = "report.md";
  const Json json = metrics_json(metrics);
  const auto page = [&] {
    const PassTimer::Scope pass(timer, "page");
    return page_html(metrics, json, timeline, of_page, price);
  };
  return {{"metrics.json", to_json_text(json)},
          {"report.html", page()},
          {"report.md", markdown_text(report_document(metrics, options))},
          {"stakeholder_summary.md", markdown_text(stakeholder_document(metrics, for_managers))},
          {"kernels.md", markdown_text(kernels_document(metrics, of_kernels))},
          {"operators.md", markdown_text(operators_document(metrics, of_operators))}};
}

std::string report_page(const Metrics& metrics, const Timeline& timeline) {
  return page_html(metrics, metrics_json(metrics), timeline, {});
}

}  // namespace gpuwhy
