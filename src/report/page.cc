// SPDX-License-Identifier: Apache-2.0
//
// report.html: a template filled once, from left to right, so that nothing a stranger wrote is ever
// taken for a place to fill. The policy in its head names the script and the style by their
// hashes: whatever else finds its way into the page is not run. Views are drawn by the browser out
// of the data it carries; the sections beneath them stand without it.
#include "report/page.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/packed.h"
#include "base/sha256.h"
#include "report/document.h"
#include "report/embedded_web.h"
#include "report/sections.h"

namespace llmprof {
namespace {

constexpr std::size_t kKernelRows = 20;

// The scripts in the order they build on each other.
constexpr const char* kScripts[] = {"format.js",   "data.js",    "dom.js",      "summary.js",
                                    "timeline.js", "kernels.js", "roofline.js", "steps.js",
                                    "heatmap.js",  "main.js"};

std::string_view web_file(std::string_view path) {
  for (const EmbeddedFile& file : embedded_web()) {
    if (file.path == path) {
      return file.text;
    }
  }
  return "";  // tests open the page
}

std::string whole_script() {
  std::string script = "(() => {\n'use strict';\n";
  for (const char* name : kScripts) {
    script += web_file(name);
  }
  return script + "})();\n";
}

std::string source_hash(std::string_view text) {
  return "'sha256-" + base64(sha256_bytes(text)) + "'";
}

// {{name}} in the template, each once; what is put in is not looked at again.
std::string filled(std::string_view page, const std::map<std::string, std::string_view>& parts) {
  std::string text;
  while (true) {
    const std::size_t open = page.find("{{");
    const std::size_t close = page.find("}}", open);
    if (open == std::string_view::npos || close == std::string_view::npos) {
      return text += page;
    }
    text += page.substr(0, open);
    const auto part = parts.find(std::string(page.substr(open + 2, close - open - 2)));
    text += part == parts.end() ? std::string_view() : part->second;
    page.remove_prefix(close + 2);
  }
}

}  // namespace

std::string page_html(const Json& metrics, const Timeline& timeline,
                      const std::vector<std::string>& files) {
  SectionOptions options;
  options.top = kKernelRows;
  options.files = files;
  const std::string core = html_text(page_document(metrics, options), metrics);
  const std::string script = whole_script();
  const std::string_view style = web_file("report.css");
  const std::string_view page = web_file("template.html");
  const std::string policy = fmt::format(
      "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; "
      "form-action 'none'",
      source_hash(script), source_hash(style));
  const std::size_t fixed =
      core.size() + script.size() + style.size() + page.size() + policy.size();
  const PageData data =
      page_data(metrics, timeline, kPageBudgetBytes - std::min(fixed, kPageBudgetBytes / 2));
  return filled(page, {{"policy", policy},
                       {"style", style},
                       {"core", core},
                       {"json", data.json},
                       {"planes", data.planes},
                       {"script", script}});
}

}  // namespace llmprof
