// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/counters/ncu_join.h"
#include "analysis/findings/findings.h"
#include "analysis/launch_groups.h"
#include "analysis/rules.h"
#include "analysis/stage_times.h"
#include "base/pass_timer.h"
#include "results/bucket.h"
#include "results/composition.h"
#include "results/copy.h"
#include "results/device.h"
#include "results/efficiency.h"
#include "results/idle_label.h"
#include "results/kernel_chains.h"
#include "results/ledger_history.h"
#include "results/operator.h"
#include "results/range.h"
#include "results/rank_group.h"
#include "results/requests.h"
#include "results/row.h"
#include "results/structure.h"
#include "trace/kernel_summary.h"
#include "trace/trace.h"

namespace gpuwhy {

// One row of the kernel table: a kernel on a device in a stage. Milliseconds are for printing only.
struct KernelRow {
  std::string kernel_name;  // whole
  std::string short_name;   // no other kernel of the table has it
  std::string device;       // "cuda:0"
  RowName stage;
  std::string family;
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t median_ns = 0;
  std::int64_t p99_ns = 0;
  std::vector<LaunchShape> shapes;  // the grids and blocks it was launched with, sorted
  // Durations in logarithmic bins, eight per octave: bin -> launches. Sums over ranks are exact.
  std::map<int, std::int64_t> histogram;
  std::optional<std::size_t> counters;    // into JoinedCounters::kernels: what bounds most of it
  std::int64_t covered_ns = 0;            // of total_ns: launches whose counters were measured
  std::optional<std::int64_t> steady_ns;  // of total_ns: in the steady phase, if there is one

  double total_ms() const { return static_cast<double>(total_ns) / 1e6; }
  double mean_ms() const {
    return total_ms() / static_cast<double>(std::max<std::int64_t>(calls, 1));
  }
};

// How the time of a window on one GPU was spent. The buckets sum to the window.
struct Ledger {
  std::array<std::int64_t, kNumBuckets> buckets_ns{};
  std::int64_t window_ns = 0;
  std::int64_t lead_ns = 0;     // the host's part of the idle time before the window's first work
  std::int64_t between_ns = 0;  // the part of unrecorded that is not before the window's work
  // Time in which the thread that launches most of the GPU's work waited for the GPU.
  std::int64_t host_wait_ns = 0;
  // Of it, what came before nearly all launches of the recording that were late: it may have caused
  // them. A wait after the last one did not.
  std::int64_t early_wait_ns = 0;

  std::int64_t operator[](Bucket bucket) const {
    return buckets_ns[static_cast<std::size_t>(bucket)];
  }
  std::int64_t sum_ns() const;
  std::int64_t unrecorded_before_ns() const { return (*this)[Bucket::kUnrecorded] - between_ns; }
  // From the first recorded work to the last.
  std::int64_t work_ns() const {
    return window_ns - unrecorded_before_ns() - (*this)[Bucket::kTail];
  }
  void add(const Ledger& other);
};

// Idle time for which the host is the cause, by what it did. Those of one bucket sum to it, except
// for unrecorded, of which a part may not be the host's.
struct IdleRow {
  Bucket bucket = Bucket::kLaunchLate;  // sync, launch_late or unrecorded
  IdleLabel label;
  std::int64_t num_gaps = 0;
  std::int64_t total_ns = 0;
  std::int64_t in_call_ns = 0;  // of it, inside the call that the label names, else its scope
  std::int64_t longest_ns = 0;
  std::int64_t first_start_ns = 0;  // of the first and the last of these gaps
  std::int64_t first_gap_ns = 0;    // how long the first was
  std::int64_t last_start_ns = 0;
};

// All instances of a stage on one GPU.
struct LedgerRow {
  RowName stage;
  std::string device;
  std::int64_t num_instances = 0;
  Ledger ledger;                     // its buckets sum to its window, exactly
  std::vector<IdleRow> causes = {};  // by time, largest first
  // Of startup and ending: the API call with most time, if that is a third or more.
  std::string main_call = {};
  std::int64_t main_call_ns = 0;
  // The API call with most time in the longest gap without recorded GPU work, if that is a third or
  // more of it and the gap is most of what this row lacks.
  std::string unrecorded_call = {};
  std::int64_t unrecorded_call_ns = 0;
  // Of startup, steady and ending: where they lie.
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  // The time that shares are of: of a marked stage until its mark ends, else until the last work.
  std::int64_t base_ns() const {
    return stage.kind == RowKind::kStage ? ledger.window_ns - ledger.unrecorded_before_ns()
                                         : ledger.work_ns();
  }
};

// A stage: number of instances, duration on the host, and GPU time of its launches.
struct StageRow {
  RowName stage;
  bool is_nested = false;  // decode_step inside decode
  std::int64_t num_instances = 0;
  std::int64_t num_open = 0;  // still open when the recording ended: in no mean
  std::int64_t total_ns = 0;  // host time, closed instances
  std::int64_t min_ns = 0;
  std::int64_t median_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t first_ns =
      0;  // the first one: where a capture begins with it, the profiler stretches it
  std::optional<std::int64_t>
      steady_mean_ns;          // of all but the first; nullopt if there are no others
  std::int64_t kernel_ns = 0;  // sum over its kernels, and opaque graphs
  std::int64_t num_kernels = 0;
  std::int64_t num_graph_kernels = 0;  // of these, launched as part of a CUDA graph
  std::optional<std::int64_t> tokens;  // sum of what the marks carried
};

// Time of all kernels of one family.
struct FamilyRow {
  std::string family;
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
};

// One instance of a stage, counted once for all ranks of its group. Three lengths that must not be
// mixed: the host range (the mark), the GPU window, and the period.
struct StageStep {
  std::uint32_t stage = 0;     // into Analysis::stages as profile() left it
  std::uint32_t instance = 0;  // into Profile::stages.instances
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;  // of the mark, on the host
  bool is_open = false;
  bool is_step = false;      // one forward pass; else a loop of them
  std::uint32_t number = 0;  // of a step: number_steps()
  std::optional<std::int64_t> tokens;
  std::optional<std::int64_t> sequences;
  StepCounts counts = {};
  std::uint32_t group = 0;  // into Analysis::rank_groups
  // On the GPUs of the group; nullopt if it launched no GPU work.
  std::optional<std::int64_t> gpu_start_ns;   // its first kernel on any of them
  std::optional<std::int64_t> gpu_window_ns;  // to the end of its last work on any of them
  std::optional<std::int64_t> gpu_work_ns;    // its own work runs, on the busiest of them
  // From its first kernel to that of the group's next step. nullopt: the last one, or a pause
  // follows.
  std::optional<std::int64_t> period_ns;
  bool is_before_same = false;  // the next step is of the same stage
  bool is_steady = false;       // in the steady window of its stage
};

// Everything that was found in a recording. Filled by profile() and complete().
struct Analysis {
  std::string absent;       // why there is no recording at all; empty: there is one
  std::string absent_next;  // what to do about that
  CaptureInfo capture;
  bool is_summary = false;  // made of a kernel summary: no timestamps, no stages, no devices
  std::int64_t capture_start_ns = 0;
  std::int64_t capture_ns = 0;  // from the first recorded event to the last
  std::string stage_source;     // source of the stages, in words
  std::string engine;           // whose step markers they are; empty: no engine's
  std::vector<StageRow> stages;
  std::vector<StageTimes> stage_times;   // of the same stages
  std::vector<StageTimes> baseline;      // of the pass without a profiler; empty: there was none
  std::vector<StageOverhead> overheads;  // of this recording against it
  std::vector<StageStep> steps;
  std::vector<RankGroupSummary> rank_groups;  // processes with marks
  std::string steady_window;                  // which decode steps are the steady window, and why
  std::vector<KernelRow> kernels;             // by total time, then by name, device, stage
  std::vector<LaunchGroup> launch_groups;     // by total time
  std::vector<FamilyRow> families;            // by total time
  // Stages in order, then startup, steady and ending phase where they differ, then the whole
  // capture; each by device.
  std::vector<LedgerRow> ledgers;
  std::vector<LedgerHistory> ledger_history;  // of the capture, by device as in Trace::devices
  std::vector<RangeTotal> ranges;             // by kernel time
  std::vector<HostPhase> host_phases;         // by host time
  std::vector<PossibleMark> possible_marks;   // by kernel time; none where stages are known
  std::vector<DeviceRow> devices;
  std::vector<CopyRow> copies;              // by device, then by time
  std::vector<KernelChains> kernel_chains;  // by device and stage
  // API calls, and how many there were by their numbers; launches that were captured into a graph
  // instead of run.
  std::int64_t num_calls = 0;
  std::int64_t num_numbered_calls = 0;
  std::int64_t num_captured_launches = 0;
  std::int64_t kernel_ns = 0;
  std::int64_t unattributed_ns =
      0;  // of kernel_ns: launched in no stage, or the launch was not recorded
  std::int64_t opaque_graph_ns = 0;           // of kernel_ns: CUDA graphs recorded as a whole
  std::int64_t stage_overlap_ns = 0;          // stage windows (all but nested) minus their union
  std::int64_t outside_ns = 0;                // of the capture: in no stage's window
  std::vector<std::string> unmatched_names;   // kernels of family other, by time, when it is large
  std::optional<JoinedCounters> counters;     // nullopt: no ncu capture
  std::optional<Efficiency> efficiency;       // nullopt: no model
  std::vector<Composition> compositions;      // by stage, then sequences
  std::optional<RequestsSummary> requests;    // nullopt: no file of requests
  std::optional<StructureSummary> structure;  // nullopt: a summary, or no kernels
  std::optional<Operators> operators;         // nullopt: no source of names
  std::optional<GraphNames> graph_names;      // nullopt: no kernel was launched by a CUDA graph
  Findings findings;                          // what to fix first; filled when all else is there
  Diagnostics diagnostics;
};

// The analysis of a kernel summary: no stages, no ledger, no devices.
Analysis analyze_summary(const KernelSummary& summary, const Rules& rules);

}  // namespace gpuwhy
