// SPDX-License-Identifier: Apache-2.0
//
// Stages: how long, where the time went, how much of what was possible.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

constexpr const char* kHowToMark =
    "mark the stages of the program (docs/marking.md) and record with llmprof run";

// A note inside prefill, never a row of its own.
bool is_vision(const Json& row) {
  return text_of(row, "stage") == "vision";
}

std::string duration_text(double ns) {
  return shown({Json(ns), Unit::kDuration, "", nullptr});
}

std::string ratio_text(const Json& value) {
  return shown({value, Unit::kSmallRatio, "", nullptr});
}

const Json* row_of(const Json& rows, const std::string& stage) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Json& r) { return text_of(r, "stage") == stage; });
  return row == rows.end() ? nullptr : &*row;
}

// "computes 45.0 % of its window on cuda:0; launch_late takes 30.0 %".
std::string ledger_words(const Json& metrics, const std::string& stage) {
  const Json* row = row_of(rows_of(metrics, "ledgers"), stage);
  if (row == nullptr) {
    return "its GPU time is n/a (no GPU activity was recorded)";
  }
  const auto whole = integer_of(*row, "window_ns");
  std::string worst;
  std::int64_t worst_ns = 0;
  for (const auto& [bucket, time] : field_of(*row, "buckets_ns").items()) {
    if (bucket != "compute" && time.is_number_integer() && time.get<std::int64_t>() > worst_ns) {
      worst = bucket;
      worst_ns = time.get<std::int64_t>();
    }
  }
  return fmt::format("{} computes {} of its window{}", text_of(*row, "device"),
                     format_fraction(fraction_of(integer_of(*row, "buckets_ns.compute"), whole)),
                     worst.empty() ? ""
                                   : fmt::format("; {} takes {}", worst,
                                                 format_fraction(fraction_of(worst_ns, whole))));
}

std::string efficiency_words(const Json& metrics, const std::string& stage) {
  const Json* row = row_of(rows_of(metrics, "efficiency.stages"), stage);
  if (row == nullptr) {
    return "";
  }
  if (field_of(*row, "mfu.wall_fraction").is_null()) {
    return "; MFU and MBU n/a (" + text_of(*row, "reason") + ")";
  }
  return fmt::format("; MFU {}, MBU {}: {}", ratio_text(field_of(*row, "mfu.wall_fraction")),
                     ratio_text(field_of(*row, "mbu.wall_fraction")), text_of(*row, "verdict"));
}

void add_fit(const Json& fit, std::vector<std::string>& notes) {
  std::string text =
      fmt::format("a decode step takes {}", duration_text(number_of(fit, "fixed_ns")));
  if (!field_of(fit, "per_token_ns").is_null()) {
    text += fmt::format(" + {:.4g} ns a token", number_of(fit, "per_token_ns"));
  }
  if (!field_of(fit, "per_kv_token_ns").is_null()) {
    text += fmt::format(" + {:.4g} ns a token attended to", number_of(fit, "per_kv_token_ns"));
  }
  notes.push_back(text + fmt::format(" (fit over {} steps, R2 {:.2f}, {} outliers)",
                                     integer_of(fit, "steps"), number_of(fit, "r_squared"),
                                     integer_of(fit, "num_outliers")));
  for (const Json& outlier : rows_of(fit, "outliers")) {
    notes.push_back(fmt::format("step {} took {}, {} expected", integer_of(outlier, "step"),
                                duration_text(number_of(outlier, "measured_ns")),
                                duration_text(number_of(outlier, "fitted_ns"))));
  }
}

void add_texts(const Json& texts, const char* prefix, std::vector<std::string>& notes) {
  for (const Json& text : texts) {
    notes.push_back(prefix + text_of({{"text", text}}, "text"));
  }
}

ReportTable baseline_table(const Json& metrics) {
  return table_of(metrics, "baseline",
                  {{"stage", "stage", Unit::kName},
                   {"n", "n", Unit::kCount},
                   {"mean", "mean_ns", Unit::kDuration},
                   {"std", "std_ns", Unit::kDuration},
                   {"p50", "p50_ns", Unit::kDuration},
                   {"p99", "p99_ns", Unit::kDuration},
                   {"steady mean", "steady_mean_ns", Unit::kDuration},
                   {"tokens/s", "tokens_per_s", Unit::kRate}},
                  SIZE_MAX, [](const Json& row) { return !is_vision(row); });
}

}  // namespace

Section baseline_section(const Json& metrics, const SectionOptions& /*options*/) {
  Section section;
  section.tables.push_back(baseline_table(metrics));
  if (section.tables[0].rows.empty()) {
    section.missing = fmt::format("n/a (no stage was timed without a profiler); {}", kHowToMark);
  }
  return section;
}

Section stages_section(const Json& metrics, const SectionOptions& options) {
  Section section;
  const KeepRow keep = [](const Json& row) { return !is_vision(row); };
  ReportTable stages = table_of(metrics, "stages",
                                {{"stage", "stage", Unit::kName},
                                 {"instances", "instances", Unit::kCount},
                                 {"host total", "host_total_ns", Unit::kDuration},
                                 {"median", "host_median_ns", Unit::kDuration},
                                 {"max", "host_max_ns", Unit::kDuration},
                                 {"steady mean", "host_steady_mean_ns", Unit::kDuration},
                                 {"kernels", "kernels", Unit::kCount},
                                 {"kernel time", "kernel_ns", Unit::kDuration},
                                 {"tokens", "tokens", Unit::kCount}},
                                SIZE_MAX, keep);
  if (!stages.rows.empty()) {
    stages.title = fmt::format("In the recording ({})", text_of(metrics, "capture.stage_source"));
    section.tables.push_back(std::move(stages));
  }
  ReportTable baseline = baseline_table(metrics);
  if (!baseline.rows.empty() && !options.is_terminal) {
    baseline.title = "Without a profiler";
    section.tables.push_back(std::move(baseline));
  }
  for (const char* array : {"stages", "baseline"}) {
    if (const Json* vision = row_of(rows_of(metrics, array), "vision")) {
      const bool is_baseline = vision->contains("mean_ns");
      section.notes.push_back(
          fmt::format("vision is part of prefill: {} times, {} in all{}",
                      integer_of(*vision, is_baseline ? "n" : "instances"),
                      duration_text(number_of(*vision, is_baseline ? "total_ns" : "host_total_ns")),
                      is_baseline ? " without a profiler" : ""));
    }
  }
  if (section.tables.empty()) {
    section.missing = fmt::format("n/a (no stage was timed); {}", kHowToMark);
  }
  return section;
}

Section overhead_section(const Json& metrics, const SectionOptions& /*options*/) {
  Section section;
  section.tables.push_back(table_of(metrics, "overhead",
                                    {{"stage", "stage", Unit::kName},
                                     {"mean without", "baseline_mean_ns", Unit::kDuration},
                                     {"with", "profiled_mean_ns", Unit::kDuration},
                                     {"added", "overhead_fraction", Unit::kFraction}}));
  if (section.tables[0].rows.empty()) {
    section.missing =
        "n/a (needs a pass without a profiler and one with nsys); llmprof run makes both";
  }
  return section;
}

Section ledger_section(const Json& metrics, const SectionOptions& /*options*/) {
  Section section;
  // The stage `all` is the capture by another name.
  section.tables.push_back(
      table_of(metrics, "ledgers",
               {{"stage", "stage", Unit::kName},
                {"GPU", "device", Unit::kText},
                {"window", "window_ns", Unit::kDuration},
                {"shares", "buckets_ns", Unit::kShares}},
               SIZE_MAX, [](const Json& row) { return text_of(row, "stage") != "all"; }));
  if (section.tables[0].rows.empty()) {
    section.missing =
        "n/a (no GPU activity with times was recorded); llmprof doctor says what a recording needs";
  }
  return section;
}

Section efficiency_section(const Json& metrics, const SectionOptions& /*options*/) {
  Section section;
  const Json& efficiency = field_of(metrics, "efficiency");
  if (!efficiency.is_object()) {
    section.missing =
        "n/a (no model was named); llmprof analyze BUNDLE --model NAME, names are those of llmprof "
        "list models, or a path to a config.json or GGUF";
    return section;
  }
  const std::string gpu = text_of(efficiency, "gpu");
  std::string of = fmt::format("{} on ", text_of(efficiency, "model"));
  if (gpu.empty()) {
    of += fmt::format("n/a ({})", text_of(efficiency, "reason"));
  } else {
    const Json& peak = field_of(efficiency, "peak_flops_per_s");
    of += fmt::format(
        "{} x {}: peak {} dense {}, {:g} GB/s a GPU", integer_of(efficiency, "num_gpus"), gpu,
        peak.is_number() ? fmt::format("{:g} TFLOP/s", peak.get<double>() / 1e12)
                         : std::string("n/a"),
        text_of(efficiency, "dtype"), number_of(efficiency, "peak_bytes_per_s") / kGB);
  }
  section.paragraphs.push_back(of);
  ReportTable table = table_of(metrics, "efficiency.stages",
                               {{"stage", "stage", Unit::kName},
                                {"passes", "passes", Unit::kCount},
                                {"MFU", "mfu.wall_fraction", Unit::kSmallRatio},
                                {"MBU", "mbu.wall_fraction", Unit::kSmallRatio},
                                {"SOL", "sol.wall_fraction", Unit::kSmallRatio},
                                {"SOL busy", "sol.busy_fraction", Unit::kSmallRatio},
                                {"a pass", "pass_ns", Unit::kDuration},
                                {"bound", "pass_bound_ns", Unit::kDuration},
                                {"FLOP", "flops", Unit::kFlops},
                                {"bytes", "bytes", Unit::kBytes},
                                {"verdict", "verdict", Unit::kText}});
  if (table.rows.empty()) {
    section.notes.push_back(
        fmt::format("n/a: the recording marks neither prefill nor decode; {}", kHowToMark));
  } else {
    section.tables.push_back(std::move(table));
  }
  for (const Json& row : rows_of(efficiency, "stages")) {
    const std::string reason = text_of(row, "reason");
    if (!reason.empty() && reason != text_of(efficiency, "reason")) {
      section.notes.push_back(fmt::format("{}: n/a ({})", text_of(row, "stage"), reason));
    }
    if (number_of(row, "mean_context") > 0) {
      section.notes.push_back(fmt::format("{}: mean context {:.1f}", text_of(row, "stage"),
                                          number_of(row, "mean_context")));
    }
  }
  if (field_of(efficiency, "step_fit").is_object()) {
    add_fit(field_of(efficiency, "step_fit"), section.notes);
  }
  add_texts(rows_of(efficiency, "errors"), "error: ", section.notes);
  add_texts(rows_of(efficiency, "notes"), "note: ", section.notes);
  return section;
}

Section takeaways_section(const Json& metrics, const SectionOptions& /*options*/) {
  Section section;
  for (const Json& row : rows_of(metrics, "stages")) {
    const std::string stage = text_of(row, "stage");
    if (is_vision(row) || field_of(row, "nested") == Json(true)) {
      continue;
    }
    section.paragraphs.push_back(
        fmt::format("{}: {} times, {} on the host in all; {}{}.", stage,
                    integer_of(row, "instances"), duration_text(number_of(row, "host_total_ns")),
                    ledger_words(metrics, stage), efficiency_words(metrics, stage)));
  }
  if (section.paragraphs.empty()) {
    section.missing = fmt::format("n/a (no stage was recorded); {}", kHowToMark);
  }
  return section;
}

}  // namespace llmprof
