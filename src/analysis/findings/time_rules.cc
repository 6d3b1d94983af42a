// SPDX-License-Identifier: Apache-2.0
//
// Rules on time in which a GPU did not compute.
//
// The ledger assigns each nanosecond to one bucket, so these savings are exact: the whole bucket,
// which no other rule claims.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "analysis/findings/rule.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"

namespace llmprof {
namespace {

// A bucket of the ledger as a finding, if it is large enough.
struct BucketRule {
  const char* id;
  Bucket bucket;
  double least;
  const char* sentence;  // takes time, share, device, stage
  const char* next;
};

constexpr BucketRule kBucketRules[] = {
    {"launch_bound", Bucket::kLaunchLate, kLeastIdleShare,
     "{2} waited {0} ({1}) in {3} for the host to launch its next kernel",
     "put the steps into CUDA graphs (PyTorch: torch.compile(mode=\"reduce-overhead\"); vLLM: "
     "leave out --enforce-eager), or give the host less to do between launches"},
    {"host_sync", Bucket::kSync, kLeastExposedShare,
     "{2} was idle {0} ({1}) in {3} while the host sat in a synchronising call",
     "find the call (nsys: CUDA API row) and remove it from the step: .item(), .cpu(), "
     "torch.cuda.synchronize(), printing tensors"},
    {"exposed_comm", Bucket::kComm, kLeastExposedShare,
     "{2} only communicated for {0} ({1}) in {3}",
     "overlap it with compute, or send less: larger buckets, fewer ranks a group, fused "
     "all-reduce"},
    {"exposed_copy", Bucket::kCopy, kLeastExposedShare, "{2} only copied for {0} ({1}) in {3}",
     "keep data on the GPU, copy less of it, and copy on a stream of its own while kernels run"},
    {"queue_wait", Bucket::kQueued, kLeastIdleShare,
     "{2} was idle {0} ({1}) in {3} with work launched that waited for other work",
     "look for streams that wait for each other's events"},
    {"started_late", Bucket::kStartedLate, kLeastIdleShare,
     "{2} was idle {0} ({1}) in {3} after the launch of its next work had returned",
     "look for what holds launched work back: another process on the GPU, modules and graphs that "
     "are loaded with their first launch, clocks of host and GPU that differ"},
};

// Whether most kernels of the row are nodes of CUDA graphs.
bool is_in_graphs(const Analysis& analysis, const StageLedger& row) {
  std::int64_t in_graphs = 0;
  std::int64_t all = 0;
  const bool is_stage =
      std::any_of(analysis.stages.begin(), analysis.stages.end(),
                  [&](const StageSummary& stage) { return stage.stage == row.stage; });
  for (const StageSummary& stage : analysis.stages) {
    if (is_stage ? stage.stage == row.stage : !stage.is_nested) {
      in_graphs += stage.num_graph_kernels;
      all += stage.num_kernels;
    }
  }
  return in_graphs * 2 > all;
}

// A gap is classified by its start. How it continued decides what helps.
void say_more(const FindingContext& context, const BucketRule& rule, const StageLedger& row,
              Finding& finding) {
  const Ledger& ledger = row.ledger;
  const std::string key =
      fmt::format("ledgers[stage={},device={}].", path_value(row.stage), row.device);
  finding.next = rule.next;
  if (rule.bucket == Bucket::kSync && ledger.sync_held_ns * 2 < ledger[Bucket::kSync]) {
    const std::int64_t after_ns = ledger[Bucket::kSync] - ledger.sync_held_ns;
    finding.confidence = "medium";
    finding.sentence = fmt::format(
        "{} was idle {} ({}) in {} from synchronising calls on to the next launch: {} until they "
        "returned, {} of other work of the host",
        row.device, format_duration_ns(ledger[Bucket::kSync]),
        format_fraction(fraction_of(ledger[Bucket::kSync], row.ledger.window_ns)),
        printable(row.stage), format_duration_ns(ledger.sync_held_ns),
        format_duration_ns(after_ns));
    finding.next =
        "give the host less to do between its calls (CUDA graphs, work that can be done before), "
        "and launch the next step before waiting for this one";
    finding.evidence.push_back(key + "sync_held_ns");
  } else if (rule.bucket == Bucket::kLaunchLate && is_in_graphs(context.analysis, row)) {
    finding.next =
        "its kernels are in CUDA graphs already: do what the host does between them (scheduling, "
        "sampling, detokenising) while the step before runs; vLLM: --async-scheduling, SGLang: "
        "leave out --disable-overlap-schedule";
  }
}

void check_bucket(const FindingContext& context, const BucketRule& rule, const StageLedger& row) {
  const std::int64_t time_ns = row.ledger[rule.bucket];
  const double share = fraction_of(time_ns, row.ledger.window_ns);
  if (share < rule.least) {
    return;
  }
  Finding& finding = context.add(rule.id, row, rule.bucket, time_ns);
  finding.sentence = fmt::format(fmt::runtime(rule.sentence), format_duration_ns(time_ns),
                                 format_fraction(share), row.device, printable(row.stage));
  finding.evidence = {fmt::format("ledgers[stage={},device={}].buckets_ns.{}",
                                  path_value(row.stage), row.device, finding.bucket)};
  finding.confidence = rule.bucket == Bucket::kStartedLate ? "medium" : "high";
  say_more(context, rule, row, finding);
}

}  // namespace

void check_buckets(const FindingContext& context) {
  // No ledger: every rule reports once why it has nothing to say.
  if (context.analysis.ledgers.empty()) {
    for (const BucketRule& rule : kBucketRules) {
      context.silent(rule.id, "the recording has no GPU activity with times");
    }
    return;
  }
  for (const StageLedger& row : context.scopes) {
    if (context.analysis.kernel_ns == 0) {
      continue;  // nothing waited for
    }
    for (const BucketRule& rule : kBucketRules) {
      check_bucket(context, rule, row);
    }
  }
}

// A request that waits on the host before its first kernel: tokenizing, scheduling, allocating.
void check_idle_at_start(const FindingContext& context) {
  bool could_speak = false;
  for (const StageLedger& row : context.scopes) {
    if (row.stage != "prefill") {
      continue;
    }
    could_speak = true;
    const std::int64_t time_ns = row.ledger.lead_ns;
    if (fraction_of(time_ns, row.ledger.window_ns) < kLeastIdleShare) {
      continue;
    }
    Finding& finding = context.add("idle_at_start", row, Bucket::kLaunchLate, time_ns);
    finding.confidence = "high";
    finding.sentence =
        fmt::format("{} passes before the first kernel of a request", time_in(time_ns, row));
    finding.next =
        "do on the host beforehand what the first launch need not wait for: tokenise, allocate, "
        "build masks; keep the server's loop from waiting on other requests";
    finding.evidence = {
        fmt::format("ledgers[stage={},device={}].lead_ns", path_value(row.stage), row.device)};
  }
  if (!could_speak) {
    context.silent("idle_at_start", "needs a stage prefill with GPU work");
  }
}

// Of ranks with equal work, the one that communicates least arrives last: the additional time of
// the others is waiting. Ranks that send different amounts look the same.
void check_rank_skew(const FindingContext& context) {
  std::map<std::string, std::vector<const StageLedger*>> by_stage;
  for (const StageLedger& row : context.scopes) {
    if (row.ledger[Bucket::kComm] > 0) {
      by_stage[row.stage].push_back(&row);
    }
  }
  bool could_speak = false;
  for (const auto& [stage, rows] : by_stage) {
    if (rows.size() < 2) {
      continue;
    }
    could_speak = true;
    const auto comm_ns = [&](const StageLedger& row) {
      std::int64_t sum = 0;
      for (const KernelRecord& kernel : context.analysis.kernels) {
        sum += is_kernel_in(kernel, row) && kernel.family == "communication" ? kernel.total_ns : 0;
      }
      return sum;
    };
    const StageLedger* last = *std::min_element(
        rows.begin(), rows.end(),
        [&](const StageLedger* a, const StageLedger* b) { return comm_ns(*a) < comm_ns(*b); });
    for (const StageLedger* row : rows) {
      const std::int64_t waits_ns =
          std::min(comm_ns(*row) - comm_ns(*last), row->ledger[Bucket::kComm]);
      if (fraction_of(waits_ns, row->ledger.window_ns) < kLeastExposedShare) {
        continue;
      }
      Finding& finding = context.add("rank_skew", *row, Bucket::kComm, waits_ns);
      finding.confidence = "low";
      finding.sentence =
          fmt::format("{} communicates {} longer than {} in {}: it waits there for the slower one",
                      row->device, format_duration_ns(waits_ns), last->device, printable(stage));
      finding.next = fmt::format("find what makes {} late: compare its kernels, copies and host",
                                 last->device);
      finding.evidence = {fmt::format("ledgers[stage={},device={}].buckets_ns.comm",
                                      path_value(stage), row->device),
                          fmt::format("ledgers[stage={},device={}].buckets_ns.comm",
                                      path_value(stage), last->device)};
    }
  }
  if (!could_speak) {
    context.silent("rank_skew", "needs two GPUs of one stage that communicate");
  }
}

void check_pageable_copies(const FindingContext& context) {
  for (const DeviceSummary& device : context.analysis.devices) {
    // Copies have no stage in the device summary, so the scope with the most copying is charged.
    const StageLedger* worst = nullptr;  // the scope with most of the copying
    for (const StageLedger& row : context.scopes) {
      if (row.device == device.device &&
          (worst == nullptr || row.ledger[Bucket::kCopy] > worst->ledger[Bucket::kCopy])) {
        worst = &row;
      }
    }
    if (worst == nullptr) {
      continue;
    }
    const std::int64_t time_ns = std::min(device.pageable_copy_ns, worst->ledger[Bucket::kCopy]);
    if (fraction_of(time_ns, worst->ledger.window_ns) < kLeastExposedShare) {
      continue;
    }
    Finding& finding = context.add("pageable_copy", *worst, Bucket::kCopy, time_ns);
    finding.confidence = "medium";
    finding.sentence = fmt::format(
        "copies of {} from or to pageable memory took {}: each is copied "
        "twice, and the host waits",
        device.device, format_duration_ns(device.pageable_copy_ns));
    finding.next =
        "pin the host's memory: tensor.pin_memory(), DataLoader(pin_memory=True), "
        "cudaHostAlloc; copy with non_blocking=True";
    finding.evidence = {fmt::format("devices[device={}].pageable_copy_ns", device.device)};
  }
}

}  // namespace llmprof
