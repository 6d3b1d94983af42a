// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/system.h"

namespace gpuwhy {

// Version of nsys or ncu: year, release and patch, e.g. 2022.4.2.
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

// The first such version in a tool's output.
std::optional<ToolVersion> parse_tool_version(std::string_view printed);

// A tool that was found and answers.
struct Tool {
  std::filesystem::path path;  // as found; links not resolved
  ToolVersion version;
  // Long options, sorted, from the tool's own help; empty if it did not answer.
  std::vector<std::string> options;

  bool has_option(std::string_view option) const;
};

// The dialect of this nsys. Its own answers take precedence; the rest is inferred from the version.
struct NsysTool : Tool {
  std::vector<std::string> reports;   // names that `nsys stats` knows; empty when it would not say
  std::string kernel_summary_report;  // gpukernsum up to 2022.4, cuda_gpu_kern_sum from 2023.1
  bool has_old_report_names = false;
  bool reports_asked = false;      // false: inferred from the version
  std::filesystem::path importer;  // turns .qdstrm into a report; empty: not found
  bool is_wrapper = false;         // a script that starts the real nsys in an unknown folder
};

// Fields are empty if ncu did not answer: these defaults changed in unknown releases, so none is
// guessed.
struct NcuTool : Tool {
  std::vector<std::string> sets;
  std::string default_set;               // "default" in 2022, "basic" in recent releases
  std::string default_target_processes;  // "application-only" in 2022: children go unseen
  bool has_per_launch_config = false;    // filter mode with skip and count per signature
};

// Finds the tool: GPUWHY_NSYS / GPUWHY_NCU, then PATH, then the directories of NVIDIA's
// installers (newest first). Throws kEnvironment with installation advice if it is missing or does
// not answer.
NsysTool ensure_nsys(const System& system);
NcuTool ensure_ncu(const System& system);

// A program on PATH; nullopt if there is none.
std::optional<std::filesystem::path> find_on_path(const System& system, const std::string& name);

}  // namespace gpuwhy
