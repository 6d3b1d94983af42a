// SPDX-License-Identifier: Apache-2.0
//
// Words for the cause of a change, for what came true of a promise, and for what the change is
// worth: one sentence each.
#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "compare/cause.h"
#include "report/comparison/comparison_parts.h"
#include "report/document/section_parts.h"
#include "report/sections/worth.h"
#include "report/words/glossary.h"
#include "report/words/plain_words.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

std::string difference_text(std::int64_t difference_ns) {
  return shown({difference_ns, CellFormat::kDifference, ""});
}

std::string duration_text(double duration_ns) {
  return format_duration_ns(static_cast<std::int64_t>(duration_ns));
}

// A bucket, a kind of waiting or an operator.
std::string part_name(const CausePart& part) {
  return !part.bucket ? part.name
         : part.kind  ? kind_in_words(word_of(*part.kind))
                      : bucket_in_words(*part.bucket);
}

// "compute (gemm kernels +180 ms) +180 ms".
std::string part_words(const CausePart& part) {
  std::string words = part_name(part);
  if (part.kind && !part.name.empty()) {
    words += fmt::format(" (mostly in '{}')", cut_name(part.name));
  }
  if (part.family) {
    words += fmt::format(" ({} kernels {})", part.family->name,
                         difference_text(part.family->difference_ns()));
  }
  return fmt::format("{} {}", words, difference_text(part.difference_ns));
}

std::string pace_cause(const Cause& cause) {
  std::vector<std::string> more;
  std::vector<std::string> less;
  for (const CausePart& part : cause.parts) {
    (part.difference_ns > 0 ? more : less).push_back(part_words(part));
  }
  return fmt::format("Where it comes from: {} took the place of {} (recordings of equal length{}).",
                     fmt::join(more, ", "), fmt::join(less, ", "),
                     cause.num_gpus > 1 ? fmt::format(", {} GPUs together", cause.num_gpus) : "");
}

// "a decode step is ..."
std::string step_name(const RowName& stage) {
  return role_of(stage) == StageRole::kDecode ? "decode step" : printable_name(stage.text());
}

}  // namespace

std::string bucket_in_words(Bucket bucket) {
  return bucket == Bucket::kLaunchLate ? "waiting for the CPU"
                                       : std::string(bucket_label(word_of(bucket)));
}

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
  const std::optional<Cause> cause = cause_of(comparison);
  if (!cause) {
    return "";
  }
  if (cause->of == Cause::Of::kPace) {
    return pace_cause(*cause);
  }
  std::vector<std::string> said;
  for (const CausePart& part : cause->parts) {
    said.push_back(part_words(part));
  }
  const std::string whole = fmt::format("in all, {} of {}", difference_text(cause->difference_ns),
                                        format_duration_ns(cause->base_ns));
  if (cause->of == Cause::Of::kOperators) {
    return printable(
        fmt::format("Where it comes from: operators {}; {}.", fmt::join(said, ", "), whole));
  }
  return with_plain_names(
      printable(fmt::format("Where it comes from: {}; {} ({}, {}).", fmt::join(said, ", "), whole,
                            cause->stage.kind == RowKind::kRecording
                                ? "the whole recording"
                                : fmt::format("all of '{}' together", cause->stage.text()),
                            cause->device)));
}

std::string promise_sentence(const Comparison& comparison) {
  const std::optional<KeptPromise> kept = kept_promise(comparison);
  if (!kept) {
    return "";
  }
  const std::string name = step_name(kept->stage);
  const std::int64_t num_steps = kept->promise.num_steps;
  const double share = kept->gain_ns / kept->promised_ns;
  const std::string growth =
      !kept->growth || share > 1
          ? ""
          : fmt::format(
                " Other waiting grew instead, most of all \"{}\" by {} per {}: look there next.",
                part_name(*kept->growth),
                format_duration_ns(kept->growth->difference_ns / num_steps), name);
  return fmt::format(
      "The base promised up to {} per {} for \"{}\". That time fell by {} per {}, and a {} is {} "
      "shorter{}: {}.{}",
      duration_text(kept->promised_ns), name, info_of(kept->promise.id).problem,
      format_duration_ns(kept->fall_ns / num_steps), name, name, duration_text(kept->gain_ns),
      kept->has_means ? " on average" : "",
      share > 1 ? "more than was promised, so something else changed too"
                : fmt::format("{:.0f} % of the promise", share * 100),
      growth);
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
    what = fmt::format("1,000 {}s{} cost",
                       work->stage.kind == RowKind::kRecording ? "run" : step_name(work->stage),
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

std::vector<std::string> told_sentences(const Comparison& comparison) {
  std::vector<std::string> told = {cause_sentence(comparison), promise_sentence(comparison),
                                   worth_sentence(comparison)};
  std::erase(told, "");
  std::ranges::transform(comparison.moved_waits, std::back_inserter(told), moved_wait_text);
  return told;
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
      "went from {} to {} ({}).", duration_text(steps.base_mean_ns),
      duration_text(steps.candidate_mean_ns),
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
