// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bundle/artifacts.h"
#include "capture/contract.h"
#include "results/results.h"
#include "session/record/pass_runner.h"

namespace gpuwhy {

// What the capture lacks, one row each.
std::vector<BreachRow> contract_of(const std::vector<Breach>& breaches);

struct RunReportOptions {
  std::int64_t started_unix_s = 0;
  bool has_trace = false;  // trace.pftrace is also written
};

// The report of a finished run, however it ended: metrics.json, the files derived from it and the
// summary for other ranks are in every bundle. Returns the metrics.
Results write_run_report(const RunSetup& setup, PassRunner& runner,
                         const std::vector<Breach>& breaches, const Artifacts& artifacts,
                         const RunReportOptions& options);

}  // namespace gpuwhy
