// SPDX-License-Identifier: Apache-2.0
//
// The page without a browser: what is in it, how large it is, and that names stay names.
#include "report/document/page.h"

#include <cmath>

#include "analysis/findings/findings.h"
#include "analysis/profile.h"
#include "analysis/timeline/timeline.h"
#include "base/gzip_base64.h"
#include "base/json.h"
#include "base/sha256.h"
#include "results/json.h"
#include "results/results.h"
#include "testing.h"

namespace gpuwhy {
namespace {

Results metrics_with(const std::string& name, std::size_t num_kernels) {
  Analysis analysis;
  analysis.capture.has_cuda = true;
  analysis.capture.kernel_ns = 1000;
  analysis.capture.duration_ns = 2000;
  analysis.devices.push_back(
      {.device = "cuda:0", .name = name, .busy_ns = 1000, .num_kernels = 1, .busy_stage = {}});
  for (std::size_t i = 0; i < num_kernels; ++i) {
    KernelRow row;
    row.kernel_name = name + std::to_string(i);
    row.short_name = row.kernel_name;
    row.device = "cuda:0";
    row.stage = row_name("decode");
    row.family = "gemm";
    row.total_ns = 1000;
    row.calls = 1;
    row.kernel_fraction = 1;
    analysis.kernels.push_back(row);
  }
  return analysis;
}

std::string page_of(const Results& metrics, const Timeline& timeline = {},
                    const std::vector<std::string>& files = {}) {
  return page_html(metrics, metrics_json(metrics), timeline, files);
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t start = text.find(from) + from.size();
  return text.substr(start, text.find(to, start) - start);
}

// Contrast of two colours as WCAG 2.2 defines it.
double contrast(const std::string& a, const std::string& b) {
  const auto luminance = [](const std::string& colour) {
    double sum = 0;
    const double weights[] = {0.2126, 0.7152, 0.0722};
    for (std::size_t i = 0; i < 3; ++i) {
      const double part = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
      sum += weights[i] * (part <= 0.03928 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
    }
    return sum + 0.05;
  };
  const double x = luminance(a);
  const double y = luminance(b);
  return std::max(x, y) / std::min(x, y);
}

// Bars stand out from a dark page (3:1), and the white names in kernels can be read (4.5:1).
TEST(Page, TheDarkTimelineCanBeRead) {
  const std::string page = page_of(metrics_with("kernel", 1));
  const std::string light = between(page, ":root {", "}");
  const std::string dark = between(page, ":root[data-theme=\"dark\"] {", "}");
  const auto colour = [&](const std::string& name) {
    const std::string& block = dark.find("--" + name + ": ") != std::string::npos ? dark : light;
    return between(block, "--" + name + ": ", ";");
  };
  for (const char* name :
       {"k-launch", "k-sync", "k-copy", "k-memory", "k-other", "i-graph", "i-sync", "i-launch-late",
        "i-started-late", "i-queued", "i-unknown-idle", "b-compute", "b-comm", "b-copy", "c-copy",
        "c-memset"}) {
    EXPECT_GE(contrast(colour(name), colour("card")), 3) << name;
  }
  for (int i = 0; i < 20; ++i) {
    const std::string family = colour("f" + std::to_string(i));
    EXPECT_GE(contrast(family, colour("card")), 3) << i;
    EXPECT_GE(contrast(family, "#ffffff"), 4.5) << i;
  }
  // The system's choice of dark and the page's own button give the same colours.
  EXPECT_THAT(between(page, ":root:not([data-theme=\"light\"]) {", "}"),
              HasSubstr(dark.substr(dark.find("--paper"))));
}

TEST(Page, TheTitleOfARunIsItsCommand) {
  Results metrics = metrics_with("kernel", 1);
  metrics.capture.file = "run.sqlite";
  EXPECT_EQ(between(page_of(metrics), "<title>", " -"), "run.sqlite");
  metrics.capture.command = "python3 generate.py --prompt '<b>'";
  EXPECT_EQ(between(page_of(metrics), "<title>", " - gpuwhy"),
            "python3 generate.py --prompt &#39;&lt;b&gt;&#39;");
}

TEST(Page, ThePolicyNamesScriptAndStyleByTheirHashes) {
  const std::string page = page_of(metrics_with("gemm", 1));
  const std::string style = between(page, "<style>", "</style>");
  const std::string script = between(page, "<script>", "</script>");
  const std::string policy = between(page, "Content-Security-Policy\" content=\"", "\"");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("script-src 'sha256-" + base64(sha256_bytes(script)) + "';"));
  EXPECT_THAT(policy, HasSubstr("style-src 'sha256-" + base64(sha256_bytes(style)) + "';"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_GT(script.size(), 10'000U);
  EXPECT_THAT(page, Not(HasSubstr("{{")));
  EXPECT_THAT(script, Not(HasSubstr("innerHTML")));
  EXPECT_THAT(script, Not(HasSubstr("eval(")));
}

TEST(Page, NamesStayNames) {
  for (const std::string name :
       {"</script><script>x", "{{script}}", "\" onload=\"x", "<img src=x>", "]]>", "a&b"}) {
    const std::string page = page_of(metrics_with(name, 2), {}, {name});
    EXPECT_THAT(page, Not(HasSubstr(name == "]]>" || name == "{{script}}" ? "\x01" : name)))
        << name;
    std::size_t num_scripts = 0;
    for (std::size_t at = page.find("<script"); at != std::string::npos;
         at = page.find("<script", at + 1)) {
      ++num_scripts;
    }
    EXPECT_EQ(num_scripts, 3U) << name;
  }
}

TEST(Page, StaysBelowItsBudget) {
  std::string name = "k";
  std::uint64_t state = 1;
  for (int i = 0; i < 3000; ++i) {  // gzip finds nothing to save in these
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    name += static_cast<char>('a' + (state >> 33U) % 26);
  }
  Results metrics = metrics_with("gemm", 3000);
  std::size_t shift = 0;
  for (KernelRow& row : metrics.kernels) {
    row.kernel_name = name.substr(shift % 1000) + std::to_string(state += 12345678910111ULL);
    ++shift;
  }
  Timeline timeline;
  timeline.duration_ns = 1'000'000'000;
  timeline.rows = {{TimelineRowKind::kStream, "cuda:0", "stream 7"}};
  timeline.is_whole = true;
  timeline.names = {"gemm"};
  for (std::int64_t i = 0; i < 300'000; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    timeline.slices.row.push_back(0);
    timeline.slices.start_ns.push_back(i * 3'000'000 + static_cast<std::int64_t>(state >> 44U));
    timeline.slices.duration_ns.push_back(static_cast<std::int64_t>(state >> 40U));
    timeline.slices.what.push_back(0);
    timeline.slices.stage.push_back(kNone);
    timeline.slices.call.push_back(kNone);
  }
  EXPECT_LE(page_of(metrics, timeline).size(), kPageBudgetBytes);
}

TEST(Page, SaysThatThereIsNothing) {
  Analysis analysis;
  analysis.absent = "the nsys pass was left out";
  analysis.verdict = verdict_of(analysis);
  const std::string page = page_of(analysis);
  EXPECT_THAT(page, HasSubstr("There is no recording"));
}

}  // namespace
}  // namespace gpuwhy
