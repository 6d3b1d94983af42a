// SPDX-License-Identifier: Apache-2.0
//
// Comparison of two sets of runs: whether they did the same work, which metrics changed, and which
// kernels and operators account for the difference. Needs only run summaries, no recordings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/bucket.h"
#include "results/finding_info.h"
#include "results/row.h"

namespace gpuwhy {

// A number of a run, by its key in metrics.json.
struct RunMetric {
  std::string key;
  std::string unit;  // "ns", "1/s", "fraction", "number"
  double value = 0;
  bool is_larger_better = false;
  bool is_gated = false;  // decides the verdict; the others are shown
  std::string steps;      // the stage whose lengths it is made of; empty: none
};

// Durations of all instances of a stage.
struct StageLengths {
  RowName stage;
  std::vector<double> durations_ns;  // in time order
};

// Totals of a stage.
struct StageAmount {
  RowName stage;
  std::int64_t instances = 0;
  std::int64_t kernel_ns = 0;
  std::optional<std::int64_t> tokens;
  bool is_host_ahead = false;  // its marks end before the GPU work that was launched in them
  std::string step_key = {};   // of the metric that is the time of one; empty: none is
};

// Launches of a kernel with one grid and block.
struct ShapeAmount {
  std::string shape;
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
};

// Totals of a kernel.
struct KernelAmount {
  std::string name;  // whole
  std::string short_name;
  std::string device;
  RowName stage;
  std::string family;
  std::string shapes;  // grids and blocks, as one text
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  std::vector<ShapeAmount> by_shape = {};  // where it has several, and all are known
};

// An operator of a framework, or of a program that times itself, in a stage.
struct OperatorAmount {
  std::string name;
  RowName stage;  // without a name: the source does not say
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
  std::string shape = {};  // of its inputs; empty: not known, and the row may mix several
};

// A kind of pass through the layers of a model.
struct ModelPassAmount {
  std::string pass;  // "forward"
  bool is_backward = false;
  std::int64_t num_layers = 0;
  std::int64_t num_passes = 0;
  std::int64_t kernel_ns = 0;  // of all of them
};

// A kernel of a pass, by its place in the model.
struct ModelPartAmount {
  std::string pass;
  std::string place;   // "prologue", "layer", "epilogue"
  std::string part;    // "qkv"
  std::string kernel;  // short name
  std::int64_t total_ns = 0;
};

// Ledger of a stage on a device.
struct LedgerAmount {
  RowName stage;
  std::string device;
  std::int64_t window_ns = 0;
  std::vector<std::pair<std::string, std::int64_t>> buckets_ns;
};

// Time in a bucket of a ledger for one kind of cause.
struct IdleAmount {
  RowName stage;
  std::string device;
  std::string bucket;
  std::string kind;   // "launching"
  std::string scope;  // the range or operator the CPU was in
  std::int64_t total_ns = 0;
};

// What a finding of a run says that its fix saves at most.
struct PromisedSaving {
  FindingId id = FindingId::kUnknown;
  RowName stage;
  std::string device;
  std::optional<Bucket> bucket;  // of the ledger
  std::int64_t saving_ns = 0;
  std::int64_t num_steps = 0;  // over which it was measured
};

// What a comparison knows about a run.
struct RunSummary {
  std::string label;                // as the user named it
  std::string absent;               // why there is nothing in it
  bool is_without_kernels = false;  // it did not fail, and recorded none
  std::string identity;  // of all its numbers: the same run given twice has the same; empty: none
  std::vector<std::pair<std::string, std::string>> facts;  // machine and settings
  std::vector<StageAmount> stages;
  std::int64_t launches = 0;
  std::int64_t kernel_ns = 0;
  bool is_marked = false;  // stages were marked; else all of it is one stage
  std::vector<RunMetric> metrics;
  std::vector<StageLengths> steps;
  std::vector<KernelAmount> kernels;
  std::vector<LedgerAmount> ledgers;
  std::vector<IdleAmount> idle;
  std::vector<OperatorAmount> operators;  // rows do not overlap
  std::int64_t operators_whole_ns = 0;    // what they are a part of
  std::int64_t recording_ns = 0;          // how long was recorded; 0: not known
  std::string recorded;                   // "2026-11-02 14:03:05 UTC"; empty: not known
  std::int64_t num_gpus = 0;              // on which kernels ran
  std::optional<double> tokens_per_s;
  std::string operators_time;  // whose time it is, in words
  std::vector<ModelPassAmount> model_passes;
  std::vector<ModelPartAmount> model_parts;  // in the order of a pass
  std::vector<PromisedSaving> promises;      // baselines do not keep them
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

// One kernel on both sides, or a pair that replaced each other.
struct KernelChange {
  enum class Kind { kSame, kSwapped, kGone, kNew };
  Kind kind = Kind::kSame;
  KernelAmount base;  // of the median run
  KernelAmount candidate;
  std::int64_t launches_ns = 0;  // of the difference: more or fewer launches
  std::int64_t duration_ns = 0;  // the rest: longer or shorter ones
  std::optional<double> p;       // over all runs
  std::optional<double> adjusted_p;
  bool is_significant = false;

  std::int64_t difference_ns() const { return candidate.total_ns - base.total_ns; }
  // The side that the row is named after.
  const KernelAmount& named() const { return kind == Kind::kNew ? candidate : base; }
  bool has_other_shapes() const {
    return base.calls > 0 && candidate.calls > 0 && base.shapes != candidate.shapes;
  }
};
const char* kind_name(KernelChange::Kind kind);

// Rows of one stage, family or kind, summed: parts sum exactly to the rows.
struct PartChange {
  std::string name;
  std::int64_t base_ns = 0;
  std::int64_t candidate_ns = 0;
  std::string mostly = {};  // what most of the larger side is; empty: nothing is

  std::int64_t difference_ns() const { return candidate_ns - base_ns; }
};

// One ledger on both sides.
struct LedgerChange {
  LedgerAmount base;
  LedgerAmount candidate;  // its buckets are those of base, in the same order
  // What is known of the time in a bucket, by kind of cause; may be less than all of it.
  std::vector<std::pair<std::string, std::vector<PartChange>>> kinds = {};
};

// One operator on both sides.
struct OperatorChange {
  OperatorAmount base;  // of the median run; 0 calls where it did not run
  OperatorAmount candidate;
  std::int64_t calls_ns = 0;     // of the difference: more or fewer calls
  std::int64_t duration_ns = 0;  // the rest: longer or shorter ones
  std::optional<double> p;       // over all runs
  std::optional<double> adjusted_p;
  bool is_significant = false;

  std::int64_t difference_ns() const { return candidate.total_ns - base.total_ns; }
};

// All operators on both sides.
struct OperatorComparison {
  std::string missing;  // why there are no rows; empty: there are
  std::string time_of;
  std::int64_t base_ns = 0;  // of the wholes that rows are parts of
  std::int64_t candidate_ns = 0;
  std::vector<PartChange> stages;
  std::vector<PartChange> kinds;     // by the first word of the name, "MUL_MAT" of "MUL_MAT ffn_up"
  std::vector<OperatorChange> rows;  // by the size of the difference
};

// One part of the model on both sides, whatever its kernels are called.
struct ModelPartChange {
  std::string place;  // "prologue", "layer", "epilogue"; empty: in no part
  std::string part;
  std::string base_kernel;  // that takes most of it; empty: the side lacks the part
  std::string candidate_kernel;
  std::int64_t base_ns = 0;  // in a pass, all layers together
  std::int64_t candidate_ns = 0;

  std::int64_t difference_ns() const { return candidate_ns - base_ns; }
};

// A kind of pass on both sides.
struct ModelPassChange {
  std::string pass;
  std::int64_t num_layers = 0;
  std::int64_t base_passes = 0;
  std::int64_t candidate_passes = 0;
  std::vector<ModelPartChange> parts;  // by the size of the difference

  std::int64_t base_ns() const;  // kernel time of a pass, the sum of the parts
  std::int64_t candidate_ns() const;
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
  std::string bucket;
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
  std::int64_t base_kernel_ns = 0;
  std::int64_t candidate_kernel_ns = 0;
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
// The part of a difference due to more or fewer calls, at the base's time per call. All of it if
// one side has no calls.
std::int64_t worth_of_calls(std::int64_t base_ns, std::int64_t base_calls,
                            std::int64_t candidate_ns, std::int64_t candidate_calls);
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
