// SPDX-License-Identifier: Apache-2.0
//
// Time ledger: every nanosecond of a window on one GPU, assigned to exactly one bucket.
//
// Buckets are integers and sum to the window; each window is checked.
//
//   GPU   ..[ compute ]....[ copy ][ compute ]......
//   host  |launch      sync=====|launch             |
//         window                                    window end
//         ^late         ^sync                 ^tail
//
// The work of a GPU is sorted once by start. A window is swept from left to right while the running
// work is counted by kind; each interval goes to the kind that comes first in the order of Bucket.
// An interval without work is a gap, and the work that ends the gap determines its cause: when it
// was launched, and what the launching thread was doing when the gap opened.
//
// A stage's window begins with the host range and ends with the range or with the last work
// launched in it, whichever is later, but not after the next instance of the same stage on the same
// thread has begun. Windows of different stages overlap if the GPU lags behind the host; the
// overlap is reported.
//
// Limitation: each gap gets a single cause, taken from the operation that ends it. The part of the
// gap during which the host was in the sync call, or had already launched, is counted separately.
#include "analysis/ledger.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <queue>

#include <fmt/format.h>

#include "analysis/sync_calls.h"
#include "base/error.h"
#include "trace/filter.h"

namespace llmprof {

const std::array<const char*, kNumBuckets> kBucketNames = {
    "compute", "comm",        "copy",   "other_stage",  "unattributed", "graph",
    "sync",    "launch_late", "queued", "unknown_idle", "tail"};

std::int64_t Ledger::sum_ns() const {
  return std::accumulate(buckets_ns.begin(), buckets_ns.end(), std::int64_t{0});
}

void Ledger::add(const Ledger& other) {
  window_ns += other.window_ns;
  lead_ns += other.lead_ns;
  sync_held_ns += other.sync_held_ns;
  after_launch_ns += other.after_launch_ns;
  for (std::size_t i = 0; i < kNumBuckets; ++i) {
    buckets_ns[i] += other.buckets_ns[i];
  }
}

void check_conservation(const Ledger& ledger) {
  if (ledger.sum_ns() != ledger.window_ns) {
    throw Error(ErrorKind::kFailure,
                fmt::format("internal error: the buckets of a window sum to {} ns, its length is "
                            "{} ns",
                            ledger.sum_ns(), ledger.window_ns),
                "please report it, with the recording if it may be shared");
  }
}

namespace {

// A kernel, copy or graph, as far as the sweep needs it. 40 bytes, for one GPU at a time.
struct Work {
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::uint32_t call;
  std::uint32_t instance;
  std::uint32_t nested;
  Bucket kind;  // compute, comm or copy
  bool is_graph_node;
};

// All work of one GPU by start, and for each piece the latest end of all work up to it.
struct DeviceWork {
  std::vector<Work> work;
  std::size_t end_of_kernels = 0;
  std::vector<std::int64_t> reach;

  // Work that starts together is ordered by kind and launch time, never by row: the order of rows
  // in a file is arbitrary.
  void prepare(const Trace& trace) {
    const auto launch_ns = [&](const Work& one) {
      return one.call == kNone ? INT64_MIN : trace.api_calls.start_ns[one.call];
    };
    const auto order = [&](const Work& a, const Work& b) {
      if (a.start_ns != b.start_ns) {
        return a.start_ns < b.start_ns;
      }
      return std::tuple(a.end_ns, a.kind, launch_ns(a)) <
             std::tuple(b.end_ns, b.kind, launch_ns(b));
    };
    // Kernels, copies and graphs are adjacent, each mostly sorted already.
    const auto middle = work.begin() + static_cast<std::ptrdiff_t>(end_of_kernels);
    const auto sort_part = [&](auto from, auto to) {
      if (!std::is_sorted(from, to, order)) {
        std::sort(from, to, order);
      }
    };
    sort_part(work.begin(), middle);
    sort_part(middle, work.end());
    std::inplace_merge(work.begin(), middle, work.end(), order);
    reach.resize(work.size());
    std::int64_t furthest = INT64_MIN;
    for (std::size_t i = 0; i < work.size(); ++i) {
      furthest = std::max(furthest, work[i].end_ns);
      reach[i] = furthest;
    }
  }

  // The first piece that may still run at `time_ns`.
  std::size_t first_at(std::int64_t time_ns) const {
    return static_cast<std::size_t>(std::upper_bound(reach.begin(), reach.end(), time_ns) -
                                    reach.begin());
  }
};

// One pass over a window from left to right.
class Sweep {
 public:
  Sweep(const Trace& trace, const SyncCalls& syncs, const DeviceWork& device,
        LedgerHistory* history = nullptr)
      : trace_(trace), syncs_(syncs), device_(device), history_(history) {}

  // `kind_of` returns the bucket of a piece of work in this window; `on_gap` receives the gaps, as
  // (cause, start_ns, end_ns).
  template <typename KindOf, typename OnGap>
  Ledger run(std::int64_t start_ns, std::int64_t end_ns, KindOf kind_of, OnGap on_gap) {
    Ledger ledger;
    ledger.window_ns = end_ns - start_ns;
    ledger_ = &ledger;
    time_ns_ = start_ns;
    num_running_.fill(0);
    const Work* previous = nullptr;
    for (std::size_t i = device_.first_at(start_ns);
         i < device_.work.size() && device_.work[i].start_ns < end_ns; ++i) {
      const Work& work = device_.work[i];
      if (work.end_ns <= start_ns || work.end_ns == work.start_ns) {
        continue;
      }
      advance(std::max(work.start_ns, start_ns));
      if (ends_.empty() && time_ns_ < work.start_ns) {
        const Bucket cause = judge_gap(previous, work);
        const bool is_lead = time_ns_ == start_ns && cause == Bucket::kLaunchLate;
        ledger.lead_ns = is_lead ? work.start_ns - start_ns : ledger.lead_ns;
        on_gap(cause, time_ns_, work.start_ns);
        put(cause, work.start_ns);
      }
      const Bucket kind = kind_of(work);
      ends_.push({std::min(work.end_ns, end_ns), kind});
      ++num_running_[static_cast<std::size_t>(kind)];
      previous = &work;
    }
    advance(end_ns);
    if (time_ns_ < end_ns) {
      on_gap(Bucket::kTail, time_ns_, end_ns);
    }
    put(Bucket::kTail, end_ns);
    assert(ends_.empty());
    check_conservation(ledger);
    return ledger;
  }

  template <typename KindOf>
  Ledger run(std::int64_t start_ns, std::int64_t end_ns, KindOf kind_of) {
    return run(start_ns, end_ns, kind_of, [](Bucket, std::int64_t, std::int64_t) {});
  }

 private:
  struct End {
    std::int64_t time_ns;
    Bucket kind;
    bool operator>(const End& other) const { return time_ns > other.time_ns; }
  };

  void put(Bucket bucket, std::int64_t until_ns) {
    ledger_->buckets_ns[static_cast<std::size_t>(bucket)] += until_ns - time_ns_;
    if (history_ != nullptr) {
      history_->add(bucket, time_ns_, until_ns);
    }
    time_ns_ = until_ns;
  }

  Bucket running() const {
    std::size_t kind = 0;
    while (num_running_[kind] == 0) {
      ++kind;
    }
    return static_cast<Bucket>(kind);
  }

  // Assigns the time up to `until_ns` to the running work; stops when nothing runs.
  void advance(std::int64_t until_ns) {
    while (!ends_.empty()) {
      const End next = ends_.top();
      put(running(), std::min(next.time_ns, until_ns));
      if (next.time_ns > until_ns) {
        return;
      }
      ends_.pop();
      --num_running_[static_cast<std::size_t>(next.kind)];
    }
  }

  // The cause of the gap that `next` ends. Adds the breakdown of the gap to the ledger.
  Bucket judge_gap(const Work* previous, const Work& next) {
    if (next.call == kNone) {
      return Bucket::kUnknownIdle;
    }
    if (previous != nullptr && next.is_graph_node && previous->call == next.call) {
      return Bucket::kGraph;
    }
    const std::int64_t launch_ns = trace_.api_calls.start_ns[next.call];
    const std::uint32_t thread = trace_.api_calls.thread[next.call];
    if (const auto held_until_ns = syncs_.held_until(thread, time_ns_, launch_ns)) {
      ledger_->sync_held_ns += std::min(*held_until_ns, next.start_ns) - time_ns_;
      return Bucket::kSync;
    }
    if (launch_ns <= time_ns_) {
      return Bucket::kQueued;
    }
    const std::int64_t launched_ns = trace_.api_calls.end_ns[next.call];
    ledger_->after_launch_ns += next.start_ns - std::clamp(launched_ns, time_ns_, next.start_ns);
    return Bucket::kLaunchLate;
  }

  const Trace& trace_;
  const SyncCalls& syncs_;
  const DeviceWork& device_;
  LedgerHistory* history_;
  Ledger* ledger_ = nullptr;
  std::int64_t time_ns_ = 0;
  std::array<int, kNumBuckets> num_running_{};
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

bool has_lower_device(const StageLedger& a, const StageLedger& b) {
  return a.device < b.device;
}

// Computes the ledgers of all stages, phases and the capture.
class LedgerMaker {
 public:
  LedgerMaker(const Trace& trace, const Stages& stages, const Attribution& attribution,
              const IsCommunication& is_communication, const std::vector<bool>& is_model)
      : trace_(trace), stages_(stages), syncs_(trace), devices_(trace.devices.size()) {
    make_room();
    collect(trace.kernels, attribution.kernels, [&](std::size_t row) {
      return is_communication[static_cast<std::size_t>(trace.kernels.name[row])] ? Bucket::kComm
                                                                                 : Bucket::kCompute;
    });
    for (DeviceWork& device : devices_) {
      device.end_of_kernels = device.work.size();
    }
    collect(trace.copies, attribution.copies, [](std::size_t) { return Bucket::kCopy; });
    collect(trace.graphs, attribution.graphs, [](std::size_t) { return Bucket::kCompute; });
    for (DeviceWork& device : devices_) {
      device.prepare(trace);
    }
    set_windows();
    if (!is_model.empty() && stages.names == std::vector<std::string>{"all"}) {
      find_model_starts(is_model);
    }
  }

  // Sweeps every stage first, then every device from the start to the end of the capture. Gaps are
  // reported from the sweep of the capture only, so that each is reported once.
  LedgerResult run(std::int64_t start_ns, std::int64_t end_ns, const GapSink& on_gap) {
    LedgerResult result;
    for (std::uint32_t stage = 0; stage < stages_.names.size(); ++stage) {
      add_stage(stage, result);
    }
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      LedgerHistory& history = result.history.emplace_back(start_ns, end_ns);
      Sweep sweep(trace_, syncs_, devices_[device], &history);
      const Ledger ledger = sweep.run(
          start_ns, end_ns, [](const Work& work) { return work.kind; },
          [&](Bucket cause, std::int64_t from_ns, std::int64_t to_ns) {
            if (on_gap) {
              on_gap(device, cause, from_ns, to_ns);
            }
          });
      result.capture.push_back({"capture", device_name(device), 1, ledger});
      add_phases(device, ledger, end_ns, result);
      // Busy: the device executed something, whichever stage it belongs to.
      result.busy_ns.push_back(ledger[Bucket::kCompute] + ledger[Bucket::kComm] +
                               ledger[Bucket::kCopy]);
    }
    std::sort(result.capture.begin(), result.capture.end(), has_lower_device);
    std::stable_sort(result.phases.begin(), result.phases.end(), has_lower_device);
    add_coverage(start_ns, end_ns, result);
    return result;
  }

 private:
  std::string device_name(std::size_t device) const {
    return fmt::format("cuda:{}", trace_.devices[device].ordinal);
  }

  void find_model_starts(const std::vector<bool>& is_model) {
    model_start_ns_.assign(devices_.size(), INT64_MAX);
    const auto lower = [&](std::uint16_t device, std::int64_t start_ns) {
      model_start_ns_[device] = std::min(model_start_ns_[device], start_ns);
    };
    for (std::size_t row = 0; row < trace_.kernels.size(); ++row) {
      // A kernel of zero length would leave the boundary inside a gap.
      if (is_model[static_cast<std::size_t>(trace_.kernels.name[row])] &&
          trace_.kernels.start_ns[row] < trace_.kernels.end_ns[row]) {
        lower(trace_.kernels.device[row], trace_.kernels.start_ns[row]);
      }
    }
    for (std::size_t row = 0; row < trace_.graphs.size(); ++row) {
      if (trace_.graphs.start_ns[row] < trace_.graphs.end_ns[row]) {
        lower(trace_.graphs.device[row], trace_.graphs.start_ns[row]);
      }
    }
  }

  // The part that is not steady is startup: a difference, so that a gap that ends with the first
  // model kernel keeps its cause.
  void add_phases(std::size_t device, const Ledger& capture, std::int64_t end_ns,
                  LedgerResult& result) const {
    constexpr std::int64_t kLeastPart = 20;  // a phase is at least this fraction (1/20)
    const std::int64_t from_ns = device < model_start_ns_.size() ? model_start_ns_[device] : end_ns;
    if (from_ns >= end_ns) {
      return;
    }
    const std::int64_t startup_ns = capture.window_ns - (end_ns - from_ns);
    if (startup_ns * kLeastPart < capture.window_ns) {
      return;
    }
    Sweep sweep(trace_, syncs_, devices_[device]);
    const Ledger steady = sweep.run(from_ns, end_ns, [](const Work& work) { return work.kind; });
    Ledger startup = capture;
    startup.window_ns -= steady.window_ns;
    startup.sync_held_ns -= steady.sync_held_ns;
    startup.after_launch_ns -= steady.after_launch_ns;
    for (std::size_t i = 0; i < kNumBuckets; ++i) {
      startup.buckets_ns[i] -= steady.buckets_ns[i];
    }
    result.phases.push_back({"startup", device_name(device), 1, startup});
    result.phases.push_back({"steady", device_name(device), 1, steady});
  }

  // Reserved for all tables at once: a growing list exists twice while it is moved, when memory use
  // is highest anyway.
  void make_room() {
    std::vector<std::size_t> counts(devices_.size());
    for (const auto* column :
         {&trace_.kernels.device, &trace_.copies.device, &trace_.graphs.device}) {
      for (const std::uint16_t device : *column) {
        ++counts[device];
      }
    }
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      devices_[device].work.reserve(counts[device]);
    }
  }

  template <typename Table, typename KindOf>
  void collect(const Table& table, const Origins& origins, KindOf kind_of) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      bool is_graph_node = false;
      if constexpr (requires { table.is_graph_node; }) {
        is_graph_node = table.is_graph_node[row] != 0;
      }
      devices_[table.device[row]].work.push_back(
          {table.start_ns[row], table.end_ns[row], origins.call[row], origins.instance[row],
           origins.nested[row], kind_of(row), is_graph_node});
    }
  }

  // The end of each instance's window, and the devices of its work.
  void set_windows() {
    window_end_ns_.reserve(stages_.instances.size());
    for (const StageInstance& instance : stages_.instances) {
      window_end_ns_.push_back(instance.end_ns);
    }
    devices_of_.resize(stages_.instances.size());
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      for (const Work& work : devices_[device].work) {
        for (const std::uint32_t instance : {work.instance, work.nested}) {
          if (instance == kNone) {
            continue;
          }
          window_end_ns_[instance] = std::max(window_end_ns_[instance], work.end_ns);
          std::vector<std::uint16_t>& used = devices_of_[instance];
          if (used.empty() || used.back() != device) {
            used.push_back(static_cast<std::uint16_t>(device));
          }
        }
      }
    }
    clip_windows();
    check_sum();
  }

  // Windows of many threads overlap, so nothing else limits their sum.
  void check_sum() const {
    double sum_ns = 0;
    for (std::size_t i = 0; i < window_end_ns_.size(); ++i) {
      sum_ns += static_cast<double>(window_end_ns_[i] - stages_.instances[i].start_ns) *
                static_cast<double>(devices_of_[i].size());
    }
    require_sum_fits(sum_ns, "stages");
  }

  // A window must not extend into the next instance of the same stage on the same thread.
  void clip_windows() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
        last;  // (stage, thread) -> instance
    for (std::uint32_t i = 0; i < stages_.instances.size(); ++i) {
      const StageInstance& instance = stages_.instances[i];
      const auto [entry, is_first] = last.try_emplace({instance.stage, instance.thread}, i);
      if (!is_first) {
        std::int64_t& end = window_end_ns_[entry->second];
        end = std::max(stages_.instances[entry->second].start_ns, std::min(end, instance.start_ns));
        entry->second = i;
      }
    }
  }

  // One ledger per device that the stage used, summed over its instances. Within an instance's
  // window, work of other instances is other_stage and work of no stage is unattributed.
  void add_stage(std::uint32_t stage, LedgerResult& result) {
    std::map<std::uint16_t, StageLedger> by_device;
    for (std::uint32_t i = 0; i < stages_.instances.size(); ++i) {
      const StageInstance& instance = stages_.instances[i];
      if (instance.stage != stage) {
        continue;
      }
      for (const std::uint16_t device : devices_of_[i]) {
        Sweep sweep(trace_, syncs_, devices_[device]);
        const bool is_nested = stages_.is_nested[stage];
        const Ledger ledger =
            sweep.run(instance.start_ns, window_end_ns_[i], [&](const Work& work) {
              if ((is_nested ? work.nested : work.instance) == i) {
                return work.kind;
              }
              const bool is_in_none = work.instance == kNone && work.nested == kNone;
              return is_in_none ? Bucket::kUnattributed : Bucket::kOtherStage;
            });
        StageLedger& sum = by_device[device];
        sum.stage = stages_.names[stage];
        sum.device = device_name(device);
        ++sum.num_instances;
        sum.ledger.add(ledger);
      }
    }
    const auto first = static_cast<std::ptrdiff_t>(result.stages.size());
    for (auto& [device, ledger] : by_device) {
      result.stages.push_back(std::move(ledger));
    }
    std::sort(result.stages.begin() + first, result.stages.end(), has_lower_device);
  }

  // How the windows of stages (except nested ones) cover the capture.
  void add_coverage(std::int64_t start_ns, std::int64_t end_ns, LedgerResult& result) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> windows;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < stages_.instances.size(); ++i) {
      if (stages_.is_nested[stages_.instances[i].stage]) {
        continue;
      }
      const std::int64_t from = std::max(start_ns, stages_.instances[i].start_ns);
      const std::int64_t to = std::min(end_ns, window_end_ns_[i]);
      if (from < to) {
        windows.emplace_back(from, to);
        sum += to - from;
      }
    }
    std::sort(windows.begin(), windows.end());
    std::int64_t covered = 0;
    std::int64_t reach = start_ns;
    for (const auto& [from, to] : windows) {
      covered += std::max<std::int64_t>(0, to - std::max(from, reach));
      reach = std::max(reach, to);
    }
    result.overlap_ns = sum - covered;
    result.outside_ns = (end_ns - start_ns) - covered;
  }

  const Trace& trace_;
  const Stages& stages_;
  SyncCalls syncs_;
  std::vector<DeviceWork> devices_;
  std::vector<std::int64_t> model_start_ns_;            // by device; empty: there are no phases
  std::vector<std::int64_t> window_end_ns_;             // by instance
  std::vector<std::vector<std::uint16_t>> devices_of_;  // by instance
};

}  // namespace

LedgerResult make_ledgers(const Trace& trace, const Stages& stages, const Attribution& attribution,
                          const IsCommunication& is_communication, std::int64_t start_ns,
                          std::int64_t end_ns, const std::vector<bool>& is_model,
                          const GapSink& on_gap) {
  return LedgerMaker(trace, stages, attribution, is_communication, is_model)
      .run(start_ns, end_ns, on_gap);
}

}  // namespace llmprof
