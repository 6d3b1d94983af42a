// SPDX-License-Identifier: Apache-2.0
//
// All results of a run: metrics.json as structs, no more and no less.
//
// Keys, units and meanings of a row's members are beside the row. A null in JSON is a std::optional
// or an empty text. Members added later are std::optional, because older files lack them. Full
// definitions, with their known errors, are in docs/metrics.md.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "results/capture.h"
#include "results/composition.h"
#include "results/copy.h"
#include "results/counters.h"
#include "results/device.h"
#include "results/diagnostic.h"
#include "results/efficiency.h"
#include "results/finding.h"
#include "results/kernel.h"
#include "results/kernel_chains.h"
#include "results/latency.h"
#include "results/ledger.h"
#include "results/operator.h"
#include "results/range.h"
#include "results/rank_group.h"
#include "results/requests.h"
#include "results/run_facts.h"
#include "results/stage.h"
#include "results/structure.h"

namespace gpuwhy {

// Programs may name every range differently; the rest is in `gpuwhy table ranges`.
inline constexpr std::size_t kMostRanges = 100;

// What was found in a recording.
struct Results {
  Verdict verdict;
  CaptureRow capture;
  std::vector<Finding> findings;  // what to fix first
  std::vector<SilentRule> silent_rules;
  std::optional<Environment> environment;
  std::optional<std::vector<BreachRow>> contract;
  Latencies aggregates;
  std::vector<DeviceRow> devices;
  std::vector<CopyRow> copies;              // by device, then by time
  std::vector<KernelChains> kernel_chains;  // by device and stage
  std::vector<StageRow> stages;
  std::vector<StepRow> steps;                                // their lengths, by stage
  std::vector<Composition> compositions;                     // by stage, then sequences
  std::optional<RequestsSummary> requests;                   // nullopt: no file of requests
  std::optional<StructureSummary> structure;                 // nullopt: a summary, or no kernels
  std::optional<std::vector<RankGroupSummary>> rank_groups;  // processes with marks
  std::optional<std::vector<StageTimes>>
      baseline;  // of the pass without a profiler; nullopt: there was none
  std::optional<std::vector<StageOverhead>> overhead;  // of this recording against it
  std::vector<LedgerRow> ledgers;        // stages, then phases, then the capture, each by device
  std::vector<IdleRow> idle_causes;      // in the order of the ledgers
  std::optional<Efficiency> efficiency;  // nullopt: no model
  std::vector<FamilyRow> families;       // by total time
  std::vector<KernelRow> kernels;        // by total time, then by name, device, stage
  std::vector<std::string> unmatched_names;  // kernels of family other, by time, when it is large
  std::optional<Operators> operators;        // nullopt: no source of names
  std::vector<GemmRate> gemm_rates;
  std::vector<CollectiveRate> collective_rates;
  std::optional<GraphNames> graph_names;     // nullopt: no kernel was launched by a CUDA graph
  std::vector<RangeTotal> ranges;            // by kernel time, the first kMostRanges
  std::vector<HostPhase> host_phases;        // by host time
  std::vector<PossibleMark> possible_marks;  // by kernel time; none where stages are known
  std::optional<CountersRow> counters;       // nullopt: no ncu capture
  Diagnostics data_quality;
  std::vector<std::string> tool_messages;  // warnings and errors of the recording tool
};

// Whether GPU work was recorded. A summary of kernels has some and names no GPU.
inline bool has_gpu_work(const Results& results) {
  return !results.devices.empty() || !results.kernels.empty();
}

inline void add_run(const RunFacts& run, Results& results) {
  results.capture.command = run.command;
  results.environment = run.environment;
  results.contract = run.contract;
  results.aggregates.program_ns = run.program_ns;
}

template <typename F>
void describe(const Results*, F&& f) {
  using T = Results;
  f("verdict", &T::verdict, plain("one sentence: the largest waste, or why nothing can be said"));
  f("capture", &T::capture, plain("what was recorded"));
  f("findings", &T::findings, plain("what to fix, most urgent first"));
  f("silent_rules", &T::silent_rules, plain("rules that could not be checked"));
  f("environment", &T::environment, plain("the machine of a run; null for a recording alone"));
  f("contract", &T::contract, plain("what the capture lacks; null for a recording alone"));
  f("aggregates", &T::aggregates, plain("what users of a model wait for"));
  f("devices", &T::devices, plain("the GPUs that worked"));
  f("copies", &T::copies, plain("copies by GPU, direction and kind of host memory"));
  f("kernel_chains", &T::kernel_chains,
    plain("kernels in a row that fused ones would replace, by stage and GPU"));
  f("stages", &T::stages, plain("the stages of the program"));
  f("steps", &T::steps, plain("the lengths of each stage's marks, on the host and on the GPU"));
  f("compositions", &T::compositions, plain("steps of engines by stage and number of sequences"));
  f("requests", &T::requests,
    plain("requests joined to the steps that served them; null without a file of requests"));
  f("structure", &T::structure, plain("the model as the order of kernels shows it"));
  f("rank_groups", &T::rank_groups, plain("ranks that run one copy of the model together"));
  f("baseline", &T::baseline, plain("stages without a profiler; null without such a pass"));
  f("overhead", &T::overhead, plain("what the profiler added; null without a baseline"));
  f("ledgers", &T::ledgers, plain("where the time went, by stage and GPU"));
  f("idle_causes", &T::idle_causes, plain("what the host did while a GPU waited for it"));
  f("efficiency", &T::efficiency, plain("how much of what was possible; null without a model"));
  f("families", &T::families, plain("kernels by family"));
  f("kernels", &T::kernels, plain("kernels by GPU and stage"));
  f("unmatched_names", &T::unmatched_names,
    items(plain("kernels without a family, where they take much time"), 0, 10));
  f("operators", &T::operators, plain("operators of a framework; null where none are named"));
  f("gemm_rates", &T::gemm_rates,
    items(plain("matrix products and attention by operator, sizes and type, the first hundred"), 0,
          kMostRates));
  f("collective_rates", &T::collective_rates,
    items(plain("collectives by group of processes and type, the first hundred"), 0, kMostRates));
  f("graph_names", &T::graph_names,
    plain("names of kernels in CUDA graphs; null where no graph launched kernels"));
  f("ranges", &T::ranges, plain("NVTX ranges by name, the first hundred"));
  f("host_phases", &T::host_phases, plain("parts of a step on the host, as engines mark them"));
  f("possible_marks", &T::possible_marks,
    items(plain("ranges that could name stages, where no stage is marked"), 0, 5));
  f("counters", &T::counters, plain("what Nsight Compute measured"));
  f("data_quality", &T::data_quality, plain("what was imperfect in the recording"));
  f("tool_messages", &T::tool_messages, plain("warnings and errors of the recording tool"));
}

}  // namespace gpuwhy
