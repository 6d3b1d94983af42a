// SPDX-License-Identifier: Apache-2.0
//
// Which of the ranges that were timed without a profiler are stages? The analysis knows, and must
// be asked: two answers to that question would make the overhead of a profiler look like whatever
// they differ by. So the ranges are handed to it as the ranges of a recording.
//
// Where it finds none, its one stage `all` is left out: with nothing but marks to go by, nobody
// knows when all began.
#include "cli/baseline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/stages.h"
#include "trace/trace.h"

namespace llmprof {
namespace {

Ranges columns_of(std::size_t size) {
  Ranges ranges;
  ranges.start_ns = Column<std::int64_t>(size);
  ranges.end_ns = Column<std::int64_t>(size);
  ranges.text = Column<StringId>(size);
  ranges.domain = Column<StringId>(size);
  ranges.payload = Column<std::int64_t>(size);
  ranges.thread = Column<std::uint32_t>(size);
  ranges.kind = Column<RangeKind>(size);
  return ranges;
}

// Thread numbers are of this trace alone: the same id in two processes is two threads.
Trace trace_of(const TimedRun& run) {
  std::size_t size = 0;
  for (const TimedProcess& process : run.processes) {
    size += process.ranges.size();
  }
  Trace trace;
  trace.ranges = columns_of(size);
  std::map<std::pair<const TimedProcess*, std::int32_t>, std::uint32_t> threads;
  std::size_t row = 0;
  for (const TimedProcess& process : run.processes) {
    std::vector<StringId> texts;
    texts.reserve(process.texts.size());
    for (const std::string& text : process.texts) {
      texts.push_back(trace.strings.intern(text));
    }
    for (const TimedRange& range : process.ranges) {
      const auto thread = threads.try_emplace({&process, range.thread_id},
                                              static_cast<std::uint32_t>(threads.size()));
      const auto payload = range.integer_payload();
      trace.ranges.start_ns[row] = range.start_ns;
      trace.ranges.end_ns[row] = range.is_open ? kOpenEnd : range.end_ns;
      trace.ranges.text[row] = texts[range.name];
      trace.ranges.domain[row] = texts[range.domain];
      trace.ranges.payload[row] = payload && *payload >= 0 ? *payload : kNoPayload;
      trace.ranges.thread[row] = thread.first->second;
      trace.ranges.kind[row] =
          range.kind == TimedRangeKind::kStartEnd ? RangeKind::kStartEnd : RangeKind::kPushPop;
      ++row;
    }
  }
  return trace;
}

}  // namespace

BaselineStages baseline_stages(const TimedRun& run, const Rules& rules) {
  const Trace trace = trace_of(run);
  const Stages stages = find_stages(trace, rules, 0, 0);
  BaselineStages baseline;
  baseline.source = stages.source;
  for (StageTime& time : stage_times(run)) {
    if (time.stage == "request") {
      baseline.times.push_back(std::move(time));
    }
  }
  std::vector<StageSamples> samples(stages.names.size());
  for (const StageInstance& instance : stages.instances) {
    if (instance.thread != kNone) {
      samples[instance.stage].add(
          instance.is_open ? std::nullopt : std::optional(instance.end_ns - instance.start_ns),
          instance.tokens);
    }
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!samples[i].durations_ns.empty() || samples[i].num_open > 0) {
      samples[i].stage = stages.names[i];
      baseline.times.push_back(stage_time(std::move(samples[i])));
    }
  }
  return baseline;
}

}  // namespace llmprof
