// SPDX-License-Identifier: Apache-2.0
//
// The summary for a reader who has never seen a trace: what ran, how fast it is, how fast it could
// be, what to do first.
//
// No ids of rules and no keys of metrics.json: report.md and report.html have those.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/units.h"
#include "report/metrics.h"
#include "report/opportunity.h"
#include "report/section_makers.h"
#include "report/section_parts.h"
#include "report/sections.h"

namespace llmprof {
namespace {

// "2x NVIDIA H100 80GB HBM3".
std::string gpus_of(const Metrics& metrics) {
  std::vector<std::pair<std::string, int>> counts;
  for (const DeviceMetrics& device : metrics.devices) {
    const std::string name =
        device.name.empty() ? "a GPU that the recording does not name" : printable(device.name);
    const auto known = std::ranges::find(counts, name, &std::pair<std::string, int>::first);
    if (known == counts.end()) {
      counts.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  std::vector<std::string> words;
  words.reserve(counts.size());
  for (const auto& [name, count] : counts) {
    words.push_back(count == 1 ? name : fmt::format("{}x {}", count, name));
  }
  return words.empty() ? "no GPU" : fmt::format("{}", fmt::join(words, ", "));
}

// The verdict without its last sentence, which names a rule, and without the label of a GPU.
std::string verdict_words(const Metrics& metrics) {
  std::string text =
      printable(metrics.verdict.substr(0, metrics.verdict.find(" Top opportunity: ")));
  for (const DeviceMetrics& device : metrics.devices) {
    const std::string label = printable(device.device) + " ";
    if (text.starts_with(label)) {
      const std::string gpu = metrics.devices.size() == 1
                                  ? "The GPU "
                                  : fmt::format("The busiest of {} GPUs ", metrics.devices.size());
      return gpu + text.substr(label.size());
    }
  }
  return text;
}

bool has_blocker(const Metrics& metrics) {
  return std::any_of(metrics.findings.begin(), metrics.findings.end(),
                     [](const Finding& finding) { return finding.is_blocker; });
}

Section titled(const char* id, const char* title) {
  Section section;
  section.id = id;
  section.title = title;
  return section;
}

Section what_ran(const Metrics& metrics) {
  Section section = titled("ran", "What was run");
  const std::string name = metrics.efficiency ? printable(metrics.efficiency->model) : "";
  const std::string command = printable(cut_name(metrics.capture.command));
  const std::string model = !name.empty() && !command.empty()
                                ? fmt::format("{} ({})", name, command)
                            : !name.empty()                 ? name
                            : !command.empty()              ? command
                            : !metrics.capture.file.empty() ? printable(metrics.capture.file)
                                                            : "A program";
  if (metrics.devices.empty()) {
    section.paragraphs.push_back(model + ".");
    return section;
  }
  const std::string date = printable(metrics.capture.recorded);
  section.paragraphs.push_back(fmt::format("{} on {}, recorded{} for {} with {}.", model,
                                           gpus_of(metrics), date.empty() ? "" : " on " + date,
                                           format_duration_ns(metrics.capture.duration_ns),
                                           tool_of(metrics)));
  return section;
}

// The time of one step: of the marked stage that takes most time, else of a pass of the model.
// Empty if nothing repeats.
std::string step_words(const Metrics& metrics) {
  const StageSummary* longest = nullptr;
  for (const StageSummary& stage : metrics.stages) {
    if (stage.num_instances > 1 && !stage.is_nested && stage.stage != "all" &&
        (longest == nullptr || stage.total_ns > longest->total_ns)) {
      longest = &stage;
    }
  }
  if (longest != nullptr) {
    std::int64_t step_ns = longest->median_ns;
    for (const StepMetrics& step : metrics.steps) {
      if (step.stage == longest->stage) {
        // A range may end before the GPU has done what was launched in it.
        step_ns = step.period_median_ns ? *step.period_median_ns
                                        : std::max(step_ns, step.gpu_window_median_ns.value_or(0));
      }
    }
    return fmt::format("One {} takes {} (median of {}).", printable(longest->stage),
                       format_duration_ns(step_ns), longest->num_instances);
  }
  if (metrics.structure) {
    for (const PassSummary& pass : metrics.structure->passes) {
      if (pass.period_ns && pass.num_passes > 1) {
        return fmt::format("A new {} pass through the model ({}) begins every {} (median of {}).",
                           printable(pass.pass), count_of(pass.num_layers, "layer"),
                           format_duration_ns(*pass.period_ns), pass.num_passes);
      }
    }
  }
  return "";
}

// How far the times above are to be trusted: a profiler slows a program down.
std::string overhead_words(const Metrics& metrics) {
  const bool is_recorded = metrics.aggregates.source == "the recording";
  const double slower =
      !metrics.overhead || metrics.overhead->empty()
          ? 0
          : std::ranges::max_element(*metrics.overhead, {}, &StageOverhead::fraction)->fraction;
  constexpr double kLeastShown = 0.01;
  if (metrics.overhead && !is_recorded) {
    return slower < kLeastShown
               ? "The times are of a run without a profiler. The analysis is of a recorded run, which "
                 "was about as fast."
               : fmt::format(
                     "The times are of a run without a profiler. The analysis is of a recorded run, "
                     "which was up to {} slower.",
                     format_fraction(slower));
  }
  return slower < kLeastShown
             ? "The profiler was running when these times were taken, and it slows a program down: "
               "how much is not known here (llmprof run measures it). Shares are more certain than "
               "times."
             : fmt::format(
                   "These times include the profiler, which made the program up to {} slower.",
                   format_fraction(slower));
}

Section how_fast(const Metrics& metrics) {
  Section section = titled("speed", "How fast it is");
  const AggregateMetrics& sums = metrics.aggregates;
  if (sums.ttft.mean_ns) {
    section.paragraphs.push_back(fmt::format("The first token comes after {}.",
                                             shown({*sums.ttft.mean_ns, Unit::kDuration, ""})));
  }
  if (sums.tpot.mean_ns) {
    section.paragraphs.push_back(fmt::format(
        "Each further token takes {}{}.", shown({*sums.tpot.mean_ns, Unit::kDuration, ""}),
        sums.decode_tokens_per_s
            ? fmt::format(", {:.0f} tokens per second in total", *sums.decode_tokens_per_s)
            : ""));
  }
  if (section.paragraphs.empty()) {
    if (const std::string step = step_words(metrics); !step.empty()) {
      section.paragraphs.push_back(step);
    }
  }
  // How long a program ran that failed says nothing.
  const std::vector<BreachMetrics> breaches =
      metrics.contract.value_or(std::vector<BreachMetrics>());
  const bool has_failed = std::ranges::any_of(breaches, &BreachMetrics::is_fatal);
  if (sums.program_ns && section.paragraphs.empty() && !has_failed) {
    section.paragraphs.push_back(fmt::format("The program runs for {} without a profiler.",
                                             format_duration_ns(*sums.program_ns)));
  }
  section.paragraphs.push_back(verdict_words(metrics));
  if (!metrics.devices.empty() && !has_blocker(metrics)) {
    section.notes.push_back(overhead_words(metrics));
  }
  return section;
}

// A saving of nearly the whole is not a bound: Finding::speedup() has none then.
bool is_nearly_all(const Finding& finding) {
  return !finding.speedup() && finding.saving_fraction().value_or(0) > 0.9;
}

// "1.43x", "more than 20x", or the time itself where it is not a bound.
std::string gain_of(const Finding& finding) {
  const auto speedup = finding.speedup();
  return speedup                  ? format_speedup(*speedup)
         : is_nearly_all(finding) ? "more than 20x"
                                  : format_duration_ns(finding.saving_ns);
}

// A share of the whole recording, of its steady phase or of the only stage there is, is a share of
// a day that goes on like it. A share of one stage among others is not. A shorter job frees all of
// its GPUs.
std::string worth_of_day(const Metrics& metrics, const Finding& finding) {
  const auto num_stages = std::ranges::count_if(
      metrics.stages, [](const StageSummary& stage) { return !stage.is_nested; });
  const bool is_all = finding.stage == "capture" || finding.stage == "steady" || num_stages == 1;
  const auto num_gpus = std::ranges::count_if(
      metrics.devices, [](const DeviceMetrics& device) { return device.num_kernels > 0; });
  if (!is_all || num_gpus == 0) {
    return "";
  }
  const double share = finding.saving_fraction().value_or(0);
  const double day_h = 24.0 * static_cast<double>(num_gpus);
  return fmt::format(
      " A program that runs like this all day on {} would save up to {:.1f} GPU-hours per day "
      "({} of {:g}).",
      count_of(num_gpus, "GPU"), share * day_h, format_fraction(share), day_h);
}

Section how_fast_possible(const Metrics& metrics) {
  Section section = titled("potential", "How fast it could be");
  if (has_blocker(metrics)) {
    section.paragraphs.emplace_back("Not known until the recording is repeated, see below.");
    return section;
  }
  for (const Finding& finding : metrics.findings) {
    if (finding.saving_ns > 0 && find_opportunity(finding.id) != nullptr &&
        is_nearly_all(finding)) {
      section.paragraphs.push_back(
          "More than 20 times as fast, if the first point below were solved completely. This is an "
          "upper bound, not a forecast.");
      break;
    }
    if (const auto speedup = finding.speedup()) {
      section.paragraphs.push_back(fmt::format(
          "Up to {:.2f} times as fast{}, if the first point below were solved completely. "
          "This is an upper bound, not a forecast.{}",
          *speedup,
          finding.stage == "decode" || finding.stage == "prefill"
              ? " in " + printable(finding.stage)
              : "",
          worth_of_day(metrics, finding)));
      break;
    }
  }
  if (metrics.efficiency) {
    for (const StageEfficiency& stage : metrics.efficiency->stages) {
      if (stage.sol.wall_fraction && *stage.sol.wall_fraction > 0) {
        section.paragraphs.push_back(fmt::format(
            "{} reaches {} of what this GPU could do at best with this model.",
            with_capital(printable(stage.stage)), format_fraction(*stage.sol.wall_fraction)));
      }
    }
  }
  if (section.paragraphs.empty()) {
    section.paragraphs.emplace_back(
        !metrics.efficiency
            ? "Not known. Naming the model (llmprof analyze --model NAME) gives the limit of this GPU."
            : "Not known for this recording: report.html says under MFU what is missing.");
  }
  return section;
}

// "hours: warm up" after a colon of the sentence.
std::string in_a_sentence(std::string_view words) {
  std::string text(words);
  if (const std::size_t colon = text.find(": "); colon != std::string::npos) {
    text.replace(colon, 1, ",");
  }
  return text;
}

Section what_to_do(const Metrics& metrics) {
  constexpr std::size_t kMost = 5;
  Section section = titled("first", "What to do first");
  ReportTable table;
  table.columns = {{"problem", "", Unit::kText},    {"gain at most", "", Unit::kText},
                   {"what to do", "", Unit::kText}, {"how sure", "", Unit::kText},
                   {"effort", "", Unit::kText},     {"risk", "", Unit::kText}};
  const auto text = [](std::string words) {
    return ReportValue{std::move(words), Unit::kText, ""};
  };
  const Opportunity* first = nullptr;
  for (const Finding& finding : metrics.findings) {
    const Opportunity* known = find_opportunity(finding.id);
    if (finding.is_blocker) {
      const auto sentence = [](const std::string& said) {
        const std::string words = printable(said);
        return words + (words.ends_with('.') ? "" : ".");
      };
      // The verdict above may say the same.
      const bool is_said = !finding.sentence.empty() &&
                           metrics.verdict.find(finding.sentence.substr(1)) != std::string::npos;
      section.paragraphs.push_back(
          fmt::format("{}{}",
                      is_said ? ""
                              : fmt::format("Nothing can be said about the GPU yet. {} Next: ",
                                            with_capital(sentence(finding.sentence))),
                      is_said ? with_capital(sentence(finding.next)) : sentence(finding.next)));
    } else if (known != nullptr && finding.saving_ns > 0 && table.rows.size() < kMost) {
      first = first == nullptr ? known : first;
      table.rows.push_back({{text(std::string(known->problem)), text(gain_of(finding)),
                             text(printable(finding.next)), text(printable(finding.confidence)),
                             text(std::string(known->effort)), text(std::string(known->risk))},
                            "",
                            false});
    }
  }
  if (first != nullptr) {
    section.paragraphs.push_back(fmt::format("Start here: {}. Effort: {}. Risk: {}.",
                                             first->problem, in_a_sentence(first->effort),
                                             in_a_sentence(first->risk)));
  }
  if (!table.rows.empty()) {
    section.tables.push_back(std::move(table));
    section.notes.emplace_back(
        "In the order of gain and of how sure the cause is. Gains do not add up: each is for that point "
        "alone.");
  } else if (section.paragraphs.empty()) {
    const bool has_next = !metrics.findings.empty() && !metrics.findings.front().next.empty();
    section.paragraphs.push_back(
        fmt::format("No point was found whose gain can be estimated{}.",
                    has_next ? ". Next: " + printable(metrics.findings.front().next)
                             : "; report.html has the details"));
  }
  return section;
}

}  // namespace

Document stakeholder_document(const Metrics& metrics, const SectionOptions& /*options*/) {
  return {"Stakeholder Summary",
          {what_ran(metrics), how_fast(metrics), how_fast_possible(metrics), what_to_do(metrics)}};
}

}  // namespace llmprof
