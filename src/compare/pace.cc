// SPDX-License-Identifier: Apache-2.0
//
// Pace of the work in recordings of equal length, and waiting that moved between GPUs.
//
// A recording of two seconds is two seconds long whatever the program does, and its kernel time
// falls where the program gets slower: less work fits in. So the calls of the same kernels are
// counted: most kernel time is in kernels that ran more or less often by one ratio, that of the
// work.
//
// What this gets wrong: a program that ends by itself after the same time, having done less, looks
// the same. That its pace is lower is true then too.
#include <algorithm>
#include <cmath>
#include <map>

#include "compare/breakdown.h"

namespace gpuwhy {
namespace {

// Profilers end a recording some events sooner or later.
constexpr double kSameLength = 0.02;
// Less of a change is an event more or less at the ends.
constexpr double kLeastChange = 0.01;
// Kernels with as much of the time on both sides tell of the work. Where others replaced them,
// their calls do not.
constexpr double kLeastCommon = 0.8;

// A kernel of both sides, whatever its stage and GPU.
struct SharedKernel {
  std::int64_t base_ns = 0;
  std::int64_t base_calls = 0;
  std::int64_t candidate_calls = 0;
};

// None if others take much of the time of a side.
std::vector<SharedKernel> shared_kernels(const RunSummary& base, const RunSummary& candidate) {
  const auto name_of = [](const KernelRow& row) { return row.kernel_name; };
  std::vector<SharedKernel> kernels;
  TimeChange all;
  TimeChange shared;
  for_each_pair(summed_by(base.kernels, name_of), summed_by(candidate.kernels, name_of),
                [&](const auto&, const KernelRow* before, const KernelRow* after) {
                  const bool is_shared = before != nullptr && after != nullptr &&
                                         before->calls > 0 && after->calls > 0;
                  const std::int64_t base_ns = before == nullptr ? 0 : before->total_ns;
                  const std::int64_t candidate_ns = after == nullptr ? 0 : after->total_ns;
                  all.base_ns += base_ns;
                  all.candidate_ns += candidate_ns;
                  if (is_shared) {
                    shared.base_ns += base_ns;
                    shared.candidate_ns += candidate_ns;
                    kernels.push_back({base_ns, before->calls, after->calls});
                  }
                });
  const auto is_most = [](std::int64_t part_ns, std::int64_t whole_ns) {
    return static_cast<double>(part_ns) >= kLeastCommon * static_cast<double>(whole_ns);
  };
  return is_most(shared.base_ns, all.base_ns) && is_most(shared.candidate_ns, all.candidate_ns)
             ? kernels
             : std::vector<SharedKernel>();
}

double ratio_of(const SharedKernel& kernel) {
  return static_cast<double>(kernel.candidate_calls) / static_cast<double>(kernel.base_calls);
}

// The ratio of calls with half of the kernel time below it and half above.
double median_ratio(std::vector<SharedKernel> kernels) {
  std::ranges::sort(kernels, {}, ratio_of);
  std::int64_t above_ns = 0;
  for (const SharedKernel& kernel : kernels) {
    above_ns += kernel.base_ns;
  }
  std::int64_t below_ns = 0;
  for (const SharedKernel& kernel : kernels) {
    below_ns += kernel.base_ns;
    above_ns -= kernel.base_ns;
    if (below_ns >= above_ns) {
      return ratio_of(kernel);
    }
  }
  return 1;
}

// Buckets in which a GPU waits for something: for other GPUs, or for the CPU; by name.
constexpr Bucket kWaiting[] = {Bucket::kComm, Bucket::kLaunchLate, Bucket::kQueued,
                               Bucket::kStartedLate, Bucket::kSync};

// A difference that a reader would call one.
bool is_large(std::int64_t difference_ns, std::int64_t window_ns) {
  constexpr double kLeastShare = 0.01;
  return std::abs(static_cast<double>(difference_ns)) >=
         kLeastShare * static_cast<double>(window_ns);
}

bool is_same_length(std::int64_t shorter_ns, std::int64_t longer_ns) {
  return shorter_ns > 0 && static_cast<double>(longer_ns - shorter_ns) <=
                               kSameLength * static_cast<double>(longer_ns);
}

// As many instances of each marked stage are the same work, whatever kernels did it.
bool have_same_steps(const RunSummary& base, const RunSummary& candidate) {
  const auto steps_of = [](const RunSummary& run) {
    std::map<RowName, std::int64_t> steps;
    for (const ComparedStage& stage : run.stages) {
      steps[stage.stage] = stage.num_instances;
    }
    return steps;
  };
  return base.is_marked && candidate.is_marked && steps_of(base) == steps_of(candidate);
}

}  // namespace

// Large kernels are few, and one call more or less at the ends of a recording is much of them:
// those that agree with the median are counted together.
std::optional<double> work_ratio(const RunSummary& base, const RunSummary& candidate) {
  const std::vector<SharedKernel> kernels = shared_kernels(base, candidate);
  if (kernels.empty()) {
    return std::nullopt;
  }
  const double median = median_ratio(kernels);
  double base_calls = 0;
  double candidate_calls = 0;
  for (const SharedKernel& kernel : kernels) {
    constexpr double kAtTheEnds = 2;
    constexpr double kNear = 0.05;
    const auto before = static_cast<double>(kernel.base_calls);
    const auto after = static_cast<double>(kernel.candidate_calls);
    if (std::abs(after - median * before) <= kAtTheEnds + kNear * before) {
      base_calls += before;
      candidate_calls += after;
    }
  }
  return base_calls > 0 ? std::optional(candidate_calls / base_calls) : std::nullopt;
}

bool are_equally_long(const std::vector<RunSummary>& base,
                      const std::vector<RunSummary>& candidate) {
  std::int64_t shortest = INT64_MAX;
  std::int64_t longest = 0;
  for (const std::vector<RunSummary>* side : {&base, &candidate}) {
    for (const RunSummary& run : *side) {
      shortest = std::min(shortest, run.recording_ns);
      longest = std::max(longest, run.recording_ns);
    }
  }
  return is_same_length(shortest, longest);
}

std::optional<PaceChange> pace_change(const RunSummary& base, const RunSummary& candidate) {
  const auto [shorter_ns, longer_ns] = std::minmax(base.recording_ns, candidate.recording_ns);
  if (!is_same_length(shorter_ns, longer_ns) || have_same_steps(base, candidate)) {
    return std::nullopt;
  }
  const std::optional<double> ratio = work_ratio(base, candidate);
  if (!ratio || std::abs(*ratio - 1) < kLeastChange) {
    return std::nullopt;
  }
  return PaceChange{base.recording_ns, candidate.recording_ns, *ratio};
}

std::vector<MovedWait> moved_waits(const std::vector<LedgerChange>& ledgers) {
  // Of the whole recording: stages of one GPU may have moved in time.
  std::vector<const LedgerChange*> whole;
  for (const LedgerChange& ledger : ledgers) {
    if (ledger.base.stage.kind == RowKind::kRecording) {
      whole.push_back(&ledger);
    }
  }
  std::vector<MovedWait> moved;
  for (const Bucket bucket : kWaiting) {
    if (whole.empty()) {
      break;
    }
    const auto difference_of = [&](const LedgerChange* row) { return row->difference_ns(bucket); };
    const auto [less, more] = std::ranges::minmax_element(whole, {}, difference_of);
    const auto is_moved = [&](const LedgerChange& row) {
      return is_large(row.difference_ns(bucket),
                      std::max(row.base.window_ns, row.candidate.window_ns));
    };
    if (difference_of(*less) < 0 && difference_of(*more) > 0 && is_moved(**less) &&
        is_moved(**more)) {
      moved.push_back({{RowKind::kRecording},
                       bucket,
                       (*less)->base.device,
                       (*more)->base.device,
                       -difference_of(*less),
                       difference_of(*more)});
    }
  }
  return moved;
}

}  // namespace gpuwhy
