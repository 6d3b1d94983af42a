// SPDX-License-Identifier: Apache-2.0
//
// The section on requests: percentiles, parts of TTFT, late tokens, the slowest requests.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/document/member_table.h"
#include "report/sections/section_makers.h"

namespace gpuwhy {
namespace {

using Summary = RequestsSummary;

// Names for people of parts of TTFT and of causes of late tokens. JSON has the ids.
constexpr std::pair<std::string_view, const char*> kRequestLabels[] = {
    {"queue_busy", "queue, busy"},
    {"queue_idle", "queue, idle"},
    {"prefill_gpu", "prefill, GPU"},
    {"prefill_host", "prefill, CPU"},
    {"other_steps", "others' steps"},
    {"between", "between steps"},
    {"mixed_step", "prompt in its step"},
    {"long_step", "long step"},
    {"gap", "GPU idle"},
    {"missing", "left out of steps"},
    {"not_told", "unknown"},
};

// The table with ids of a column replaced by names.
ReportTable labelled(ReportTable table, std::size_t column) {
  for (ReportRow& row : table.rows) {
    auto* const text = std::get_if<std::string>(&row.cells.at(column).value);
    const auto* const found =
        std::find_if(std::begin(kRequestLabels), std::end(kRequestLabels),
                     [&](const auto& one) { return text != nullptr && one.first == *text; });
    if (found != std::end(kRequestLabels)) {
      *text = found->second;
    }
  }
  return table;
}

ReportTable request_part_table(const Results& metrics) {
  using Row = TtftPartTotal;
  ReportTable table =
      table_of(rows_at(metrics, &Results::requests, &Summary::ttft_parts),
               {{"part of TTFT", CellFormat::kText, &Row::part},
                {"share", CellFormat::kFraction, &Row::share_fraction},
                {"mean", CellFormat::kDuration, &Row::times, &RequestTimes::mean_ns},
                {"p50", CellFormat::kDuration, &Row::times, &RequestTimes::p50_ns},
                {"p90", CellFormat::kDuration, &Row::times, &RequestTimes::p90_ns},
                {"p99", CellFormat::kDuration, &Row::times, &RequestTimes::p99_ns},
                {"max", CellFormat::kDuration, &Row::times, &RequestTimes::max_ns},
                {"largest in", CellFormat::kCount, &Row::num_largest}},
               SIZE_MAX, [](const Row& row) { return row.total_ns > 0; });
  table.title = "Time to first token, by where it went";
  return labelled(std::move(table), 0);
}

ReportTable late_cause_table(const Results& metrics) {
  using Row = StutterTotal;
  ReportTable table =
      table_of(rows_at(metrics, &Results::requests, &Summary::stutters),
               {{"cause", CellFormat::kText, &Row::cause},
                {"tokens", CellFormat::kCount, &Row::count},
                {"total", CellFormat::kDuration, &Row::total_ns},
                {"p50", CellFormat::kDuration, &Row::times, &RequestTimes::p50_ns},
                {"p99", CellFormat::kDuration, &Row::times, &RequestTimes::p99_ns},
                {"max", CellFormat::kDuration, &Row::times, &RequestTimes::max_ns}});
  table.title = "Late tokens, by cause";
  return labelled(std::move(table), 0);
}

ReportTable slow_request_table(const Results& metrics, std::size_t most) {
  using Row = RequestOutline;
  ReportTable table = table_of(rows_at(metrics, &Results::requests, &Summary::rows),
                               {{"request", CellFormat::kName, &Row::id},
                                {"TTFT", CellFormat::kDuration, &Row::ttft_ns},
                                {"network", CellFormat::kDuration, &Row::network_ns},
                                {"queue, busy", CellFormat::kDuration, &Row::queue_busy_ns},
                                {"queue, idle", CellFormat::kDuration, &Row::queue_idle_ns},
                                {"prefill, GPU", CellFormat::kDuration, &Row::prefill_gpu_ns},
                                {"prefill, CPU", CellFormat::kDuration, &Row::prefill_host_ns},
                                {"others", CellFormat::kDuration, &Row::other_steps_ns},
                                {"delivery", CellFormat::kDuration, &Row::delivery_ns},
                                {"joined", CellFormat::kText, &Row::told}},
                               most, [](const Row& row) { return !row.is_sample; });
  table.title = "Slowest to the first token";
  return table;
}

ReportTable late_token_table(const Results& metrics, std::size_t most) {
  using Row = Stutter;
  ReportTable table = table_of(rows_at(metrics, &Results::requests, &Summary::late_tokens),
                               {{"request", CellFormat::kName, &Row::request},
                                {"token", CellFormat::kCount, &Row::token},
                                {"after", CellFormat::kDuration, &Row::gap_ns},
                                {"cause", CellFormat::kText, &Row::cause},
                                {"step", CellFormat::kCount, &Row::step},
                                {"its length", CellFormat::kDuration, &Row::step_ns},
                                {"detail", CellFormat::kText, &Row::detail}},
                               most);
  table.title = "Latest tokens";
  return labelled(std::move(table), 3);
}

ReportTable latency_table(const Results& metrics) {
  ReportTable table;
  table.columns = {
      {"latency", "", CellFormat::kText},         {"n", "n", CellFormat::kCount},
      {"mean", "mean_ns", CellFormat::kDuration}, {"p50", "p50_ns", CellFormat::kDuration},
      {"p90", "p90_ns", CellFormat::kDuration},   {"p99", "p99_ns", CellFormat::kDuration},
      {"max", "max_ns", CellFormat::kDuration}};
  const auto add = [&](const char* name, auto member) {
    using T = RequestTimes;
    const auto cell = [&](CellFormat unit, auto field) {
      return value_at(metrics, unit, &Results::requests, member, field);
    };
    table.rows.push_back({{{std::string(name), CellFormat::kText, ""},
                           cell(CellFormat::kCount, &T::n),
                           cell(CellFormat::kDuration, &T::mean_ns),
                           cell(CellFormat::kDuration, &T::p50_ns),
                           cell(CellFormat::kDuration, &T::p90_ns),
                           cell(CellFormat::kDuration, &T::p99_ns),
                           cell(CellFormat::kDuration, &T::max_ns)},
                          "",
                          false});
  };
  add("TTFT", &Summary::ttft);
  add("ITL", &Summary::itl);
  add("whole request", &Summary::total);
  return table;
}

void add_request_facts(const Results& metrics, Section& section) {
  const Summary& summary = *metrics.requests;
  const auto fact = [&](const char* label, CellFormat unit, const char* reason, auto... members) {
    section.facts.push_back(
        {label, value_at(metrics, unit, &Results::requests, members...), reason});
  };
  fact("Output tokens/s per GPU", CellFormat::kRate, "no counts of tokens, or no times",
       &Summary::output_tokens_per_s_per_gpu);
  fact("Output tokens/s per user", CellFormat::kRate, "no counts of tokens, or no times",
       &Summary::output_tokens_per_s_per_user);
  if (summary.goodput) {
    fact("Requests within the limits", CellFormat::kFraction, "", &Summary::goodput,
         &Goodput::good_fraction);
    fact("Goodput, requests per second", CellFormat::kRate, "", &Summary::goodput,
         &Goodput::good_per_s);
  }
}

}  // namespace

Section requests_section(const Results& metrics, const SectionOptions& options) {
  Section section;
  if (!metrics.requests) {
    section.missing = "n/a (add --requests FILE: docs/requests.md)";
    return section;
  }
  const Summary& summary = *metrics.requests;
  const std::int64_t num_apart = summary.num_named + summary.num_inferred;
  section.paragraphs.push_back(
      fmt::format("{} of {} ({}). TTFT is broken down for {} ({} by slots, {} inferred).",
                  count_of(summary.num_requests, "request"), printable(summary.file),
                  summary.format, num_apart, summary.num_named, summary.num_inferred));
  section.paragraphs.push_back(
      !summary.reason.empty()
          ? fmt::format("Requests are not joined to steps: {}.", printable(summary.reason))
          : fmt::format("Clock: {}.", printable(summary.clock.sentence)));
  add_request_facts(metrics, section);
  section.tables.push_back(latency_table(metrics));
  const std::size_t most = std::min<std::size_t>(options.top, options.is_terminal ? 10 : 50);
  if (!summary.ttft_parts.empty()) {
    section.tables.push_back(request_part_table(metrics));
  }
  if (!summary.rows.empty()) {
    section.tables.push_back(slow_request_table(metrics, most));
  }
  if (!summary.stutters.empty()) {
    section.tables.push_back(late_cause_table(metrics));
    section.tables.push_back(late_token_table(metrics, most));
    section.notes.push_back(fmt::format("A token is late: {}.", summary.stutter_rule));
  }
  for (const RequestsNotTold& row : summary.not_told) {
    section.notes.push_back(fmt::format("Not broken down: {}, {}.", count_of(row.count, "request"),
                                        printable(row.reason)));
  }
  if (summary.num_skipped > 0) {
    section.notes.push_back(
        fmt::format("{} of the file could not be used.", count_of(summary.num_skipped, "record")));
  }
  return section;
}

}  // namespace gpuwhy
