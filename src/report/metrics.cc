// SPDX-License-Identifier: Apache-2.0
//
// The metrics of an analysis: its numbers in base units, with the ratios that need totals.
#include "report/metrics.h"

#include <algorithm>

#include "analysis/latencies.h"

namespace gpuwhy {

bool has_gpu_work(const Metrics& metrics) {
  return !metrics.devices.empty() || !metrics.kernels.empty();
}

Metrics metrics_of(const Analysis& analysis, const RunFacts& run) {
  Metrics metrics;
  metrics.verdict = verdict_of(analysis);
  metrics.capture = analysis.capture;
  metrics.capture.command = run.command;
  metrics.findings = analysis.findings.found;
  metrics.silent_rules = analysis.findings.silent;
  metrics.environment = run.environment;
  metrics.contract = run.contract;
  metrics.aggregates = latencies_of(analysis);
  metrics.aggregates.program_ns = run.program_ns;
  metrics.devices = analysis.devices;
  metrics.copies = analysis.copies;
  metrics.kernel_chains = analysis.kernel_chains;
  metrics.stages = analysis.stages;
  metrics.steps = analysis.step_rows;
  metrics.rank_groups = analysis.rank_groups;
  if (!analysis.baseline.empty()) {
    metrics.baseline = analysis.baseline;
    metrics.overhead = analysis.overheads;
  }
  metrics.ledgers = analysis.ledgers;
  metrics.idle_causes = analysis.idle_causes;
  metrics.efficiency = analysis.efficiency;
  metrics.families = analysis.families;
  metrics.kernels = analysis.kernels;
  metrics.unmatched_names = analysis.unmatched_names;
  if (analysis.operators) {
    metrics.operators = analysis.operators;
    metrics.gemm_rates = analysis.operators->rates.products;
    metrics.collective_rates = analysis.operators->rates.collectives;
  }
  metrics.graph_names = analysis.graph_names;
  metrics.possible_marks = analysis.possible_marks;
  // Programs may name every range differently; the rest is in `gpuwhy table ranges`.
  constexpr std::size_t kMostRanges = 100;
  metrics.ranges.assign(analysis.ranges.begin(),
                        analysis.ranges.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                      kMostRanges, analysis.ranges.size())));
  metrics.host_phases = analysis.host_phases;
  metrics.compositions = analysis.compositions;
  metrics.requests = analysis.requests;
  metrics.structure = analysis.structure;
  metrics.counters = analysis.counters;
  metrics.data_quality = analysis.diagnostics;
  metrics.tool_messages = analysis.capture.messages;
  return metrics;
}

}  // namespace gpuwhy
