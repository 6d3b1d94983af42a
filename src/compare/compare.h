// SPDX-License-Identifier: Apache-2.0
//
// Comparison of two sets of runs: whether they did the same work, which metrics changed, and which
// kernels and operators account for the difference. Needs only run summaries, no recordings.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "results/finding.h"
#include "results/kernel.h"
#include "results/ledger.h"
#include "results/operator.h"
#include "results/row.h"
#include "results/stage.h"
#include "results/structure.h"

namespace gpuwhy {

// Numbers that may decide although they are of no stage: the length of a program, of a recording
// without marks, and the time in which it would have done the work of the first run.
inline constexpr const char* kProgramKey = "aggregates.program_ns";
inline constexpr const char* kLengthKey = "stages[stage=all].host_median_ns";
inline constexpr const char* kPaceKey = "pace.time_ns";

// A number of a run, by its key in metrics.json.
struct RunMetric {
  std::string key;
  std::string unit;  // "ns", "1/s", "fraction", "number"
  double value = 0;
  bool is_larger_better = false;
  bool is_gated = false;                  // decides the verdict; the others are shown
  std::string steps;                      // the stage whose lengths it is made of; empty: none
  RowName stage = {RowKind::kRecording};  // that it is the time of
};

// A stage, and what tells the time of one instance.
struct ComparedStage : StageRow {
  bool is_host_ahead = false;  // its marks end before the GPU work that was launched in them
  std::string step_key = {};   // of the metric that is the time of one; empty: none is
};

// An operator of a framework, or of a program that times itself, in a stage.
struct ShapedOperator : OperatorRow {
  std::string shape = {};  // of its inputs; empty: not known, and the row may mix several
};

// In the order of their names, in which comparisons list them.
std::span<const Bucket> buckets_by_name();

// A finding that says what its fix saves at most.
struct PromisedSaving : Finding {
  std::int64_t num_steps = 0;  // over which it was measured
};

// What a comparison knows about a run.
struct RunSummary {
  std::string label;                // as the user named it
  std::string absent;               // why there is nothing in it
  bool is_without_kernels = false;  // it did not fail, and recorded none
  std::string identity;  // of all its numbers: the same run given twice has the same; empty: none
  std::vector<std::pair<std::string, std::string>> facts;  // machine and settings
  std::vector<ComparedStage> stages;
  std::int64_t launches = 0;
  std::int64_t kernel_ns = 0;
  bool is_marked = false;  // stages were marked; else all of it is one stage
  std::vector<RunMetric> metrics;
  std::vector<StepRow> steps;
  std::vector<KernelRow> kernels;
  std::vector<LedgerRow> ledgers;
  std::vector<IdleRow> idle;
  std::vector<ShapedOperator> operators;  // rows do not overlap
  std::int64_t operators_whole_ns = 0;    // what they are a part of
  std::int64_t recording_ns = 0;          // how long was recorded; 0: not known
  std::string recorded;                   // "2026-11-02 14:03:05 UTC"; empty: not known
  std::int64_t num_gpus = 0;              // on which kernels ran
  std::optional<double> tokens_per_s;
  std::string operators_time;  // whose time it is, in words
  std::vector<PassRow> passes;
  std::vector<LayerPartRow> parts;       // in the order of a pass
  std::vector<PromisedSaving> promises;  // baselines do not keep them
};

// A user's limit on a metric, instead of the smallest effect that matters.
struct MetricBudget {
  std::string key;
  std::optional<double> change_fraction;  // may get worse by this much
  std::optional<double> at_most;          // of every run
  std::optional<double> at_least;
};

// How to judge.
struct CompareOptions {
  double smallest_effect = 0.01;     // a change below is none
  double alpha = 0.01;               // false alarms, over all gated metrics together
  std::vector<std::string> allowed;  // facts that may differ: what is under test
  std::vector<MetricBudget> budgets;
  std::optional<double> gpu_hour_price;
  std::string price_unit;  // "EUR"; empty: not given
};

// A difference between the workloads. If `breaks`, the comparison is invalid.
struct FactDifference {
  std::string fact;
  std::string base;
  std::string candidate;
  bool breaks = false;
  std::string sentence;
};
std::vector<FactDifference> check_comparable(const std::vector<RunSummary>& base,
                                             const std::vector<RunSummary>& candidate,
                                             const std::vector<std::string>& allowed);
// Runs that failed or are empty, a row for each reason. `is_base`: in the column of that side.
std::vector<FactDifference> empty_runs(const std::vector<RunSummary>& runs, bool is_base);
// Facts that the user may allow to differ.
std::vector<std::string> comparable_facts();

// A run that was given before, perhaps under another name.
struct RepeatedRun {
  std::string label;
  std::string same_as;
};
// Each run once, in the same order; what was left out is added to `repeated`. A run that is counted
// twice would make noise look certain.
std::vector<RunSummary> distinct_runs(std::vector<RunSummary> runs,
                                      std::vector<RepeatedRun>& repeated);

// Chooses which times decide, where both sides have to be seen for that: of an engine that runs
// ahead of the GPU not the marks of the CPU, and of recordings that a clock ended not their length.
// Returns why the length says nothing where nothing else decides; empty: it may, or need not.
std::string choose_deciding_times(std::vector<RunSummary>& base,
                                  std::vector<RunSummary>& candidate);

// Judgement of one metric.
enum class Change {
  kSame,       // any change is smaller than what matters
  kWorse,      // by more than what matters
  kBetter,     // likewise
  kUnclear,    // the runs do not decide
  kNotJudged,  // cannot be, or must not be
};
const char* change_name(Change change);

// A gated metric in words: "time per token (p50)" for aggregates.tpot.p50_ns. Others: the key.
std::string metric_label(const std::string& key);

// One metric on both sides, with its judgement.
struct MetricChange {
  std::string key;
  std::string unit;
  RowName stage = {RowKind::kRecording};
  bool is_gated = false;
  bool is_larger_better = false;
  std::optional<double> base;       // medians of the runs; none if a run has no value
  std::optional<double> candidate;  // with a limit on the value, of the runs that have one
  std::int64_t missing_runs = 0;    // of the candidate, that have no value
  std::optional<double> ratio;      // candidate / base; of several runs, the median over all pairs
  std::optional<double> ratio_low;
  std::optional<double> ratio_high;
  std::optional<double> interval_level;  // confidence of ratio_low to ratio_high, 0..1
  std::optional<double> p;               // that the sides are alike; of runs only
  std::string method;                    // "runs", "steps of one run", ""
  double limit_fraction = 0;
  bool has_change_budget = false;  // that limit is a budget's, not the smallest effect
  Change change = Change::kNotJudged;
  std::string reason;
  std::optional<std::int64_t> repeats_needed;  // a side, where that would decide
  std::optional<double> at_most;               // of its budget, which limits the value
  std::optional<double> at_least;
  bool is_within_limit = false;
  std::optional<double> broken_limit;  // of its budget
  bool is_limit_above = false;         // at most that; else at least
};

// A row on both sides.
template <typename Row>
struct RowChange {
  Row base;  // of the median run; 0 calls where it did not run
  Row candidate;
  std::int64_t calls_ns = 0;     // of the difference: more or fewer calls
  std::int64_t duration_ns = 0;  // the rest: longer or shorter ones
  std::optional<double> p;       // over all runs
  std::optional<double> adjusted_p;
  bool is_significant = false;

  std::int64_t difference_ns() const { return candidate.total_ns - base.total_ns; }
};

// One kernel on both sides, or a pair that replaced each other.
struct KernelChange : RowChange<KernelRow> {
  enum class Kind { kSame, kSwapped, kGone, kNew };
  Kind kind = Kind::kSame;

  // The side that the row is named after.
  const KernelRow& named() const { return kind == Kind::kNew ? candidate : base; }
  bool has_other_shapes() const {
    return base.calls > 0 && candidate.calls > 0 && base.shapes != candidate.shapes;
  }
};
const char* kind_name(KernelChange::Kind kind);
using OperatorChange = RowChange<ShapedOperator>;

// A time on both sides.
struct TimeChange {
  std::int64_t base_ns = 0;
  std::int64_t candidate_ns = 0;

  std::int64_t difference_ns() const { return candidate_ns - base_ns; }
};

// Rows of one stage, family or kind, summed: parts sum exactly to the rows.
struct PartChange : TimeChange {
  std::string name = {};
};

// One kind of cause of the time in a bucket.
struct KindChange : TimeChange {
  IdleKind kind = IdleKind::kNotHost;
  std::string mostly = {};  // the range that most of the larger side was in; empty: none
};

// One ledger on both sides.
struct LedgerChange {
  LedgerRow base;
  LedgerRow candidate;
  // What is known of the time in a bucket, by kind of cause; may be less than all of it.
  std::array<std::vector<KindChange>, kNumBuckets> kinds = {};

  std::int64_t difference_ns() const { return candidate.window_ns - base.window_ns; }
  std::int64_t difference_ns(Bucket bucket) const { return sides_of(bucket).difference_ns(); }
  TimeChange sides_of(Bucket bucket) const {
    const auto place = static_cast<std::size_t>(bucket);
    return {base.buckets_ns[place], candidate.buckets_ns[place]};
  }
  const std::vector<KindChange>& kinds_of(Bucket bucket) const {
    return kinds[static_cast<std::size_t>(bucket)];
  }
};

// All operators on both sides; the sides are the wholes that rows are parts of.
struct OperatorComparison : TimeChange {
  std::string missing = {};  // why there are no rows; empty: there are
  std::string time_of = {};
  std::vector<PartChange> stages = {};
  std::vector<PartChange> kinds =
      {};  // by the first word of the name, "MUL_MAT" of "MUL_MAT ffn_up"
  std::vector<OperatorChange> rows = {};  // by the size of the difference
};

// One part of the model on both sides, in a pass, all layers together, whatever its kernels are
// called.
struct ModelPartChange : TimeChange {
  std::string place = {};  // "prologue", "layer", "epilogue"; empty: in no part
  std::string part = {};
  std::string base_kernel = {};  // that takes most of it; empty: the side lacks the part
  std::string candidate_kernel = {};
};

// A kind of pass on both sides; kernel time of one, the sum of the parts.
struct ModelPassChange : TimeChange {
  std::string pass = {};
  std::int64_t num_layers = 0;
  std::int64_t base_passes = 0;
  std::int64_t candidate_passes = 0;
  std::vector<ModelPartChange> parts = {};  // by the size of the difference
};

// Two recordings of equal length, ended by a clock and not by the work: totals then say nothing
// about speed, and the amount of work in that time does.
struct PaceChange {
  std::int64_t base_ns = 0;  // what was recorded
  std::int64_t candidate_ns = 0;
  double work_ratio = 1;  // calls of the same kernels, candidate / base

  // How much longer the same work takes.
  double time_ratio() const {
    return static_cast<double>(candidate_ns) / static_cast<double>(base_ns) / work_ratio;
  }
};

// Waiting that became less on one GPU and more on another.
struct MovedWait {
  RowName stage;
  Bucket bucket = Bucket::kComm;
  std::string from;  // the GPU that waits less
  std::string to;
  std::int64_t less_ns = 0;
  std::int64_t more_ns = 0;
};

// The model on both sides.
struct ModelComparison {
  std::string missing;  // why there are no passes; empty: there are
  std::vector<ModelPassChange> passes;
};

// Steps of two runs in their order, one by one.
struct PairedSteps {
  RowName stage;
  std::int64_t pairs = 0;    // 0: the runs do not have as many steps
  std::int64_t shorter = 0;  // in the candidate
  std::int64_t longer = 0;
  double base_mean_ns = 0;
  double candidate_mean_ns = 0;
};

// What a side did per second, as medians of its runs, and when.
struct SideRate {
  std::int64_t num_gpus = 0;  // 0: not the same in all runs
  std::optional<double> tokens_per_s;
  std::string first_recorded;  // empty: not known of every run
  std::string last_recorded;
};

enum class Decision { kPass, kRegress, kInconclusive, kInvalid };
const char* decision_name(Decision verdict);

// The result of a comparison.
struct Comparison {
  Decision verdict = Decision::kInvalid;
  std::string outcome;  // "slower", "not decided"; empty: the reasons say it
  std::string reasons;
  std::vector<std::string> base;  // labels; none where runs were judged by limits alone
  std::vector<std::string> candidate;
  std::vector<RepeatedRun> repeated;  // runs that were given twice and count once
  std::string base_median;            // runs whose amounts are broken down
  std::string candidate_median;
  std::vector<FactDifference> facts;
  std::vector<MetricChange> metrics;
  std::optional<PaceChange> pace;
  std::optional<PairedSteps> steps;  // of one run per side
  SideRate base_rate;
  SideRate candidate_rate;
  std::optional<double> gpu_hour_price;  // what a change is worth is said by it
  std::string price_unit;
  std::vector<LedgerChange> ledgers;
  std::string ledgers_missing;  // why there are none; empty: there are
  std::vector<MovedWait> moved_waits;
  std::vector<PartChange> stages;     // kernel time
  std::vector<PartChange> families;   // likewise, by the size of the difference
  std::vector<KernelChange> kernels;  // likewise
  OperatorComparison operators;
  ModelComparison model;
  TimeChange kernel_time;
  std::vector<PromisedSaving> promises;  // of the base
  std::int64_t base_launches = 0;        // of the median run, as kernel_ns
  std::int64_t candidate_launches = 0;

  std::string sentence() const { return outcome.empty() ? reasons : outcome + ": " + reasons; }
};

// Whether a run of either side failed or is empty. Then no number of the comparison means anything,
// and none is given.
bool has_failed_run(const Comparison& comparison);

// Neither side may be empty.
Comparison compare_runs(const std::vector<RunSummary>& base,
                        const std::vector<RunSummary>& candidate, const CompareOptions& options);

// Runs against the limits of budgets alone, without a base. `runs` and budgets may not be empty,
// and every budget must limit a value. One run is enough for a verdict.
Comparison judge_limits(const std::vector<RunSummary>& runs, const CompareOptions& options);

// Parts of compare_runs().
std::vector<MetricChange> compare_metrics(const std::vector<RunSummary>& base,
                                          const std::vector<RunSummary>& candidate,
                                          const CompareOptions& options);
void diff_runs(const RunSummary& base, const RunSummary& candidate, Comparison& comparison);
OperatorComparison operator_changes(const RunSummary& base, const RunSummary& candidate);
ModelComparison model_changes(const RunSummary& base, const RunSummary& candidate);
// Whether runs were recorded for about the same time, all of them. Not if one does not say.
bool are_equally_long(const std::vector<RunSummary>& base,
                      const std::vector<RunSummary>& candidate);
// How much work a run did per work of another, by the calls of the same kernels; nullopt if most of
// the kernels differ.
std::optional<double> work_ratio(const RunSummary& base, const RunSummary& candidate);
// nullopt if lengths or kernels differ, or as much work was done.
std::optional<PaceChange> pace_change(const RunSummary& base, const RunSummary& candidate);
std::vector<MovedWait> moved_waits(const std::vector<LedgerChange>& ledgers);
// p of each kernel and operator over all runs, if there are several per side.
void mark_significant_changes(const std::vector<RunSummary>& base,
                              const std::vector<RunSummary>& candidate,
                              const CompareOptions& options, Comparison& comparison);

// The minimum number of runs per side with which a change of one gated metric can be detected at
// all.
std::int64_t least_repeats(double alpha);

// How far the runs of one build are apart in a gated metric.
struct MetricSpread {
  std::string key;
  std::string unit;
  double low = 0;
  double median = 0;
  double high = 0;
};

// The gate applied to equal runs: they are split randomly into two sides, many times.
struct SelfTest {
  std::vector<MetricSpread> spreads;  // of gated metrics that every run has
  std::int64_t deals = 0;
  std::int64_t alarms = 0;
  std::int64_t passes = 0;
  std::int64_t inconclusive = 0;
  std::int64_t runs_a_side = 0;
  bool can_alarm = false;       // that many runs a side could give an alarm at all
  std::int64_t least_runs = 0;  // of both sides, with which they could
  std::int64_t num_runs = 0;    // each counted once
  std::vector<RepeatedRun> repeated;
};
SelfTest self_test(const std::vector<RunSummary>& runs, const CompareOptions& options,
                   std::int64_t most_deals = 500, std::uint64_t seed = 1);

}  // namespace gpuwhy
