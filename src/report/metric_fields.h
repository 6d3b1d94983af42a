// SPDX-License-Identifier: Apache-2.0
//
// Field descriptions of metrics.json: key, member, unit, count key, sources, formula, sentence.
//
// Those of rows that have a header in results/ are there, beside the row; what is derived from a
// description, results/field.h says. Full definitions, with their known errors, are in
// docs/metrics.md.
#pragma once

#include "report/metrics.h"

namespace gpuwhy {

template <typename F>
void describe(const Metrics*, F&& f) {
  using T = Metrics;
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
