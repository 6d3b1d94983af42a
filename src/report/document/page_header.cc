// SPDX-License-Identifier: Apache-2.0
//
// Heading of report.html.
//
// Two reports in two tabs, or in one mail, differ in their first line: the command or the
// recording, its GPUs, the time it was made. What is not known is left out.
#include "report/document/page_header.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "report/sections/section_makers.h"
#include "report/words/workload_words.h"
#include "results/results.h"

namespace gpuwhy {
namespace {

// "2 x NVIDIA H100, 1 x NVIDIA A100", or "2 GPUs" where the recording does not name them.
std::string gpus_text(const Results& metrics) {
  std::vector<std::pair<std::string, int>> kinds;
  std::string generation;  // of those without a name
  for (const DeviceRow& device : metrics.devices) {
    if (const std::string proven = generation_of(metrics, device); !proven.empty()) {
      generation = ", not named; kernels of " + proven;
    }
    const auto found = std::find_if(kinds.begin(), kinds.end(),
                                    [&](const auto& kind) { return kind.first == device.name; });
    if (found == kinds.end()) {
      kinds.emplace_back(device.name, 1);
    } else {
      ++found->second;
    }
  }
  std::string text;
  for (const auto& [name, number] : kinds) {
    text += text.empty() ? "" : ", ";
    text += name.empty()  ? fmt::format("{} {}{}", number, number == 1 ? "GPU" : "GPUs", generation)
            : number == 1 ? name
                          : fmt::format("{} x {}", number, name);
  }
  return text;
}

}  // namespace

PageHeading page_heading(const Results& metrics) {
  const CaptureRow& capture = metrics.capture;
  const std::string model = metrics.efficiency ? metrics.efficiency->model : "";
  const std::string file = capture.files.size() > 1 ? fmt::format("{} and {} more", capture.file,
                                                                  capture.files.size() - 1)
                                                    : capture.file;
  // The recording of a run is always called run.sqlite: its command says more.
  const std::string what = capture.command.empty() ? file : capture.command;
  PageHeading heading;
  heading.title = !model.empty() && !what.empty() ? model + ": " + what
                  : !what.empty()                 ? what
                  : !model.empty()                ? model
                                                  : "report";
  const auto add = [&](std::string fact) {
    if (!fact.empty()) {
      heading.facts.push_back(std::move(fact));
    }
  };
  for (std::string& fact : workload_words(metrics).facts()) {
    add(std::move(fact));
  }
  add(gpus_text(metrics));
  // Of a run that recorded nothing, the date is that of the run.
  const char* what_happened = capture.tool.empty() ? "run" : "recorded";
  const std::string length =
      capture.duration_ns > 0 ? " for " + format_duration_ns(capture.duration_ns) : "";
  add(capture.recorded.empty() && length.empty() ? ""
      : capture.recorded.empty()                 ? what_happened + length
                                 : fmt::format("{} {}{}", what_happened, capture.recorded, length));
  add(capture.tool_version.empty() ? capture.tool : capture.tool + " " + capture.tool_version);
  add("gpuwhy " GPUWHY_VERSION);
  return heading;
}

}  // namespace gpuwhy
