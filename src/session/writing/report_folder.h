// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/sections/files.h"
#include "results/rank_summary.h"
#include "results/results.h"

namespace gpuwhy {

struct Profile;

// Destination of results, and what they contain besides the profile.
struct ReportFolder {
  std::filesystem::path directory;
  bool is_of_user = false;               // other files may be in it, and stay
  std::vector<std::string> beside;       // files that are there already and that reports point to
  std::uint64_t trace_budget_bytes = 0;  // of trace.pftrace; 0: it is not written
  unsigned num_threads = 2;
  bool may_lack_exports = false;  // one that cannot be written is a diagnostic, not an error
  RunFacts run;
  std::optional<GpuPrice> gpu_hour_price = {};  // what savings are worth
  std::size_t kernel_rows = kKernelRows;        // of report.md and kernels.md
  RankIdentity identity;
};

// Writes exports, the report with metrics.json, and the summary of each rank. Returns the names of
// the files, in the order of writing; the results learn what the folder knows of the run.
std::vector<std::string> write_report_folder(Profile& profile, const ReportFolder& folder,
                                             PassTimer* timer = nullptr);

}  // namespace gpuwhy
