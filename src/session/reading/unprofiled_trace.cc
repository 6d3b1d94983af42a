// SPDX-License-Identifier: Apache-2.0
//
// The stage timer's ranges as a recording, so that stages are detected by the same rules with and
// without a profiler.
#include "session/reading/unprofiled_trace.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/stages/stages.h"
#include "base/units.h"
#include "session/reading/nvtx_marks.h"

namespace gpuwhy {
namespace {

// The domain LLM has token counts as integer payloads; other payloads say nothing about stages.
std::int64_t payload_of(const TimedRange& range) {
  return range.integer_payload().value_or(kNoPayload);
}

}  // namespace

Trace trace_of(const TimedRun& run) {
  Trace trace;
  std::size_t num_ranges = 0;
  for (const TimedProcess& process : run.processes) {
    num_ranges += process.ranges.size();
  }
  make_rows(trace.ranges, num_ranges);
  std::size_t row = 0;
  for (const TimedProcess& process : run.processes) {
    // A process that became another program by exec left a file for each.
    const auto pid = static_cast<std::uint32_t>(process.pid);
    const auto known = std::find_if(trace.processes.begin(), trace.processes.end(),
                                    [&](const ProcessInfo& p) { return p.pid == pid; });
    const auto number = static_cast<std::uint16_t>(known - trace.processes.begin());
    if (known == trace.processes.end()) {
      trace.processes.push_back({number, pid});
    }
    std::vector<StringId> texts;
    for (const std::string& text : process.texts) {
      texts.push_back(trace.strings.intern(text));
    }
    std::map<std::int32_t, std::uint32_t> threads;
    for (const TimedRange& range : process.ranges) {
      const auto [thread, is_new] =
          threads.try_emplace(range.thread_id, static_cast<std::uint32_t>(trace.threads.size()));
      if (is_new) {
        trace.threads.push_back(
            {thread->second, static_cast<std::uint32_t>(range.thread_id), number});
      }
      trace.ranges.start_ns[row] = range.start_ns;
      trace.ranges.end_ns[row] = range.is_open ? kOpenEnd : range.end_ns;
      trace.ranges.text[row] = texts[range.name];
      trace.ranges.domain[row] = texts[range.domain];
      trace.ranges.payload[row] = payload_of(range);
      trace.ranges.thread[row] = thread->second;
      trace.ranges.kind[row] =
          range.kind == TimedRangeKind::kPushPop ? RangeKind::kPushPop : RangeKind::kStartEnd;
      ++row;
    }
  }
  return trace;
}

std::vector<SeenMark> seen_marks(const TimedRun& run) {
  std::map<StageMark, bool> is_plain;
  for (const TimedProcess& process : run.processes) {
    for (const TimedRange& range : process.ranges) {
      if (!range.is_registered) {
        is_plain[{process.domain_of(range), process.name_of(range)}] = true;
      }
    }
  }
  std::vector<SeenMark> seen = seen_marks(trace_of(run));
  for (SeenMark& mark : seen) {
    mark.is_registered = !is_plain.contains(mark.mark);
  }
  return seen;
}

std::size_t count_processes(const Trace& trace, const Stages& stages) {
  std::set<std::uint16_t> processes;
  for (const StageInstance& instance : stages.instances) {
    if (instance.thread < trace.threads.size()) {
      processes.insert(trace.threads[instance.thread].process);
    }
  }
  return processes.size();
}

ExpectedStages expected_stages(const Trace& trace, const Stages& stages,
                               const CaptureTrigger& gate) {
  // Measured: nsys opens a capture within some hundred milliseconds.
  constexpr std::int64_t kOpeningNs = kNsPerS;
  std::int64_t opens_ns = INT64_MIN;
  std::int64_t is_open_ns = INT64_MIN;
  std::uint32_t thread = kNone;
  // The first range that opens the gate, and its thread.
  for (std::size_t row = 0; gate.kind == TriggerWish::Kind::kMark && row < trace.ranges.size();
       ++row) {
    const bool is_gate = trace.strings[trace.ranges.domain[row]] == gate.mark.domain &&
                         trace.strings[trace.ranges.text[row]] == gate.mark.name;
    if (is_gate && (thread == kNone || trace.ranges.start_ns[row] < opens_ns)) {
      opens_ns = trace.ranges.start_ns[row];
      is_open_ns = std::min(trace.ranges.end_ns[row], opens_ns + kOpeningNs);
      thread = trace.ranges.thread[row];
    }
  }
  ExpectedStages expected;
  std::set<std::uint16_t> processes;
  for (const StageInstance& instance : stages.instances) {
    if (instance.is_open || instance.thread >= trace.threads.size()) {
      continue;
    }
    // Steps of a request that another thread began earlier may or may not be recorded.
    const bool is_neighbour =
        thread != kNone && instance.thread != thread &&
        trace.threads[instance.thread].process == trace.threads[thread].process;
    const std::int64_t since_ns = instance.thread == thread ? opens_ns
                                  : is_neighbour            ? opens_ns + kOpeningNs
                                                            : is_open_ns;
    if (instance.start_ns < since_ns) {
      continue;
    }
    ++expected.instances[stages.names[instance.stage].text()];
    processes.insert(trace.threads[instance.thread].process);
  }
  expected.num_processes = processes.size();
  return expected;
}

}  // namespace gpuwhy
