// SPDX-License-Identifier: Apache-2.0
//
// The analysis pipeline, as a list of steps. Each reads the trace and earlier results, and adds its
// part.
//
// profile() needs only the recording, so a run can plan its ncu pass from it. complete() adds what
// later passes and other files provide, and ends with the findings, which read everything else.
// Every command and the library use these two functions, so they cannot disagree about a file.
#include "analysis/profile.h"

#include <cstdlib>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "analysis/counters/ncu_join.h"
#include "analysis/efficiency/compositions.h"
#include "analysis/efficiency/latencies.h"
#include "analysis/idle/busy_row.h"
#include "analysis/idle/host_phases.h"
#include "analysis/idle/ledger.h"
#include "analysis/kernels/graph_names.h"
#include "analysis/kernels/kernel_chains.h"
#include "analysis/kernels/kernels.h"
#include "analysis/kernels/steady_work.h"
#include "analysis/kernels/stream_overlap.h"
#include "analysis/operators/operator_rates.h"
#include "analysis/operators/operators.h"
#include "analysis/stages/capture_summary.h"
#include "analysis/stages/possible_marks.h"
#include "analysis/stages/ranges.h"
#include "analysis/stages/stage_summary.h"
#include "analysis/steps/steps.h"
#include "analysis/structure/part_costs.h"
#include "analysis/structure/recovered_steps.h"
#include "analysis/structure/slow_layers.h"
#include "analysis/structure/slow_passes.h"
#include "analysis/structure/structure_summary.h"
#include "base/task_graph.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

// Runs a step and records its time under `name`.
template <typename Step>
auto timed(PassTimer* timer, const char* name, Step&& step) {
  const PassTimer::Scope pass(timer, name);
  return step();
}

// Tensor core specifications by device name, from the table of GPUs.
std::function<std::optional<TensorCores>(const std::string&)> tensor_cores_in(
    const std::function<std::vector<GpuSpec>()>& gpus) {
  return [gpus](const std::string& device) -> std::optional<TensorCores> {
    const GpuMatch match = find_gpu(gpus(), device);
    if (!match.gpu) {
      return std::nullopt;
    }
    const double fp32 = match.gpu->flops_per_s("fp32").value_or(0);
    const bool has_bf16 = match.gpu->dense_tflops.contains("bf16");
    const double tensor = match.gpu->flops_per_s(has_bf16 ? "bf16" : "fp16").value_or(0);
    const int compute_major = std::atoi(match.gpu->compute_capability.c_str());
    return fp32 > 0 ? std::optional(TensorCores{tensor / fp32, has_bf16, compute_major})
                    : std::nullopt;
  };
}

// Bandwidth of NVLink in one direction by device name, from the table of GPUs.
std::function<std::optional<double>(const std::string&)> links_in(
    const std::function<std::vector<GpuSpec>()>& gpus) {
  return [gpus](const std::string& device) -> std::optional<double> {
    const GpuMatch match = find_gpu(gpus(), device);
    return match.gpu && match.gpu->nvlink_gb_per_s
               ? std::optional(*match.gpu->nvlink_gb_per_s * 1e9 / 2)
               : std::nullopt;
  };
}

// The GPU for the model's minimum cost: the recorded one, or else the machine's.
GpuMatch gpu_for_model(const Besides& evidence, const Analysis& analysis) {
  const std::string recorded = gpu_name_of(analysis);
  return recorded.empty() ? find_gpu(evidence.gpus(), evidence.machine_gpu)
                          : find_gpu(evidence.gpus(), recorded, gpu_attributes_of(analysis));
}

// The GPU that rates are compared with: only where all are of one kind.
GpuMatch gpu_for_rates(const Besides& evidence, const Analysis& analysis) {
  const std::string name = gpu_name_of(analysis);
  for (const DeviceRow& device : analysis.devices) {
    if (device.num_kernels > 0 && device.name != name) {
      return {std::nullopt, "the GPUs of the recording differ", {}};
    }
  }
  return gpu_for_model(evidence, analysis);
}

void take_ledgers(LedgerResult ledgers, Analysis& analysis) {
  analysis.ledgers = std::move(ledgers.stages);
  analysis.ledgers.insert(analysis.ledgers.end(), ledgers.phases.begin(), ledgers.phases.end());
  analysis.ledgers.insert(analysis.ledgers.end(), ledgers.capture.begin(), ledgers.capture.end());
  for (const LedgerRow& row : analysis.ledgers) {
    std::vector<IdleRow>& causes = ledgers.causes[{row.stage, row.device}];
    std::move(causes.begin(), causes.end(), std::back_inserter(analysis.idle_causes));
    causes.clear();
  }
  set_busy_stages(analysis);
  analysis.ledger_history = std::move(ledgers.history);
  analysis.capture.stage_overlap_ns = ledgers.overlap_ns;
  analysis.capture.outside_stages_ns = ledgers.outside_ns;
}

// What the steps of profile() hand on to each other, beside the profile.
struct Handover {
  Handover(Profile& of, const ProfileOptions& with)
      : made(of),
        options(with),
        trace(*of.trace),
        families(trace, of.rules),
        is_communication(communication_kernels(trace, families)) {}

  Profile& made;
  const ProfileOptions& options;
  const Trace& trace;
  const KernelFamilies families;
  const IsCommunication is_communication;

  Extent extent;
  RankGroups groups;
  std::vector<StepOnGpu> windows;
  std::optional<TimelineMaker> maker;
  LedgerResult ledgers;
  std::vector<SteadyPart> steady;
  std::vector<std::uint32_t> parts;  // of the model, by kernel
  std::vector<LayerMap> layer_maps;
  Diagnostics of_ranges;
  Diagnostics of_streams;
};

// Where prefill and decode are.
void find_all_stages(Handover& at) {
  Stages& stages = at.made.stages;
  Analysis& analysis = at.made.analysis;
  const Extent of_work = extent_of(at.trace);
  stages = find_stages(at.trace, at.made.rules, of_work.start_ns, of_work.end_ns);
  at.extent = with_marks(of_work, at.trace, stages);
  analysis.capture.start_ns = at.extent.start_ns;
  analysis.capture.duration_ns = at.extent.end_ns - at.extent.start_ns;
  analysis.capture.recorded = recorded_at(analysis.capture);
  analysis.capture.stage_source = stages.source;
  analysis.engine = stages.engine;
  analysis.data_quality.insert(analysis.data_quality.end(), stages.notes.begin(),
                               stages.notes.end());

  // Ranks of one model: their marks repeat each other, and each step counts once.
  at.groups = find_rank_groups(at.trace, stages, at.is_communication, at.options.parallelism);
  const Stages counted = counted_stages(at.trace, stages, at.groups);
  analysis.stages = summarise_stages(counted);
  analysis.stage_times = time_stages(counted);
}

// Which stage launched each kernel.
void add_attribution(Profile& profile) {
  profile.attribution = attribute(*profile.trace, profile.stages);
  add_orphans(profile.attribution.kernels, profile.trace->kernels.size(),
              profile.analysis.data_quality);
  add_joined(profile.attribution, profile.analysis.data_quality);
}

// Where the gaps between kernels go: to the timeline, and to what explains late tokens.
GapSink gap_sink_of(Handover& at) {
  GapSink to_timeline = at.maker ? at.maker->gap_sink() : GapSink();
  if (!at.options.has_requests) {
    return to_timeline;
  }
  std::vector<std::vector<LongGap>>& long_gaps = at.made.long_gaps;
  long_gaps.resize(at.trace.devices.size());
  return [to_timeline, &long_gaps](std::size_t device, GapCause cause, std::int64_t start_ns,
                                   std::int64_t end_ns) {
    if (end_ns - start_ns >= kLeastGapNs) {
      long_gaps[device].push_back({start_ns, end_ns, cause.bucket});
    }
    if (to_timeline) {
      to_timeline(device, cause, start_ns, end_ns);
    }
  };
}

// From here on the buckets of every ledger sum to its window.
void add_ledgers(Handover& at) {
  at.ledgers = make_ledgers({at.trace, at.made.stages, at.made.attribution, at.windows,
                             at.is_communication, at.extent.start_ns, at.extent.end_ns,
                             model_kernels(at.trace, at.families), gap_sink_of(at)});
  at.made.analysis.devices =
      summarise_devices(at.trace, at.ledgers.busy_ns, at.made.analysis.capture.duration_ns);
}

// Host range, GPU window and period of each step, with times of the ledger.
void add_steps(Handover& at) {
  const Stages& stages = at.made.stages;
  Analysis& analysis = at.made.analysis;
  analysis.stage_steps = find_steps(at.trace, stages, at.groups, at.windows, at.ledgers.own_ns);
  analysis.steps = summarise_steps(stages.names, analysis.stage_steps);
  analysis.steady_window = mark_steady(stages.names, analysis.stage_steps);
  analysis.rank_groups = summarise_groups(at.trace, at.groups, analysis.stage_steps);
  take_ledgers(std::move(at.ledgers), analysis);
}

// Groups of equal launches, and their sums in the kernel table. From here on the times of the
// stages and `outside` sum to kernel_ns.
void add_kernels(Handover& at) {
  const Profile& made = at.made;
  Analysis& analysis = at.made.analysis;
  const LaunchTallies tallies = tally_launches(at.trace, made.stages, made.attribution);
  analysis.launch_groups = group_launches(at.trace, at.families, made.stages, tallies);
  summarise_kernels(at.trace, at.families, made.stages, made.attribution, tallies, analysis);
}

void count_rows(Handover& at) {
  Analysis& analysis = at.made.analysis;
  // How many kernels of CUDA graphs the names include.
  if (const GraphNames names = count_graph_names(at.trace); names.num_kernels > 0) {
    analysis.graph_names = names;
  }
  analysis.copies = summarise_copies(at.trace);
  analysis.capture.num_calls = static_cast<std::int64_t>(at.trace.api_calls.size());
  analysis.capture.num_numbered_calls = count_numbered_calls(at.trace);
  analysis.capture.num_captured_launches =
      static_cast<std::int64_t>(at.trace.captured_launches.size());
  add_overlaps(at.trace, at.of_streams);
}

// A window by time cuts passes at its ends, and layers that are left of one look like a whole
// model. Several passes of the same number of layers do not.
bool is_cut_too_short(const Trace& trace, const Structure& structure) {
  constexpr std::size_t kWholeModel = 3;  // passes
  std::size_t num_passes = 0;
  for (const KernelStream& stream : structure.streams) {
    num_passes = std::max(num_passes, stream.passes.size());
  }
  return trace.capture.window && trace.capture.window->is_by_time && structure.is_found() &&
         num_passes < kWholeModel;
}

// Recovers the model and its slow passes and layers.
void add_structure(Handover& at) {
  const Trace& trace = at.trace;
  if (trace.kernels.size() == 0) {
    return;
  }
  Structure& structure = at.made.structure;
  structure = find_structure(trace, at.families);
  if (is_cut_too_short(trace, structure)) {
    structure = {};
    structure.reason =
        "the window holds fewer than three passes, and one that is cut at its ends looks like a model "
        "with fewer layers; choose a longer one, or whole steps with --steps";
  }
  StructureSummary& summary = at.made.analysis.structure.emplace(
      summarise_structure(trace, at.families, structure, at.parts));
  summary.slow_passes = find_slow_passes(trace, structure, summary, at.parts);
  summary.slow_layers = find_slow_layers(trace, structure, summary, at.parts);
  if (structure.is_found()) {
    recover_steps(trace, structure, summary);
  }
}

// Compares the model with the marks, and maps its layers for the timeline.
void finish_structure(Handover& at) {
  Profile& made = at.made;
  if (!made.analysis.structure) {
    return;
  }
  StructureSummary& summary = *made.analysis.structure;
  if (made.structure.is_found()) {
    compare_with_marks(made.structure, made.stages, made.attribution, summary);
  }
  if (at.options.has_timeline) {
    at.layer_maps = map_layers(at.trace, made.structure, summary, at.parts, at.extent.start_ns);
  }
  if (made.structure.is_found()) {
    made.kernel_parts = std::move(at.parts);
  }
}

}  // namespace

Profile profile(Recording recording, Rules rules, const ProfileOptions& options) {
  const PassTimer::Scope whole(options.timer, "analyze");
  Profile profile;
  profile.rules = std::move(rules);
  if (const auto* summary = std::get_if<KernelSummary>(&recording)) {
    profile.analysis = analyze_summary(*summary, profile.rules);
    return profile;
  }
  profile.trace = std::move(std::get<Trace>(recording));
  const Trace& trace = *profile.trace;
  const Stages& stages = profile.stages;
  const Attribution& attribution = profile.attribution;
  Analysis& analysis = profile.analysis;
  analysis.capture = capture_row(trace.capture);
  analysis.tool_messages = std::move(analysis.capture.messages);
  analysis.data_quality = trace.diagnostics;
  analysis.data_quality.insert(analysis.data_quality.end(), profile.rules.notes.begin(),
                               profile.rules.notes.end());

  // Each step reads the trace and the results of those that it needs, and writes fields of its own.
  // The longest chain comes first.
  Handover at(profile, options);
  TaskGraph graph(options.timer);
  const auto staged = graph.add("stages", {}, [&] { find_all_stages(at); });
  const auto attributed = graph.add("attribute", {staged}, [&] { add_attribution(profile); });
  const auto windowed = graph.add("step windows", {attributed}, [&] {
    at.windows = find_step_windows(trace, stages, attribution);
  });
  auto begun = windowed;  // ledgers tell the timeline their gaps
  if (options.has_timeline) {
    begun = graph.add("timeline", {windowed}, [&] {
      at.maker.emplace(trace, at.families, stages, attribution, at.windows, at.extent.start_ns,
                       at.extent.end_ns, options.picture);
    });
  }
  const auto ledgers = graph.add("ledger", {begun}, [&] { add_ledgers(at); });
  const auto stepped = graph.add("steps", {ledgers}, [&] { add_steps(at); });
  const auto chained = graph.add("kernel chains", {stepped}, [&] {
    at.steady = steady_parts(trace, analysis.ledgers);
    analysis.kernel_chains = find_kernel_chains(trace, at.families, stages, attribution, at.steady);
  });
  // The model is found in the order of kernels alone.
  const auto modelled = graph.add("structure", {}, [&] { add_structure(at); });
  if (options.has_timeline) {
    const auto sliced = graph.add("slices", {begun}, [&] { at.maker->add_work(); });
    graph.add("finish timeline", {ledgers, sliced}, [&] { profile.timeline = at.maker->finish(); });
  }
  const auto summed = graph.add("kernels", {attributed}, [&] { add_kernels(at); });
  graph.add("operators", {summed}, [&] {
    analysis.operators =
        summarise_operators(trace, stages, attribution, analysis.capture.kernel_ns);
    if (analysis.operators) {
      analysis.gemm_rates = std::move(analysis.operators->rates.products);
      analysis.collective_rates = std::move(analysis.operators->rates.collectives);
    }
  });
  graph.add("steady phase", {summed, chained},
            [&] { measure_steady(trace, stages, attribution, at.steady, analysis); });
  graph.add("ranges", {attributed}, [&] {
    analysis.all_ranges = summarise_ranges(trace, attribution, &at.of_ranges);
    analysis.host_phases = find_host_phases(analysis.all_ranges, stages.engine);
  });
  graph.add("kernel time", {attributed},
            [&] { add_kernel_time(trace, stages, attribution, analysis.stages); });
  graph.add("layers", {attributed, modelled}, [&] { finish_structure(at); });
  graph.add("counts", {}, [&] { count_rows(at); });
  graph.run(options.num_threads);

  // What needs the results of several of them.
  for (const Diagnostics& found : {at.of_ranges, at.of_streams}) {
    analysis.data_quality.insert(analysis.data_quality.end(), found.begin(), found.end());
  }
  for (RangeTotal& range : analysis.all_ranges) {
    range.longest_start_ns -= range.longest_ns > 0 ? analysis.capture.start_ns : 0;
  }
  analysis.ranges.assign(
      analysis.all_ranges.begin(),
      analysis.all_ranges.begin() +
          static_cast<std::ptrdiff_t>(std::min(kMostRanges, analysis.all_ranges.size())));
  analysis.possible_marks = possible_marks(
      stages, analysis.all_ranges, analysis.capture.kernel_ns - analysis.capture.opaque_graph_ns);
  profile.timeline.layer_maps = std::move(at.layer_maps);
  if (profile.structure.is_found()) {
    add_disagreement(*analysis.structure, analysis.data_quality);
  }
  return profile;
}

void complete(Profile& profile, Besides evidence, PassTimer* timer) {
  Analysis& analysis = profile.analysis;
  if (!analysis.rank_groups) {
    analysis.rank_groups.emplace();
  }
  analysis.data_quality.insert(analysis.data_quality.end(), evidence.diagnostics.begin(),
                               evidence.diagnostics.end());

  // Hardware counters.
  if (evidence.counters) {
    timed(timer, "counters", [&] { join_counters(*evidence.counters, evidence.gpus(), analysis); });
  }

  // Operator names from the program, if the recording has none.
  if (!analysis.operators) {
    analysis.operators = std::move(evidence.operators);
  }

  // Rates of matrix products relative to the GPU's peak.
  if (analysis.operators && !analysis.gemm_rates.empty() && evidence.gpus) {
    add_peak_fractions(gpu_for_rates(evidence, analysis), analysis.gemm_rates);
  }

  // Times without a profiler, and the profiler's overhead.
  if (!evidence.baseline.empty()) {
    analysis.overhead = overheads_of(evidence.baseline, analysis.stage_times);
    analysis.baseline = std::move(evidence.baseline);
  }

  // Efficiency relative to the model's minimum cost on this GPU.
  if (evidence.model) {
    timed(timer, "efficiency", [&] {
      if (!evidence.model->gpu.gpu && evidence.model->gpu.reason.empty()) {
        evidence.model->gpu = gpu_for_model(evidence, analysis);
      }
      const std::string mismatch = model_mismatch(analysis, evidence.model->llm);
      if (!mismatch.empty()) {
        evidence.model->llm.no_cost_reason = mismatch;
        analysis.data_quality.push_back(
            {std::string(kModelMismatch), Severity::kWarning, 1,
             fmt::format("MFU, MBU and the speed of light are n/a for {}: {}",
                         printable(evidence.model->model_name), mismatch)});
      }
      analysis.efficiency = efficiency_of(analysis, *evidence.model);
      if (mismatch.empty()) {
        add_part_costs(*evidence.model, analysis);
      } else if (analysis.structure) {
        analysis.structure->cost_reason = mismatch;
      }
    });
  }

  // Tokens per second of recovered decode steps.
  if (analysis.structure && evidence.batch) {
    add_recovered_rate(*evidence.batch, *analysis.structure);
  }

  // Steps by their number of sequences.
  const bool has_costs = evidence.model && evidence.model->llm.no_cost_reason.empty();
  analysis.compositions = find_compositions(analysis, has_costs ? &*evidence.model : nullptr);

  // Requests of clients, joined to the steps that served them.
  if (evidence.requests && profile.trace) {
    timed(timer, "requests", [&] {
      profile.requests = join_requests(*profile.trace, profile.stages, analysis, profile.long_gaps,
                                       std::move(evidence.requests->requests));
      analysis.requests =
          summarise_requests(*profile.requests, evidence.requests->limits, analysis);
    });
  }

  // Findings.
  if (evidence.gpus) {
    evidence.facts.tensor_cores = tensor_cores_in(evidence.gpus);
    evidence.facts.link_bytes_per_s = links_in(evidence.gpus);
  }
  Findings findings = find_findings(analysis, evidence.facts);
  analysis.findings = std::move(findings.found);
  analysis.silent_rules = std::move(findings.silent);

  analysis.aggregates = latencies_of(analysis);
  analysis.verdict = verdict_of(analysis);
}

}  // namespace gpuwhy
