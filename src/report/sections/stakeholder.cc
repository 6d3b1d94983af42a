// SPDX-License-Identifier: Apache-2.0
//
// The summary for a reader who has never seen a trace: what ran, how fast it is, how fast it could
// be, what to do first. The tables behind it follow.
//
// The text has no ids of rules and no keys of metrics.json: report.md and report.html have those.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "report/document/section_parts.h"
#include "report/sections/section_makers.h"
#include "report/sections/sections.h"
#include "report/sections/speed.h"
#include "report/sections/worth.h"
#include "report/words/plain_words.h"
#include "report/words/workload_words.h"
#include "results/efficiency.h"
#include "results/results.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// "2x NVIDIA H100 80GB HBM3".
std::string gpus_of(const Results& metrics) {
  constexpr std::string_view kNoName = "a GPU that the recording does not name";
  std::vector<std::pair<std::string, int>> counts;
  for (const DeviceRow& device : metrics.devices) {
    const std::string generation = generation_of(metrics, device);
    const std::string name = !device.name.empty() ? printable_name(device.name)
                             : generation.empty()
                                 ? std::string(kNoName)
                                 : fmt::format("{}; its kernels are of {}", kNoName, generation);
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
    words.push_back(count == 1 ? name
                    : name.starts_with(kNoName)
                        ? fmt::format("{} GPUs that the recording does not name{}", count,
                                      name.substr(kNoName.size()))
                        : fmt::format("{}x {}", count, name));
  }
  return words.empty() ? std::string(kNoName) : fmt::format("{}", fmt::join(words, ", "));
}

// The verdict without its last sentence, which names a rule, and without the label of a GPU.
std::string verdict_words(const Results& metrics) {
  const std::string gpu = metrics.verdict.device.empty() ? ""
                          : metrics.devices.size() == 1
                              ? "The GPU "
                              : fmt::format("The busiest of {} GPUs ", metrics.devices.size());
  return gpu + with_plain_names(printable(metrics.verdict.sentence));
}

bool has_blocker(const Results& metrics) {
  return std::ranges::any_of(metrics.findings, &Finding::is_blocker);
}

// What says that the model that was named is not the recorded one; nullptr: nothing does.
const Diagnostic* model_mismatch_of(const Results& metrics) {
  const auto found = std::ranges::find(metrics.data_quality, kModelMismatch, &Diagnostic::kind);
  return found == metrics.data_quality.end() ? nullptr : &*found;
}

std::vector<std::string> what_ran(const Results& metrics) {
  std::vector<std::string> said;
  const Diagnostic* mismatch = model_mismatch_of(metrics);
  const std::string name =
      metrics.efficiency && mismatch == nullptr ? printable_name(metrics.efficiency->model) : "";
  const std::string command = printable(cut_name(metrics.capture.command));
  const std::string model = !name.empty() && !command.empty()
                                ? fmt::format("{} ({})", name, command)
                            : !name.empty()                 ? name
                            : !command.empty()              ? command
                            : !metrics.capture.file.empty() ? printable_name(metrics.capture.file)
                                                            : "A program";
  const std::string date = printable(metrics.capture.recorded);
  const std::string when = date.empty() ? "" : " on " + date;
  if (metrics.capture.file.empty() && !has_gpu_work(metrics)) {
    return {model + when + "."};
  }
  const std::int64_t num_ranks = metrics.capture.world_size.value_or(1);
  const std::string where =
      (has_gpu_work(metrics) ? " on " + gpus_of(metrics) : ", without GPU work") +
      (num_ranks > std::max<std::int64_t>(num_working_gpus(metrics), 1)
           ? fmt::format(" (one part of a job on {} GPUs)", num_ranks)
           : "");
  const std::string ran = workload_words(metrics).sentence();
  const bool is_known = !ran.empty() && has_gpu_work(metrics);
  if (is_known) {
    said.push_back(
        fmt::format("{}{}{}.", ran, ran.find(',') == std::string::npos ? "" : ",", where));
  }
  said.push_back(fmt::format("{}{}, recorded{}{} with {}.", model, is_known ? "" : where, when,
                             metrics.capture.duration_ns > 0
                                 ? " for " + format_duration_ns(metrics.capture.duration_ns)
                                 : "",
                             tool_of(metrics)));
  if (metrics.capture.window) {
    said.push_back("Only a part of the recording was analyzed: " +
                   printable(metrics.capture.window->why) + ".");
  }
  if (mismatch != nullptr) {
    const std::string sentence = printable(mismatch->sentence);
    said.push_back(with_capital(sentence) + full_stop(sentence));
  }
  return said;
}

// The recorded time that a rate of tokens rests on.
std::int64_t token_basis_ns(const Results& metrics) {
  std::int64_t longest_ns = 0;
  for (const LedgerRow& row : metrics.ledgers) {
    if (is_decode(row.stage) || role_of(row.stage) == StageRole::kMixed) {
      longest_ns = std::max(longest_ns, row.window_ns - row.unrecorded_before_ns());
    }
  }
  return longest_ns;
}

// What a million tokens cost, where their rate is known and does not rest on a few steps.
std::string cost_words(const Results& metrics, const std::optional<GpuPrice>& price) {
  const std::optional<double> per_s = tokens_per_s(metrics);
  const std::int64_t num_gpus = num_working_gpus(metrics);
  const bool is_recorded = metrics.aggregates.source == "the recording";
  const std::int64_t basis_ns = token_basis_ns(metrics);
  if (!price || !per_s || *per_s <= 0 || num_gpus == 0 ||
      (is_recorded && basis_ns < kLeastBasisNs)) {
    return "";
  }
  return fmt::format(
      "At {} per GPU-hour, a million tokens cost {} on {}{}.", money_text(price->per_hour, *price),
      money_text(price->per_hour * static_cast<double>(num_gpus) / 3600 / *per_s * 1e6, *price),
      count_of(num_gpus, "GPU"),
      is_recorded ? fmt::format(" (from {} recorded)", format_duration_ns(basis_ns)) : "");
}

// How far the times above are to be trusted: a profiler slows a program down.
std::string overhead_words(const Results& metrics) {
  const bool is_recorded = metrics.aggregates.source == "the recording";
  std::optional<double> slower;
  for (const StageOverhead& row : metrics.overhead.value_or(std::vector<StageOverhead>())) {
    slower = std::max(slower, row.fraction);
  }
  constexpr double kLeastShown = 0.01;
  if (metrics.overhead && !is_recorded) {
    return "The times are of a run without a profiler. The analysis is of a recorded run, " +
           (!slower ? "and how much slower that was cannot be measured."
            : *slower < kLeastShown
                ? "which was about as fast."
                : fmt::format("which was up to {} slower.", format_fraction(*slower)));
  }
  return slower.value_or(0) < kLeastShown
             ? "The profiler was running when these times were taken, and it slows a program down: "
               "how much is not known here (gpuwhy run measures it). Shares are more certain than "
               "times."
             : fmt::format(
                   "These times include the profiler, which made the program up to {} slower.",
                   format_fraction(*slower));
}

std::vector<std::string> how_fast(const Results& metrics, const std::optional<GpuPrice>& price) {
  std::vector<std::string> said = speed_sentences(metrics);
  if (const std::string cost = cost_words(metrics, price); !cost.empty() && !said.empty()) {
    said.push_back(cost);
  }
  if (said.empty()) {
    said = no_speed_sentences(metrics);
  }
  said.push_back(verdict_words(metrics));
  return said;
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

// " A program that runs like this all day ...", with what that rests on.
std::string day_words(const Results& metrics, const Finding& finding,
                      const std::optional<GpuPrice>& price) {
  const auto worth = worth_of_day(metrics, finding);
  if (!worth) {
    return is_too_short_for_a_day(metrics, finding)
               ? fmt::format(
                     " What it is worth per day is not known: {} are too little to stand for "
                     "a day.",
                     format_duration_ns(finding.window_ns))
               : "";
  }
  const std::string money =
      price ? fmt::format(", worth {} per day at {} per GPU-hour",
                          money_text(worth->saved_h() * price->per_hour, *price),
                          money_text(price->per_hour, *price))
            : "";
  const std::string assumption = assumption_words(*worth);
  return fmt::format(
      " A program that runs like this all day on {}{} would save up to {:.1f} GPU-hours per day "
      "({} of {:g}){}. Basis: {}.",
      count_of(worth->num_gpus, "GPU"), assumption.empty() ? "" : fmt::format(", {},", assumption),
      worth->saved_h(), format_fraction(worth->share), worth->day_h(), money,
      basis_words(metrics, finding));
}

std::string bound_words(const Finding& finding) {
  return fmt::format(" This is an upper bound{}, not a forecast.",
                     finding.confidence == Confidence::kLow ? " of low confidence, seldom reached"
                     : finding.confidence == Confidence::kMedium ? " of medium confidence"
                                                                 : "");
}

// Findings of the table of things to do, in its order: of several kernels or GPUs with one problem
// in one stage, the first.
std::vector<const Finding*> shown_findings(const Results& metrics) {
  constexpr std::size_t kMost = 5;
  std::vector<const Finding*> shown;
  for (const Finding& finding : metrics.findings) {
    const auto is_same = [&](const Finding* one) {
      return one->id == finding.id && one->stage == finding.stage;
    };
    if (!finding.is_blocker && finding.saving_ns > 0 && shown.size() < kMost &&
        info_of(finding.id).kind == FindingKind::kOpportunity &&
        std::ranges::none_of(shown, is_same)) {
      shown.push_back(&finding);
    }
  }
  return shown;
}

// " The largest gain below is 1.64x (...): it comes later because it is less sure."
std::string largest_words(const std::vector<const Finding*>& shown, const Finding& first) {
  const Finding* largest = &first;
  for (const Finding* finding : shown) {
    if (finding->speedup().value_or(0) > largest->speedup().value_or(0)) {
      largest = finding;
    }
  }
  return largest == &first || is_nearly_all(first)
             ? ""
             : fmt::format(
                   " The largest bound below is {} ({}), which is less sure: {} confidence.",
                   gain_of(*largest), info_of(largest->id).problem, word_of(largest->confidence));
}

std::vector<std::string> how_fast_possible(const Results& metrics,
                                           const std::optional<GpuPrice>& price) {
  if (has_blocker(metrics)) {
    return {"How fast it could be is not known until the recording is repeated, see below."};
  }
  std::vector<std::string> said;
  const std::vector<const Finding*> shown = shown_findings(metrics);
  for (const Finding* finding : shown) {
    const auto speedup = finding->speedup();
    if (!speedup && !is_nearly_all(*finding)) {
      continue;
    }
    const std::string times =
        speedup ? fmt::format("Up to {:.{}f} times as fast", *speedup, *speedup < 9.995 ? 2 : 0)
                : "More than 20 times as fast";
    said.push_back(fmt::format("{}{}, if {} were solved completely: {}.{}{}{}", times,
                               role_of(finding->stage) == StageRole::kDecode ||
                                       role_of(finding->stage) == StageRole::kPrefill
                                   ? " in " + printable_name(finding->stage.text())
                                   : "",
                               finding == shown.front() ? "the first point below" : "this point",
                               info_of(finding->id).problem, bound_words(*finding),
                               largest_words(shown, *finding),
                               day_words(metrics, *finding, price)));
    break;
  }
  // Decode or layers: a language model, whose limit a table of models gives.
  if (!metrics.efficiency && !said.empty() &&
      std::ranges::any_of(metrics.stages, [](const StageRow& stage) {
        return role_of(stage.stage) == StageRole::kPrefill ||
               stage.stage.text().starts_with("decode");
      })) {
    said.emplace_back(
        "This counts only what the recording shows by itself. How far the model is from the limit of "
        "this GPU is not known; gpuwhy analyze --model NAME says it.");
  }
  if (metrics.efficiency) {
    for (const StageEfficiency& stage : metrics.efficiency->stages) {
      const bool is_part = std::ranges::any_of(metrics.stages, [&](const StageRow& one) {
        return one.stage == stage.stage && one.is_nested;
      });
      if (!is_part && stage.sol.wall_fraction && *stage.sol.wall_fraction > 0) {
        said.push_back(
            fmt::format("{} reaches {} of what this GPU could do at best with this model.",
                        with_capital(printable_name(stage.stage.text())),
                        format_fraction(*stage.sol.wall_fraction)));
      }
    }
  }
  if (said.empty()) {
    const bool is_gpu_named = std::ranges::none_of(
        metrics.devices, [](const DeviceRow& device) { return device.name.empty(); });
    said.emplace_back(
        !metrics.efficiency
            ? fmt::format(
                  "How fast it could be is not known. Naming the model{} gives the limit of this GPU.",
                  is_gpu_named ? " (gpuwhy analyze --model NAME)"
                               : " and the GPU (gpuwhy analyze --model NAME --gpu-name NAME)")
        : model_mismatch_of(metrics) != nullptr
            ? "How fast it could be is not known: the model that was named is not the recorded one."
        : !is_gpu_named
            ? "How fast it could be is not known: the recording does not name its GPU. --gpu-name NAME does."
            : "How fast it could be is not known for this recording: report.html says under MFU what is missing.");
  }
  return said;
}

// "hours: warm up" after a colon of the sentence.
std::string in_a_sentence(std::string_view words) {
  std::string text(words);
  if (const std::size_t colon = text.find(": "); colon != std::string::npos) {
    text.replace(colon, 1, ",");
  }
  return text;
}

// Rows of the things to do. A problem of several stages has a row for each, which names it.
ReportTable table_of_points(const Results& metrics, const std::vector<const Finding*>& shown,
                            const std::optional<GpuPrice>& price) {
  const bool has_worth = price && std::ranges::any_of(shown, [&](const Finding* finding) {
                           return worth_of_day(metrics, *finding).has_value();
                         });
  ReportTable table;
  for (const char* column :
       {"problem", "gain at most", "what to do", "how sure", "effort", "risk"}) {
    table.columns.push_back({column, "", CellFormat::kText});
  }
  if (has_worth) {
    table.columns.push_back({"worth per day at most", "", CellFormat::kText});
  }
  const auto text = [](std::string words) {
    return ReportValue{std::move(words), CellFormat::kText, ""};
  };
  for (const Finding* finding : shown) {
    const FindingInfo& change = change_of(*finding);
    const auto num_same =
        std::ranges::count_if(shown, [&](const Finding* one) { return one->id == finding->id; });
    ReportRow& row = table.rows.emplace_back();
    row.cells = {
        text(std::string(info_of(finding->id).problem) +
             (num_same > 1 ? fmt::format(" (in {})", printable_name(finding->stage.text())) : "")),
        text(gain_of(*finding)),
        text(advice_in_words(finding->advice)),
        text(word_of(finding->confidence)),
        text(std::string(change.effort)),
        text(std::string(change.risk))};
    if (has_worth) {
      const auto worth = worth_of_day(metrics, *finding);
      row.cells.push_back(
          text(worth ? money_text(worth->saved_h() * price->per_hour, *price) : "n/a"));
    }
  }
  return table;
}

Section what_to_do(const Results& metrics, const std::optional<GpuPrice>& price) {
  Section section;
  section.id = "recommendations";
  section.title = "Recommendations";
  const std::vector<const Finding*> shown = shown_findings(metrics);
  ReportTable table = table_of_points(metrics, shown, price);
  for (std::size_t i = 0; i < metrics.findings.size(); ++i) {
    const Finding& finding = metrics.findings[i];
    if (!finding.is_blocker) {
      continue;
    }
    const auto sentence = [](const std::string& said) {
      const std::string words = printable(said);
      return words + full_stop(words);
    };
    const std::string next = sentence(finding.advice.words());
    // The verdict above may say the same.
    section.paragraphs.push_back(
        metrics.verdict.told == i
            ? with_capital(next)
            : fmt::format("Nothing can be said about the GPU yet. {} Next: {}",
                          with_capital(sentence(finding.sentence)), next));
  }
  if (!shown.empty()) {
    const FindingInfo& first = info_of(shown.front()->id);
    section.paragraphs.push_back(fmt::format("Start here: {}. Effort: {}. Risk: {}.", first.problem,
                                             in_a_sentence(first.effort),
                                             in_a_sentence(first.risk)));
  }
  if (!table.rows.empty()) {
    if (table.rows.size() > 1) {
      section.notes.emplace_back(order_words());
    }
    section.tables.push_back(std::move(table));
  } else if (section.paragraphs.empty()) {
    const std::string next =
        metrics.findings.empty() ? "" : text_of_member(metrics.findings.front().advice);
    section.paragraphs.push_back(fmt::format(
        "No point was found whose gain can be estimated{}.",
        !next.empty() ? ". Next: " + printable(next) : "; report.html has the details"));
  }
  return section;
}

}  // namespace

Document stakeholder_document(const Results& metrics, const SectionOptions& options) {
  Section summary;
  summary.id = "summary";
  summary.title = "Executive Summary";
  for (const std::vector<std::string>& said :
       {what_ran(metrics), how_fast(metrics, options.gpu_hour_price),
        how_fast_possible(metrics, options.gpu_hour_price)}) {
    summary.paragraphs.insert(summary.paragraphs.end(), said.begin(), said.end());
  }
  if (has_gpu_work(metrics) && !has_blocker(metrics)) {
    summary.notes.push_back(overhead_words(metrics));
  }
  Document document = section_document(
      metrics,
      {"environment", "aggregates", "stages", "efficiency", "takeaways", "operators", "kernels"},
      options);
  document.title = "Stakeholder Summary";
  document.sections.insert(document.sections.begin(),
                           {summary, what_to_do(metrics, options.gpu_hour_price)});
  return document;
}

}  // namespace gpuwhy
