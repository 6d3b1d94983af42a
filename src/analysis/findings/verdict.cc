// SPDX-License-Identifier: Apache-2.0
//
// The one-sentence verdict: the largest waste of the busiest GPU, or why there is no result.
//
// A blocker comes before any figure that it invalidates. Start-up and what follows the last work of
// the model are named and left out: no step is faster without them.
#include <algorithm>

#include <fmt/format.h>

#include "analysis/findings/findings.h"
#include "analysis/idle/busy_row.h"
#include "analysis/idle/host_chain.h"
#include "analysis/stages/capture_summary.h"
#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// Something that kept a GPU from computing.
struct Waste {
  std::int64_t time_ns = 0;
  std::string words;  // takes the share
};

// " (cudaMalloc)" or " ('IO N')", where one has most of the time.
std::string name_of(const KindOfGaps& gaps) {
  return !gaps.call.empty()    ? fmt::format(" ({})", printable_name(gaps.call))
         : !gaps.scope.empty() ? fmt::format(" ('{}')", printable_name(gaps.scope))
                               : "";
}

std::vector<Waste> wastes_of(const Analysis& analysis, const LedgerRow& row) {
  const HostChain chain(row, causes_of(analysis.idle_causes, row));
  const Ledger& ledger = row;
  const auto kind = [&](IdleKind of) { return chain[of].total_ns; };
  const auto name = [&](IdleKind of) { return name_of(chain[of]); };
  std::vector<Waste> wastes = {
      {ledger[Bucket::kStartedLate],
       "{} of the time its next kernel started long after it was launched"},
      {ledger[Bucket::kQueued],
       "{} of the time its next kernel was launched but blocked by other GPU work"},
      {ledger.between_ns,
       "{} of the time no GPU work was recorded although the CPU was waiting for it"},
      {ledger[Bucket::kGraph], "it was idle {} of the time between nodes of CUDA graphs"},
      {ledger[Bucket::kComm], "{} of the time it was communicating without computing"},
      {ledger[Bucket::kCopy], "{} of the time it was copying memory with no kernel running"},
      {kind(IdleKind::kHostWork),
       "it waited {} of the time while the CPU did other work" + name(IdleKind::kHostWork)},
      {kind(IdleKind::kFirstUse),
       "{} of the time it waited for modules to be loaded or compiled, once" +
           name(IdleKind::kFirstUse)},
      {kind(IdleKind::kAllocating), "it waited {} of the time for memory to be allocated or freed" +
                                        name(IdleKind::kAllocating)},
      {kind(IdleKind::kBlocked),
       "it waited {} of the time for a long API call" + name(IdleKind::kBlocked)},
  };
  if (chain.waits_hold_back()) {
    // Most of it is booked where the launch was late: the words name both.
    const bool is_late = kind(IdleKind::kLaunching) > kind(IdleKind::kWaiting);
    wastes.push_back({kind(IdleKind::kWaiting) + kind(IdleKind::kLaunching),
                      (is_late ? "it waited {} of the time for launches that were late because the "
                                 "CPU had waited for it"
                               : "it was idle {} of the time because the CPU waited for it") +
                          name(IdleKind::kWaiting)});
  } else {
    wastes.push_back(
        {kind(IdleKind::kLaunching), "it waited {} of the time for the CPU to launch kernels"});
    wastes.push_back(
        {kind(IdleKind::kWaiting),
         "it was idle {} of the time while the CPU was still waiting for earlier work" +
             name(IdleKind::kWaiting)});
  }
  return wastes;
}

// What the GPU did most while it did not compute, if that is a tenth of `time_ns` or more.
std::string largest_waste(const Analysis& analysis, const LedgerRow& row, std::int64_t time_ns) {
  const std::vector<Waste> wastes = wastes_of(analysis, row);
  const Waste& largest =
      *std::max_element(wastes.begin(), wastes.end(),
                        [](const Waste& a, const Waste& b) { return a.time_ns < b.time_ns; });
  if (largest.time_ns * 10 < time_ns) {
    return "";
  }
  // A name may hold braces: only the words are a format.
  const std::size_t place = largest.words.find("{}");
  return fmt::format("; {}{}{}", largest.words.substr(0, place),
                     format_fraction(fraction_of(largest.time_ns, time_ns)),
                     largest.words.substr(place + 2));
}

// Whether the GPU is busy before the first step with kernels whose launch was not recorded.
bool is_earlier_work(const Analysis& analysis, const LedgerRow& start) {
  return has_diagnostic(analysis.data_quality, "orphan_kernel") &&
         start[Bucket::kCompute] * 5 > start.window_ns * 4;
}

// ", of which 1.20 s of start-up and 0.30 s after the last work are left out".
std::string left_out(const Analysis& analysis, const std::string& device, std::int64_t before_ns,
                     std::int64_t after_ns) {
  std::vector<std::string> parts;
  const auto add = [&](std::int64_t time_ns, const std::string& what) {
    if (time_ns > 0) {
      parts.push_back(format_duration_ns(time_ns) + what);
    }
  };
  const LedgerRow* start = row_of(analysis, {RowKind::kStartup}, device);
  const LedgerRow* end = row_of(analysis, {RowKind::kEnding}, device);
  const auto with_call = [](const LedgerRow* row, const char* what) {
    return row == nullptr || row->main_call.empty()
               ? std::string(what)
               : fmt::format("{} ({} in {})", what, format_duration_ns(row->main_call_ns),
                             printable_name(row->main_call));
  };
  add(start == nullptr ? 0 : start->window_ns, start != nullptr && is_earlier_work(analysis, *start)
                                                   ? " of work launched before the recording"
                                                   : with_call(start, " of start-up"));
  add(before_ns, " without recorded GPU activity");
  const bool is_marked = std::ranges::any_of(
      analysis.stages, [](const StageRow& stage) { return !is_without_work(stage.stage); });
  add(end == nullptr ? 0 : end->window_ns,
      with_call(end, is_marked ? " after the last mark" : " after the model's last kernel"));
  add(after_ns, " after its last kernel");
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  return text.empty() ? "" : ", of which " + text + " are left out";
}

// The verdict on the busiest GPU.
Verdict verdict_on(const Analysis& analysis, const std::string& device) {
  const LedgerRow* row = busy_row_of(analysis, device);
  const LedgerRow* stage = only_stage(analysis, device);
  const LedgerRow* steady = row_of(analysis, {RowKind::kSteady}, device);
  if (row == nullptr) {
    return {Verdict::Kind::kBusy, "",
            fmt::format("{} of kernels ran on {}.", format_duration_ns(analysis.capture.kernel_ns),
                        device)};
  }
  const Ledger& ledger = *row;
  const std::int64_t time_ns = row->base_ns.value_or(0);
  // A twentieth of idle time around the work is not worth a sentence of its own.
  const auto counts = [&](std::int64_t part_ns) {
    return part_ns * 20 >= ledger.window_ns ? part_ns : 0;
  };
  const std::int64_t before_ns = counts(ledger.unrecorded_before_ns());
  const std::int64_t after_ns = stage != nullptr ? 0 : counts(ledger[Bucket::kTail]);
  const std::string length = format_duration_ns(time_ns);
  const bool is_all = length == format_duration_ns(ledger.window_ns);
  const std::string when = stage != nullptr ? fmt::format("the {} of {}", length, stage_words(*row))
                           : steady != nullptr ? fmt::format("its steady phase of {}", length)
                           : is_all            ? length + " recorded"
                                               : length;
  std::string text =
      fmt::format("was busy {} of {}{}.", format_fraction(row->busy_fraction.value_or(0)), when,
                  largest_waste(analysis, *row, time_ns));
  const std::string rest = left_out(analysis, device, before_ns, after_ns);
  if (steady != nullptr || !rest.empty()) {
    text +=
        fmt::format(" {} were recorded{}.", format_duration_ns(analysis.capture.duration_ns), rest);
  }
  return {Verdict::Kind::kBusy, device, std::move(text)};
}

bool has_range_profile(const Analysis& analysis) {
  return analysis.capture.kernel_ns == 0 &&
         has_diagnostic(analysis.data_quality, "range_profiling");
}

// The first finding, where its saving has a bound.
std::optional<Verdict::Top> top_of(const std::vector<Finding>& findings) {
  if (findings.empty() || findings.front().is_blocker || findings.front().saving_ns == 0) {
    return std::nullopt;
  }
  const Finding& first = findings.front();
  const auto speedup = first.speedup();
  return Verdict::Top{
      first.id, !speedup
                    ? "."
                    : fmt::format(", up to {} faster{}.", format_speedup(*speedup),
                                  first.confidence == Confidence::kLow ? " (low confidence)" : "")};
}

// Why there are no figures, where that is what a finding says: its place, or nowhere.
Verdict no_figures(const std::vector<Finding>& findings, FindingId blocker, std::string sentence) {
  const auto at = std::ranges::find(findings, blocker, &Finding::id);
  Verdict verdict{Verdict::Kind::kNoFigures, "", std::move(sentence)};
  if (at != findings.end()) {
    verdict.told = static_cast<std::size_t>(at - findings.begin());
  }
  return verdict;
}

// The same of a finding that says it best; nullopt: nothing was found that takes all meaning from
// the figures.
std::optional<Verdict> no_meaning(const std::vector<Finding>& findings,
                                  std::initializer_list<FindingId> ids) {
  for (const Finding& finding : findings) {
    if (finding.is_blocker && std::ranges::count(ids, finding.id) > 0) {
      return no_figures(findings, finding.id,
                        with_capital(finding.sentence) + ". It says nothing about speed.");
    }
  }
  return std::nullopt;
}

}  // namespace

Verdict verdict_of(const Analysis& analysis) {
  const CaptureInfo& capture = analysis.capture;
  const std::vector<Finding>& findings = analysis.findings;
  const auto without_kernels = [&](std::string sentence) {
    return no_figures(findings, FindingId::kNoGpuActivity, std::move(sentence));
  };
  if (!analysis.absent.empty()) {
    const std::string why = printable(analysis.absent);
    Verdict none = without_kernels(fmt::format("There is no recording: {}{}", why, full_stop(why)));
    none.kind = Verdict::Kind::kNoRecording;
    return none;
  }
  if (auto impossible = no_meaning(findings, {FindingId::kImpossibleRows})) {
    return *impossible;
  }
  if (!capture.has_cuda) {
    std::string text =
        "No CUDA activity was recorded, so there is nothing to report about the GPU.";
    for (const Diagnostic& diagnostic : analysis.data_quality) {
      if (diagnostic.kind == "cut_off") {
        return {.sentence = fmt::format(
                    "The recording is damaged, and no GPU activity precedes the damage: {}.",
                    printable(diagnostic.sentence))};
      }
    }
    for (const std::string& message : analysis.tool_messages) {
      if (message.find("CUDA") != std::string::npos) {
        text += fmt::format(" {} says: {}", capture.format.tool_id, printable(message));
        break;
      }
    }
    return without_kernels(text);
  }
  if (analysis.is_summary) {
    return {Verdict::Kind::kBusy, "",
            fmt::format("{} of kernels, from a summary without timestamps: stages, gaps and "
                        "devices are n/a.",
                        format_duration_ns(analysis.capture.kernel_ns))};
  }
  if (has_range_profile(analysis)) {
    return without_kernels(
        "No kernel was recorded: the profiler counted in ranges instead (CUPTI range profiling).");
  }
  if (analysis.capture.kernel_ns == 0) {
    return without_kernels(
        capture.has_kernel_table
            ? "Kernels were recorded, but none takes any time in the part that was asked for."
        : analysis.copies.empty()
            ? "CUDA calls were recorded, but no kernels: the work ran elsewhere, or kernel tracing failed."
            : "No kernel was recorded, only copies and memsets: this process launched none, or kernel "
              "tracing failed.");
  }
  if (analysis.capture.opaque_graph_ns * 2 > analysis.capture.kernel_ns) {
    return no_figures(
        findings, FindingId::kGraphOpaque,
        fmt::format("{} of GPU time is in CUDA graphs that were recorded as a whole: their kernels "
                    "are not visible. Record again with {}",
                    format_fraction(
                        fraction_of(analysis.capture.opaque_graph_ns, analysis.capture.kernel_ns)),
                    capture.format.record_graphs));
  }
  // While a graph is captured the GPU rests, and a sample leaves most work out: neither says
  // anything about the program's speed.
  if (auto meaningless = no_meaning(
          findings, {FindingId::kGraphCapture, FindingId::kCallsMissing, FindingId::kFewKernels})) {
    return *meaningless;
  }
  const auto busiest = std::max_element(
      analysis.devices.begin(), analysis.devices.end(),
      [](const DeviceRow& a, const DeviceRow& b) { return a.busy_ns < b.busy_ns; });
  Verdict verdict = verdict_on(analysis, busiest->device);
  verdict.top = top_of(findings);
  return verdict;
}

}  // namespace gpuwhy
