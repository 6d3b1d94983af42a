// SPDX-License-Identifier: Apache-2.0
//
// Rules on time in which a GPU did not compute.
//
// The ledger assigns each nanosecond to one bucket, so these savings are exact: the whole bucket,
// which no other rule claims.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "analysis/findings/rule.h"
#include "base/cut_name.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// A bucket of the ledger as a finding, if it is large enough.
struct BucketRule {
  FindingId id;
  Bucket bucket;
  double least;
  const char* sentence;  // takes time, share, device, stage
  const char* next;
};

constexpr BucketRule kBucketRules[] = {
    {FindingId::kExposedComm, Bucket::kComm, kLeastExposedShare,
     "{0} ({1}) of communication on {2} in {3} was not overlapped with compute",
     "overlap it with compute, or send less"},
    {FindingId::kQueueWait, Bucket::kQueued, kLeastVagueShare,
     "{2} was idle for {0} ({1}) of {3} with launched work blocked by other GPU work",
     "find what blocks it: events between streams, another GPU, another process"},
    {FindingId::kStartedLate, Bucket::kStartedLate, kLeastVagueShare,
     "{2} was idle for {0} ({1}) of {3} although the next launch call had already returned",
     "check for another process on the GPU, lazy loading of modules or graphs at their first launch, "
     "clocks of CPU and GPU that do not agree, and on Windows a driver that sends launches in batches "
     "(WDDM)"},
};

// A collective, by words in the names of its kernels without '_', and what helps against it.
struct CollectiveAdvice {
  const char* name;
  std::array<std::string_view, 3> words;
  const char* next;
  const char* next_in_engine = nullptr;  // where an engine serves a model, if that is another thing
};

constexpr CollectiveAdvice kCollectiveAdvice[] = {
    {"all-to-all",
     {"alltoall", "all2all", "deepep"},
     "overlap it with the compute of another micro-batch, or send less: lower precision, groups "
     "within a node"},
    {"all-reduce",
     {"allreduce", "crossdevicereduce"},
     "overlap it with compute, or send less: larger buckets, smaller groups, fused all-reduce",
     "overlap it with compute, or fuse it with the norm that follows it; custom or symmetric-memory all-reduce "
     "is faster than NCCL's for small messages"},
    {"all-gather",
     {"allgather"},
     "overlap it with compute, or gather less: smaller groups, fewer and larger calls"},
    {"reduce-scatter",
     {"reducescatter"},
     "overlap it with compute, or send less: smaller groups, fewer and larger calls"},
    {"send and receive",
     {"sendrecv"},
     "overlap it with the compute of another micro-batch; the kernel's name does not say whether it "
     "is a pipeline or an all-to-all"},
    {"broadcast", {"broadcast"}, "overlap it with compute, or broadcast less often"},
};

const CollectiveAdvice* collective_of(std::string_view kernel_name) {
  std::string plain = to_lower(kernel_name);
  std::erase(plain, '_');
  for (const CollectiveAdvice& one : kCollectiveAdvice) {
    if (std::ranges::any_of(one.words, [&](std::string_view word) {
          return !word.empty() && plain.find(word) != std::string::npos;
        })) {
      return &one;
    }
  }
  return nullptr;
}

// NCCL has no kernel for an all-to-all: it sends and receives. Operators and ranges say which it
// is.
bool calls_all_to_all(const Analysis& analysis) {
  const auto is_it = [](std::string_view name) {
    const CollectiveAdvice* one = collective_of(name);
    return one != nullptr && one == std::begin(kCollectiveAdvice);
  };
  return std::ranges::any_of(analysis.all_ranges,
                             [&](const RangeTotal& range) { return is_it(range.text); }) ||
         (analysis.operators &&
          std::ranges::any_of(analysis.operators->rows,
                              [&](const OperatorRow& op) { return is_it(op.name); }));
}

// Names the collective with most time in the row, and advises on that one.
void add_collective_advice(const FindingContext& context, const LedgerRow& row, Finding& finding) {
  std::map<const CollectiveAdvice*, std::int64_t> times_ns;
  for (const KernelRow& kernel : context.analysis.kernels) {
    if (is_kernel_in(kernel, row) && kernel.family == "communication") {
      times_ns[collective_of(kernel.kernel_name)] += time_in_row(kernel, row);
    }
  }
  const auto most =
      std::ranges::max_element(times_ns, {}, [](const auto& one) { return one.second; });
  if (most != times_ns.end() && most->first != nullptr) {
    const bool is_all_to_all = std::string_view(most->first->name) == "send and receive" &&
                               calls_all_to_all(context.analysis);
    const CollectiveAdvice& one = is_all_to_all ? kCollectiveAdvice[0] : *most->first;
    const bool is_served = !context.workload.engine.empty() && one.next_in_engine != nullptr;
    finding.advice.text =
        fmt::format("most of it is {}: {}", one.name, is_served ? one.next_in_engine : one.next);
  }
}

// Time of the communication kernels of a row, hidden or not.
std::int64_t communication_ns(const Analysis& analysis, const LedgerRow& row) {
  std::int64_t sum_ns = 0;
  for (const KernelRow& kernel : analysis.kernels) {
    sum_ns += is_kernel_in(kernel, row) && kernel.family == "communication"
                  ? time_in_row(kernel, row)
                  : 0;
  }
  return sum_ns;
}

// "; 109 ms of 113 ms of communication (96.3 %) was overlapped".
std::string hidden_communication(const FindingContext& context, const LedgerRow& row) {
  // Time of other stages, and of kernels that belong to none, is not overlap.
  // Nor is overlap known where work was not recorded.
  if (row[Bucket::kOtherStage] + row[Bucket::kUnattributed] + row.between_ns > 0) {
    return "";
  }
  const std::int64_t all_ns = communication_ns(context.analysis, row);
  const std::int64_t hidden_ns = all_ns - row[Bucket::kComm];
  return hidden_ns <= 0 ? ""
                        : fmt::format("; {} of {} of communication ({}) was overlapped",
                                      format_duration_ns(hidden_ns), format_duration_ns(all_ns),
                                      format_fraction(fraction_of(hidden_ns, all_ns)));
}

// "; allreduce ran at 1.4 to 13 GB/s of bus bandwidth; NVLink of this GPU: 300 GB/s per direction",
// of the collective with most time.
void add_bandwidth(const FindingContext& context, const LedgerRow& row, Finding& finding) {
  const DeviceRow* device = device_of(context.analysis, row);
  if (!context.analysis.operators || device == nullptr) {
    return;
  }
  // Small messages take the link's latency, and a collective that is not most of the time says
  // nothing about it.
  constexpr double kLeastBytes = 1 << 20;
  const std::int64_t all_ns = communication_ns(context.analysis, row);
  for (const CollectiveRate& rate : context.analysis.collective_rates) {
    if (!rate.bus_min_bytes_per_s || !rate.bus_max_bytes_per_s || rate.total_ns * 2 < all_ns ||
        rate.size_bytes.value_or(0) / static_cast<double>(std::max<std::int64_t>(rate.calls, 1)) <
            kLeastBytes) {
      continue;
    }
    const std::string least = fmt::format("{:.3g}", *rate.bus_min_bytes_per_s / 1e9);
    const std::string most = fmt::format("{:.3g}", *rate.bus_max_bytes_per_s / 1e9);
    finding.sentence +=
        fmt::format("; {} ran at {} GB/s of bus bandwidth", printable_name(rate.collective),
                    least == most ? most : least + " to " + most);
    finding.evidence.push_back(
        evidence("collective_rates", rate, &CollectiveRate::bus_min_bytes_per_s));
    finding.evidence.push_back(
        evidence("collective_rates", rate, &CollectiveRate::bus_max_bytes_per_s));
    const auto link = context.facts.link_bytes_per_s && !device->name.empty()
                          ? context.facts.link_bytes_per_s(device->name)
                          : std::nullopt;
    if (link) {
      finding.sentence +=
          fmt::format("; NVLink of this GPU: {:.4g} GB/s per direction", *link / 1e9);
    }
    return;
  }
}

// The whole time of a GPU after start-up, if a fifth of its communication then belongs to no stage:
// kernels whose launch was not recorded. For the first row of that GPU; for its other rows an empty
// one.
const LedgerRow* lost_comm(const FindingContext& context, const LedgerRow& row) {
  static const LedgerRow kNothing;
  std::int64_t in_scopes_ns = 0;
  const LedgerRow* first = nullptr;
  for (const LedgerRow& scope : context.scopes) {
    if (scope.device == row.device) {
      in_scopes_ns += scope[Bucket::kComm];
      first = first == nullptr ? &scope : first;
    }
  }
  const auto& ledgers = context.analysis.ledgers;
  const auto of = [&](RowKind kind) {
    return std::ranges::find_if(ledgers, [&](const LedgerRow& one) {
      return one.stage.kind == kind && one.device == row.device;
    });
  };
  const auto whole =
      of(RowKind::kSteady) == ledgers.end() ? of(RowKind::kRecording) : of(RowKind::kSteady);
  if (row.stage.kind == RowKind::kSteady || row.stage.kind == RowKind::kRecording ||
      whole == ledgers.end() || (*whole)[Bucket::kComm] * 4 <= in_scopes_ns * 5) {
    return nullptr;
  }
  return &row == first ? &*whole : &kNothing;
}

void check_bucket(const FindingContext& context, const BucketRule& rule, const LedgerRow& row) {
  const std::int64_t time_ns = row[rule.bucket];
  const double share = share_of(time_ns, row);
  if (share < rule.least) {
    return;
  }
  Finding& finding = context.add(rule.id, row, rule.bucket, time_ns);
  finding.sentence = fmt::format(fmt::runtime(rule.sentence), format_duration_ns(time_ns),
                                 format_fraction(share), row.device, stage_words(row));
  finding.evidence = {bucket_evidence(row, rule.bucket)};
  // Communication may overlap with work that was not recorded.
  constexpr double kMuchUnknown = 0.25;
  const bool is_unknown = rule.bucket == Bucket::kComm &&
                          share_of(row.between_ns + row[Bucket::kGraph], row) > kMuchUnknown;
  finding.confidence = is_unknown                            ? Confidence::kLow
                       : rule.bucket == Bucket::kStartedLate ? Confidence::kMedium
                                                             : Confidence::kHigh;
  finding.advice.text = rule.next;
  if (rule.bucket == Bucket::kComm) {
    add_collective_advice(context, row, finding);
    finding.sentence += hidden_communication(context, row);
    add_bandwidth(context, row, finding);
  }
}

// Nodes that were not recorded look like idle time, so this saves nothing that is known.
void check_graph_idle(const FindingContext& context) {
  for (const LedgerRow& row : context.scopes) {
    const std::int64_t time_ns = row[Bucket::kGraph];
    if (context.analysis.capture.kernel_ns == 0 || share_of(time_ns, row) < kLeastIdleShare) {
      continue;
    }
    Finding& finding = context.add(FindingId::kGraphIdle, row, Bucket::kGraph, 0);
    finding.confidence = Confidence::kLow;
    finding.sentence = fmt::format(
        "{} is idle time between nodes of CUDA graphs: nodes that were not recorded, or that wait for "
        "each other",
        time_in(time_ns, row));
    const CaptureInfo& capture = context.analysis.capture;
    finding.advice.text =
        capture.graph_mode == "Node" || capture.format.tool_id != "nsys"
            ? "the nodes were recorded: look for copies and host functions in the graph, and "
              "for nodes that depend on each other without need"
            : "record the nodes of graphs (nsys: --cuda-graph-trace=node), and see whether "
              "the time stays";
    finding.evidence = {bucket_evidence(row, Bucket::kGraph)};
  }
}

// Idle time that the host can not explain: it had launched, or waited for the GPU.
void check_unrecorded(const FindingContext& context) {
  constexpr double kMuch = 0.10;
  for (const LedgerRow& row : context.scopes) {
    std::int64_t time_ns = row[Bucket::kUnrecorded];
    for (const IdleRow& cause : causes_of(context.analysis.idle_causes, row)) {
      time_ns -= cause.bucket == Bucket::kUnrecorded ? cause.total_ns : 0;
    }
    if (context.analysis.capture.kernel_ns == 0 || fraction_of(time_ns, row.window_ns) < kMuch) {
      continue;
    }
    Finding& finding = context.add(FindingId::kUnrecordedWork, row, Bucket::kUnrecorded, 0);
    finding.confidence = Confidence::kMedium;
    const bool is_between = row.between_ns * 2 > time_ns;
    // What the verdict leaves out as well.
    const std::int64_t told_ns = is_between ? time_ns : row.unrecorded_before_ns();
    const std::string part = fmt::format("{} ({}) of {} on {}", format_duration_ns(told_ns),
                                         format_fraction(fraction_of(told_ns, row.window_ns)),
                                         stage_words(row), row.device);
    const std::string in_call =
        row.unrecorded_call.empty()
            ? ""
            : fmt::format(" ({} of it in {})", format_duration_ns(row.unrecorded_call_ns),
                          printable_name(row.unrecorded_call));
    if (is_between) {
      finding.sentence =
          part +
          " has no recorded GPU activity between other work, though the CPU had launched work or was "
          "waiting for the GPU" +
          in_call + ". Most likely the profiler missed kernels, so what ran then is unknown";
      finding.advice.text =
          "check that the profiler sees every kernel: nodes of CUDA graphs, other processes on the GPU, "
          "and buffers that overflowed are the usual reasons";
    } else {
      finding.sentence =
          part + " is left out: the CPU had launched work or was waiting for the GPU" + in_call +
          ", but no GPU activity was recorded. Most likely an earlier step was still running, or the profiler missed work";
      finding.advice.text =
          "record several consecutive steps: an engine that launches ahead never shows its first step whole";
    }
    finding.evidence = {bucket_evidence(row, Bucket::kUnrecorded)};
  }
}

void check_buckets(const FindingContext& context) {
  // No ledger: every rule reports once why it has nothing to say.
  if (context.analysis.ledgers.empty()) {
    for (const BucketRule& rule : kBucketRules) {
      context.silent(rule.id, "the recording has no GPU activity with times");
    }
    return;
  }
  // While graphs are captured nothing waits, and in a sample neither idle time nor overlap has a
  // meaning.
  if (context.analysis.capture.kernel_ns == 0 || is_capture_of_graphs(context.analysis) ||
      has_missing_calls(context.analysis)) {
    return;
  }
  for (const LedgerRow& row : context.scopes) {
    for (const BucketRule& rule : kBucketRules) {
      const LedgerRow* whole = rule.bucket == Bucket::kComm ? lost_comm(context, row) : nullptr;
      check_bucket(context, rule, whole == nullptr ? row : *whole);
    }
  }
}

// A request that waits on the host before its first kernel: tokenizing, scheduling, allocating.
void check_idle_at_start(const FindingContext& context) {
  bool could_speak = false;
  for (const LedgerRow& row : context.scopes) {
    if (role_of(row.stage) != StageRole::kPrefill) {
      continue;
    }
    could_speak = true;
    const std::int64_t time_ns = row.lead_ns;
    if (share_of(time_ns, row) < kLeastIdleShare) {
      continue;
    }
    Finding& finding = context.add(FindingId::kIdleAtStart, row, Bucket::kLaunchLate, time_ns);
    finding.confidence = Confidence::kHigh;
    finding.sentence =
        fmt::format("{} passes before the first kernel of a request starts", time_in(time_ns, row));
    finding.advice.text =
        "tokenize, allocate and build masks before the request reaches the GPU thread; do not block the "
        "scheduler loop";
    finding.evidence = {evidence("ledgers", row, &LedgerRow::lead_ns)};
  }
  if (!could_speak) {
    context.silent(FindingId::kIdleAtStart, "needs a stage prefill with GPU work");
  }
}

// Of ranks with equal work, the one that communicates least arrives last: the additional time of
// the others is waiting. Ranks that send different amounts look the same.
void check_rank_skew(const FindingContext& context) {
  if (has_missing_calls(context.analysis)) {
    context.silent(FindingId::kRankSkew, "the recording is a sample");
    return;
  }
  std::map<RowName, std::vector<const LedgerRow*>> by_stage;
  for (const LedgerRow& row : context.scopes) {
    if (row[Bucket::kComm] > 0) {
      by_stage[row.stage].push_back(&row);
    }
  }
  bool could_speak = false;
  for (const auto& [stage, rows] : by_stage) {
    if (rows.size() < 2) {
      continue;
    }
    could_speak = true;
    const auto comm_ns = [&](const LedgerRow& row) {
      return communication_ns(context.analysis, row);
    };
    const LedgerRow* last = *std::min_element(
        rows.begin(), rows.end(),
        [&](const LedgerRow* a, const LedgerRow* b) { return comm_ns(*a) < comm_ns(*b); });
    for (const LedgerRow* row : rows) {
      const std::int64_t waits_ns = std::min(comm_ns(*row) - comm_ns(*last), (*row)[Bucket::kComm]);
      if (share_of(waits_ns, *row) < kLeastExposedShare) {
        continue;
      }
      Finding& finding = context.add(FindingId::kRankSkew, *row, Bucket::kComm, waits_ns);
      finding.confidence = Confidence::kLow;
      finding.sentence = fmt::format(
          "{} spends {} more in communication than {} in {}: it waits for that slower rank",
          row->device, format_duration_ns(waits_ns), last->device, stage_words(*row));
      finding.advice.text = fmt::format(
          "find out why {} is late: compare its kernels, copies and CPU time", last->device);
      finding.evidence = {bucket_evidence(*row, Bucket::kComm),
                          bucket_evidence(*last, Bucket::kComm)};
    }
  }
  if (!could_speak) {
    context.silent(FindingId::kRankSkew,
                   "needs at least 2 GPUs with communication kernels in the same stage");
  }
}

std::string words_of_copies(const CopyRow& copies) {
  const std::string rate =
      copies.bytes_per_s()
          ? fmt::format(", {} at {:.1f} GB/s",
                        format_bytes(static_cast<std::uint64_t>(copies.size_bytes)),
                        *copies.bytes_per_s() / 1e9)
          : "";
  std::string direction = copies.direction;
  std::replace(direction.begin(), direction.end(), '_', ' ');
  return fmt::format("{}{}{}", direction,
                     copies.memory.empty() ? "" : fmt::format(" ({} memory)", copies.memory), rate);
}

void check_copies(const FindingContext& context) {
  for (const LedgerRow& row : context.scopes) {
    const std::int64_t time_ns = row[Bucket::kCopy];
    if (share_of(time_ns, row) < kLeastExposedShare) {
      continue;
    }
    const auto largest =
        std::find_if(context.analysis.copies.begin(), context.analysis.copies.end(),
                     [&](const CopyRow& one) { return one.device == row.device; });
    const bool is_known = largest != context.analysis.copies.end();
    Finding& finding = context.add(FindingId::kExposedCopy, row, Bucket::kCopy, time_ns);
    finding.confidence = Confidence::kHigh;
    finding.sentence =
        fmt::format("{} is memory copies with no kernel running{}", time_in(time_ns, row),
                    is_known ? "; most of it: " + words_of_copies(*largest) : "");
    finding.advice.text =
        "keep data on the GPU, copy less of it, and copy on a stream of its own while kernels run";
    // Copies can hide behind the kernels, as far as there are any.
    constexpr std::int64_t kTooMuchToHide = 4;
    if (is_known && largest->memory == "pageable") {
      finding.advice.text =
          context.workload.is_pytorch
              ? "pin the host memory (tensor.pin_memory(), DataLoader(pin_memory=True)) and copy with "
                "non_blocking=True: pageable memory is copied twice and the CPU waits"
              : "pin the host memory (cudaHostAlloc, cudaHostRegister): pageable memory is copied "
                "twice and the CPU waits";
      finding.advice.fix = Fix::kPinMemory;
    } else if (is_known && largest->direction == "device_to_device") {
      finding.advice.text =
          "copy less inside the GPU: write results where they are needed, and let the kernels that use "
          "them read strided or packed inputs";
    } else if (is_known && largest->direction == "memset") {
      finding.advice.text = "clear less memory, or clear it in the kernel that uses it first";
    } else if (time_ns > kTooMuchToHide * row[Bucket::kCompute]) {
      finding.advice.text =
          "keep this data on the GPU, or copy less of it (smaller types, shards on several GPUs): there "
          "are too few kernels to hide the copies behind";
    }
    finding.evidence = {bucket_evidence(row, Bucket::kCopy),
                        fmt::format("copies[device={}].total_ns", row.device)};
  }
}

constexpr Rule kOnTime[] = {check_buckets, check_graph_idle,    check_unrecorded,
                            check_copies,  check_idle_at_start, check_rank_skew};

}  // namespace

const std::span<const Rule> kTimeRules = kOnTime;

}  // namespace gpuwhy
