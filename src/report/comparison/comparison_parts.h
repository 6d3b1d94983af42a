// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison, one function each, derived from its JSON. Keys of values are paths in
// that JSON.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compare/compare.h"
#include "report/document/document.h"

namespace gpuwhy {

// A total, and how much of its difference the rows of a table account for.
struct TotalChange : TimeChange {
  std::int64_t rows_ns = 0;

  std::int64_t not_in_rows_ns() const { return difference_ns() - rows_ns; }
};
TotalChange kernel_total(const Comparison& comparison);
TotalChange operator_total(const OperatorComparison& operators);

// What was measured, in one sentence: the first gated metric, kernel time and launches. It never
// says faster where one side did less work.
std::string measured_change(const Comparison& comparison);
// Where the change came from, measured: "Where it comes from: CPU did other work -203 ms, ...".
// Empty where few parts do not explain most of it.
std::string cause_sentence(const Comparison& comparison);
// How much came true of what a finding of the base promised; empty unless that is sure.
std::string promise_sentence(const Comparison& comparison);
// What the change is worth at the price of a GPU-hour; empty without one.
std::string worth_sentence(const Comparison& comparison);
// These, as far as they are known, and the waits that moved.
std::vector<std::string> told_sentences(const Comparison& comparison);
// How many steps of one run are shorter than those of the other; empty if they cannot be paired.
std::string paired_sentence(const Comparison& comparison);
// When both sides were recorded; empty if that is not known of every run.
std::string dates_sentence(const Comparison& comparison);
// "a is the same run as b and counts once"; empty: every run was given once.
std::string repeated_words(const std::vector<RepeatedRun>& repeated);
// "Waiting moved from cuda:0 to cuda:1 (communication only): ..."
std::string moved_wait_text(const MovedWait& row);
// A bucket as comparisons call it. Baselines do not keep what the CPU did instead, so that waiting
// for it is one bucket here.
std::string bucket_in_words(Bucket bucket);
// A part of it, by what the CPU did: "CPU did other work" for host_work.
std::string kind_in_words(const std::string& kind);
// "5 runs of the base, 5 of the candidate."
std::string runs_sentence(const Comparison& comparison);
// What a number is, for dashboards: latency_ns, throughput_per_s or value.
const char* measure_name(const MetricChange& row);

// The change of a metric with a ratio. Over all pairs of runs it may have another sign than the
// difference of the medians beside it, and then says so.
std::string change_text(const MetricChange& row);
// A level of confidence: "99 %", "99.7 %".
std::string level_text(double level);
// "at most 12.0 ms"; empty without a limit on the value.
std::string limit_text(const MetricChange& metric);

ReportValue text_value(std::string text);
CellFormat metric_unit(const MetricChange& metric);
// The limit of a metric that decides: "at most 12.0 ms", "+5 %"; empty if it does not.
std::string gate_limit_text(const MetricChange& metric);
// What is known of a change that is below its limit, in a cell, in large letters and in a sentence.
struct SmallChangeWords {
  std::string cell;
  std::string tile;
  std::string sentence;
};
SmallChangeWords small_change_words(const MetricChange& metric);
// Within noise is said in words, never shown as a change.
std::string metric_judgement(const MetricChange& metric);

using MetricFilter = std::function<bool(const MetricChange& metric)>;
ReportTable metrics_table(const Comparison& comparison, const MetricFilter& keep);
// Decides, or changed significantly.
bool is_told_metric(const MetricChange& metric);

Section fingerprint_section(const Comparison& comparison);
Section metrics_section(const Comparison& comparison, bool has_all);
// Values and their limits, where there is no base.
Section limits_section(const Comparison& comparison);
Section families_section(const Comparison& comparison);
Section buckets_section(const Comparison& comparison);
Section moved_section(const Comparison& comparison, std::size_t top);
// Both sides name operators, or there is nothing else to take apart.
bool has_operators(const Comparison& comparison);
Section operator_moves_section(const Comparison& comparison, std::size_t top);
// Both sides have passes with as many layers.
bool has_model(const Comparison& comparison);
Section model_moves_section(const Comparison& comparison, std::size_t top);
// Every run, by its side.
Section runs_section(const Comparison& comparison);

}  // namespace gpuwhy
