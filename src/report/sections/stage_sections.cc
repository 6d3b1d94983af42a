// SPDX-License-Identifier: Apache-2.0
//
// Sections on stages: durations, time ledger, efficiency.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "report/document/member_table.h"
#include "report/sections/section_makers.h"
#include "report/words/glossary.h"

namespace gpuwhy {
namespace {

constexpr const char* kHowToMark =
    "mark the stages of the program (docs/marking.md) and record with gpuwhy run";

const RowName kVision{RowKind::kStage, "vision"};

// Vision is a note inside prefill, never a separate row.
template <typename Row>
bool is_not_vision(const Row& row) {
  return row.stage != kVision;
}

std::string duration_text(double ns) {
  return shown({ns, CellFormat::kDuration, ""});
}

std::string ratio_text(const std::optional<double>& value) {
  return shown({cell_of(value), CellFormat::kSmallRatio, ""});
}

template <typename Row>
const Row* row_of(const std::vector<Row>& rows, const RowName& stage) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.stage == stage; });
  return row == rows.end() ? nullptr : &*row;
}

// "cuda:0 computes 45.0 % of its window; waiting for CPU launch takes 30.0 %".
std::string ledger_words(const Results& metrics, const RowName& stage) {
  const LedgerRow* row = row_of(metrics.ledgers, stage);
  if (row == nullptr) {
    return "its GPU time is n/a (no GPU activity was recorded)";
  }
  const auto share = [&](std::int64_t part_ns) {
    return format_fraction(fraction_of(part_ns, row->window_ns));
  };
  // The largest one except `compute`, which comes first.
  const auto worst = std::max_element(row->buckets_ns.begin() + 1, row->buckets_ns.end());
  const auto bucket = static_cast<std::size_t>(worst - row->buckets_ns.begin());
  return fmt::format("{} computes {} of its window{}", printable_name(row->device),
                     share((*row)[Bucket::kCompute]),
                     *worst <= 0 ? ""
                                 : fmt::format("; {} takes {}", bucket_label(kBucketNames[bucket]),
                                               share(*worst)));
}

std::string efficiency_words(const Results& metrics, const RowName& stage) {
  const StageEfficiency* row =
      metrics.efficiency ? row_of(metrics.efficiency->stages, stage) : nullptr;
  if (row == nullptr) {
    return "";
  }
  if (!row->mfu.wall_fraction) {
    return "; MFU and MBU n/a (" + printable(row->reason) + ")";
  }
  return fmt::format("; MFU {}, MBU {}: {}", ratio_text(row->mfu.wall_fraction),
                     ratio_text(row->mbu.wall_fraction), printable(row->verdict));
}

void add_fit(const StepFit& fit, std::vector<std::string>& notes) {
  std::string text = fmt::format("a decode step takes {}", duration_text(fit.fixed_ns));
  if (fit.per_token_ns) {
    text += fmt::format(" + {:.4g} ns per token", *fit.per_token_ns);
  }
  if (fit.per_kv_token_ns) {
    text += fmt::format(" + {:.4g} ns per token attended to", *fit.per_kv_token_ns);
  }
  notes.push_back(text + fmt::format(" (fit over {} steps, R2 {:.2f}, {} outliers)", fit.num_steps,
                                     fit.r_squared, fit.num_outliers));
  for (const StepOutlier& outlier : fit.outliers) {
    notes.push_back(fmt::format("step {} took {}, {} expected", outlier.step,
                                duration_text(static_cast<double>(outlier.measured_ns)),
                                duration_text(outlier.fitted_ns)));
  }
}

void add_texts(const std::vector<std::string>& texts, const char* prefix,
               std::vector<std::string>& notes) {
  for (const std::string& text : texts) {
    notes.push_back(prefix + printable(text));
  }
}

ReportTable baseline_table(const Results& metrics) {
  using Row = StageTimes;
  return table_of(rows_at(metrics, &Results::baseline),
                  {{"stage", CellFormat::kName, &Row::stage},
                   {"n", CellFormat::kCount, &Row::n},
                   {"mean", CellFormat::kDuration, &Row::mean_ns},
                   {"std", CellFormat::kDuration, &Row::std_ns},
                   {"p50", CellFormat::kDuration, &Row::p50_ns},
                   {"p99", CellFormat::kDuration, &Row::p99_ns},
                   {"steady mean", CellFormat::kDuration, &Row::steady_mean_ns},
                   {"tokens/s", CellFormat::kRate, &Row::tokens_per_s}},
                  SIZE_MAX, is_not_vision<Row>);
}

ReportTable stage_table(const Results& metrics) {
  using Row = StageRow;
  return table_of(rows_at(metrics, &Results::stages),
                  {{"stage", CellFormat::kName, &Row::stage},
                   {"n", CellFormat::kCount, &Row::num_instances},
                   {"CPU total", CellFormat::kDuration, &Row::total_ns},
                   {"median", CellFormat::kDuration, &Row::median_ns},
                   {"max", CellFormat::kDuration, &Row::max_ns},
                   {"steady mean", CellFormat::kDuration, &Row::steady_mean_ns},
                   {"kernels", CellFormat::kCount, &Row::num_kernels},
                   {"kernel time", CellFormat::kDuration, &Row::kernel_ns},
                   {"tokens", CellFormat::kCount, &Row::tokens}},
                  SIZE_MAX, is_not_vision<Row>);
}

// "decode: step time 9.82 ms (period), CPU range 1.00 ms, GPU window 9.82 ms (medians)". The first
// is the one that summaries and comparisons give.
void add_step_lengths(const Results& metrics, std::vector<std::string>& notes) {
  const auto text = [](const std::optional<std::int64_t>& ns) {
    return ns ? duration_text(static_cast<double>(*ns)) : std::string("n/a");
  };
  for (const StepRow& row : metrics.steps) {
    const StageRow* stage = row_of(metrics.stages, row.stage);
    if (stage != nullptr && row.gpu_window_median_ns && row.period_median_ns) {
      notes.push_back(
          fmt::format("{}: step time {} (period), CPU range {}, GPU window {} (medians)",
                      printable_name(row.stage.text()), text(row.period_median_ns),
                      text(stage->median_ns), text(row.gpu_window_median_ns)));
    }
  }
}

// "time per output token 9.82 ms (period of steps on the GPU, decode 1 to 39 of 40); 6515 tokens/s
// in 64 sequences".
void add_token_time(const Latencies& aggregates, std::vector<std::string>& notes) {
  if (!aggregates.tpot.p50_ns || aggregates.tpot.basis.empty()) {
    return;
  }
  std::string text = fmt::format("time per output token {} ({})",
                                 duration_text(static_cast<double>(*aggregates.tpot.p50_ns)),
                                 printable(aggregates.tpot.basis));
  if (aggregates.decode_tokens_per_s) {
    text += fmt::format("; {:.1f} tokens/s", *aggregates.decode_tokens_per_s);
    if (aggregates.decode_sequences) {
      text += fmt::format(" in {} sequence{}", *aggregates.decode_sequences,
                          *aggregates.decode_sequences == 1 ? "" : "s");
    }
  }
  notes.push_back(std::move(text));
}

// Which processes count as one, where several mark steps.
void add_groups(const Results& metrics, std::vector<std::string>& notes) {
  const std::vector<RankGroupSummary> groups =
      metrics.rank_groups.value_or(std::vector<RankGroupSummary>());
  constexpr std::size_t kMostGroups = 8;
  std::size_t num_processes = 0;
  for (const RankGroupSummary& group : groups) {
    num_processes += group.pids.size();
  }
  if (num_processes < 2) {
    return;
  }
  for (std::size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i) {
    const RankGroupSummary& group = groups[i];
    notes.push_back(
        fmt::format("{} process{} from pid {} on {} GPU{}: {} steps, each counted once{}{}",
                    group.pids.size(), group.pids.size() == 1 ? "" : "es", group.pids.front(),
                    group.devices.size(), group.devices.size() == 1 ? "" : "s", group.num_steps,
                    group.why.empty() ? "" : "; ", printable(group.why)));
  }
  if (groups.size() > kMostGroups) {
    notes.push_back(fmt::format("{} more groups of ranks: rank_groups in metrics.json",
                                groups.size() - kMostGroups));
  }
}

std::string vision_note(std::int64_t times, std::int64_t total_ns, const char* where) {
  return fmt::format("vision is part of prefill: {} {}, {} in total{}", times,
                     times == 1 ? "instance" : "instances",
                     duration_text(static_cast<double>(total_ns)), where);
}

// "llama-8b on 2 x H100: peak ..."
std::string efficiency_title(const Efficiency& efficiency) {
  const std::string model = printable_name(efficiency.model);
  if (efficiency.gpu.empty()) {
    return fmt::format("{} on n/a ({})", model, printable(efficiency.reason));
  }
  const auto rate = [](const std::optional<double>& value, double unit, const char* name) {
    return value ? fmt::format("{:g} {}", *value / unit, name) : std::string("n/a");
  };
  return fmt::format("{} on {} x {}: peak {} dense {}, {} per GPU", model, efficiency.num_gpus,
                     printable_name(efficiency.gpu), rate(efficiency.flops_per_s, 1e12, "TFLOP/s"),
                     printable(efficiency.dtype), rate(efficiency.bytes_per_s, kGB, "GB/s"));
}

ReportTable efficiency_table(const Results& metrics) {
  using Row = StageEfficiency;
  return table_of(rows_at(metrics, &Results::efficiency, &Efficiency::stages),
                  {{"stage", CellFormat::kName, &Row::stage},
                   {"passes", CellFormat::kCount, &Row::passes},
                   {"MFU", CellFormat::kSmallRatio, &Row::mfu, &TwoClocks::wall_fraction},
                   {"MBU", CellFormat::kSmallRatio, &Row::mbu, &TwoClocks::wall_fraction},
                   {"of roofline", CellFormat::kSmallRatio, &Row::sol, &TwoClocks::wall_fraction},
                   {"while busy", CellFormat::kSmallRatio, &Row::sol, &TwoClocks::busy_fraction},
                   {"time per pass", CellFormat::kDuration, &Row::pass_ns},
                   {"minimum time", CellFormat::kDuration, &Row::pass_bound_ns},
                   {"FLOP", CellFormat::kFlops, &Row::flops},
                   {"bytes", CellFormat::kBytes, &Row::bytes},
                   {"verdict", CellFormat::kText, &Row::verdict}});
}

// What to type where no stage is marked.
ReportTable possible_marks_table(const Results& metrics) {
  using Row = PossibleMark;
  ReportTable table = table_of(rows_at(metrics, &Results::possible_marks),
                               {{"GPU time", CellFormat::kDuration, &Row::kernel_ns},
                                {"instances", CellFormat::kCount, &Row::instances},
                                {"total", CellFormat::kDuration, &Row::host_ns},
                                {"option", CellFormat::kName, &Row::option}});
  table.title = "Ranges that could be stages; add the option, with the stage that fits";
  return table;
}

}  // namespace

Section baseline_section(const Results& metrics, const SectionOptions& /*options*/) {
  Section section;
  section.tables.push_back(baseline_table(metrics));
  if (section.tables[0].rows.empty()) {
    section.missing = fmt::format("n/a (no stage was timed unprofiled); {}", kHowToMark);
  }
  return section;
}

// One row would repeat the stage's own.
ReportTable composition_table(const Results& metrics) {
  using Row = Composition;
  ReportTable table = table_of(rows_at(metrics, &Results::compositions),
                               {{"stage", CellFormat::kName, &Row::stage},
                                {"sequences", CellFormat::kText, &Row::sequences},
                                {"steps", CellFormat::kCount, &Row::num_steps},
                                {"tokens", CellFormat::kCount, &Row::tokens},
                                {"context", CellFormat::kCount, &Row::mean_context},
                                {"period", CellFormat::kDuration, &Row::period_median_ns},
                                {"MFU", CellFormat::kSmallRatio, &Row::mfu_fraction},
                                {"MBU", CellFormat::kSmallRatio, &Row::mbu_fraction}});
  table.title = "Steps by their number of sequences";
  return table;
}

// With and without a profiler: the difference is the profiler's overhead.
Section stages_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  ReportTable stages = stage_table(metrics);
  const bool is_empty = metrics.stages.size() == 1 &&
                        metrics.stages[0].stage.kind == RowKind::kUnmarked &&
                        metrics.stages[0].total_ns == 0;
  if (!stages.rows.empty() && !is_empty) {
    stages.title = fmt::format("From the recording ({})", printable(metrics.capture.stage_source));
    section.tables.push_back(std::move(stages));
  }
  for (const StageRow& stage : metrics.stages) {
    if (metrics.capture.window && stage.num_open > 0) {
      section.notes.push_back(
          fmt::format("{}: {} of {} are cut off by the window and not counted above",
                      printable_name(stage.stage.text()), stage.num_open, stage.num_instances));
    }
  }
  if (!metrics.possible_marks.empty()) {
    section.tables.push_back(possible_marks_table(metrics));
  }
  if (metrics.compositions.size() > metrics.stages.size()) {
    section.tables.push_back(composition_table(metrics));
  }
  ReportTable baseline = baseline_table(metrics);
  if (!baseline.rows.empty() && !options.is_terminal) {
    baseline.title = "Unprofiled";
    section.tables.push_back(std::move(baseline));
  }
  add_step_lengths(metrics, section.notes);
  add_token_time(metrics.aggregates, section.notes);
  add_groups(metrics, section.notes);
  if (const StageRow* vision = row_of(metrics.stages, kVision)) {
    section.notes.push_back(vision_note(vision->num_instances, vision->total_ns, ""));
  }
  if (const StageTimes* vision = metrics.baseline ? row_of(*metrics.baseline, kVision) : nullptr) {
    section.notes.push_back(vision_note(vision->n, vision->total_ns, " unprofiled"));
  }
  if (section.tables.empty()) {
    section.missing = fmt::format("n/a (no stage was timed); {}", kHowToMark);
  }
  return section;
}

Section overhead_section(const Results& metrics, const SectionOptions& /*options*/) {
  using Row = StageOverhead;
  Section section;
  section.tables.push_back(
      table_of(rows_at(metrics, &Results::overhead),
               {{"stage", CellFormat::kName, &Row::stage},
                {"unprofiled mean", CellFormat::kDuration, &Row::baseline_mean_ns},
                {"profiled mean", CellFormat::kDuration, &Row::profiled_mean_ns},
                {"added", CellFormat::kFraction, &Row::fraction},
                {"from", CellFormat::kFraction, &Row::low_fraction},
                {"to", CellFormat::kFraction, &Row::high_fraction}}));
  for (const StageOverhead& row : metrics.overhead.value_or(std::vector<StageOverhead>())) {
    if (!row.reason.empty()) {
      section.notes.push_back(fmt::format("{}: the overhead is not measurable ({})",
                                          printable(row.stage.text()), printable(row.reason)));
    }
  }
  if (section.tables[0].rows.empty()) {
    section.missing =
        metrics.contract
            ? "n/a (no stage was timed in both passes, baseline and nsys)"
            : "n/a (needs a pass without a profiler and one with nsys); gpuwhy run makes both";
  }
  return section;
}

Section host_phases_section(const Results& metrics, const SectionOptions& options) {
  using Row = HostPhase;
  Section section;
  section.tables.push_back(table_of(rows_at(metrics, &Results::host_phases),
                                    {{"phase", CellFormat::kName, &Row::phase},
                                     {"instances", CellFormat::kCount, &Row::count},
                                     {"CPU time", CellFormat::kDuration, &Row::host_ns},
                                     {"GPU time launched", CellFormat::kDuration, &Row::kernel_ns}},
                                    options.top));
  if (section.tables[0].rows.empty()) {
    section.missing = "n/a (no phase of a step was marked)";
  }
  const bool lacks_backward = std::ranges::any_of(metrics.host_phases, [](const HostPhase& phase) {
    return phase.phase.find("backward") != std::string::npos && phase.kernel_ns == 0;
  });
  if (lacks_backward) {
    section.notes.emplace_back(
        "GPU time launched by the phase's own thread: PyTorch launches the backward pass from another, "
        "and this recording does not show for which phase.");
  }
  return section;
}

namespace {

// Divides the time in which the GPU waited for a launch by what the CPU did instead.
void split_launch_late(const Results& metrics, const LedgerRow& row, TimeParts& parts) {
  const auto late = std::find_if(parts.begin(), parts.end(),
                                 [](const auto& part) { return part.first == "launch_late"; });
  if (late == parts.end()) {
    return;
  }
  std::map<std::string, std::int64_t> by_kind;
  for (const IdleRow& cause : metrics.idle_causes) {
    if (cause.stage == row.stage && cause.device == row.device &&
        cause.bucket == Bucket::kLaunchLate && cause.kind != IdleKind::kLaunching &&
        cause.kind != IdleKind::kWaiting) {
      by_kind["launch_late." + text_of_member(cause.kind)] += cause.total_ns;
      late->second -= cause.total_ns;
    }
  }
  parts.insert(parts.end(), by_kind.begin(), by_kind.end());
}

// Parts of a recording that no mark names, in the words of the verdict; stages keep their names.
std::string scope_words(const RowName& scope) {
  switch (scope.kind) {
    case RowKind::kRecording:
      return "whole recording";
    case RowKind::kStartup:
      return "start-up";
    case RowKind::kSteady:
      return "steady phase";
    case RowKind::kEnding:
      return "after the end";
    default:
      return scope.text();
  }
}

}  // namespace

Section ledger_section(const Results& metrics, const SectionOptions& /*options*/) {
  using Row = LedgerRow;
  Section section;
  // The stage `all` is the same as the capture.
  section.tables.push_back(
      table_of(rows_at(metrics, &Results::ledgers),
               {{"stage", CellFormat::kName, &Row::stage},
                {"GPU", CellFormat::kText, &Row::device},
                {"window", CellFormat::kDuration, &Row::window_ns},
                {"shares", CellFormat::kShares, &Row::buckets_ns}},
               SIZE_MAX, [](const Row& row) { return row.stage.kind != RowKind::kUnmarked; }));
  std::size_t next = 0;
  for (const LedgerRow& row : metrics.ledgers) {
    if (row.stage.kind != RowKind::kUnmarked) {
      std::vector<ReportValue>& cells = section.tables[0].rows[next++].cells;
      cells.front().value = scope_words(row.stage);
      split_launch_late(metrics, row, std::get<TimeParts>(cells.back().value));
    }
  }
  if (section.tables[0].rows.empty()) {
    section.missing =
        "n/a (no GPU activity with times was recorded); gpuwhy doctor says what a recording needs";
  }
  return section;
}

Section efficiency_section(const Results& metrics, const SectionOptions& /*options*/) {
  Section section;
  if (!metrics.efficiency) {
    section.missing =
        "n/a (no model was named); gpuwhy analyze BUNDLE --model NAME, names are those of gpuwhy "
        "list models, or a path to a config.json or GGUF";
    return section;
  }
  const Efficiency& efficiency = *metrics.efficiency;
  section.paragraphs.push_back(efficiency_title(efficiency));
  if (ReportTable table = efficiency_table(metrics); table.rows.empty()) {
    section.notes.push_back(
        fmt::format("n/a: no prefill, decode, mixed or verify is marked; {}", kHowToMark));
  } else {
    section.tables.push_back(std::move(table));
  }
  // A reason that holds for all stages is not repeated for each.
  for (const StageEfficiency& row : efficiency.stages) {
    const std::string stage = printable_name(row.stage.text());
    if (!row.reason.empty() && row.reason != efficiency.reason) {
      section.notes.push_back(fmt::format("{}: n/a ({})", stage, printable(row.reason)));
    }
    if (row.mean_context > 0) {
      section.notes.push_back(fmt::format("{}: mean context {:.1f}", stage, row.mean_context));
    }
  }
  if (efficiency.fit) {
    add_fit(*efficiency.fit, section.notes);
  }
  add_texts(efficiency.errors, "error: ", section.notes);
  add_texts(efficiency.notes, "note: ", section.notes);
  return section;
}

Section takeaways_section(const Results& metrics, const SectionOptions& /*options*/) {
  Section section;
  for (const StageRow& row : metrics.stages) {
    if (is_not_vision(row) && !row.is_nested) {
      section.paragraphs.push_back(fmt::format(
          "{}: {} instance{}, {} of CPU time in total; {}{}.", printable_name(row.stage.text()),
          row.num_instances, row.num_instances == 1 ? "" : "s",
          duration_text(static_cast<double>(row.total_ns)), ledger_words(metrics, row.stage),
          efficiency_words(metrics, row.stage)));
    }
  }
  if (section.paragraphs.empty()) {
    section.missing = fmt::format("n/a (no stage was recorded); {}", kHowToMark);
  }
  return section;
}

}  // namespace gpuwhy
