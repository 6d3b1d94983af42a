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
// An interval without work goes to the cause of the GPU's gap there (analysis/gaps), which is
// judged once, for the whole gap: a window that ends inside it inherits the cause.
//
// Windows of stages and steps come from analysis/step_windows. Those of different stages overlap
// where their work does; the overlap is reported.
#include "analysis/ledger.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <queue>

#include <fmt/format.h>

#include "analysis/device_work.h"
#include "analysis/gaps.h"
#include "analysis/idle_causes.h"
#include "analysis/wait_calls.h"
#include "base/error.h"
#include "trace/device_label.h"
#include "trace/filter.h"

namespace llmprof {

const std::array<const char*, kNumBuckets> kBucketNames = {
    "compute",     "comm",         "copy",   "other_stage",  "unattributed", "graph", "sync",
    "launch_late", "started_late", "queued", "unknown_idle", "unrecorded",   "tail"};

std::int64_t Ledger::sum_ns() const {
  return std::accumulate(buckets_ns.begin(), buckets_ns.end(), std::int64_t{0});
}

void Ledger::add(const Ledger& other) {
  window_ns += other.window_ns;
  lead_ns += other.lead_ns;
  host_wait_ns += other.host_wait_ns;
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

// Idle time of a ledger by cause.
class CauseTotals {
 public:
  void add(const Gap& gap, std::int64_t time_ns) {
    std::vector<IdleCause>& totals = gap.cause == Bucket::kUnrecorded ? unrecorded_ : in_work_;
    if (totals.size() <= gap.label) {
      totals.resize(gap.label + 1);
    }
    IdleCause& total = totals[gap.label];
    total.bucket = gap.cause;
    ++total.num_gaps;
    total.total_ns += time_ns;
    total.in_call_ns += std::min(time_ns, gap.in_call_ns);
    total.longest_ns = std::max(total.longest_ns, time_ns);
  }

  // Largest first.
  std::vector<IdleCause> list(const std::vector<IdleLabel>& labels) const {
    std::vector<IdleCause> causes;
    for (const std::vector<IdleCause>* totals : {&in_work_, &unrecorded_}) {
      for (std::size_t label = 0; label < totals->size(); ++label) {
        if ((*totals)[label].num_gaps > 0) {
          causes.push_back((*totals)[label]);
          causes.back().label = labels[label];
        }
      }
    }
    std::sort(causes.begin(), causes.end(), [](const IdleCause& a, const IdleCause& b) {
      return std::tie(b.total_ns, a.bucket, a.label) < std::tie(a.total_ns, b.bucket, b.label);
    });
    return causes;
  }

 private:
  // By label. One of waiting is always sync, all others are launch_late or unrecorded.
  std::vector<IdleCause> in_work_;
  std::vector<IdleCause> unrecorded_;
};

// One pass over a window from left to right.
class Sweep {
 public:
  Sweep(const DeviceWork& device, const std::deque<Gap>& gaps, CauseTotals& causes,
        LedgerHistory* history = nullptr)
      : device_(device), gaps_(gaps), causes_(causes), history_(history) {}

  // `kind_of` returns the bucket of a piece of work in this window; `on_gap` receives the gaps, as
  // (cause, start_ns, end_ns).
  template <typename KindOf, typename OnGap>
  Ledger run(std::int64_t start_ns, std::int64_t end_ns, KindOf kind_of, OnGap on_gap) {
    Ledger ledger;
    ledger.window_ns = end_ns - start_ns;
    ledger_ = &ledger;
    time_ns_ = start_ns;
    num_running_.fill(0);
    gap_ = first_gap(start_ns);
    bool is_first = true;
    for (std::size_t i = device_.first_at(start_ns);
         i < device_.work.size() && device_.work[i].start_ns < end_ns; ++i) {
      const Work& work = device_.work[i];
      if (work.end_ns <= start_ns || work.end_ns == work.start_ns) {
        continue;
      }
      advance(std::max(work.start_ns, start_ns));
      if (ends_.empty()) {
        const std::int64_t host_ns = idle(work.start_ns, on_gap);
        ledger.lead_ns = is_first ? host_ns : ledger.lead_ns;
      }
      is_first = false;
      const Bucket kind = kind_of(work);
      // Work that runs alone, as nearly all does, needs no queue.
      const bool is_last = i + 1 == device_.work.size();
      if (ends_.empty() && (is_last || device_.work[i + 1].start_ns >= work.end_ns)) {
        put(kind, std::min(work.end_ns, end_ns));
        continue;
      }
      ends_.push({std::min(work.end_ns, end_ns), kind});
      ++num_running_[static_cast<std::size_t>(kind)];
    }
    advance(end_ns);
    const std::int64_t host_ns = idle(end_ns, on_gap);
    ledger.lead_ns = is_first ? host_ns : ledger.lead_ns;
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

  // The first gap that ends after `time_ns`.
  std::deque<Gap>::const_iterator first_gap(std::int64_t time_ns) const {
    return std::upper_bound(gaps_.begin(), gaps_.end(), time_ns,
                            [](std::int64_t t, const Gap& one) { return t < one.end_ns; });
  }

  // Assigns idle time up to `until_ns` to the causes of the GPU's gaps. Returns how long the host
  // was late.
  template <typename OnGap>
  std::int64_t idle(std::int64_t until_ns, OnGap on_gap) {
    std::int64_t host_ns = 0;
    while (time_ns_ < until_ns) {
      while (gap_ != gaps_.end() && gap_->end_ns <= time_ns_) {
        ++gap_;
      }
      assert(gap_ != gaps_.end() && gap_->start_ns <= time_ns_);
      const Gap& gap = *gap_;
      const std::int64_t to_ns = std::min(gap.end_ns, until_ns);
      if (gap.is_host) {
        causes_.add(gap, to_ns - time_ns_);
        host_ns += gap.cause == Bucket::kSync ? 0 : to_ns - time_ns_;
      }
      on_gap(gap.cause, time_ns_, to_ns);
      put(gap.cause, to_ns);
    }
    return host_ns;
  }

  const DeviceWork& device_;
  const std::deque<Gap>& gaps_;
  CauseTotals& causes_;
  LedgerHistory* history_;
  Ledger* ledger_ = nullptr;
  std::deque<Gap>::const_iterator gap_;
  std::int64_t time_ns_ = 0;
  std::array<int, kNumBuckets> num_running_{};
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

bool has_lower_device(const StageLedger& a, const StageLedger& b) {
  return a.device < b.device;
}

// Part of a GPU's time in which the model works: after start-up and before what follows its last
// work.
struct WorkPhase {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;

  void cover(std::int64_t from_ns, std::int64_t to_ns) {
    start_ns = std::min(start_ns, from_ns);
    end_ns = std::max(end_ns, to_ns);
  }
};

// Computes the ledgers of all stages, phases and the capture.
class LedgerMaker {
  static constexpr std::int64_t kWarmUpNs =
      1'000'000;                                    // a shorter first use does not count as warm-up
  static constexpr std::int64_t kLeastPause = 100;  // this fraction (1/100) of the phase

 public:
  explicit LedgerMaker(const LedgerInput& input)
      : input_(input),
        trace_(input.trace),
        stages_(input.stages),
        waits_(input.trace, input.attribution.copies),
        causes_(input.trace, input.stages, input.attribution),
        devices_(input.trace.devices.size()),
        windows_of_(input.trace.devices.size()),
        phases_(input.trace.devices.size()) {
    make_room();
    collect(trace_.kernels, input.attribution.kernels, [&](std::size_t row) {
      return input.is_communication[static_cast<std::size_t>(trace_.kernels.name[row])]
                 ? Bucket::kComm
                 : Bucket::kCompute;
    });
    for (DeviceWork& device : devices_) {
      device.end_of_kernels = device.work.size();
    }
    collect(trace_.copies, input.attribution.copies, [](std::size_t) { return Bucket::kCopy; });
    collect(trace_.graphs, input.attribution.graphs, [](std::size_t) { return Bucket::kCompute; });
    for (DeviceWork& device : devices_) {
      device.prepare(trace_);
    }
    for (std::uint32_t i = 0; i < input.windows.size(); ++i) {
      windows_of_[input.windows[i].device].push_back(i);
    }
    check_sum();
    find_phases();
  }

  // One GPU after the other, so that only its gaps are in memory. Gaps are reported from the sweep
  // of the capture only, so that each is reported once.
  LedgerResult run() {
    LedgerResult result;
    result.own_ns.resize(input_.windows.size());
    for (std::size_t device = 0; device < devices_.size(); ++device) {
      add_device(static_cast<std::uint16_t>(device), result);
    }
    std::sort(result.capture.begin(), result.capture.end(), has_lower_device);
    std::stable_sort(result.phases.begin(), result.phases.end(), has_lower_device);
    add_stages(result);
    add_coverage(result);
    return result;
  }

 private:
  struct StageTotals {
    StageLedger row;
    CauseTotals causes;
  };

  std::string device_name(std::size_t device) const { return device_label(trace_.devices[device]); }

  void add_device(std::uint16_t device, LedgerResult& result) {
    std::int64_t from_ns = input_.start_ns;
    std::int64_t to_ns = input_.end_ns;
    for (const std::uint32_t i : windows_of_[device]) {
      from_ns = std::min(from_ns, input_.windows[i].start_ns);
      to_ns = std::max(to_ns, input_.windows[i].end_ns);
    }
    std::deque<Gap> gaps = find_gaps(trace_, waits_, devices_[device], from_ns, to_ns);
    causes_.name(device, gaps);
    include_what_follows(device);
    skip_warm_up(device, gaps);
    launcher_ = launcher_of(devices_[device]);
    find_unrecorded_waits(gaps);
    LedgerHistory& history = result.history.emplace_back(input_.start_ns, input_.end_ns);
    CauseTotals causes;
    Sweep sweep(devices_[device], gaps, causes, &history);
    Ledger ledger = sweep.run(
        input_.start_ns, input_.end_ns, [](const Work& work) { return work.kind; },
        [&](Bucket cause, std::int64_t gap_start_ns, std::int64_t gap_end_ns) {
          if (input_.on_gap) {
            input_.on_gap(device, cause, gap_start_ns, gap_end_ns);
          }
        });
    ledger.host_wait_ns = host_wait_ns(input_.start_ns, input_.end_ns);
    result.capture.push_back(
        {"capture", device_name(device), 1, ledger, causes.list(causes_.labels())});
    // Busy: the device executed something, whichever stage it belongs to.
    result.busy_ns.push_back(ledger[Bucket::kCompute] + ledger[Bucket::kComm] +
                             ledger[Bucket::kCopy]);
    add_phases(device, gaps, result);
    for (const std::uint32_t i : windows_of_[device]) {
      add_window(i, gaps, result);
    }
  }

  // Within an instance's window, work of other instances is other_stage and work of no stage is
  // unattributed.
  void add_window(std::size_t i, const std::deque<Gap>& gaps, LedgerResult& result) {
    const StepWindow& window = input_.windows[i];
    const std::uint32_t stage = stages_.instances[window.instance].stage;
    const bool is_nested = stages_.is_nested[stage];
    const auto kind_of = [&](const Work& work) {
      if ((is_nested ? work.nested : work.instance) == window.instance) {
        return work.kind;
      }
      const bool is_in_none = work.instance == kNone && work.nested == kNone;
      return is_in_none ? Bucket::kUnattributed : Bucket::kOtherStage;
    };
    // In two parts, because copies before the first kernel are not part of the GPU window.
    const std::int64_t middle_ns = std::clamp(window.gpu_start_ns, window.start_ns, window.end_ns);
    StageTotals& sum = by_stage_[{stage, window.device}];
    Sweep sweep(devices_[window.device], gaps, sum.causes);
    Ledger ledger = sweep.run(window.start_ns, middle_ns, kind_of);
    const Ledger on_gpu = sweep.run(middle_ns, window.end_ns, kind_of);
    result.own_ns[i] = on_gpu[Bucket::kCompute] + on_gpu[Bucket::kComm] + on_gpu[Bucket::kCopy];
    ledger.add(on_gpu);
    ledger.host_wait_ns = host_wait_ns(window.start_ns, window.end_ns);
    ++sum.row.num_instances;
    sum.row.ledger.add(ledger);
  }

  // One ledger per stage and GPU: stages in order, each by device.
  void add_stages(LedgerResult& result) {
    for (auto& [key, totals] : by_stage_) {
      totals.row.stage = stages_.names[key.first];
      totals.row.device = device_name(key.second);
      totals.row.causes = totals.causes.list(causes_.labels());
    }
    for (std::uint32_t stage = 0; stage < stages_.names.size(); ++stage) {
      const auto first = static_cast<std::ptrdiff_t>(result.stages.size());
      for (std::size_t device = 0; device < devices_.size(); ++device) {
        const auto row = by_stage_.find({stage, static_cast<std::uint16_t>(device)});
        if (row != by_stage_.end()) {
          result.stages.push_back(std::move(row->second.row));
        }
      }
      std::sort(result.stages.begin() + first, result.stages.end(), has_lower_device);
    }
  }

  // Where the model works on each GPU: its steps and stages if they are marked, else from the first
  // kernel of the model to the last. Capturing graphs is start-up.
  void find_phases() {
    if (stages_.names != std::vector<std::string>{"all"}) {
      for (const StepWindow& window : input_.windows) {
        if (stages_.names[stages_.instances[window.instance].stage] != "graph_capture") {
          phases_[window.device].cover(window.start_ns, window.end_ns);
        }
      }
      return;
    }
    if (input_.is_model.empty()) {
      return;
    }
    for (std::size_t row = 0; row < trace_.kernels.size(); ++row) {
      // A kernel of zero length would leave the boundary inside a gap.
      if (input_.is_model[static_cast<std::size_t>(trace_.kernels.name[row])] &&
          trace_.kernels.start_ns[row] < trace_.kernels.end_ns[row]) {
        phases_[trace_.kernels.device[row]].cover(trace_.kernels.start_ns[row],
                                                  trace_.kernels.end_ns[row]);
      }
    }
    for (std::size_t row = 0; row < trace_.graphs.size(); ++row) {
      if (trace_.graphs.start_ns[row] < trace_.graphs.end_ns[row]) {
        phases_[trace_.graphs.device[row]].cover(trace_.graphs.start_ns[row],
                                                 trace_.graphs.end_ns[row]);
      }
    }
  }

  // Work that follows the model's last kernel without a pause is still the model's: results that
  // are copied back.
  void include_what_follows(std::uint16_t device) {
    WorkPhase& phase = phases_[device];
    if (stages_.names != std::vector<std::string>{"all"} || phase.start_ns >= phase.end_ns) {
      return;
    }
    const std::vector<Work>& work = devices_[device].work;
    for (std::size_t i = devices_[device].first_at(phase.end_ns); i < work.size(); ++i) {
      if (work[i].start_ns - phase.end_ns > (phase.end_ns - phase.start_ns) / kLeastPause) {
        return;
      }
      phase.end_ns = std::max(phase.end_ns, work[i].end_ns);
    }
  }

  // A first pass that loads its code is start-up: the model works steadily after its last first use
  // that leaves half of its kernels to come. Marks say themselves where a step begins.
  void skip_warm_up(std::uint16_t device, const std::deque<Gap>& gaps) {
    WorkPhase& phase = phases_[device];
    if (stages_.names != std::vector<std::string>{"all"} || phase.start_ns >= phase.end_ns) {
      return;
    }
    const std::vector<Work>& work = devices_[device].work;
    const auto after = [&](std::int64_t time_ns) {
      return std::lower_bound(work.begin(), work.end(), time_ns,
                              [](const Work& one, std::int64_t t) { return one.start_ns < t; });
    };
    const auto last = after(phase.end_ns);
    const std::ptrdiff_t num_all = last - after(phase.start_ns);
    for (auto gap = gaps.rbegin(); gap != gaps.rend() && gap->end_ns > phase.start_ns; ++gap) {
      const bool is_first_use = causes_.labels()[gap->label].kind == IdleKind::kFirstUse;
      if (!is_first_use || gap->end_ns - gap->start_ns < kWarmUpNs) {
        continue;
      }
      auto next = after(gap->end_ns);
      while (next != last && next->start_ns == next->end_ns) {
        ++next;  // would leave the boundary inside a gap
      }
      if (next != last && (last - next) * 2 >= num_all) {
        phase.start_ns = next->start_ns;
        return;
      }
    }
  }

  void name_main_call(std::int64_t start_ns, std::int64_t end_ns, StageLedger& row) const {
    std::map<StringId, std::int64_t> by_name;
    const ApiCalls& calls = trace_.api_calls;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const std::int64_t from_ns = std::max(start_ns, calls.start_ns[i]);
      const std::int64_t to_ns = std::min(end_ns, calls.end_ns[i]);
      if (from_ns < to_ns) {
        by_name[calls.name[i]] += to_ns - from_ns;
      }
    }
    for (const auto& [id, time_ns] : by_name) {
      const std::string_view name = trace_.strings[id];
      // Threads add up, so a third of the time in calls may be more than all of it.
      if (time_ns * 3 >= end_ns - start_ns &&
          (time_ns > row.main_call_ns || (time_ns == row.main_call_ns && name < row.main_call))) {
        row.main_call = std::string(name);
        row.main_call_ns = time_ns;
      }
    }
  }

  // The thread that launched most work of the GPU; the first one of several.
  std::uint32_t launcher_of(const DeviceWork& device) const {
    std::map<std::uint32_t, std::size_t> launches;
    for (const Work& work : device.work) {
      if (work.call != kNone) {
        ++launches[trace_.api_calls.thread[work.call]];
      }
    }
    const auto most =
        std::max_element(launches.begin(), launches.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == launches.end() ? kNone : most->first;
  }

  // Waits for work that was not recorded are left out, as that time is.
  std::int64_t host_wait_ns(std::int64_t start_ns, std::int64_t end_ns) const {
    return launcher_ == kNone ? 0
                              : waits_.waited_ns(launcher_, start_ns, end_ns) -
                                    (unrecorded_waits_ns(end_ns) - unrecorded_waits_ns(start_ns));
  }

  // Time in unrecorded gaps up to some time, as far as the launching thread waited in them.
  struct UnrecordedWait {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t before_ns = 0;  // waited in the gaps before
  };

  void find_unrecorded_waits(const std::deque<Gap>& gaps) {
    unrecorded_.clear();
    std::int64_t sum_ns = 0;
    for (const Gap& gap : gaps) {
      if (gap.cause == Bucket::kUnrecorded && launcher_ != kNone) {
        unrecorded_.push_back({gap.start_ns, gap.end_ns, sum_ns});
        sum_ns += waits_.waited_ns(launcher_, gap.start_ns, gap.end_ns);
      }
    }
  }

  std::int64_t unrecorded_waits_ns(std::int64_t time_ns) const {
    const auto after = std::upper_bound(
        unrecorded_.begin(), unrecorded_.end(), time_ns,
        [](std::int64_t t, const UnrecordedWait& one) { return t < one.start_ns; });
    if (after == unrecorded_.begin()) {
      return 0;
    }
    const UnrecordedWait& last = *std::prev(after);
    return last.before_ns +
           waits_.waited_ns(launcher_, last.start_ns, std::min(time_ns, last.end_ns));
  }

  // The capture in up to three parts that sum to it. A part that is too short is not worth a row.
  void add_phases(std::uint16_t device, const std::deque<Gap>& gaps, LedgerResult& result) {
    constexpr std::int64_t kLeastPart = 20;  // a phase is at least this fraction (1/20)
    const std::int64_t start_ns = input_.start_ns;
    const std::int64_t end_ns = input_.end_ns;
    const WorkPhase& work = phases_[device];
    if (work.start_ns >= work.end_ns) {
      return;
    }
    const auto is_worth_it = [&](std::int64_t part_ns, std::int64_t whole_ns) {
      return part_ns > 0 && part_ns >= whole_ns / kLeastPart;
    };
    const bool has_startup = is_worth_it(work.start_ns - start_ns, end_ns - start_ns);
    // What follows is compared with the work: after a long start-up, a tail as long as the work
    // would count as work.
    const bool has_ending = is_worth_it(end_ns - work.end_ns, work.end_ns - work.start_ns);
    const std::int64_t from_ns = has_startup ? work.start_ns : start_ns;
    const std::int64_t to_ns = has_ending ? work.end_ns : end_ns;
    if (from_ns == start_ns && to_ns == end_ns) {
      return;
    }
    const auto add = [&](const char* name, std::int64_t part_start_ns, std::int64_t part_end_ns) {
      if (part_start_ns < part_end_ns) {
        CauseTotals causes;
        Sweep sweep(devices_[device], gaps, causes);
        Ledger ledger =
            sweep.run(part_start_ns, part_end_ns, [](const Work& one) { return one.kind; });
        ledger.host_wait_ns = host_wait_ns(part_start_ns, part_end_ns);
        result.phases.push_back(
            {name, device_name(device), 1, ledger, causes.list(causes_.labels())});
        result.phases.back().start_ns = part_start_ns;
        result.phases.back().end_ns = part_end_ns;
        if (std::string_view(name) != "steady") {
          name_main_call(part_start_ns, part_end_ns, result.phases.back());
        }
      }
    };
    add("startup", start_ns, from_ns);
    add("steady", from_ns, to_ns);
    add("ending", to_ns, end_ns);
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
      if constexpr (requires { table.is_graph_node(row); }) {
        is_graph_node = table.is_graph_node(row);
      }
      devices_[table.device[row]].work.push_back(
          {table.start_ns[row], table.end_ns[row], origins.call[row], origins.instance[row],
           origins.nested[row], kind_of(row), is_graph_node});
    }
  }

  // Windows of many threads overlap, so nothing else limits their sum.
  void check_sum() const {
    double sum_ns = 0;
    for (const StepWindow& window : input_.windows) {
      sum_ns += static_cast<double>(window.end_ns - window.start_ns);
    }
    require_sum_fits(sum_ns, "stages");
  }

  // How the windows of stages (except nested ones) cover the capture. On one GPU windows overlap
  // where the work of two stages does; marks without GPU work cover the capture too.
  void add_coverage(LedgerResult& result) const {
    using Span = std::pair<std::int64_t, std::int64_t>;
    std::vector<Span> all;
    std::vector<std::vector<Span>> by_device(devices_.size());
    std::vector<bool> has_work(stages_.instances.size());
    const auto clipped = [&](std::int64_t from_ns, std::int64_t to_ns) {
      return Span(std::max(input_.start_ns, from_ns), std::min(input_.end_ns, to_ns));
    };
    for (const StepWindow& window : input_.windows) {
      has_work[window.instance] = true;
      if (!stages_.is_nested[stages_.instances[window.instance].stage]) {
        by_device[window.device].push_back(clipped(window.start_ns, window.end_ns));
        all.push_back(by_device[window.device].back());
      }
    }
    for (std::size_t i = 0; i < stages_.instances.size(); ++i) {
      const StageInstance& instance = stages_.instances[i];
      if (!has_work[i] && !stages_.is_nested[instance.stage]) {
        all.push_back(clipped(instance.start_ns, instance.end_ns));
      }
    }
    for (std::vector<Span>& spans : by_device) {
      std::int64_t sum_ns = 0;
      for (const auto& [from_ns, to_ns] : spans) {
        sum_ns += std::max<std::int64_t>(0, to_ns - from_ns);
      }
      result.overlap_ns += sum_ns - covered_ns(spans);
    }
    result.outside_ns = (input_.end_ns - input_.start_ns) - covered_ns(all);
  }

  // Length of the union of spans.
  static std::int64_t covered_ns(std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
    std::sort(spans.begin(), spans.end());
    std::int64_t covered = 0;
    std::int64_t reach = INT64_MIN;
    for (const auto& [from_ns, to_ns] : spans) {
      covered += std::max<std::int64_t>(0, to_ns - std::max(from_ns, reach));
      reach = std::max(reach, to_ns);
    }
    return covered;
  }

  const LedgerInput& input_;
  const Trace& trace_;
  const Stages& stages_;
  WaitCalls waits_;
  IdleCauses causes_;
  std::vector<DeviceWork> devices_;
  std::vector<std::vector<std::uint32_t>> windows_of_;  // by device, into LedgerInput::windows
  std::vector<WorkPhase> phases_;  // by device; of length 0 where nothing is known
  std::map<std::pair<std::uint32_t, std::uint16_t>, StageTotals> by_stage_;  // (stage, device)
  std::vector<UnrecordedWait> unrecorded_;  // of the GPU at hand, in time order
  std::uint32_t launcher_ = kNone;          // the thread that launches most work of the GPU at hand
};

}  // namespace

LedgerResult make_ledgers(const LedgerInput& input) {
  return LedgerMaker(input).run();
}

}  // namespace llmprof
