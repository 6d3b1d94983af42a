// SPDX-License-Identifier: Apache-2.0
//
// The recordings of a server's ranks, each of an nsys of its own, read as one.
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "session/pass_parts.h"

namespace gpuwhy {

namespace fs = std::filesystem;

void PassRunner::read_rank_recordings(const Pass& pass, const StepResult& step,
                                      fs::file_time_type start) {
  const fs::path folder = inputs_.bundle / pass.folder;
  std::vector<std::string> paths;
  std::vector<Breach> absent;
  // Where the launcher decides how many there are, they end with the first that left nothing.
  const std::optional<std::int64_t> num_ranks = setup().server->ranks->num_ranks;
  for (std::int64_t rank = 0; !num_ranks || rank < *num_ranks; ++rank) {
    const fs::path report = folder / rank_report(fmt::format("{}", rank));
    const std::vector<Breach> found = check_nsys_report(report_facts(report, start), step);
    if (!found.empty()) {
      absent.insert(absent.end(), found.begin(), found.end());
      absent.back().sentence = fmt::format("rank {}: {}", rank, absent.back().sentence);
      if (!num_ranks) {
        break;
      }
      continue;
    }
    const fs::path sqlite = fs::path(report).replace_extension(".sqlite");
    if (export_without_secrets(*this, report, sqlite)) {
      paths.push_back(sqlite.string());
    }
  }
  if (num_ranks || paths.empty()) {
    add(absent);
  }
  if (!paths.empty() || step.end != StepEnd::kItself) {
    add(check_program(*this, step, {}));
  }
  if (paths.empty()) {
    return;
  }
  try {
    results_.profile = profile_of_files(*this, paths, true);
  } catch (const Error& error) {
    add({{Reason::kReportUnreadable, pass.name, error.what(), error.hint(), ""}});
    return;
  }
  check_recorded(step.end != StepEnd::kItself);
}

}  // namespace gpuwhy
