// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the finding rules. A rule looks at an analysis and adds findings, or says why it
// cannot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/findings/findings.h"
#include "analysis/findings/workload.h"
#include "results/field_path.h"

namespace gpuwhy {

// Below these shares a finding is noise on a list that people must act on. Chosen, not measured.
inline constexpr double kLeastIdleShare = 0.05;     // of the window: waits for the host
inline constexpr double kLeastExposedShare = 0.01;  // communication, copies, synchronising calls
inline constexpr double kLeastWaitShare = 0.03;     // the host waits
inline constexpr double kLeastVagueShare = 0.10;    // work that was launched and did not start
inline constexpr double kLeastKernelShare = 0.03;   // kernels that could be fewer or faster

// Input and output of a rule.
struct FindingContext {
  const Analysis& analysis;
  const FindingFacts& facts;
  // The rows a rule looks at: stages that are not nested; if none is marked, the steady phase or
  // the capture; for a summary without times, one row that is all compute.
  const std::vector<LedgerRow>& scopes;
  const Workload& workload;
  Findings& findings;

  // A finding on a stage and device of the ledger that saves at most `saving_ns`, out of `bucket`.
  Finding& add(FindingId id, const LedgerRow& row, Bucket bucket, std::int64_t saving_ns) const;
  // A finding that saves no time by itself.
  Finding& note(FindingId id, const RowName& stage = {RowKind::kRecording}) const;
  // A problem of the recording that must be fixed first.
  Finding& block(FindingId id) const;
  // Records that a rule could not be checked.
  void silent(FindingId id, const std::string& reason) const;
};

// Whether what ran on a GPU in a stage belongs to the row. Work of a recording without stages
// counts in its steady phase, as far as it ran then: time_in_row().
bool is_in_row(const std::string& device, const RowName& stage, const LedgerRow& row);
bool is_kernel_in(const KernelRow& kernel, const LedgerRow& row);
// The part of the time of a kernel, or a group of its launches, that is in the row: of a steady
// phase what ran in it.
template <typename Launches>
std::int64_t time_in_row(const Launches& launches, const LedgerRow& row) {
  return row.stage.kind == RowKind::kSteady ? launches.steady_ns.value_or(launches.total_ns)
                                            : launches.total_ns;
}
// Kernels of a row that a rule is about.
struct WantedKernels {
  std::int64_t time_ns = 0;  // in the row, at most its compute time
  std::int64_t calls = 0;
  const KernelRow* largest = nullptr;  // by its time in the row; nullptr: there are none
};
template <typename Wanted>
WantedKernels kernels_where(const FindingContext& context, const LedgerRow& row, Wanted wanted) {
  WantedKernels found;
  for (const KernelRow& kernel : context.analysis.kernels) {  // by total time
    if (is_kernel_in(kernel, row) && wanted(kernel)) {
      found.time_ns += time_in_row(kernel, row);
      found.calls += kernel.calls;
      const bool is_larger =
          found.largest == nullptr || time_in_row(kernel, row) > time_in_row(*found.largest, row);
      found.largest = is_larger ? &kernel : found.largest;
    }
  }
  found.time_ns = std::min(found.time_ns, row[Bucket::kCompute]);
  return found;
}
// The key of a row's number, from the members that lead to it.
template <typename Row, typename... Members>
std::string evidence(const char* table, const Row& row, Members... members) {
  return row_path(table, row, 0) + "." + path_of<Row>(members...);
}
// The keys of a kernel's time in a row, and of a bucket.
std::string kernel_evidence(const KernelRow& kernel, const LedgerRow& row);
std::string bucket_evidence(const LedgerRow& row, Bucket bucket);

// The GPU of a row; nullptr if nothing is known of it.
const DeviceRow* device_of(const Analysis& analysis, const LedgerRow& row);

// Whether any kernel of the recording is of a family.
bool has_family(const Analysis& analysis, std::string_view family);

// Chains of kernels in a row, as kernels count in it.
KernelChains chains_in(const Analysis& analysis, const LedgerRow& row);
// The key of one of their fields.
std::string chain_evidence(const LedgerRow& row, std::int64_t KernelChains::*field);

// Share of the row's time from its first recorded work to its last.
double share_of(std::int64_t time_ns, const LedgerRow& row);

// "1.20 ms (12.3 %) of decode on cuda:0".
std::string time_in(std::int64_t time_ns, const LedgerRow& row);

// A rule of a file, in the list at its end.
using Rule = void (*)(const FindingContext& context);
extern const std::span<const Rule> kRecordingRules;
extern const std::span<const Rule> kHostRules;
extern const std::span<const Rule> kTimeRules;
extern const std::span<const Rule> kKernelRules;
extern const std::span<const Rule> kChoiceRules;
extern const std::span<const Rule> kRemarkRules;

}  // namespace gpuwhy
