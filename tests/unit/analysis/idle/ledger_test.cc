// SPDX-License-Identifier: Apache-2.0
//
// Ten thousand small random recordings, each nanosecond judged once by the analysis and once by a
// slow, plain reading of docs/metrics.md that shares no code with it.
#include "analysis/idle/ledger.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "analysis/names/rules_json.h"
#include "analysis/profile.h"
#include "analysis/stages/warm_up.h"
#include "base/json.h"
#include "sanitizers.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

// Rows as they come to mind; turned into a Trace at the end.
struct Call {
  std::int64_t start, end;
  std::uint32_t thread;
  bool is_sync;
};
struct Work {
  std::int64_t start, end;
  std::uint32_t device;
  int call;  // -1: not recorded
  enum Kind { kCompute, kComm, kCopy } kind;
};
struct Range {
  std::int64_t start, end;
  std::uint32_t thread;
  const char* text;
};
struct Recording {
  std::uint32_t num_threads = 1;
  std::uint32_t num_devices = 1;
  std::vector<Call> calls;
  std::vector<Work> work;
  std::vector<Range> ranges;
};

// The order of rows in a file means nothing: `random` shuffles them.
Trace trace_of(const Recording& recording, std::mt19937* random) {
  TraceBuilder made;
  const std::uint16_t process = made.add_process();
  for (std::uint32_t i = 0; i < recording.num_threads; ++i) {
    made.add_thread(process);
  }
  for (std::uint32_t i = 0; i < recording.num_devices; ++i) {
    made.add_stream(process, made.add_device());
  }
  std::vector<std::uint32_t> correlations;
  for (const Call& call : recording.calls) {
    correlations.push_back(made.call(call.thread, call.start, call.end,
                                     call.is_sync ? "cudaStreamSynchronize" : "cudaLaunchKernel"));
  }
  for (const Work& work : recording.work) {
    const std::uint32_t correlation =
        work.call < 0 ? TraceBuilder::kNoCall : correlations[static_cast<std::size_t>(work.call)];
    if (work.kind == Work::kCopy) {
      made.copy(work.device, work.start, work.end, correlation, CopyKind::kDeviceToHost);
    } else {
      made.kernel(work.device, work.start, work.end, work.kind == Work::kComm ? "nccl" : "gemm",
                  correlation);
    }
  }
  for (const Range& range : recording.ranges) {
    made.range(range.thread, range.start, range.end, range.text, {.domain = "LLM"});
  }
  if (random != nullptr) {
    made.shuffle(*random);
  }
  return made.finish();
}

Rules rules() {
  return rules_from({{"families",
                      {{{"family", "communication"}, {"words", {"nccl"}}},
                       {{"family", "gemm"}, {"words", {"gemm"}}}}}},
                    {{"stages", Json::array()}});
}

class Maker {
 public:
  explicit Maker(std::mt19937& random) : random_(random) {}

  Recording make() {
    Recording made;
    made.num_threads = static_cast<std::uint32_t>(pick(1, 2));
    made.num_devices = static_cast<std::uint32_t>(pick(1, 2));
    for (std::uint32_t thread = 0; thread < made.num_threads; ++thread) {
      add_stages(made, thread);
      std::int64_t time = pick(0, 20);
      for (int n = pick(0, 8); n > 0; --n) {
        const std::int64_t end = time + pick(0, 12);
        made.calls.push_back({time, end, thread, pick(0, 3) == 0});
        time = end + pick(0, 15);
      }
    }
    std::set<std::pair<std::uint32_t, std::int64_t>> starts;
    for (int n = pick(1, 12); n > 0; --n) {
      const int call = made.calls.empty() || pick(0, 7) == 0
                           ? -1
                           : pick(0, static_cast<int>(made.calls.size()) - 1);
      const std::int64_t launched = call < 0 ? 0 : made.calls[static_cast<std::size_t>(call)].start;
      const std::int64_t start = launched + pick(0, 60);
      const auto device =
          static_cast<std::uint32_t>(pick(0, static_cast<int>(made.num_devices) - 1));
      if (starts.insert({device, start})
              .second) {  // what starts together ties, which another test is for
        made.work.push_back(
            {start, start + pick(0, 25), device, call, static_cast<Work::Kind>(pick(0, 2))});
      }
    }
    return made;
  }

 private:
  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  void add_stages(Recording& made, std::uint32_t thread) {
    std::int64_t time = pick(0, 10);
    for (int n = pick(0, 3); n > 0; --n) {
      const std::int64_t middle = time + pick(1, 40);
      made.ranges.push_back({time, middle, thread, "prefill"});
      time = middle + pick(0, 5);
      const std::int64_t decode_start = time;
      for (int steps = pick(1, 3); steps > 0; --steps) {
        const std::int64_t end = time + pick(1, 25);
        made.ranges.push_back({time, end, thread, "decode_step"});
        time = end + pick(0, 4);
      }
      made.ranges.push_back({decode_start, time, thread, "decode_all"});
      time += pick(0, 10);
    }
  }

  std::mt19937& random_;
};

// The plain reading. Everything is looked up again for each nanosecond.
class Plain {
 public:
  explicit Plain(const Recording& recording, std::int64_t recorded = 0)
      : r_(recording), recorded_(recorded) {}

  using Buckets = std::map<std::string, std::int64_t>;

  const Range* range_of(const Work& work, bool steps) const {
    if (work.call < 0) {
      return nullptr;
    }
    const Call& call = r_.calls[static_cast<std::size_t>(work.call)];
    for (const Range& range : r_.ranges) {
      const bool is_step = std::string_view(range.text) == "decode_step";
      if (is_step == steps && range.thread == call.thread && range.start <= call.start &&
          call.start < range.end) {
        return &range;
      }
    }
    return nullptr;
  }

  struct Window {
    std::int64_t start, end;
  };

  // A stage that is not a step: its mark, to the end of its work, not into the next of its kind.
  Window window_of_mark(const Range& range) const {
    std::int64_t end = range.end;
    for (const Work& work : r_.work) {
      if (range_of(work, false) == &range) {
        end = std::max(end, work.end);
      }
    }
    for (const Range& next : r_.ranges) {
      if (std::string_view(next.text) == range.text && next.thread == range.thread &&
          next.start > range.start) {
        end = std::min(end, next.start);
      }
    }
    return {range.start, end};
  }

  // A step begins with its mark or when all steps before it are done on the GPU, at the latest with
  // its first kernel; it ends where the next begins, unless a pause or another loop follows.
  Window window_of_step(const Range& range, std::uint32_t device) const {
    const std::vector<const Range*> lane = lane_of(range, device);
    const std::size_t at =
        static_cast<std::size_t>(std::find(lane.begin(), lane.end(), &range) - lane.begin());
    const std::int64_t done = std::max(done_before(lane, at + 1, device), range.end);
    Window window{begin_of(lane, at, device), done};
    if (at + 1 < lane.size()) {
      const std::int64_t next = begin_of(lane, at + 1, device);
      const bool is_pause = next - done > 5 * median_distance(lane, device) ||
                            loop_of(range) != loop_of(*lane[at + 1]);
      window.end = is_pause ? std::min(done, next) : next;
    } else {
      window.end = std::max(gpu_end(range, device), range.end);
    }
    window.end = std::max(window.start, window.end);
    return window;
  }

  Window window_of(const Range& range, std::uint32_t device) const {
    return std::string_view(range.text) == "decode_step" ? window_of_step(range, device)
                                                         : window_of_mark(range);
  }

  void add(const Range& range, std::uint32_t device, bool steps, Buckets& buckets) {
    const Window window = window_of(range, device);
    first_ = beginning(device);
    for (std::int64_t time = window.start; time < window.end; ++time) {
      std::string name = bucket(range, device, steps, time);
      if (const std::size_t part = name.find(' '); part != std::string::npos) {
        ++buckets[name];
        name.resize(part);
      }
      ++buckets[name];
    }
  }

  // Nanoseconds of the capture that no window of a stage covers, nested ones left out.
  std::int64_t outside(std::int64_t start, std::int64_t duration) const {
    std::int64_t count = 0;
    for (std::int64_t time = start; time < start + duration; ++time) {
      count += std::none_of(r_.ranges.begin(), r_.ranges.end(), [&](const Range& range) {
        return std::string_view(range.text) != "decode_step" && range.start <= time &&
               time < window_of_mark(range).end;
      });
    }
    return count;
  }

  bool works_for(const Range& range, std::uint32_t device, bool steps) const {
    return std::any_of(r_.work.begin(), r_.work.end(), [&](const Work& work) {
      return work.device == device && range_of(work, steps) == &range;
    });
  }

 private:
  static bool runs(const Work& work, std::int64_t time) {
    return work.start <= time && time < work.end;
  }

  std::int64_t gpu_end(const Range& range, std::uint32_t device) const {
    std::int64_t end = INT64_MIN;
    for (const Work& work : r_.work) {
      if (work.device == device && range_of(work, true) == &range) {
        end = std::max(end, work.end);
      }
    }
    return end;
  }

  // The first kernel, or the first copy if there is no kernel.
  std::int64_t gpu_start(const Range& range, std::uint32_t device) const {
    std::int64_t kernel = INT64_MAX;
    std::int64_t copy = INT64_MAX;
    for (const Work& work : r_.work) {
      if (work.device == device && range_of(work, true) == &range) {
        std::int64_t& first = work.kind == Work::kCopy ? copy : kernel;
        first = std::min(first, work.start);
      }
    }
    return kernel == INT64_MAX ? copy : kernel;
  }

  const Range* loop_of(const Range& step) const {
    for (const Range& range : r_.ranges) {
      if (std::string_view(range.text) == "decode_all" && range.thread == step.thread &&
          range.start <= step.start && step.start < range.end) {
        return &range;
      }
    }
    return nullptr;
  }

  bool do_threads_overlap() const {
    for (const Range& a : r_.ranges) {
      for (const Range& b : r_.ranges) {
        if (std::string_view(a.text) == "decode_step" && std::string_view(b.text) == a.text &&
            a.thread != b.thread && a.start < b.end && b.start < a.end) {
          return true;
        }
      }
    }
    return false;
  }

  // The steps with work on the device, in the order of their work; of one thread only where threads
  // mark steps at the same time.
  std::vector<const Range*> lane_of(const Range& range, std::uint32_t device) const {
    std::vector<const Range*> lane;
    const bool is_by_thread = do_threads_overlap();
    for (const Range& other : r_.ranges) {
      if (std::string_view(other.text) == "decode_step" && works_for(other, device, true) &&
          (!is_by_thread || other.thread == range.thread)) {
        lane.push_back(&other);
      }
    }
    std::sort(lane.begin(), lane.end(), [&](const Range* a, const Range* b) {
      return std::tuple(gpu_start(*a, device), gpu_end(*a, device), a->thread, a->start) <
             std::tuple(gpu_start(*b, device), gpu_end(*b, device), b->thread, b->start);
    });
    return lane;
  }

  // The end of kernels without a call that are done before the first step's work: they are of a
  // step that was not recorded.
  std::int64_t end_of_earlier(std::uint32_t device) const {
    std::int64_t first = INT64_MAX;
    for (const Range& range : r_.ranges) {
      if (std::string_view(range.text) == "decode_step" && works_for(range, device, true)) {
        first = std::min(first, gpu_start(range, device));
      }
    }
    std::int64_t end = INT64_MIN;
    for (const Work& work : r_.work) {
      if (work.device == device && work.kind != Work::kCopy && work.call < 0 && work.end <= first) {
        end = std::max(end, work.end);
      }
    }
    return end;
  }

  // The end of the work of the first `n` steps, and of what was launched before the recording.
  std::int64_t done_before(const std::vector<const Range*>& lane, std::size_t n,
                           std::uint32_t device) const {
    std::int64_t done = end_of_earlier(device);
    for (std::size_t i = 0; i < n; ++i) {
      done = std::max(done, gpu_end(*lane[i], device));
    }
    return done;
  }

  std::int64_t begin_of(const std::vector<const Range*>& lane, std::size_t at,
                        std::uint32_t device) const {
    return std::min(gpu_start(*lane[at], device),
                    std::max(lane[at]->start, done_before(lane, at, device)));
  }

  std::int64_t median_distance(const std::vector<const Range*>& lane, std::uint32_t device) const {
    std::vector<std::int64_t> distances;
    for (std::size_t i = 1; i < lane.size(); ++i) {
      distances.push_back(gpu_start(*lane[i], device) - gpu_start(*lane[i - 1], device));
    }
    std::sort(distances.begin(), distances.end());
    return distances.empty() ? 0 : distances[(distances.size() - 1) / 2];
  }

  // Nothing is judged before the recording or the first window.
  std::int64_t beginning(std::uint32_t device) const {
    std::int64_t first = recorded_;
    for (const Range& range : r_.ranges) {
      if (works_for(range, device, std::string_view(range.text) == "decode_step")) {
        first = std::min(first, window_of(range, device).start);
      }
    }
    return first;
  }

  std::string bucket(const Range& range, std::uint32_t device, bool steps,
                     std::int64_t time) const {
    std::set<std::string> found;
    for (const Work& work : r_.work) {
      if (work.device != device || !runs(work, time)) {
        continue;
      }
      if (range_of(work, steps) == &range) {
        found.insert(work.kind == Work::kCompute ? "compute"
                     : work.kind == Work::kComm  ? "comm"
                                                 : "copy");
      } else {
        found.insert(range_of(work, false) == nullptr && range_of(work, true) == nullptr
                         ? "unattributed"
                         : "other_stage");
      }
    }
    for (const char* first : {"compute", "comm", "copy", "other_stage", "unattributed"}) {
      if (found.contains(first)) {
        return first;
      }
    }
    return idle(device, time);
  }

  // The cause of the gap around `time`: the same in every window that covers it.
  std::string idle(std::uint32_t device, std::int64_t time) const {
    std::int64_t opened = time;
    const auto any_runs = [&](std::int64_t at) {
      return std::any_of(r_.work.begin(), r_.work.end(),
                         [&](const Work& work) { return work.device == device && runs(work, at); });
    };
    while (opened > first_ && !any_runs(opened - 1)) {
      --opened;
    }
    // Of work that starts together the first is the shortest, then compute, then what was launched
    // first.
    const auto order = [&](const Work& work) {
      return std::tuple(
          work.start, work.end, work.kind,
          work.call < 0 ? INT64_MIN : r_.calls[static_cast<std::size_t>(work.call)].start);
    };
    const Work* next = nullptr;
    for (const Work& work : r_.work) {
      if (work.device == device && work.start > time && work.end > work.start &&
          (next == nullptr || order(work) < order(*next))) {
        next = &work;
      }
    }
    const bool is_first = std::none_of(r_.work.begin(), r_.work.end(), [&](const Work& work) {
      return work.device == device && work.start < work.end && work.start < opened;
    });
    if (next == nullptr) {
      return "tail";
    }
    if (is_first) {
      const bool is_late =
          next->call >= 0 && r_.calls[static_cast<std::size_t>(next->call)].end > opened;
      return is_late && is_idle_for_certain(device, *next, time) ? "launch_late" : "unrecorded";
    }
    if (next->call < 0) {
      return "unknown_idle";
    }
    const Call& launch = r_.calls[static_cast<std::size_t>(next->call)];
    if (launch.end <= opened) {
      return "queued";
    }
    const Call* wait = wait_at(launch.thread, opened);
    const bool is_held =
        wait != nullptr && wait != &launch && wait->end <= launch.start && time < wait->end;
    return is_held ? "sync" : "launch_late";
  }

  // Inside a mark, before the first work of a GPU. All launches here are prompt.
  bool is_idle_for_certain(std::uint32_t device, const Work& next, std::int64_t time) const {
    const Work* kernel = nullptr;
    for (const Work& work : r_.work) {
      if (work.device == device && work.kind != Work::kCopy && work.end > work.start &&
          (kernel == nullptr || work.start < kernel->start)) {
        kernel = &work;
      }
    }
    std::int64_t marked = INT64_MAX;
    for (const Range& range : r_.ranges) {
      if (works_for(range, device, std::string_view(range.text) == "decode_step")) {
        marked = std::min(marked, window_of(range, device).start);
      }
    }
    if (kernel == nullptr || kernel->call < 0 || time < marked) {
      return false;
    }
    const Call& launch = r_.calls[static_cast<std::size_t>(next.call)];
    for (std::size_t i = 0; i < r_.calls.size(); ++i) {
      const Call& call = r_.calls[i];
      if (is_wait(i) && call.thread == launch.thread && call.start < launch.start &&
          call.end > time) {
        return false;
      }
    }
    return true;
  }

  bool is_wait(std::size_t i) const {
    const Call& call = r_.calls[i];
    return call.is_sync || std::any_of(r_.work.begin(), r_.work.end(), [&](const Work& work) {
             return work.kind == Work::kCopy && work.call == static_cast<int>(i) &&
                    work.end <= call.end;
           });
  }

  // The first call of the thread in which it waits then.
  const Call* wait_at(std::uint32_t thread, std::int64_t time) const {
    const Call* first = nullptr;
    for (std::size_t i = 0; i < r_.calls.size(); ++i) {
      const Call& call = r_.calls[i];
      if (is_wait(i) && call.thread == thread && call.start <= time && time < call.end &&
          (first == nullptr ||
           std::tie(call.start, call.end) < std::tie(first->start, first->end))) {
        first = &call;
      }
    }
    return first;
  }

  const Recording& r_;
  std::int64_t recorded_;   // the recording begins
  std::int64_t first_ = 0;  // nothing is judged before
};

std::map<std::pair<std::string, std::string>, Plain::Buckets> plain_ledgers(
    const Recording& recording, std::int64_t recorded) {
  Plain plain(recording, recorded);
  std::map<std::pair<std::string, std::string>, Plain::Buckets> ledgers;
  for (const Range& range : recording.ranges) {
    const bool is_step = std::string_view(range.text) == "decode_step";
    const std::string stage = std::string_view(range.text) == "decode_all" ? "decode" : range.text;
    for (std::uint32_t device = 0; device < recording.num_devices; ++device) {
      if (plain.works_for(range, device, is_step)) {
        plain.add(range, device, is_step, ledgers[{stage, "cuda:" + std::to_string(device)}]);
      }
    }
  }
  return ledgers;
}

TEST(Ledger, TenThousandRandomRecordingsNanosecondByNanosecond) {
  std::mt19937 random(20261115);
  std::int64_t num_ledgers = 0;
  std::int64_t num_split = 0;
  std::map<std::string, std::int64_t> seen;
  constexpr int kRecordings = num_random_inputs(10'000);
  for (int i = 0; i < kRecordings; ++i) {
    const Recording recording = Maker(random).make();
    const Analysis analysis = profile(trace_of(recording, nullptr), rules()).analysis;
    auto expected = plain_ledgers(recording, analysis.capture.start_ns);
    std::map<std::string, Ledger> phases;  // summed by device: they must be the capture
    for (const LedgerRow& ledger : analysis.ledgers) {
      ASSERT_EQ(ledger.sum_ns(), ledger.window_ns);
      if (ledger.stage.text() == "startup" || ledger.stage.text() == "steady" ||
          ledger.stage.text() == "ending") {
        ASSERT_GE(*std::min_element(ledger.buckets_ns.begin(), ledger.buckets_ns.end()), 0);
        phases[ledger.device].add(ledger);
        continue;
      }
      if (ledger.stage.text() == "capture" && phases.contains(ledger.device)) {
        ASSERT_EQ(phases[ledger.device].buckets_ns, ledger.buckets_ns) << "recording " << i;
        ++num_split;
      }
      if (ledger.stage.text() == "capture" || ledger.stage.text() == "all") {
        continue;
      }
      const Plain::Buckets& plain = expected[{ledger.stage.text(), ledger.device}];
      for (std::size_t b = 0; b < kNumBuckets; ++b) {
        const auto found = plain.find(kBucketNames[b]);
        ASSERT_EQ(ledger.buckets_ns[b], found == plain.end() ? 0 : found->second)
            << "recording " << i << " " << ledger.stage.text() << " " << ledger.device << " "
            << kBucketNames[b];
        seen[kBucketNames[b]] += ledger.buckets_ns[b];
      }
      expected.erase({ledger.stage.text(), ledger.device});
      ++num_ledgers;
    }
    ASSERT_TRUE(expected.empty()) << "recording " << i << ": a ledger is missing";
    if (!recording.ranges.empty()) {
      ASSERT_EQ(analysis.capture.outside_stages_ns,
                Plain(recording).outside(analysis.capture.start_ns, analysis.capture.duration_ns))
          << "recording " << i;
    }
  }
  EXPECT_GT(num_ledgers, kRecordings);
  EXPECT_GT(num_split, kRecordings / 100)
      << "recordings with a start-up are too rare to prove anything";
  for (const char* bucket : {"compute", "comm", "copy", "other_stage", "unattributed", "sync",
                             "launch_late", "queued", "unknown_idle", "unrecorded", "tail"}) {
    EXPECT_GT(seen[bucket], 0) << bucket << " never occurs: the test does not reach it";
  }
}

TEST(Ledger, BucketsThatDoNotSumToTheWindowAreAnInternalError) {
  Ledger ledger;
  ledger.window_ns = 10;
  ledger.buckets_ns[0] = 7;
  ledger.buckets_ns[5] = 3;
  check_conservation(ledger);
  ledger.buckets_ns[5] = 4;
  expect_error([&] { check_conservation(ledger); }, ErrorKind::kFailure,
               "internal error: the buckets of a window sum to 11 ns, its length is 10 ns",
               testing::HasSubstr("report"));
}

TEST(Ledger, BinsOfItsHistorySumToTheCapture) {
  std::mt19937 random(11);
  std::size_t num_bins = 0;
  for (int i = 0; i < 500; ++i) {
    const Recording recording = Maker(random).make();
    const Analysis analysis = profile(trace_of(recording, nullptr), rules()).analysis;
    std::map<std::string, Ledger> captures;
    for (const LedgerRow& ledger : analysis.ledgers) {
      if (ledger.stage.text() == "capture") {
        captures[ledger.device] = ledger;
      }
    }
    ASSERT_EQ(analysis.ledger_history.size(), captures.size());
    for (std::size_t device = 0; device < analysis.ledger_history.size(); ++device) {
      const LedgerHistory& history = analysis.ledger_history[device];
      Ledger sum;
      for (const auto& bin : history.bins) {
        const std::int64_t width = std::accumulate(bin.begin(), bin.end(), std::int64_t{0});
        ASSERT_TRUE(width == history.bin_ns || &bin == &history.bins.back());
        for (std::size_t b = 0; b < kNumBuckets; ++b) {
          sum.buckets_ns[b] += bin[b];
        }
      }
      num_bins += history.bins.size();
      ASSERT_EQ(sum.buckets_ns, captures["cuda:" + std::to_string(device)].buckets_ns);
    }
  }
  EXPECT_GT(num_bins, 10'000U);
}

TEST(Analysis, SumsHoldOnRandomRecordings) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const Recording recording = Maker(random).make();
    const Analysis analysis = profile(trace_of(recording, nullptr), rules()).analysis;
    std::int64_t staged = 0;
    for (const StageRow& stage : analysis.stages) {
      staged += stage.is_nested ? 0 : stage.kernel_ns;
    }
    ASSERT_EQ(staged + analysis.capture.unattributed_kernel_ns, analysis.capture.kernel_ns);
    std::int64_t rows = 0;
    for (const KernelRow& kernel : analysis.kernels) {
      rows += kernel.total_ns;
      ASSERT_LE(kernel.min_ns, kernel.median_ns);
      ASSERT_LE(kernel.median_ns, kernel.p99_ns);
      ASSERT_LE(kernel.p99_ns, kernel.max_ns);
    }
    ASSERT_EQ(rows, analysis.capture.kernel_ns);
    ASSERT_GE(analysis.capture.stage_overlap_ns, 0);
    ASSERT_GE(analysis.capture.outside_stages_ns, 0);
    ASSERT_LE(analysis.capture.outside_stages_ns, analysis.capture.duration_ns);
  }
}

TEST(Analysis, TheOrderOfRowsMeansNothing) {
  std::mt19937 random(11);
  for (int i = 0; i < 2000; ++i) {
    const Recording recording = Maker(random).make();
    const Analysis once = profile(trace_of(recording, nullptr), rules()).analysis;
    const Analysis again = profile(trace_of(recording, &random), rules()).analysis;
    ASSERT_EQ(once.kernels.size(), again.kernels.size());
    for (std::size_t k = 0; k < once.kernels.size(); ++k) {
      ASSERT_EQ(once.kernels[k].kernel_name, again.kernels[k].kernel_name);
      ASSERT_EQ(once.kernels[k].total_ns, again.kernels[k].total_ns);
      ASSERT_EQ(once.kernels[k].stage, again.kernels[k].stage);
    }
    ASSERT_EQ(once.ledgers.size(), again.ledgers.size());
    for (std::size_t l = 0; l < once.ledgers.size(); ++l) {
      ASSERT_EQ(once.ledgers[l].stage, again.ledgers[l].stage);
      ASSERT_EQ(once.ledgers[l].device, again.ledgers[l].device);
      ASSERT_EQ(once.ledgers[l].buckets_ns, again.ledgers[l].buckets_ns) << "recording " << i;
    }
  }
}

TEST(Ledger, WhatTheProgramCallsWarmUpIsStartUp) {
  for (const char* name : {"warmup", "model|0|Warm-up|forward", "warm_up 3", "warm up"}) {
    EXPECT_TRUE(is_warm_up_name(name)) << name;
  }
  for (const char* name : {"warm", "warmupper", "swarm upload", "prewarmup", "lukewarm", ""}) {
    EXPECT_FALSE(is_warm_up_name(name)) << name;
  }
  // Four passes of ten kernels; each takes 1 ms, and 9 ms of waiting in the first two.
  constexpr std::int64_t kMs = 1'000'000;
  const auto steady_of = [&](const char* range, std::int64_t range_end_ns) {
    TraceBuilder made;
    const std::uint16_t process = made.add_process();
    const std::uint32_t thread = made.add_thread(process);
    const std::uint32_t stream = made.add_stream(process, made.add_device());
    std::int64_t time_ns = 0;
    for (int i = 0; i < 40; ++i) {
      time_ns += i < 20 ? 9 * kMs : 0;
      made.launch(thread, time_ns, stream, time_ns + 10, time_ns + kMs, "gemm");
      time_ns += kMs;
    }
    made.range(thread, 0, range_end_ns, range);
    const Analysis analysis = profile(made.finish(), rules()).analysis;
    const auto steady =
        std::find_if(analysis.ledgers.begin(), analysis.ledgers.end(),
                     [](const LedgerRow& row) { return row.stage.kind == RowKind::kSteady; });
    return steady == analysis.ledgers.end() ? -1 : steady->window_ns;
  };
  EXPECT_EQ(steady_of("warmup", 200 * kMs - 5), 20 * kMs - 10) << "the last two passes";
  EXPECT_NE(steady_of("forward", 200 * kMs - 5), 20 * kMs - 10);
  EXPECT_NE(steady_of("warmup", 215 * kMs), 5 * kMs - 10) << "too little would be left";
}

}  // namespace
}  // namespace gpuwhy
