// SPDX-License-Identifier: Apache-2.0
//
// Attribution of GPU work to the stage in which the host launched it.
//
//   host    |-- prefill ------|-- decode -----------|
//              launch A  launch B   launch C
//   GPU              [ A ][  B  ........ ][ C ]
//
// B runs while the host is already in decode, but belongs to prefill. The obvious way, intersecting
// host ranges with GPU times, would charge it to decode.
//
// Engines close the mark of a step before they compute its logits and sample. What a thread
// launches after the mark of a step and before its next one belongs to that step. After the last
// mark anything may follow; there it must be launched as soon after the mark as in the steps
// before.
//
// Work is linked to its call by (process, correlation id). The ids of a process are dense, so a
// table indexed by id answers in one step; otherwise it falls back to a hash table. Calls are
// looked up in the order of the work rows, which is nearly time order, so the last stage instance
// found, or its neighbour, is nearly always right.
#include "analysis/stages/attribution.h"

#include <algorithm>
#include <unordered_map>

#include "base/row_memory.h"
#include "trace/interval_index.h"

namespace gpuwhy {
namespace {

// Correlation id -> row of the API call, for one process.
class CallIndex {
 public:
  void count(std::uint32_t correlation) {
    least_ = std::min(least_, correlation);
    most_ = std::max(most_, correlation);
    ++num_calls_;
  }

  void prepare() {
    const std::uint64_t span = num_calls_ == 0 ? 0 : static_cast<std::uint64_t>(most_) - least_ + 1;
    is_dense_ = span <= 8 * num_calls_ + 1024;
    if (is_dense_) {
      rows_.assign(span, kNone);
    }
  }

  // A graph launch or a driver call inside a runtime call may share an id: the first in time
  // counts.
  void add(std::uint32_t correlation, std::uint32_t row, const ApiCalls& calls) {
    std::uint32_t& slot = is_dense_ ? rows_[correlation - least_]
                                    : sparse_.try_emplace(correlation, kNone).first->second;
    if (slot == kNone || std::pair(calls.start_ns[row], -calls.end_ns[row]) <
                             std::pair(calls.start_ns[slot], -calls.end_ns[slot])) {
      slot = row;
    }
  }

  std::uint32_t find(std::uint32_t correlation) const {
    if (is_dense_) {
      return correlation < least_ || correlation > most_ ? kNone : rows_[correlation - least_];
    }
    const auto found = sparse_.find(correlation);
    return found == sparse_.end() ? kNone : found->second;
  }

 private:
  std::uint32_t least_ = UINT32_MAX;
  std::uint32_t most_ = 0;
  std::uint64_t num_calls_ = 0;
  bool is_dense_ = true;
  RowVector<std::uint32_t> rows_;
  std::unordered_map<std::uint32_t, std::uint32_t> sparse_;
};

std::vector<CallIndex> index_calls(const Trace& trace) {
  const ApiCalls& calls = trace.api_calls;
  std::vector<CallIndex> index(trace.processes.size());
  const auto of_row = [&](std::size_t row) -> CallIndex& {
    return index[trace.threads[calls.thread[row]].process];
  };
  // First count the rows of each process, then fill: every index is allocated once, at its final
  // size.
  for (std::size_t row = 0; row < calls.size(); ++row) {
    if (calls.correlation[row] != kNone) {
      of_row(row).count(calls.correlation[row]);
    }
  }
  for (CallIndex& one : index) {
    one.prepare();
  }
  for (std::size_t row = 0; row < calls.size(); ++row) {
    if (calls.correlation[row] != kNone) {
      of_row(row).add(calls.correlation[row], static_cast<std::uint32_t>(row), calls);
    }
  }
  return index;
}

// Looks up the stage of every piece of work, thread by thread.
class Attributor {
 public:
  Attributor(const Trace& trace, const Stages& stages)
      : trace_(trace),
        stages_(stages),
        whole_(stages.instances.size() == 1 && stages.instances[0].thread == kNone ? 0 : kNone),
        calls_(index_calls(trace)),
        outer_(trace.threads.size()),
        nested_(trace.threads.size()),
        owned_until_ns_(stages.instances.size()),
        longest_delay_ns_(trace.threads.size()) {
    find_ends();
    for (std::uint32_t i = 0; i < stages.instances.size(); ++i) {
      place(i);
    }
    for (std::vector<IntervalIndex>* lists : {&outer_, &nested_}) {
      for (IntervalIndex& list : *lists) {
        list.prepare();
      }
    }
  }

  // One row of origins per row of the table. Work without a correlation, or whose call was not
  // recorded, gets kNone in all three columns; where the whole recording is one stage, that stage.
  template <typename Table>
  Origins run(const Table& table) {
    Origins origins{Column<std::uint32_t>(table.size()), Column<std::uint32_t>(table.size()),
                    Column<std::uint32_t>(table.size())};
    for (std::size_t row = 0; row < table.size(); ++row) {
      const std::uint32_t correlation = table.correlation[row];
      const std::uint32_t call =
          correlation == kNone ? kNone : calls_[table.process[row]].find(correlation);
      origins.call[row] = call;
      if (row > 0 && call == origins.call[row - 1]) {  // nodes of one graph
        origins.instance[row] = origins.instance[row - 1];
        origins.nested[row] = origins.nested[row - 1];
        continue;
      }
      origins.instance[row] = whole_;
      origins.nested[row] = kNone;
      if (call != kNone && whole_ == kNone) {
        // The stage is that of the thread at the time of the call. The device may run the work much
        // later, when the host is already in another stage.
        const std::uint32_t thread = trace_.api_calls.thread[call];
        const std::int64_t time_ns = trace_.api_calls.start_ns[call];
        origins.instance[row] = outer_[thread].find(time_ns);
        origins.nested[row] = nested_[thread].find(time_ns);
        note_delay(origins.instance[row], time_ns);
      }
    }
    return origins;
  }

  // Removes what was launched too long after the last mark of a thread. Returns the number of rows
  // launched after a mark that remain, and their time.
  template <typename Table>
  std::pair<std::int64_t, std::int64_t> limit_last(const Table& table, Origins& origins) const {
    std::pair<std::int64_t, std::int64_t> joined;
    for (std::size_t row = 0; row < table.size(); ++row) {
      const std::uint32_t instance = origins.instance[row];
      const std::int64_t delay_ns =
          instance == kNone ? 0 : delay_of(instance, trace_.api_calls.start_ns[origins.call[row]]);
      if (delay_ns <= 0) {
        continue;
      }
      if (is_last(instance) && delay_ns > longest_delay_ns_[stages_.instances[instance].thread]) {
        origins.instance[row] = kNone;
      } else {
        ++joined.first;
        joined.second += table.end_ns[row] - table.start_ns[row];
      }
    }
    return joined;
  }

 private:
  static constexpr std::int64_t kNoNext = INT64_MAX;

  // Until when launches belong to an instance. Instances are sorted by thread, then start.
  void find_ends() {
    std::uint32_t next = kNone;
    for (std::size_t i = stages_.instances.size(); i-- > 0;) {
      const StageInstance& instance = stages_.instances[i];
      owned_until_ns_[i] = instance.end_ns;
      if (!stages_.are_steps || instance.is_process_wide || stages_.is_nested[instance.stage]) {
        continue;
      }
      const bool has_next = next != kNone && stages_.instances[next].thread == instance.thread;
      owned_until_ns_[i] =
          has_next ? std::max(instance.end_ns, stages_.instances[next].start_ns) : kNoNext;
      next = static_cast<std::uint32_t>(i);
    }
  }

  bool is_last(std::uint32_t instance) const { return owned_until_ns_[instance] == kNoNext; }

  // From the end of the mark to a launch; not positive inside the mark.
  std::int64_t delay_of(std::uint32_t instance, std::int64_t launch_ns) const {
    const StageInstance& mark = stages_.instances[instance];
    return launch_ns < mark.end_ns ? 0 : launch_ns - mark.end_ns + 1;
  }

  void note_delay(std::uint32_t instance, std::int64_t launch_ns) {
    if (instance != kNone && stages_.are_steps && !is_last(instance) &&
        stages_.instances[instance].thread != kNone) {
      std::int64_t& longest = longest_delay_ns_[stages_.instances[instance].thread];
      longest = std::max(longest, delay_of(instance, launch_ns));
    }
  }

  // A push/pop range covers its thread, a start/end range every thread of its process.
  void place(std::uint32_t i) {
    const StageInstance& instance = stages_.instances[i];
    std::vector<IntervalIndex>& lists = stages_.is_nested[instance.stage] ? nested_ : outer_;
    if (!instance.is_process_wide) {
      lists[instance.thread].add(instance.start_ns, owned_until_ns_[i], i);
      return;
    }
    for (std::size_t thread = 0; thread < trace_.threads.size(); ++thread) {
      const bool covers = instance.thread == kNone ||
                          trace_.threads[thread].process == trace_.threads[instance.thread].process;
      if (covers) {
        lists[thread].add(instance.start_ns, instance.end_ns, i);
      }
    }
  }

  const Trace& trace_;
  const Stages& stages_;
  const std::uint32_t whole_;  // the instance that covers all work: no stage is marked; or kNone
  std::vector<CallIndex> calls_;
  std::vector<IntervalIndex> outer_;            // by thread
  std::vector<IntervalIndex> nested_;           // by thread
  std::vector<std::int64_t> owned_until_ns_;    // by instance; kNoNext: the last of its thread
  std::vector<std::int64_t> longest_delay_ns_;  // by thread: of a launch after a mark
};

}  // namespace

Attribution attribute(const Trace& trace, const Stages& stages) {
  Attributor attributor(trace, stages);
  Attribution attribution{attributor.run(trace.kernels), attributor.run(trace.copies),
                          attributor.run(trace.graphs)};
  if (stages.are_steps) {
    attributor.limit_last(trace.copies, attribution.copies);
    const auto [num_kernels, kernel_ns] = attributor.limit_last(trace.kernels, attribution.kernels);
    const auto [num_graphs, graph_ns] = attributor.limit_last(trace.graphs, attribution.graphs);
    attribution.num_after_mark = num_kernels + num_graphs;
    attribution.after_mark_ns = kernel_ns + graph_ns;
  }
  return attribution;
}

}  // namespace gpuwhy
