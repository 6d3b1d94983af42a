// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingest/ingest.h"
#include "results/rank_group.h"
#include "session/reading/graph_name_files.h"
#include "trace/trace.h"

namespace gpuwhy {

struct Rules;

// Throws kUsage for more files than are read together, and for a file that is given twice.
void check_job_files(const std::vector<std::string>& paths);

// "rank0.sqlite", "rank0.sqlite and 7 more".
std::string job_name(const std::vector<std::string>& paths);

// The files of one job, to be read as one recording.
struct JobFiles {
  const std::vector<std::string>& paths;  // as given
  const std::vector<InputFile>& files;    // what to read of each
  const Rules& rules;
  const Parallelism& parallelism;
  const GraphNameFiles& graph_names;
  std::optional<std::uint64_t> memory_limit_bytes;
  unsigned num_threads = 1;
  unsigned files_at_once = 1;  // at most
};

// One recording of them all, ordered by rank. Throws kUsage where they cannot be of one job: totals
// without times, different formats, recorded at different times.
Trace load_job(const JobFiles& job);

}  // namespace gpuwhy
