// SPDX-License-Identifier: Apache-2.0
//
// The summary for a reader who has never seen a trace: what ran, how fast it is, how fast it could
// be, what to do first.
//
// No ids of rules and no keys of metrics.json: report.md and report.html have those.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/units.h"
#include "report/metrics.h"
#include "report/section_makers.h"
#include "report/sections.h"

namespace llmprof {
namespace {

// A finding in a manager's words.
struct Opportunity {
  std::string_view id;
  std::string_view problem;
  std::string_view effort;
  std::string_view risk;
};

// clang-format off
constexpr Opportunity kOpportunities[] = {
    {"launch_bound", "The GPU waits for the processor to hand it work", "a setting, or days in own code", "low: same results"},
    {"host_work", "The GPU waits while the processor does other work", "days", "low: same results"},
    {"host_sync", "The processor waits for the GPU and then the GPU waits for it", "days", "low: same results"},
    {"allocation", "The GPU waits while memory is allocated", "hours", "low: same results"},
    {"blocked_call", "The GPU waits for a slow driver call", "days, cause to be found", "low"},
    {"first_use", "Code is loaded at its first use", "hours: warm up", "none"},
    {"idle_at_start", "A request waits before the GPU starts on it", "days", "low: same results"},
    {"exposed_comm", "GPUs talk to each other instead of computing", "days to weeks", "medium: settings of the whole job"},
    {"exposed_copy", "The GPU copies data instead of computing", "days", "low: same results"},
    {"queue_wait", "GPU work blocks other GPU work", "days, cause to be found", "low"},
    {"started_late", "Work starts late on the GPU", "days, cause to be found", "low"},
    {"rank_skew", "One GPU waits for a slower one", "days, cause to be found", "low"},
    {"unfused_attention", "Attention runs in several steps instead of one", "a setting", "low: results equal within rounding"},
    {"flash_attention_2", "Attention uses code for an older GPU generation", "hours: an upgrade", "low: results equal within rounding"},
    {"empty_sms", "Most of the GPU is empty while some kernels run", "days", "low"},
    {"gemm_off_tensor_cores", "Matrix products run on the slow units of the GPU", "a setting", "medium: lower precision, check quality"},
    {"fusion", "Many small steps read and write the same data", "a setting, or days in own code", "low"},
    {"sampling", "Choosing the next token takes long", "hours", "low"},
    {"kv_cache_copy", "Moving the cache of earlier tokens takes long", "hours", "low"},
    {"decode_off_memory_roof", "Kernels use a fraction of the memory bandwidth", "days to weeks", "medium"},
    {"prefill_off_compute_roof", "Kernels use a fraction of the GPU's speed", "days to weeks", "medium"},
    {"low_occupancy", "A kernel keeps few threads busy", "days", "low"},
    {"attention_off_roof", "The attention kernel is slow", "days", "low"},
    {"gemv_memory_bound", "Reading the model's weights takes most of the time", "days: quantize the weights", "medium: check quality"},
};
// clang-format on

const Opportunity* opportunity_of(const Finding& finding) {
  const auto* found = std::ranges::find(kOpportunities, finding.id, &Opportunity::id);
  return found == std::end(kOpportunities) ? nullptr : found;
}

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
    section.paragraphs.push_back(model + ". No GPU activity was recorded.");
    return section;
  }
  section.paragraphs.push_back(
      fmt::format("{} on {}, recorded for {} with {}.", model, gpus_of(metrics),
                  format_duration_ns(metrics.capture.duration_ns), tool_of(metrics)));
  return section;
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
  // Without its last sentence, which names a rule: the table below says the same in words.
  section.paragraphs.push_back(
      printable(metrics.verdict.substr(0, metrics.verdict.find(" Top opportunity: "))));
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

bool has_blocker(const Metrics& metrics) {
  return std::any_of(metrics.findings.begin(), metrics.findings.end(),
                     [](const Finding& finding) { return finding.is_blocker; });
}

// A share of the whole recording, or of its steady phase, is a share of a day that goes on like it.
// A share of one stage is not.
std::string worth_of_day(const Finding& finding) {
  const double share = finding.saving_fraction().value_or(0);
  if (finding.stage != "capture" && finding.stage != "steady") {
    return "";
  }
  return fmt::format(
      " A program that runs like this all day would save up to {:.1f} GPU-hours per day and GPU "
      "({} of 24 h).",
      share * 24, format_fraction(share));
}

Section how_fast_possible(const Metrics& metrics) {
  Section section = titled("potential", "How fast it could be");
  if (has_blocker(metrics)) {
    section.paragraphs.emplace_back("Not known until the recording is repeated, see below.");
    return section;
  }
  for (const Finding& finding : metrics.findings) {
    if (finding.saving_ns > 0 && opportunity_of(finding) != nullptr && is_nearly_all(finding)) {
      section.paragraphs.push_back(
          "More than 20 times as fast, if the first point below were solved completely. This is an "
          "upper bound, not a forecast.");
      break;
    }
    if (const auto speedup = finding.speedup()) {
      section.paragraphs.push_back(fmt::format(
          "Up to {:.1f} times as fast{}, if the first point below were solved completely. "
          "This is an upper bound, not a forecast.{}",
          *speedup,
          finding.stage == "decode" || finding.stage == "prefill"
              ? " in " + printable(finding.stage)
              : "",
          worth_of_day(finding)));
      break;
    }
  }
  if (metrics.efficiency) {
    for (const StageEfficiency& stage : metrics.efficiency->stages) {
      if (stage.sol.wall_fraction && *stage.sol.wall_fraction > 0) {
        section.paragraphs.push_back(
            fmt::format("{} reaches {} of what this GPU could do at best with this model.",
                        printable(stage.stage), format_fraction(*stage.sol.wall_fraction)));
      }
    }
  }
  if (section.paragraphs.empty()) {
    section.paragraphs.emplace_back(
        "Not known. Naming the model (llmprof analyze --model NAME) gives the limit of this GPU.");
  }
  return section;
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
  for (const Finding& finding : metrics.findings) {
    const Opportunity* known = opportunity_of(finding);
    if (finding.is_blocker) {
      const auto sentence = [](const std::string& said) {
        const std::string words = printable(said);
        return words + (words.ends_with('.') ? "" : ".");
      };
      section.paragraphs.push_back(fmt::format("Nothing can be said about the GPU yet: {} Next: {}",
                                               sentence(finding.sentence), sentence(finding.next)));
    } else if (known != nullptr && finding.saving_ns > 0 && table.rows.size() < kMost) {
      table.rows.push_back({{text(std::string(known->problem)), text(gain_of(finding)),
                             text(printable(finding.next)), text(printable(finding.confidence)),
                             text(std::string(known->effort)), text(std::string(known->risk))},
                            "",
                            false});
    }
  }
  if (!table.rows.empty()) {
    section.tables.push_back(std::move(table));
    section.notes.emplace_back("Gains do not add up: each is for that point alone.");
  } else if (section.paragraphs.empty()) {
    section.paragraphs.emplace_back(
        "No point was found whose gain can be estimated; report.html has the details.");
  }
  return section;
}

}  // namespace

Document stakeholder_document(const Metrics& metrics, const SectionOptions& /*options*/) {
  return {"Stakeholder Summary",
          {what_ran(metrics), how_fast(metrics), how_fast_possible(metrics), what_to_do(metrics)}};
}

}  // namespace llmprof
