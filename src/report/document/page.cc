// SPDX-License-Identifier: Apache-2.0
//
// report.html, from a template (page_template.cc).
//
// The policy in its head names script and style by their hashes: anything else that gets into the
// page is not executed. Views are drawn by the browser from the embedded data; the sections below
// are complete without them.
#include "report/document/page.h"

#include <algorithm>

#include <fmt/format.h>

#include "analysis/timeline/timeline.h"
#include "base/cut_name.h"
#include "report/document/document.h"
#include "report/document/html_parts.h"
#include "report/document/page_header.h"
#include "report/sections/sections.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kKernelRowsOfPage = 20;

// The scripts in the order of their dependencies.
constexpr const char* kScripts[] = {
    "format.js",    "data.js",   "dom.js",     "tables.js",   "summary.js", "findings.js",
    "host.js",      "places.js", "lanes.js",   "timeline.js", "details.js", "kernels.js",
    "roofline.js",  "steps.js",  "heatmap.js", "requests.js", "model.js",   "transfers.js",
    "downloads.js", "keys.js",   "main.js"};

std::string whole_script() {
  std::string script = "(() => {\n'use strict';\n";
  for (const char* name : kScripts) {
    script += web_file(name);
  }
  return script + "})();\n";
}

}  // namespace

std::string page_html(const Results& metrics, const Json& json, const Timeline& timeline,
                      const std::vector<std::string>& files, const std::optional<GpuPrice>& price) {
  SectionOptions options;
  options.gpu_hour_price = price;
  options.top = kKernelRowsOfPage;
  options.files = files;
  const std::string core = html_text(page_document(metrics, options), &json);
  const std::string script = whole_script();
  const std::string_view style = web_file("report.css");
  const std::string_view page = web_file("template.html");
  const PageHeading heading = page_heading(metrics);
  std::string facts;
  for (const std::string& fact : heading.facts) {
    facts += "<li>" + html_words(cut_name(fact)) + "</li>";
  }
  const std::string title = html_words(cut_name(heading.title));
  const std::string policy = fmt::format(
      "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; "
      "form-action 'none'",
      source_hash(script), source_hash(style));
  const std::size_t fixed =
      core.size() + script.size() + style.size() + page.size() + policy.size() + facts.size();
  const PageData data =
      page_data(metrics, json, timeline, kPageBudgetBytes - std::min(fixed, kPageBudgetBytes / 2));
  return filled_page(page, {{"policy", policy},
                            {"style", style},
                            {"title", title},
                            {"facts", facts},
                            {"core", core},
                            {"json", data.json},
                            {"planes", data.planes},
                            {"script", script}});
}

}  // namespace gpuwhy
