// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a GPU went, and what the host did while it waited.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "results/bucket.h"
#include "results/field.h"
#include "results/idle_label.h"
#include "results/row.h"

namespace gpuwhy {

// How the time of a window on one GPU was spent. The buckets sum to the window.
struct Ledger {
  BucketTimes buckets_ns{};
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
  // The GPU computes, communicates or copies for the window.
  std::int64_t busy_ns() const {
    return (*this)[Bucket::kCompute] + (*this)[Bucket::kComm] + (*this)[Bucket::kCopy];
  }
  std::int64_t sum_ns() const;
  std::int64_t unrecorded_before_ns() const { return (*this)[Bucket::kUnrecorded] - between_ns; }
  // From the first recorded work to the last.
  std::int64_t work_ns() const {
    return window_ns - unrecorded_before_ns() - (*this)[Bucket::kTail];
  }
  void add(const Ledger& other);
};

// All instances of a stage on one GPU. Its buckets sum to its window, exactly.
struct LedgerRow : Ledger {
  RowName stage;
  std::string device;
  std::int64_t num_instances = 0;
  // The time that shares are of: of a marked stage until its mark ends, else until the last work;
  // and the share in which the GPU is busy. set_base() fills them in.
  std::optional<std::int64_t> base_ns = {};
  std::optional<double> busy_fraction = {};
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
};

template <typename F>
void describe(const LedgerRow*, F&& f) {
  using T = LedgerRow;
  const auto part = [](std::string_view formula, std::string_view text) {
    return number("ns", "instances", "marks calls kernels copies graphs", formula, text);
  };
  f("stage", &T::stage, names_row("the stage, or capture, startup, steady or ending"));
  f("device", &T::device, names_row("the GPU", 2));
  f("instances", &T::num_instances, number("1", "", "marks", "ledgers.window", "windows"));
  f("window_ns", &T::window_ns,
    number(
        "ns", "instances", "marks kernels copies graphs", "ledgers.window",
        "sum of windows: of a step, to the start of the next; else from a mark's start to its end "
        "or that of its last GPU work"));
  f("busy_fraction", &T::busy_fraction,
    number("fraction", "instances", "marks kernels copies graphs", "ledgers.busy",
           "compute, comm and copy over base_ns: the busy share of the first line of a report"));
  f("base_ns", &T::base_ns,
    number("ns", "instances", "marks kernels copies graphs", "ledgers.busy",
           "window_ns without unrecorded time before the first work; without a mark also without "
           "tail"));
  f("lead_ns", &T::lead_ns,
    part("ledgers.lead", "idle time before a window's first work, as far as it is the host's"));
  f("host_wait_ns", &T::host_wait_ns,
    part("ledgers.host_wait",
         "the thread that launches most of the GPU's work waited for the GPU"));
  f("buckets_ns", &T::buckets_ns,
    part("ledgers.bucket",
         "each nanosecond of the windows is in one bucket, the first that applies"));
}

// Idle time of a row of the ledger for which the host is the cause, by what it did. Rows of one
// bucket sum to it, except for unrecorded, of which a part may not be the host's.
struct IdleRow {
  RowName stage;
  std::string device;
  Bucket bucket = Bucket::kLaunchLate;  // sync, launch_late or unrecorded
  IdleKind kind = IdleKind::kNotHost;
  std::string call;   // the API call that took at least half of the time; may be empty
  std::string scope;  // the operator or range around it; may be empty
  std::int64_t num_gaps = 0;
  std::int64_t total_ns = 0;
  std::int64_t in_call_ns = 0;  // of it, inside the call, else inside the scope
  std::int64_t longest_ns = 0;
  std::int64_t first_start_ns = 0;  // of the first and the last of these gaps
  std::int64_t first_gap_ns = 0;    // how long the first was
  std::int64_t last_start_ns = 0;
};

template <typename F>
void describe(const IdleRow*, F&& f) {
  using T = IdleRow;
  const auto in_gaps = [](std::string_view text) {
    return number("ns", "gaps", "marks calls kernels copies graphs", "idle_causes", text);
  };
  f("stage", &T::stage, names_row("the stage, or capture, startup, steady or ending"));
  f("device", &T::device, names_row("the GPU", 2));
  f("bucket", &T::bucket, names_row("of the ledger: sync, launch_late or unrecorded", 3));
  f("kind", &T::kind,
    names_row("waiting, launching, host_work, first_use, allocating or blocked", 4));
  f("call", &T::call, names_row("the API call with half of the time or more; may be empty", 5));
  f("scope", &T::scope,
    names_row("the operator or range around it, its numbers as N; may be empty", 6));
  f("gaps", &T::num_gaps,
    number("1", "", "marks calls kernels copies graphs", "idle_causes", "gaps"));
  f("total_ns", &T::total_ns, in_gaps("sum of their lengths"));
  f("in_call_ns", &T::in_call_ns,
    in_gaps("of it, inside that call; without a call, inside the scope"));
  f("longest_ns", &T::longest_ns, in_gaps("the longest"));
}

// Of all idle rows those of one row of the ledger, largest first: they follow each other.
inline std::span<const IdleRow> causes_of(std::span<const IdleRow> all, const LedgerRow& row) {
  const auto is_of_row = [&](const IdleRow& cause) {
    return cause.stage == row.stage && cause.device == row.device;
  };
  const auto first = std::find_if(all.begin(), all.end(), is_of_row);
  return {first, std::find_if_not(first, all.end(), is_of_row)};
}

}  // namespace gpuwhy
