// SPDX-License-Identifier: Apache-2.0
//
// The profile of a recording: the only place where results are assembled.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/efficiency/efficiency.h"
#include "analysis/ranks/rank_groups.h"
#include "analysis/requests/requests.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "analysis/structure/structure.h"
#include "analysis/timeline/timeline.h"
#include "model/gpu.h"
#include "trace/counters.h"
#include "trace/kernel_summary.h"
#include "trace/trace.h"

namespace gpuwhy {

// A recording and everything found in it. Exports, plans and summaries use its stages and
// attribution; nothing computes them again.
struct Profile {
  std::optional<Trace> trace;  // absent: a kernel summary, or nothing was recorded
  Rules rules;                 // that named stages and families
  Stages stages;
  Attribution attribution;
  Structure structure;
  // By kernel: into StructureSummary::parts, kNone where it has none. Empty: no structure was
  // found.
  std::vector<std::uint32_t> kernel_parts;
  Timeline timeline;                            // without length where none was asked for
  std::vector<std::vector<LongGap>> long_gaps;  // by device, where requests are joined
  std::optional<JoinedRequests> requests;       // every one with its steps
  Analysis analysis;
};

// What profile() computes besides the analysis.
struct ProfileOptions {
  bool has_timeline = false;
  TimelineOptions picture = {};
  PassTimer* timer = nullptr;    // learns how long each pass took
  Parallelism parallelism = {};  // how ranks share the model, where the user says so
  bool has_requests = false;     // a file of them will be joined
  unsigned num_threads = 1;      // results are the same for any number
};

// Information besides the recording. Each part may be absent.
struct Besides {
  std::optional<Counters> counters;      // measured by Nsight Compute
  std::optional<Operators> operators;    // the program's own table, where the recording names none
  std::optional<EfficiencySetup> model;  // what the program ran
  std::optional<std::int64_t> batch;     // sequences of a decode step
  std::optional<RequestEvidence> requests;  // of clients
  std::string machine_gpu;                  // used for the model where the recording names no GPU
  std::vector<StageTimes> baseline;         // of the pass without a profiler
  FindingFacts facts;                       // of the machine
  Diagnostics diagnostics;                  // from reading the parts above
  // GPU specifications. A function, because reading them takes longer than a small analysis.
  std::function<std::vector<GpuSpec>()> gpus;
};

// The analysis of the recording alone; for a kernel summary without stages, ledger and devices.
// Throws kInput if its times are implausible.
Profile profile(Recording recording, Rules rules, const ProfileOptions& options = {});

// Joins the evidence to a profile and computes the findings. The last step: called once.
void complete(Profile& profile, Besides evidence, PassTimer* timer = nullptr);

}  // namespace gpuwhy
