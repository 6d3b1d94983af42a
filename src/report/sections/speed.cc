// SPDX-License-Identifier: Apache-2.0
//
// The speed of a run. What users of a model wait for comes first, then the tokens of the steps that
// were recorded, then the length of a step.
#include "report/sections/speed.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "report/document/document.h"
#include "report/document/member_table.h"
#include "report/document/section_parts.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// "12345" as "12,345".
std::string grouped(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  for (std::size_t place = digits.size(); place > 3;) {
    place -= 3;
    digits.insert(place, ",");
  }
  return digits;
}

// "A decode step makes 32 tokens", "Prefill reads 15360 tokens".
std::string work_words(const StageRow& stage, std::int64_t tokens) {
  const std::string count = grouped(static_cast<double>(tokens));
  const std::string name = printable_name(stage.stage.text());
  const StageRole role = role_of(stage.stage);
  if (role == StageRole::kPrefill) {
    return fmt::format("A prefill reads {} tokens of prompts", count);
  }
  if (role == StageRole::kMixed) {
    return fmt::format("A step that reads prompts and makes tokens handles {} tokens", count);
  }
  return fmt::format("A {} makes {} tokens", role == StageRole::kDecode ? "decode step" : name,
                     count);
}

// Tokens per second as a sentence; empty if they are not known.
std::string rate_words(const Results& metrics, const StageRow& stage) {
  const std::optional<double> rate = tokens_per_s(metrics, stage);
  if (!rate) {
    return "";
  }
  const double per_s = *rate;
  const std::int64_t time_ns = step_time(metrics, stage)->time_ns;
  const std::int64_t tokens = *stage.tokens / stage.num_instances;
  return fmt::format(
      "{} in {}: {}{} tokens per second{}{}.", work_words(stage, tokens),
      format_duration_ns(time_ns), stage.num_instances == 1 ? "at best " : "", grouped(per_s),
      is_decode(stage.stage)
          ? fmt::format(", {} per token for each user", format_duration_ns(time_ns))
          : "",
      stage.num_instances == 1 ? " (one step was recorded, so the time between steps is not known)"
                               : "");
}

// "median of 5", of the lengths or of the times from one to the next.
std::string median_words(const StageRow& stage, const StepTime& step) {
  return fmt::format("{}median of {}", step.is_period ? "from one to the next, " : "",
                     stage.num_instances - (step.is_period ? 1 : 0));
}

// " (median of 63)"; nothing to say of one.
std::string median_of(const Latency& latency) {
  return latency.n > 1 ? fmt::format(" (median of {})", latency.n) : "";
}

// The time of one step: of the marked stage that takes most time, else of a pass of the model.
// Empty if there is neither.
std::string step_words(const Results& metrics) {
  const StageRow* stage = main_stage(metrics);
  if (const auto step = stage == nullptr ? std::nullopt : step_time(metrics, *stage)) {
    const std::string name = printable_name(stage->stage.text());
    const std::string length = format_duration_ns(step->time_ns);
    return stage->num_instances == 1
               ? fmt::format("The {} that was recorded took {} on the GPU.", name, length)
               : fmt::format("One {} takes {} ({}){}.", name, length, median_words(*stage, *step),
                             step->is_period && step->time_ns > 0
                                 ? fmt::format(": {:.3g} per second",
                                               1e9 / static_cast<double>(step->time_ns))
                                 : "");
  }
  const PassRow* pass = repeated_pass(metrics);
  return pass == nullptr
             ? ""
             : fmt::format(
                   "A new {} pass through the model ({}) begins every {} (median over {} passes).",
                   printable_name(pass->pass), count_of(pass->num_layers, "layer"),
                   format_duration_ns(*pass->period_ns), pass->num_passes);
}

// A file name as it can be typed.
std::string typed_file(const Results& metrics) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+";
  const std::string& file = metrics.capture.file;
  const bool is_plain = !file.empty() && !file.starts_with('-') &&
                        file.find_first_not_of(kPlain) == std::string::npos;
  return is_plain && metrics.capture.files.empty() ? file : "FILE";
}

// Why the time of a step is not known, and what to type.
std::string no_step_words(const Results& metrics) {
  if (metrics.capture.duration_ns == 0) {
    return "How long a step takes is not known: a summary of kernels has no times. Next: analyze the "
           "recording that it was made from.";
  }
  const std::string why =
      "How long a step takes is not known: the recording marks no steps, and none was recognized in "
      "the order of its kernels. Next: ";
  const auto mark = std::ranges::find_if(metrics.possible_marks,
                                         [](const PossibleMark& one) { return one.instances > 1; });
  const std::string file = typed_file(metrics);
  if (mark != metrics.possible_marks.end()) {
    return fmt::format("{}gpuwhy analyze {} {}", why, file, printable(mark->option));
  }
  return metrics.ranges.empty()
             ? why +
                   "put an NVTX range around each step of the program and record again "
                   "(docs/marking.md)."
             : fmt::format(
                   "{0}choose the range that is one step (gpuwhy table ranges {1} lists them) and name it: "
                   "gpuwhy analyze {1} --step NAME",
                   why, file);
}

}  // namespace

std::optional<HeadlineTime> headline_time(const Results& metrics) {
  HeadlineTime time;
  const StageRow* stage = main_stage(metrics);
  if (const auto step = stage == nullptr ? std::nullopt : step_time(metrics, *stage)) {
    time.label = "Step time";
    time.step = *step;
    time.note = fmt::format("{}: {}", printable_name(stage->stage.text()),
                            stage->num_instances == 1 ? "one was recorded, its time on the GPU"
                                                      : median_words(*stage, *step));
    time.tokens_per_s = tokens_per_s(metrics, *stage);
    time.rate_note = count_of(stage->tokens.value_or(0) / stage->num_instances, "token") +
                     " in a step" +
                     (stage->num_instances == 1 ? "; at best: one step was recorded" : "");
    return time;
  }
  const PassRow* pass = repeated_pass(metrics);
  if (pass == nullptr) {
    return std::nullopt;
  }
  time.label = "Time per pass";
  time.step.time_ns = *pass->period_ns;
  time.note = fmt::format("{} pass through the model: from one to the next, median over {} passes",
                          printable_name(pass->pass), pass->num_passes);
  return time;
}

std::vector<std::string> speed_sentences(const Results& metrics) {
  std::vector<std::string> said;
  const Latencies& sums = metrics.aggregates;
  // What users wait for may be of a pass without the recording.
  if (std::ranges::any_of(metrics.findings, &Finding::is_blocker) && !sums.ttft.p50_ns &&
      !sums.tpot.p50_ns) {
    return said;
  }
  if (sums.ttft.p50_ns) {
    said.push_back(fmt::format("The first token comes after {}{}.",
                               format_duration_ns(*sums.ttft.p50_ns), median_of(sums.ttft)));
  }
  if (sums.tpot.p50_ns) {
    said.push_back(fmt::format(
        "Each further token takes {}{}{}.", format_duration_ns(*sums.tpot.p50_ns),
        median_of(sums.tpot),
        sums.decode_tokens_per_s
            ? fmt::format(", {} tokens per second in total", grouped(*sums.decode_tokens_per_s))
            : ""));
  }
  for (const StageRow& stage : metrics.stages) {
    const StageRole role = role_of(stage.stage);
    const bool is_said = (sums.ttft.p50_ns && role == StageRole::kPrefill) ||
                         (sums.tpot.p50_ns && role == StageRole::kDecode);
    if (is_work(stage) && !is_said) {
      said.push_back(rate_words(metrics, stage));
    }
  }
  std::erase(said, "");
  if (said.empty()) {
    said.push_back(step_words(metrics));
    std::erase(said, "");
  }
  return said;
}

std::vector<std::string> no_speed_sentences(const Results& metrics) {
  std::vector<std::string> said;
  // How long a program ran that failed says nothing.
  const bool has_failed =
      metrics.contract && std::ranges::any_of(*metrics.contract, &BreachRow::is_fatal);
  const bool is_blocked = std::ranges::any_of(metrics.findings, &Finding::is_blocker);
  if (metrics.aggregates.program_ns && !has_failed) {
    said.push_back(fmt::format("The program runs for {} without a profiler.",
                               format_duration_ns(*metrics.aggregates.program_ns)));
  } else if (!is_blocked && has_gpu_work(metrics)) {
    said.push_back(no_step_words(metrics));
  }
  return said;
}

std::string no_rate_reason(const Results& metrics) {
  const bool lacks_tokens = std::ranges::any_of(metrics.stages, is_decode, &StageRow::stage) &&
                            std::ranges::none_of(metrics.stages, [](const StageRow& stage) {
                              return is_decode(stage.stage) && stage.tokens;
                            });
  const std::string reason = printable(metrics.aggregates.tpot.reason);
  return lacks_tokens || reason.empty() ? "the marks carry no token counts" : reason;
}

}  // namespace gpuwhy
