// SPDX-License-Identifier: Apache-2.0
//
// The profile of a recording: the one place where results are put together.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/attribution.h"
#include "analysis/efficiency.h"
#include "analysis/stages.h"
#include "analysis/timeline.h"
#include "model/gpu.h"
#include "trace/counters.h"
#include "trace/kernel_summary.h"
#include "trace/trace.h"

namespace llmprof {

// A recording and all that was found in it. Exports, plans and summaries read stages and
// attribution from here; nothing computes them again.
struct Profile {
  std::optional<Trace> trace;  // absent: a kernel summary, or nothing was recorded
  Rules rules;                 // that named stages and families
  Stages stages;
  Attribution attribution;
  Timeline timeline;  // without length where none was asked for
  Analysis analysis;
};

struct ProfileOptions {
  bool has_timeline = false;
  TimelineOptions picture = {};
  PassTimer* timer = nullptr;  // learns how long each pass took
};

// What is known besides the recording. Each part may be absent.
struct Evidence {
  std::optional<Counters> counters;      // measured by Nsight Compute
  std::optional<Operators> operators;    // the program's own table, where the recording names none
  std::optional<EfficiencySetup> model;  // what the program ran
  std::string machine_gpu;               // used for the model where the recording names no GPU
  std::vector<StageTimes> baseline;      // of the pass without a profiler
  FindingFacts facts;                    // of the machine
  Diagnostics diagnostics;               // from reading the parts above
  // Specifications of GPUs. A function, since reading them costs more than a small analysis.
  std::function<std::vector<GpuSpec>()> gpus;
};

// What the recording alone shows: of a kernel summary no stages, no ledger, no devices. Throws
// kInput where its times make no sense.
Profile profile(Recording recording, Rules rules, const ProfileOptions& options = {});

// Joins the evidence to a profile and finds what to fix first. The last step: called once.
void complete(Profile& profile, Evidence evidence, PassTimer* timer = nullptr);

}  // namespace llmprof
