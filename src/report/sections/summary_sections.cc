// SPDX-License-Identifier: Apache-2.0
//
// Sections on the verdict, findings, environment and data quality.
#include <algorithm>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/names/gpu_generation.h"
#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "report/document/member_table.h"
#include "report/sections/section_makers.h"
#include "report/sections/speed.h"
#include "report/words/plain_words.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// "; decode up to 1.40x faster (90 -> 126 tokens/s)".
std::string gain_text(const Results& metrics, const Finding& finding) {
  const auto speedup = finding.speedup();
  if (!speedup) {
    return "";
  }
  const auto& rate = metrics.aggregates.decode_tokens_per_s;
  return fmt::format(
      "; {}up to {} faster{}",
      finding.stage.kind == RowKind::kSteady || finding.stage.kind == RowKind::kRecording
          ? ""
          : printable_name(finding.stage.text()) + " ",
      format_speedup(*speedup),
      is_decode(finding.stage) && rate
          ? fmt::format(" ({:.0f} -> {:.0f} tokens/s)", *rate, *rate * *speedup)
          : "");
}

// Texts of a recording are made printable here: they may contain control characters.
// Whether times of tokens can be expected: where requests or stages of a server are.
bool makes_tokens(const Results& metrics) {
  constexpr StageRole kRoles[] = {StageRole::kPrefill, StageRole::kDecode, StageRole::kDecodeStep,
                                  StageRole::kMixed,   StageRole::kVerify, StageRole::kDraft};
  const auto is_of_server = [&](const auto& row) {
    return std::ranges::find(kRoles, role_of(row.stage)) != std::end(kRoles);
  };
  return metrics.aggregates.ttft.p50_ns || metrics.aggregates.tpot.p50_ns || metrics.requests ||
         std::ranges::any_of(metrics.stages, is_of_server) ||
         (metrics.baseline && std::ranges::any_of(*metrics.baseline, is_of_server));
}

// "; worth up to 14.20 EUR per day ..."; the terminal has a line for all findings.
std::string worth_words(const Results& metrics, const Finding& finding,
                        const SectionOptions& options) {
  const std::string words = options.gpu_hour_price && !options.is_terminal
                                ? day_worth_words(metrics, finding, *options.gpu_hour_price)
                                : "";
  return words.empty() ? "" : "; " + words;
}

// "Worth: host_work up to 10.50 EUR per day ..." of the first finding that has one.
std::string worth_line(const Results& metrics, const GpuPrice& price) {
  for (const Finding& finding : metrics.findings) {
    if (const std::string words = day_worth_words(metrics, finding, price); !words.empty()) {
      return fmt::format("{}: {}", word_of(finding.id), words);
    }
  }
  const bool is_short = std::ranges::any_of(metrics.findings, [&](const Finding& finding) {
    return finding.saving_ns > 0 && is_too_short_for_a_day(metrics, finding);
  });
  return fmt::format("Worth per day: n/a ({})", is_short
                                                    ? "too little was recorded to stand for a day"
                                                    : "no saving is a share of all the time");
}

std::vector<AdviceCell> advice_of(const Results& metrics, const SectionOptions& options,
                                  std::size_t most) {
  std::vector<AdviceCell> advice;
  const std::span<const Finding> all = metrics.findings;
  for (const Finding& finding : all.first(std::min(most, all.size()))) {
    AdviceCell& made = advice.emplace_back();
    made.is_blocker = finding.is_blocker;
    if (finding.saving_ns > 0) {
      made.saving_ns = finding.saving_ns;
    }
    made.id = word_of(finding.id);
    made.title = info_of(finding.id).problem;
    // The terminal has names that can be searched for, and ids that `explain` takes.
    const std::string sentence = printable(finding.sentence);
    made.sentence = (options.is_terminal ? sentence : with_plain_names(sentence)) +
                    gain_text(metrics, finding) + worth_words(metrics, finding, options);
    made.confidence = word_of(finding.confidence);
    if (options.is_terminal && finding.confidence != Confidence::kHigh) {
      made.sentence += fmt::format(" ({} confidence)", made.confidence);
    }
    made.next = options.is_terminal ? printable(text_of_member(finding.advice))
                                    : advice_in_words(finding.advice);
    if (finding.saving_ns > 0) {
      made.effort = change_of(finding).effort;
      made.risk = change_of(finding).risk;
    }
    for (const std::string& key : finding.evidence) {
      made.evidence.push_back(printable(key));
    }
  }
  return advice;
}

void add_latency(const Results& metrics, Latency Latencies::*latency, const std::string& label,
                 Section& section) {
  using T = Latency;
  const auto value = [&](CellFormat unit, auto member) {
    return value_at(metrics, unit, &Results::aggregates, latency, member);
  };
  const std::string reason = printable((metrics.aggregates.*latency).reason);
  section.facts.push_back({label + ", median", value(CellFormat::kDuration, &T::p50_ns), reason});
  if (reason.empty()) {
    section.facts.push_back({label + ", p99", value(CellFormat::kDuration, &T::p99_ns), ""});
    section.facts.push_back({label + ", values", value(CellFormat::kCount, &T::n), ""});
    section.facts.push_back(
        {label + ", length of", value(CellFormat::kText, &T::basis), "an older file"});
  }
}

// The file that a GPU is of, where there are several; empty: there is one.
std::string file_of_device(const Results& metrics, const std::string& device) {
  for (const FileRow& file : metrics.capture.files) {
    if (std::ranges::find(file.devices, device) != file.devices.end()) {
      return printable(file.file);
    }
  }
  return "";
}

// "4 files of one job: rank0.sqlite (cuda:0), rank1.sqlite (cuda:1), ...".
std::string files_sentence(const std::vector<FileRow>& files) {
  constexpr std::size_t kMostFiles = 8;
  std::string text = fmt::format("{} files of one job: ", files.size());
  for (std::size_t i = 0; i < std::min(files.size(), kMostFiles); ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", printable(files[i].file),
                        files[i].devices.empty()
                            ? "no GPU work"
                            : printable(fmt::format("{}", fmt::join(files[i].devices, ", "))));
  }
  return text + (files.size() > kMostFiles ? ", ..." : "") + ".";
}

}  // namespace

std::string generation_of(const Results& metrics, const DeviceRow& device) {
  int latest = 0;
  for (const KernelRow& kernel : metrics.kernels) {
    if (device.name.empty() && kernel.device == device.device) {
      latest = std::max(latest, generation_of_kernel(kernel.kernel_name));
    }
  }
  return generation_words(latest);
}

std::string tool_of(const Results& metrics) {
  return metrics.capture.tool.empty() ? "the profiler" : printable(metrics.capture.tool);
}

Section summary_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  section.paragraphs.push_back(options.is_terminal ? printable(text_of_member(metrics.verdict))
                                                   : verdict_in_words(metrics.verdict));
  // The terminal has the step time in the line below its stages.
  if (!options.is_terminal) {
    std::vector<std::string> speed = speed_sentences(metrics);
    speed = speed.empty() ? no_speed_sentences(metrics) : speed;
    if (!speed.empty()) {
      section.paragraphs.push_back(fmt::format("{}", fmt::join(speed, " ")));
    }
  }
  if (metrics.capture.window) {
    section.paragraphs.push_back("Only a part of the recording was analyzed: " +
                                 printable(metrics.capture.window->why) + ".");
  }
  if (!metrics.capture.files.empty() && !options.is_terminal) {
    section.paragraphs.push_back(files_sentence(metrics.capture.files));
  }
  // On the terminal, findings have a section of their own.
  if (options.is_terminal) {
    for (const DeviceRow& device : metrics.devices) {
      const std::string file = file_of_device(metrics, device.device);
      const std::string generation = generation_of(metrics, device);
      section.notes.push_back(fmt::format(
          "{}  {}  {}{}", printable_name(device.device),
          device.name.empty()
              ? fmt::format("n/a (not named in the recording{})",
                            generation.empty() ? "" : "; its kernels are of " + generation)
              : printable_name(device.name),
          count_of(device.num_kernels, "kernel"), file.empty() ? "" : "  of " + file));
    }
  }
  return section;
}

Section findings_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  section.advice =
      advice_of(metrics, options, options.is_terminal ? options.num_findings : SIZE_MAX);
  const auto num_savings = std::ranges::count_if(
      section.advice, [](const AdviceCell& advice) { return advice.saving_ns.has_value(); });
  if (!options.is_terminal && num_savings > 1) {
    section.paragraphs.push_back(order_words());
  }
  if (const std::size_t rest = metrics.findings.size() - section.advice.size(); rest > 0) {
    section.notes.push_back(fmt::format("{} more: --top all", rest));
  }
  if (options.is_terminal && options.gpu_hour_price && num_savings > 0) {
    section.notes.push_back(worth_line(metrics, *options.gpu_hour_price));
  }
  // A blocker saves nothing by itself: the section then says what to do.
  if (!section.advice.empty() && std::ranges::all_of(section.advice, &AdviceCell::is_blocker)) {
    section.title = "What to do first";
  }
  if (options.is_verbose) {
    for (const SilentRule& rule : metrics.silent_rules) {
      section.notes.push_back(
          fmt::format("{}: not checked ({})", word_of(rule.id), printable(rule.reason)));
    }
  }
  if (section.advice.empty() && section.notes.empty()) {
    section.missing = fmt::format(
        "n/a (no rule found anything; {} could not be checked, analyze --verbose lists them)",
        metrics.silent_rules.size());
  }
  return section;
}

// What to do, without the evidence: for a reader who trusts the rules.
Section recommendations_section(const Results& metrics, const SectionOptions& options) {
  constexpr std::size_t kMost = 5;
  Section section;
  std::set<std::string> told;  // two GPUs want the same thing done once
  for (const AdviceCell& advice : advice_of(metrics, options, kMost)) {
    if (told.insert(advice.next).second) {
      const std::string worth = worth_text(advice, "", " (saves at most ");
      section.paragraphs.push_back(
          fmt::format("{}: {}{}{}", advice.id, advice.next, worth, worth.empty() ? "" : ")"));
    }
  }
  if (section.paragraphs.empty()) {
    section.missing = fmt::format(
        "n/a (no rule found anything worth fixing; {} could not be checked); hardware counters and a "
        "model show more: gpuwhy run on a GPU, gpuwhy analyze --model NAME",
        metrics.silent_rules.size());
  }
  return section;
}

Section environment_section(const Results& metrics, const SectionOptions& /*options*/) {
  using M = Results;
  using E = Environment;
  using C = CaptureRow;
  Section section;
  const auto add = [&](const std::string& label, const char* reason, CellFormat unit,
                       auto... members) {
    ReportValue value = value_at(metrics, unit, members...);
    // An empty text is a fact that is not known.
    if (value.text() != nullptr && value.text()->empty()) {
      value.value = {};
    }
    section.facts.push_back({label, value, reason});
  };
  constexpr const char* kNotNoted = "gpuwhy run records it";
  add("command", kNotNoted, CellFormat::kText, &M::capture, &C::command);
  add("operating system", kNotNoted, CellFormat::kText, &M::environment, &E::distribution);
  add("CPU", kNotNoted, CellFormat::kText, &M::environment, &E::cpu);
  add("memory", kNotNoted, CellFormat::kBytes, &M::environment, &E::memory_bytes);
  add("container", "none was found", CellFormat::kText, &M::environment, &E::container);
  add("NVIDIA driver", "none is loaded, or not noted", CellFormat::kText, &M::environment,
      &E::driver_version);
  add("recording", "there is none", CellFormat::kText, &M::capture, &C::format_name);
  add(tool_of(metrics), "the recording does not say", CellFormat::kText, &M::capture,
      &C::tool_version);
  add("Nsight Compute", metrics.counters ? "the export does not say" : "needs an ncu capture",
      CellFormat::kText, &M::counters, &CountersRow::tool_version);
  add("model", "none was named", CellFormat::kText, &M::efficiency, &Efficiency::model);
  if (std::ranges::count(metrics.data_quality, kModelMismatch, &Diagnostic::kind) > 0) {
    section.facts.back().value.value = {};
    section.facts.back().reason = "the one that was named is not the recorded one";
  }
  using Row = DeviceRow;
  section.tables.push_back(table_of(rows_at(metrics, &M::devices),
                                    {{"GPU", CellFormat::kText, &Row::device},
                                     {"name", CellFormat::kName, &Row::name},
                                     {"busy", CellFormat::kDuration, &Row::busy_ns},
                                     {"kernels", CellFormat::kCount, &Row::num_kernels}}));
  if (section.tables[0].rows.empty()) {
    section.notes.emplace_back(has_gpu_work(metrics) ? "GPUs: n/a (the recording names none)"
                                                     : "GPUs: n/a (none worked in the recording)");
  }
  return section;
}

// Figures of the whole run; those that need marks say so.
Section aggregates_section(const Results& metrics, const SectionOptions& /*options*/) {
  using A = Latencies;
  using C = CaptureRow;
  Section section;
  if (!metrics.aggregates.source.empty()) {
    section.paragraphs.push_back("Stage times are from " + printable(metrics.aggregates.source) +
                                 ".");
  }
  // A recording of training has none of them: one line says so.
  if (makes_tokens(metrics)) {
    add_latency(metrics, &A::ttft, "time to first token", section);
    add_latency(metrics, &A::tpot, "time per output token", section);
    section.facts.push_back(
        {"tokens per second in decode",
         value_at(metrics, CellFormat::kRate, &Results::aggregates, &A::decode_tokens_per_s),
         no_rate_reason(metrics)});
    section.facts.push_back(
        {"sequences per decode step",
         value_at(metrics, CellFormat::kCount, &Results::aggregates, &A::decode_sequences),
         "the marks do not say"});
  } else {
    section.notes.emplace_back(
        "Time to first token and per output token: n/a, no prefill or decode is marked.");
  }
  if (metrics.aggregates.program_ns) {
    section.facts.push_back(
        {"program, unprofiled",
         value_at(metrics, CellFormat::kDuration, &Results::aggregates, &A::program_ns), ""});
  }
  const auto add = [&](const char* label, auto member) {
    section.facts.push_back(
        {label, value_at(metrics, CellFormat::kDuration, &Results::capture, member), ""});
  };
  add("recorded", &C::duration_ns);
  if (metrics.capture.duration_ns == 0 && has_gpu_work(metrics)) {
    section.facts.back().value.value = {};
    section.facts.back().reason = "a summary of kernels has no times";
  }
  add("kernel time", &C::kernel_ns);
  add("kernel time in no stage", &C::unattributed_kernel_ns);
  return section;
}

// What limits the trust in the figures: lost events, unknown kernels, broken capture contracts, and
// the tool's own messages.
Section quality_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  for (const Diagnostic& row : metrics.data_quality) {
    section.notes.push_back(printable(row.sentence));
  }
  if (!metrics.unmatched_names.empty()) {
    std::string rule;
    for (const std::string& name : metrics.unmatched_names) {
      rule += (rule.empty() ? "\"" : ", \"") + printable(name).substr(0, 60) + "\"";
    }
    section.notes.push_back(
        "Kernels of unknown families take more than 10 % of the time. A file for --rules can name them: "
        "families: [{family: NAME, words: [" +
        rule + "]}]");
  }
  for (const BreachRow& breach : metrics.contract.value_or(std::vector<BreachRow>())) {
    section.notes.push_back(fmt::format("{} ({}): {}", printable(breach.reason),
                                        printable(breach.pass), printable(breach.sentence)));
  }
  const bool has_messages = !options.is_terminal || options.is_verbose;
  if (has_messages) {
    for (const std::string& message : metrics.tool_messages) {
      section.notes.push_back(tool_of(metrics) + ": " + printable(message));
    }
  }
  if (section.notes.empty()) {
    section.missing = metrics.capture.kernel_ns > 0 || !metrics.copies.empty()
                          ? "Nothing is missing or odd"
                          : "n/a (no GPU work was recorded that could be incomplete)";
    if (!metrics.tool_messages.empty()) {
      section.missing +=
          fmt::format("; {} left {}, which -v lists", tool_of(metrics),
                      count_of(static_cast<std::int64_t>(metrics.tool_messages.size()), "message"));
    }
  }
  return section;
}

Section files_section(const Results& /*metrics*/, const SectionOptions& options) {
  Section section;
  section.links = options.files;
  if (section.links.empty()) {
    section.missing =
        "n/a (only the report was written); gpuwhy analyze --out DIR writes the other files";
  }
  return section;
}

}  // namespace gpuwhy
