// SPDX-License-Identifier: Apache-2.0
//
// Findings: what to fix first, with the maximum possible saving of each.
//
// A rule looks at one kind of waste and reports what removing all of it would save: an upper bound,
// in the units people plan in. Idle time, communication and copies come directly from the ledger,
// so their savings are exact and disjoint. Kernels that could be faster or fused are bounded by
// their own time and by the stage's compute time, because they may overlap.
//
// Rules are a table; a rule is a function that adds findings or says why it cannot. If two rules
// refer to the same time, the smaller finding is marked, so that nobody adds them up. What no rule
// detects: work that need not be done at all.
#include "analysis/findings/findings.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "analysis/findings/rule.h"
#include "analysis/idle/busy_row.h"
#include "base/cut_name.h"
#include "base/json_path.h"
#include "base/text.h"
#include "base/units.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// Stages if marked, else the part of the capture in which the model works. Start-up and what
// follows the last work of the model are in the verdict: no step becomes faster without them.
std::vector<LedgerRow> scopes_of(const Analysis& analysis) {
  std::vector<LedgerRow> stages;
  std::vector<LedgerRow> steady;
  std::vector<LedgerRow> captures;
  for (const LedgerRow& row : analysis.ledgers) {
    const auto stage = std::find_if(analysis.stages.begin(), analysis.stages.end(),
                                    [&](const StageRow& s) { return s.stage == row.stage; });
    if (row.stage.kind == RowKind::kRecording) {
      captures.push_back(row);
    } else if (row.stage.kind == RowKind::kSteady) {
      steady.push_back(row);
    } else if (row.stage.kind == RowKind::kStage && !is_without_work(row.stage) &&
               (stage == analysis.stages.end() || !stage->is_nested)) {
      stages.push_back(row);
    }
  }
  if (!stages.empty()) {
    return stages;
  }
  if (analysis.is_summary && !analysis.kernels.empty()) {
    std::vector<LedgerRow> whole(1);
    LedgerRow& all = whole.front();
    all.stage.kind = RowKind::kRecording;
    all.device = analysis.kernels[0].device;
    all.num_instances = 1;
    all.window_ns = analysis.capture.kernel_ns;
    all.buckets_ns[static_cast<std::size_t>(Bucket::kCompute)] = analysis.capture.kernel_ns;
    set_base(all);
    return whole;
  }
  // A GPU whose model works all the time, or that ran no model, has only the capture.
  for (const LedgerRow& capture : captures) {
    if (std::none_of(steady.begin(), steady.end(),
                     [&](const LedgerRow& p) { return p.device == capture.device; })) {
      steady.push_back(capture);
    }
  }
  return steady;
}

// A saving counts for as much as it is sure: the bound of one that is read off a table of GPUs, or
// that is all the time something takes, is seldom reached.
double weight_of(const Finding& finding) {
  const double sure = finding.confidence == Confidence::kHigh     ? 1.0
                      : finding.confidence == Confidence::kMedium ? kMediumWeight
                                                                  : kLowWeight;
  return sure * static_cast<double>(finding.saving_ns + finding.once_ns);
}

// The same finding on several GPUs is one: that of the GPU with the largest saving, which is
// first.
void merge_devices(std::vector<Finding>& found) {
  std::vector<Finding> merged;
  std::vector<std::vector<std::int64_t>> savings;
  std::vector<std::string> other;  // one of the GPUs behind these savings
  for (Finding& finding : found) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const Finding& one) {
      return !finding.device.empty() && one.device != finding.device && one.id == finding.id &&
             one.stage == finding.stage && !one.device.empty();
    });
    // Findings of rank_skew compare GPUs with each other.
    if (same == merged.end() || finding.id == FindingId::kRankSkew) {
      merged.push_back(std::move(finding));
      savings.emplace_back();
      other.emplace_back();
    } else {
      const auto at = static_cast<std::size_t>(same - merged.begin());
      savings[at].push_back(finding.saving_ns);
      other[at] = finding.device;
    }
  }
  for (std::size_t i = 0; i < merged.size(); ++i) {
    if (savings[i].size() == 1) {
      merged[i].sentence +=
          fmt::format(" ({}: saves <= {})", other[i], format_duration_ns(savings[i].front()));
    } else if (savings[i].size() > 1) {
      const auto [least, most] = std::minmax_element(savings[i].begin(), savings[i].end());
      merged[i].sentence += fmt::format(" ({} other GPUs: save <= {} to {})", savings[i].size(),
                                        format_duration_ns(*least), format_duration_ns(*most));
    }
  }
  found = std::move(merged);
}

// Faster kernels gain little while the CPU is late with the next ones: that comes first.
void add_order(std::vector<Finding>& found) {
  constexpr double kMuch = 0.10;  // of the row
  for (Finding& finding : found) {
    const auto late = std::find_if(found.begin(), found.end(), [&](const Finding& one) {
      return (one.id == FindingId::kLaunchBound || one.id == FindingId::kHostWork) &&
             one.stage == finding.stage && one.device == finding.device &&
             one.saving_fraction().value_or(0) >= kMuch;
    });
    if (finding.bucket == Bucket::kCompute && finding.saving_ns > 0 && late != found.end() &&
        !finding.advice.same_as) {
      finding.advice.after = late->id;
    }
  }
}

// Most savings are all of a bucket. One of less than the time that the sentence is about says so
// itself.
void finish_bounds(std::vector<Finding>& found) {
  for (Finding& finding : found) {
    if (finding.saving_ns == 0) {
      finding.bound = {};
    } else if (std::holds_alternative<std::monostate>(finding.bound)) {
      finding.bound = AllOf{finding.saving_ns};
    }
  }
}

// One change that solves two findings is told once.
void refer_to_same_fix(std::vector<Finding>& found) {
  for (std::size_t i = 1; i < found.size(); ++i) {
    Advice& advice = found[i].advice;
    const auto end = found.begin() + static_cast<std::ptrdiff_t>(i);
    const auto first = std::find_if(found.begin(), end, [&](const Finding& one) {
      return is_same_fix(one.advice.fix, advice.fix) && one.id != found[i].id;
    });
    if (first != end) {
      advice.same_as = first->id;
      advice.text = fix_words(advice.fix);
    }
  }
}

void mark_overlaps(std::vector<Finding>& found) {
  std::set<std::tuple<RowName, std::string, Bucket>> taken;
  for (Finding& finding : found) {
    if (finding.bucket) {
      finding.overlaps = !taken.emplace(finding.stage, finding.device, *finding.bucket).second;
    }
  }
}

}  // namespace

Finding& FindingContext::add(FindingId id, const LedgerRow& row, Bucket bucket,
                             std::int64_t saving_ns) const {
  Finding& finding = findings.found.emplace_back();
  finding.id = id;
  finding.stage = row.stage;
  finding.device = row.device;
  finding.bucket = bucket;
  finding.saving_ns = saving_ns;
  finding.window_ns = row.base_ns.value_or(0);
  return finding;
}

Finding& FindingContext::note(FindingId id, const RowName& stage) const {
  Finding& finding = findings.found.emplace_back();
  finding.id = id;
  finding.stage = stage;
  finding.confidence = Confidence::kHigh;
  return finding;
}

Finding& FindingContext::block(FindingId id) const {
  Finding& finding = note(id);
  finding.is_blocker = true;
  finding.window_ns = analysis.capture.duration_ns;
  return finding;
}

void FindingContext::silent(FindingId id, const std::string& reason) const {
  findings.silent.push_back({id, reason});
}

bool is_in_row(const std::string& device, const RowName& stage, const LedgerRow& row) {
  return device == row.device && (row.stage.kind == RowKind::kRecording ||
                                  row.stage.kind == RowKind::kSteady || stage == row.stage);
}

std::string kernel_evidence(const KernelRow& kernel, const LedgerRow& row) {
  return row.stage.kind == RowKind::kSteady && kernel.steady_ns
             ? evidence("kernels", kernel, &KernelRow::steady_ns)
             : evidence("kernels", kernel, &KernelRow::total_ns);
}

std::string bucket_evidence(const LedgerRow& row, Bucket bucket) {
  return evidence("ledgers", row, &LedgerRow::buckets_ns) + "." + word_of(bucket);
}

const DeviceRow* device_of(const Analysis& analysis, const LedgerRow& row) {
  const auto device = std::find_if(analysis.devices.begin(), analysis.devices.end(),
                                   [&](const DeviceRow& one) { return one.device == row.device; });
  return device == analysis.devices.end() ? nullptr : &*device;
}

KernelChains chains_in(const Analysis& analysis, const LedgerRow& row) {
  KernelChains sum;
  for (const KernelChains& chains : analysis.kernel_chains) {
    // Chains of a steady phase are there twice: in their stage, and in a row of its own.
    const bool is_wanted =
        (row.stage.kind == RowKind::kSteady) == (chains.stage.kind == RowKind::kSteady);
    if (is_wanted && is_in_row(chains.device, chains.stage, row)) {
      sum.add(chains);
    }
  }
  return sum;
}

std::string chain_evidence(const LedgerRow& row, std::int64_t KernelChains::*field) {
  KernelChains chains;
  chains.stage = row.stage;
  chains.device = row.device;
  return row.stage.kind == RowKind::kRecording
             ? fmt::format("kernel_chains[device={}].{}", row.device, path_of<KernelChains>(field))
             : evidence("kernel_chains", chains, field);
}

bool is_kernel_in(const KernelRow& kernel, const LedgerRow& row) {
  return is_in_row(kernel.device, kernel.stage, row);
}

bool has_family(const Analysis& analysis, std::string_view family) {
  return std::any_of(analysis.families.begin(), analysis.families.end(),
                     [&](const FamilyRow& one) { return one.family == family; });
}

double share_of(std::int64_t time_ns, const LedgerRow& row) {
  return fraction_of(time_ns, row.base_ns.value_or(0));
}

std::string stage_words(const LedgerRow& row) {
  const StageRole role = role_of(row.stage);
  return row.stage.kind == RowKind::kSteady      ? "the steady phase"
         : row.stage.kind == RowKind::kRecording ? "the recording"
         : role == StageRole::kMixed             ? "mixed steps"
         : role == StageRole::kStep ? (row.num_instances == 1 ? "the step" : "the steps")
                                    : printable_name(row.stage.text());
}

std::string time_in(std::int64_t time_ns, const LedgerRow& row) {
  return fmt::format("{} ({}) of {} on {}", format_duration_ns(time_ns),
                     format_fraction(share_of(time_ns, row)), stage_words(row), row.device);
}

Findings find_findings(const Analysis& analysis, const FindingFacts& facts) {
  Findings findings;
  const std::vector<LedgerRow> scopes = scopes_of(analysis);
  const Workload workload = workload_of(analysis);
  for (const std::span<const Rule> rules :
       {kRecordingRules, kHostRules, kTimeRules, kKernelRules, kChoiceRules, kRemarkRules}) {
    for (const Rule rule : rules) {
      rule({analysis, facts, scopes, workload, findings});
    }
  }
  // Where numbers cannot be right, nothing else that they say matters.
  if (std::ranges::count(findings.found, FindingId::kImpossibleRows, &Finding::id) > 0) {
    std::erase_if(findings.found,
                  [](const Finding& one) { return one.id != FindingId::kImpossibleRows; });
  }
  // Where next to nothing ran, no time can be saved, and names of families do not matter.
  const bool is_next_to_none = std::any_of(
      findings.found.begin(), findings.found.end(),
      [](const Finding& one) { return one.is_blocker && one.id == FindingId::kFewKernels; });
  if (is_next_to_none) {
    std::erase_if(findings.found, [](const Finding& one) {
      return one.saving_ns > 0 || one.id == FindingId::kOtherFamilies ||
             one.id == FindingId::kAllocation;
    });
  }
  std::stable_sort(findings.found.begin(), findings.found.end(),
                   [](const Finding& a, const Finding& b) {
                     const std::string_view word = word_of(a.id);
                     const std::string_view other = word_of(b.id);
                     return std::tuple(b.is_blocker, weight_of(b), word, a.stage, a.device) <
                            std::tuple(a.is_blocker, weight_of(a), other, b.stage, b.device);
                   });
  finish_bounds(findings.found);
  refer_to_same_fix(findings.found);
  add_order(findings.found);
  merge_devices(findings.found);
  mark_overlaps(findings.found);
  return findings;
}

}  // namespace gpuwhy
