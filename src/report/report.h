// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "base/json.h"

namespace llmprof {

// Everything an analysis found, as numbers: metrics.json. Whatever another output shows stands here
// too.
Json metrics_json(const Analysis& analysis);

// Stage times as rows: stage1/metrics.json, and `baseline` of metrics.json.
Json stage_times_json(const std::vector<StageTimes>& stages);

// The same for a terminal: n, mean, spread, tokens a second.
std::string stage_times_text(const std::vector<StageTimes>& stages);

// What the profiler added to each stage, a line each; empty without a baseline pass.
std::string overhead_text(const Analysis& analysis);

// The specification's table (kernel_name, total_ms, calls, mean_ms, device) with share and family.
std::string kernel_markdown(const Analysis& analysis, std::size_t top);
void write_kernel_markdown(const Analysis& analysis, const std::filesystem::path& path,
                           std::size_t top);

// kernel_name,device,stage,family,total_ns,calls,mean_ns,min_ns,max_ns with whole names. Scripts
// rely on it.
std::string kernels_csv(const std::vector<KernelRecord>& records);

// range,instances,kernels,kernel_ns with whole names.
std::string ranges_csv(const std::vector<RangeTotal>& ranges);

// Counters joined to the recording: what bounds each kernel, how sure that is, and how much of the
// GPU time it covers.
Json counters_json(const Analysis& analysis);
std::string counters_text(const Analysis& analysis, std::size_t top);

// The class of a kernel's row, as "memory"; "n/a" where no counters cover it.
std::string bound_text(const Analysis& analysis, const KernelRecord& record);

// What to fix first, `most` of it; and as a part of metrics.json.
std::string findings_text(const Findings& findings, std::size_t most);
Json findings_json(const Findings& findings);

// The efficiency of stages, in words and as a part of metrics.json.
std::string efficiency_text(const Efficiency& efficiency);
Json efficiency_json(const Efficiency& efficiency);

// Operators and layers, as a part of metrics.json.
Json operators_json(const Operators& operators);

// What a person reads first: verdict, stages, where the time went, the kernels on top.
std::string terminal_summary(const Analysis& analysis, std::size_t top);

// One sentence: what this recording shows, or why it shows nothing.
std::string verdict(const Analysis& analysis);

}  // namespace llmprof
