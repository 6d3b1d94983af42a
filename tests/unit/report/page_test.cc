// SPDX-License-Identifier: Apache-2.0
//
// The page without a browser: what is in it, how large it is, and that names stay names.
#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/gzip_base64.h"
#include "base/json.h"
#include "base/sha256.h"
#include "report/metrics.h"

namespace llmprof {
namespace {

using testing::HasSubstr;
using testing::Not;

Metrics metrics_with(const std::string& name, std::size_t num_kernels) {
  Analysis analysis;
  analysis.capture.has_cuda = true;
  analysis.kernel_ns = 1000;
  analysis.capture_ns = 2000;
  analysis.devices.push_back({"cuda:0", name, 1000, 1, 0, 0, 0, 0, 0});
  for (std::size_t i = 0; i < num_kernels; ++i) {
    KernelRecord row;
    row.kernel_name = name + std::to_string(i);
    row.short_name = row.kernel_name;
    row.device = "cuda:0";
    row.stage = "decode";
    row.family = "gemm";
    row.total_ns = 1000;
    row.calls = 1;
    analysis.kernels.push_back(row);
  }
  return metrics_of(analysis);
}

std::string page_of(const Metrics& metrics, const Timeline& timeline = {},
                    const std::vector<std::string>& files = {}) {
  return page_html(metrics, metrics_json(metrics), timeline, files);
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t start = text.find(from) + from.size();
  return text.substr(start, text.find(to, start) - start);
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
  Metrics metrics = metrics_with("gemm", 3000);
  std::size_t shift = 0;
  for (KernelMetrics& row : metrics.kernels) {
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
  const std::string page = page_of(metrics_of(analysis));
  EXPECT_THAT(page, HasSubstr("There is no recording"));
}

}  // namespace
}  // namespace llmprof
