// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/system.h"

namespace llmprof {

// NVIDIA numbers both tools by year, release and patch: 2022.4.2.
struct ToolVersion {
  int year = 0;
  int release = 0;
  int patch = 0;
  std::string full;  // as the tool printed it, build number included

  std::string text() const;
  bool is_at_least(int wanted_year, int wanted_release) const {
    return year != wanted_year ? year > wanted_year : release >= wanted_release;
  }
};

// The first thing that looks like such a version in what a tool printed.
std::optional<ToolVersion> parse_tool_version(std::string_view printed);

struct Tool {
  std::filesystem::path path;  // as found; links not resolved
  ToolVersion version;
  // Long options, sorted, as the tool's own help lists them; empty when it would not say.
  std::vector<std::string> options;

  bool has_option(std::string_view option) const;
};

// How this nsys wants to be spoken to. What it was asked and answered holds; the rest is concluded
// from the version.
struct NsysTool : Tool {
  std::vector<std::string> reports;   // names that `nsys stats` knows; empty when it would not say
  std::string kernel_summary_report;  // gpukernsum up to 2022.4, cuda_gpu_kern_sum from 2023.1
  bool has_old_report_names = false;
  bool reports_asked = false;      // false: concluded from the version
  std::filesystem::path importer;  // turns .qdstrm into a report; empty: not found
  bool is_wrapper = false;  // a script that starts the real nsys, whose folder is not known then
};

// Empty where ncu would not say: these defaults changed in releases we cannot date, so none is
// guessed.
struct NcuTool : Tool {
  std::vector<std::string> sets;
  std::string default_set;               // "default" in 2022, "basic" in recent releases
  std::string default_target_processes;  // "application-only" in 2022: children go unseen
  bool has_per_launch_config = false;    // a filter mode: skip and count for each signature alone
};

// Where the tool is: LLMPROF_NSYS / LLMPROF_NCU, then PATH, then the directories NVIDIA's
// installers use (newest first). Throws kEnvironment, with the way to install it, when it is
// nowhere or does not answer.
NsysTool ensure_nsys(const System& system);
NcuTool ensure_ncu(const System& system);

// A program on PATH, or nothing.
std::optional<std::filesystem::path> find_on_path(const System& system, const std::string& name);

}  // namespace llmprof
