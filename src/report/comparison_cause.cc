// SPDX-License-Identifier: Apache-2.0
//
// The cause of a change and what it is worth, in one sentence each.
//
// The time of a stage is the sum of its buckets, so the buckets that changed most are the cause, if
// they are most of the change. Where they are not, nothing is said.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "report/comparison_parts.h"
#include "report/glossary.h"
#include "report/plain_words.h"
#include "report/section_parts.h"
#include "report/worth.h"
#include "results/stage_role.h"

namespace gpuwhy {

const MetricChange* first_gate(const Comparison& comparison) {
  const auto row = std::ranges::find_if(comparison.metrics, [](const MetricChange& one) {
    return one.is_gated && one.ratio && one.base && one.candidate;
  });
  return row == comparison.metrics.end() ? nullptr : &*row;
}

RowName stage_of_metric(const std::string& key) {
  if (key.starts_with("aggregates.ttft.")) {
    return row_name("prefill");
  }
  if (key.starts_with("aggregates.tpot.")) {
    return row_name("decode");
  }
  constexpr std::string_view kName = "[stage=";
  const std::size_t start = key.find(kName);
  if (start == std::string::npos) {
    return {RowKind::kRecording};
  }
  const std::size_t from = start + kName.size();
  RowName stage = row_name(key.substr(from, key.find_first_of(",]", from) - from));
  return stage.kind == RowKind::kUnmarked ? RowName{RowKind::kRecording} : stage;
}

bool has_fact(const Comparison& comparison, const char* name) {
  return std::ranges::any_of(comparison.facts,
                             [&](const FactDifference& one) { return one.fact == name; });
}

namespace {

struct Part {
  std::string words;
  std::int64_t difference_ns = 0;
};

std::string difference_text(std::int64_t difference_ns) {
  return shown({difference_ns, CellFormat::kDifference, ""});
}

// The GPU whose time in the stage changed most.
const LedgerChange* ledger_of(const Comparison& comparison, const RowName& stage) {
  const LedgerChange* found = nullptr;
  const auto change_of = [](const LedgerChange& row) {
    return std::abs(row.candidate.window_ns - row.base.window_ns);
  };
  for (const LedgerChange& row : comparison.ledgers) {
    if (row.base.stage == stage && (found == nullptr || change_of(row) > change_of(*found))) {
      found = &row;
    }
  }
  return found;
}

// " (gemm kernels +240 ms)", if one family has most of the change of the compute time.
std::string family_words(const Comparison& comparison, std::int64_t difference_ns) {
  if (comparison.families.empty()) {
    return "";
  }
  const PartChange& family = comparison.families.front();
  const double share = difference_ns == 0 ? 0
                                          : static_cast<double>(family.difference_ns()) /
                                                static_cast<double>(difference_ns);
  return share < 0.5 || share > 1.5 ? ""
                                    : fmt::format(" ({} kernels {})", family.name,
                                                  difference_text(family.difference_ns()));
}

// Buckets of a ledger; waiting for the CPU by what the CPU did.
std::vector<Part> parts_of(const Comparison& comparison, const LedgerChange& ledger) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < ledger.base.buckets_ns.size(); ++i) {
    const auto& [bucket, base_ns] = ledger.base.buckets_ns[i];
    std::int64_t rest_ns = ledger.candidate.buckets_ns[i].second - base_ns;
    for (const auto& [of, kinds] : ledger.kinds) {
      for (const PartChange& kind : kinds) {
        if (of == bucket && bucket == "launch_late") {
          parts.push_back(
              {kind_in_words(kind.name) +
                   (kind.mostly.empty() ? ""
                                        : fmt::format(" (mostly in '{}')", cut_name(kind.mostly))),
               kind.difference_ns()});
          rest_ns -= kind.difference_ns();
        }
      }
    }
    parts.push_back(
        {bucket_in_words(bucket) + (bucket == "compute" ? family_words(comparison, rest_ns) : ""),
         rest_ns});
  }
  return parts;
}

// The largest parts, as few as explain most of the whole; empty if three do not.
std::string largest_parts(std::vector<Part> parts, std::int64_t whole_ns) {
  constexpr std::size_t kMost = 3;
  constexpr double kEnough = 0.2;  // not explained
  constexpr double kTooMuch = 0.4;
  std::ranges::stable_sort(parts, [](const Part& a, const Part& b) {
    return std::abs(a.difference_ns) > std::abs(b.difference_ns);
  });
  std::vector<std::string> said;
  std::int64_t rest_ns = whole_ns;
  const auto is_rest_above = [&](double share) {
    return std::abs(static_cast<double>(rest_ns)) > share * std::abs(static_cast<double>(whole_ns));
  };
  for (std::size_t i = 0; i < std::min(parts.size(), kMost) && is_rest_above(kEnough); ++i) {
    said.push_back(fmt::format("{} {}", parts[i].words, difference_text(parts[i].difference_ns)));
    rest_ns -= parts[i].difference_ns;
  }
  return is_rest_above(kTooMuch) ? "" : fmt::format("{}", fmt::join(said, ", "));
}

// Of recordings of equal length: what took more of the time, and what less.
std::string cause_of_pace(const Comparison& comparison) {
  std::map<std::string, std::int64_t> by_words;  // of all GPUs together
  std::int64_t whole_ns = 0;
  int num_gpus = 0;
  for (const LedgerChange& ledger : comparison.ledgers) {
    if (ledger.base.stage.kind != RowKind::kRecording) {
      continue;
    }
    ++num_gpus;
    whole_ns += ledger.base.window_ns;
    for (std::size_t i = 0; i < ledger.base.buckets_ns.size(); ++i) {
      const auto& [bucket, base_ns] = ledger.base.buckets_ns[i];
      by_words[bucket_in_words(bucket)] += ledger.candidate.buckets_ns[i].second - base_ns;
    }
  }
  std::vector<Part> parts;
  for (const auto& [words, difference_ns] : by_words) {
    if (std::abs(difference_ns) * 100 >= whole_ns) {
      parts.push_back({words, difference_ns});
    }
  }
  std::ranges::stable_sort(parts, std::greater<>(), &Part::difference_ns);
  std::vector<std::string> more;
  std::vector<std::string> less;
  for (const Part& part : parts) {
    (part.difference_ns > 0 ? more : less)
        .push_back(fmt::format("{} {}", part.words, difference_text(part.difference_ns)));
  }
  return more.empty() || less.empty()
             ? ""
             : fmt::format(
                   "Where it comes from: {} took the place of {} (recordings of equal length{}).",
                   fmt::join(more, ", "), fmt::join(less, ", "),
                   num_gpus > 1 ? fmt::format(", {} GPUs together", num_gpus) : "");
}

// A change that a reader would call one, and that has the direction of what decides.
bool is_like(const MetricChange& gate, std::int64_t base_ns, std::int64_t candidate_ns) {
  constexpr double kLeast = 0.01;
  const double change = static_cast<double>(candidate_ns - base_ns);
  const bool is_longer = (*gate.ratio > 1) != gate.is_larger_better;
  return std::abs(change) >= kLeast * static_cast<double>(base_ns) && (change > 0) == is_longer &&
         std::abs(*gate.ratio - 1) >= kLeast;
}

std::string cause_of_operators(const Comparison& comparison, const MetricChange& gate) {
  const OperatorComparison& operators = comparison.operators;
  if (operators.rows.empty() || !is_like(gate, operators.base_ns, operators.candidate_ns)) {
    return "";
  }
  std::map<std::string, std::int64_t> by_name;  // whatever the stage and the shape
  for (const OperatorChange& row : operators.rows) {
    by_name[cut_name(row.base.name)] += row.difference_ns();
  }
  std::vector<Part> parts;
  parts.reserve(by_name.size());
  for (const auto& [name, difference_ns] : by_name) {
    parts.push_back({name, difference_ns});
  }
  const std::int64_t whole_ns = operators.candidate_ns - operators.base_ns;
  const std::string said = largest_parts(std::move(parts), whole_ns);
  return said.empty()
             ? ""
             : fmt::format("Where it comes from: operators {}; in all, {} of {}.", said,
                           difference_text(whole_ns), format_duration_ns(operators.base_ns));
}

// Seconds of one of what the first metric times, and its name: "step".
struct TimedWork {
  std::string name;
  double base_s = 0;
  double candidate_s = 0;
  bool is_mean = false;  // else a median
};

std::optional<TimedWork> timed_work(const Comparison& comparison) {
  const MetricChange* gate = first_gate(comparison);
  if (gate == nullptr || gate->unit != "ns" || gate->key.starts_with("pace.")) {
    return std::nullopt;
  }
  const RowName stage = stage_of_metric(gate->key);
  const bool is_run =
      gate->key == "aggregates.program_ns" || gate->key == "stages[stage=all].host_median_ns";
  if (stage.kind == RowKind::kRecording && !is_run) {
    return std::nullopt;
  }
  constexpr double kNs = 1e-9;
  const std::string name = is_run                                 ? "run"
                           : role_of(stage) == StageRole::kDecode ? "decode step"
                                                                  : stage.text();
  // Steps are paid for by their sum, which a median does not tell.
  if (comparison.steps && comparison.steps->stage == stage) {
    return TimedWork{name, comparison.steps->base_mean_ns * kNs,
                     comparison.steps->candidate_mean_ns * kNs, true};
  }
  // The change that is printed, which is not that of the medians.
  return TimedWork{name, *gate->base * kNs, *gate->base * *gate->ratio * kNs};
}

}  // namespace

std::string kind_in_words(const std::string& kind) {
  if (kind == "launching") {
    return std::string(bucket_label("launch_late"));
  }
  const std::string key = "launch_late." + kind;
  if (const std::string_view label = bucket_label(key); label != key) {
    return std::string(label);
  }
  std::string words = kind;
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string cause_sentence(const Comparison& comparison) {
  if (comparison.pace && !has_failed_run(comparison)) {
    return cause_of_pace(comparison);
  }
  const MetricChange* gate = first_gate(comparison);
  // Where the sides did other amounts of work, a total does not tell the cause.
  if (gate == nullptr || comparison.verdict == Decision::kInvalid ||
      has_fact(comparison, "instances")) {
    return "";
  }
  const RowName stage = stage_of_metric(gate->key);
  const LedgerChange* ledger = ledger_of(comparison, stage);
  if (ledger == nullptr && role_of(stage) == StageRole::kDecode) {
    ledger = ledger_of(comparison, row_name("decode_step"));
  }
  if (ledger == nullptr) {
    return comparison.ledgers.empty() ? printable(cause_of_operators(comparison, *gate)) : "";
  }
  const std::int64_t base_ns = ledger->base.window_ns;
  const std::int64_t whole_ns = ledger->candidate.window_ns - base_ns;
  if (!is_like(*gate, base_ns, ledger->candidate.window_ns)) {
    return "";
  }
  const std::string said = largest_parts(parts_of(comparison, *ledger), whole_ns);
  return said.empty() ? ""
                      : with_plain_names(printable(
                            fmt::format("Where it comes from: {}; in all, {} of {} ({}, {}).", said,
                                        difference_text(whole_ns), format_duration_ns(base_ns),
                                        stage.kind == RowKind::kRecording
                                            ? "the whole recording"
                                            : fmt::format("all of '{}' together", stage.text()),
                                        ledger->base.device)));
}

std::string worth_sentence(const Comparison& comparison) {
  if (!comparison.gpu_hour_price || comparison.base.empty()) {
    return "";
  }
  if (comparison.verdict == Decision::kInvalid) {
    return "What the change is worth is not known: the sides are not comparable.";
  }
  const SideRate& before = comparison.base_rate;
  const SideRate& after = comparison.candidate_rate;
  if (before.num_gpus == 0 || after.num_gpus == 0) {
    return "What the change is worth is not known: no GPU worked, or not as many in every run.";
  }
  const GpuPrice price{*comparison.gpu_hour_price, comparison.price_unit};
  const auto cost = [&](double seconds, std::int64_t num_gpus) {
    return price.per_hour * static_cast<double>(num_gpus) / 3600 * seconds;
  };
  std::string what;
  double base = 0;
  double candidate = 0;
  if (before.tokens_per_s.value_or(0) > 0 && after.tokens_per_s.value_or(0) > 0) {
    what = "a million tokens cost";
    base = cost(1e6 / *before.tokens_per_s, before.num_gpus);
    candidate = cost(1e6 / *after.tokens_per_s, after.num_gpus);
  } else if (const std::optional<TimedWork> work = timed_work(comparison)) {
    what = fmt::format("1,000 {}s{} cost", printable_name(work->name),
                       work->is_mean ? " (of the mean length)" : "");
    base = cost(1000 * work->base_s, before.num_gpus);
    candidate = cost(1000 * work->candidate_s, after.num_gpus);
  } else {
    return "What the change is worth is not known: neither tokens nor steps were timed.";
  }
  const double change = candidate - base;
  const double ratio = base > 0 ? candidate / base : 1;
  const double day = price.per_hour * 24 * static_cast<double>(before.num_gpus);
  return fmt::format(
      "At {} per GPU-hour, {} {} before and {} now: {} {} ({}), on {}. What the base does in a day "
      "cost {} and costs {} now: {} {} per day.",
      money_text(price.per_hour, price), what, money_text(base, price),
      money_text(candidate, price), money_text(std::abs(change), price),
      change > 0 ? "more" : "less", format_change(ratio - 1), count_of(after.num_gpus, "GPU"),
      money_text(day, price), money_text(day * ratio, price),
      money_text(std::abs(ratio - 1) * day, price), change > 0 ? "more" : "less");
}

// "5 of 6 steps are shorter than in the base, taken in order."
std::string paired_sentence(const Comparison& comparison) {
  if (!comparison.steps || has_failed_run(comparison)) {
    return "";
  }
  const PairedSteps& steps = *comparison.steps;
  const bool is_shorter = steps.shorter >= steps.longer;
  const std::string name = printable_name(steps.stage.text());
  const std::string all = name.ends_with("step") ? name + "s" : name + " steps";
  const std::string mean = fmt::format(
      "went from {} to {} ({}).", format_duration_ns(static_cast<std::int64_t>(steps.base_mean_ns)),
      format_duration_ns(static_cast<std::int64_t>(steps.candidate_mean_ns)),
      format_change(steps.base_mean_ns > 0 ? steps.candidate_mean_ns / steps.base_mean_ns - 1 : 0));
  if (steps.pairs == 0) {
    return fmt::format("The mean of all {} {}", all, mean);
  }
  return fmt::format("{} of {} {} are {} than in the base, taken in order; their mean {}",
                     is_shorter ? steps.shorter : steps.longer, steps.pairs, all,
                     is_shorter ? "shorter" : "longer", mean);
}

std::string dates_sentence(const Comparison& comparison) {
  const auto text = [](const SideRate& side) {
    return side.first_recorded == side.last_recorded
               ? side.first_recorded
               : fmt::format("{} to {}", side.first_recorded, side.last_recorded);
  };
  const std::string before = text(comparison.base_rate);
  const std::string after = text(comparison.candidate_rate);
  return before.empty() || after.empty()
             ? ""
             : printable(fmt::format("Recorded: base {}, candidate {}.", before, after));
}

}  // namespace gpuwhy
