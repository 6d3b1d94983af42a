// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/timeline.h"
#include "base/json.h"

namespace llmprof {

// What a run knows besides its recording; null where there was no run.
struct RunFacts {
  Json environment;  // the machine
  Json contract;     // what the capture lacks, a row each
};

// Everything an analysis found, as numbers: metrics.json. Whatever another output shows stands here
// too.
Json metrics_json(const Analysis& analysis, const RunFacts& run = {});

// Stage times as rows: stage1/metrics.json, and `baseline` of metrics.json.
Json stage_times_json(const std::vector<StageTimes>& stages);

// Parts of metrics.json.
Json counters_json(const Analysis& analysis);
Json findings_json(const Findings& findings);
Json efficiency_json(const Efficiency& efficiency);
Json operators_json(const Operators& operators);

// The files of a report by name: report.html, report.md, stakeholder_summary.md, kernels.md,
// operators.md, and metrics.json itself. `beside` are other files that the reports point to. A
// timeline without length means that there is none.
std::vector<std::pair<std::string, std::string>> report_files(
    const Json& metrics, const std::vector<std::string>& beside, const Timeline& timeline,
    PassTimer* timer = nullptr);

// kernel_name,device,stage,family,total_ns,calls,mean_ns,min_ns,max_ns with whole names. Scripts
// rely on it.
std::string kernels_csv(const std::vector<KernelRecord>& records);

// range,instances,kernels,kernel_ns with whole names.
std::string ranges_csv(const std::vector<RangeTotal>& ranges);

// The class of a kernel's row, as "memory"; "n/a" where no counters cover it.
std::string bound_text(const Analysis& analysis, const KernelRecord& record);

// One sentence: what this recording shows, or why it shows nothing.
std::string verdict(const Analysis& analysis);

}  // namespace llmprof
