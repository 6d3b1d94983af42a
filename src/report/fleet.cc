// SPDX-License-Identifier: Apache-2.0
//
// Report of a merged job: ranks present, stragglers with causes, collectives, outlier nodes and
// kernels.
//
// The first paragraphs are sufficient by themselves.
#include "report/fleet.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/kernel_names.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

constexpr std::size_t kMostNamed = 12;  // gaps, folders and failures in a sentence

std::string percent(const Json& fraction) {
  return fraction.is_number() ? format_change(fraction.get<double>()) : "n/a";
}

std::string short_kernel(const std::string& name) {
  return printable(short_kernel_names({name}).front());
}

std::string joined(const Json& texts) {
  std::vector<std::string> words;
  words.reserve(texts.size());
  for (const Json& text : texts) {
    words.push_back(text.is_string() ? text.get<std::string>() : to_json_line(text));
  }
  const std::size_t num = words.size();
  if (num > kMostNamed) {
    words.resize(kMostNamed);
    words.push_back(fmt::format("and {} more", num - kMostNamed));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string presence(const Json& fleet) {
  const Json& ranks = field_of(fleet, "ranks");
  std::string text = fmt::format("{} of {} ranks", integer_of(ranks, "present"),
                                 field_of(ranks, "expected").is_number()
                                     ? fmt::format("{}", integer_of(ranks, "expected"))
                                     : "an unknown number of");
  if (integer_of(ranks, "num_missing") > 0) {
    text += fmt::format("; missing {}", joined(rows_of(ranks, "missing")));
  }
  return text;
}

// Who, by how much, and why, in one sentence.
std::string late_sentence(const Json& row) {
  const Json& reason = field_of(row, "reason");
  // A twentieth off the median is a reason of its own; below, only the collectives tell.
  constexpr double kSlower = 0.05;
  const std::string node = text_of(row, "node");
  const double slower = number_of(row, "deviation_fraction");
  std::vector<std::string> signs;
  if (slower >= kSlower) {
    signs.push_back(fmt::format("{:.1f} % slower than the median", slower * 100));
  }
  if (integer_of(row, "met") > 0) {
    signs.push_back(fmt::format("last at {} of {} collectives, others waited {} for it",
                                integer_of(row, "last"), integer_of(row, "met"),
                                format_duration_ns(integer_of(row, "blamed_ns"))));
  }
  if (signs.empty()) {
    signs.push_back(percent(field_of(row, "deviation_fraction")) + " off the median");
  }
  std::string text =
      fmt::format("rank {}{} is late: {}", integer_of(row, "rank"),
                  node.empty() ? "" : " on " + printable(node), fmt::join(signs, ", "));
  if (text_of(reason, "kernel").empty()) {
    return text;
  }
  constexpr double kAsFast = 1.02;
  if (number_of(reason, "compute_ratio") < kAsFast) {
    text += "; its kernels are as fast as those of the others, so its CPU launches late or waits";
  } else {
    text += fmt::format("; largest contributor: {}", printable(text_of(reason, "stage")));
    // One kernel that explains a third is named; otherwise it is the whole GPU.
    text +=
        number_of(reason, "kernel_share_fraction") >= 1.0 / 3
            ? fmt::format(": kernel {} takes {:.2f}x as long as on the others",
                          short_kernel(text_of(reason, "kernel")),
                          number_of(reason, "kernel_ratio"))
            : fmt::format(
                  ": all kernels together take {:.2f}x as long as on the others, most of all {}",
                  number_of(reason, "compute_ratio"), short_kernel(text_of(reason, "kernel")));
  }
  return text;
}

// Anything that makes the picture incomplete: unfinished, failed and requeued ranks.
void add_troubles(const Json& fleet, Section& section) {
  const Json& ranks = field_of(fleet, "ranks");
  for (const Json& row : rows_of(ranks, "unfinished")) {
    section.notes.push_back(fmt::format(
        "ranks {} began attempt {} and left no summary: they were killed, or are still running",
        joined(rows_of(row, "ranks")), integer_of(row, "attempt")));
  }
  Json failed = Json::array();
  for (const Json& row : rows_of(ranks, "failed")) {
    failed.push_back(
        fmt::format("{} (code {})", integer_of(row, "rank"), integer_of(row, "exit_code")));
  }
  if (!failed.empty()) {
    section.notes.push_back(fmt::format("the program failed on ranks {}", joined(failed)));
  }
  for (const Json& row : rows_of(ranks, "earlier_attempts")) {
    section.notes.push_back(fmt::format(
        "the job was restarted: attempt {0} counts; attempt {2} of ranks {1} is left out",
        integer_of(fleet, "attempt"), joined(rows_of(row, "ranks")), integer_of(row, "attempt")));
  }
}

// Rows are sorted by severity, so the first one of each table is the one to name.
Section summary(const Json& fleet) {
  Section section;
  section.id = "summary";
  section.title = "Ranks";
  section.paragraphs.push_back(presence(fleet));
  const Json& ranks = rows_of(fleet, "rank_table");
  const bool has_straggler = !ranks.empty() && field_of(ranks[0], "straggler") == Json(true);
  section.paragraphs.push_back(has_straggler ? late_sentence(ranks[0]) : "No rank is late.");
  const Json& nodes = rows_of(fleet, "nodes");
  if (!nodes.empty() && field_of(nodes[0], "outlier") == Json(true)) {
    section.paragraphs.push_back(fmt::format("node {} is slow: its {} are {} off the median",
                                             printable(text_of(nodes[0], "name")),
                                             count_of(integer_of(nodes[0], "ranks"), "rank"),
                                             percent(field_of(nodes[0], "deviation_fraction"))));
  }
  const Json& kernels = rows_of(fleet, "kernels");
  if (!kernels.empty()) {
    section.paragraphs.push_back(
        fmt::format("kernel {} in {} is slow on {} of {} ranks: up to {:.2f}x, about {} lost",
                    short_kernel(text_of(kernels[0], "kernel")),
                    printable(text_of(kernels[0], "stage")), integer_of(kernels[0], "slow_ranks"),
                    integer_of(kernels[0], "ranks"), number_of(kernels[0], "slow_ratio"),
                    format_duration_ns(integer_of(kernels[0], "excess_ns"))));
  }
  add_troubles(fleet, section);
  return section;
}

Section rank_section(const Json& fleet, std::size_t top) {
  Section section;
  section.id = "ranks";
  section.title = "Late ranks, worst first";
  ReportTable table = table_of(fleet, "rank_table",
                               {{"rank", "rank", Unit::kCount},
                                {"node", "node", Unit::kText},
                                {"own time", "own_ns", Unit::kDuration},
                                {"off median", "deviation_fraction", Unit::kFraction},
                                {"collectives", "collectives.total_ns", Unit::kDuration},
                                {"waiting", "collectives.waiting_ns", Unit::kDuration},
                                {"last at", "last", Unit::kCount},
                                {"others waited", "blamed_ns", Unit::kDuration}},
                               top);
  section.tables.push_back(std::move(table));
  const Json& rows = rows_of(fleet, "rank_table");
  const auto num_late = std::count_if(rows.begin(), rows.end(), [](const Json& row) {
    return field_of(row, "straggler") == Json(true);
  });
  section.notes.push_back(fmt::format("{} late; own time is {}", count_of(num_late, "rank"),
                                      text_of(fleet, "quantity")));
  return section;
}

Section collective_section(const Json& fleet) {
  Section section;
  section.id = "collectives";
  section.title = "Collectives: waiting and transfer";
  // A job of one rank, or one without communication kernels, has no collectives.
  if (integer_of(fleet, "collectives.num") == 0) {
    section.missing = "no collectives in these summaries";
    return section;
  }
  section.facts = {
      {"collectives", value_at(fleet, "collectives.num", Unit::kCount), ""},
      {"time in them, all ranks", value_at(fleet, "collectives.total_ns", Unit::kDuration), ""},
      {"of it transfer", value_at(fleet, "collectives.transfer_ns", Unit::kDuration), ""},
      {"of it waiting", value_at(fleet, "collectives.waiting_ns", Unit::kDuration), ""},
      {"seen by one rank alone", value_at(fleet, "collectives.alone_ns", Unit::kDuration), ""}};
  for (const Json& way : rows_of(fleet, "collectives.communicators_by")) {
    section.notes.push_back("communicators: " + (way.is_string() ? way.get<std::string>() : ""));
  }
  if (integer_of(fleet, "collectives.num_mismatched") > 0) {
    section.notes.push_back(fmt::format(
        "{} of {} collectives have different kernels on different ranks: their "
        "recordings do not begin at the same one, so waiting is not reliable",
        integer_of(fleet, "collectives.num_mismatched"), integer_of(fleet, "collectives.num")));
  }
  return section;
}

Section group_section(const Json& fleet, const char* array, const char* title, std::size_t top) {
  Section section;
  section.id = array;
  section.title = title;
  section.tables.push_back(table_of(fleet, array,
                                    {{"name", "name", Unit::kText},
                                     {"ranks", "ranks", Unit::kCount},
                                     {"off median", "deviation_fraction", Unit::kFraction},
                                     {"worst rank", "worst_rank", Unit::kCount}},
                                    top));
  return section;
}

// Kernels that are slow on some ranks only: a sign of a slow GPU rather than slow code.
Section kernel_section(const Json& fleet, std::size_t top) {
  Section section;
  section.id = "kernels";
  section.title = "Kernels slower on some ranks";
  if (rows_of(fleet, "kernels").empty()) {
    section.missing = "None: no kernel is slower on one rank than its other kernels.";
    return section;
  }
  section.tables.push_back(table_of(fleet, "kernels",
                                    {{"stage", "stage", Unit::kText},
                                     {"slow ranks", "slow_ranks", Unit::kCount},
                                     {"of", "ranks", Unit::kCount},
                                     {"mean", "mean_ns", Unit::kDuration},
                                     {"about lost", "excess_ns", Unit::kDuration},
                                     {"worst rank", "worst_rank", Unit::kCount},
                                     {"kernel", "kernel", Unit::kName}},
                                    top));
  return section;
}

}  // namespace

Document fleet_document(const Json& fleet, std::size_t top) {
  Document document;
  document.title = fmt::format(
      "Run {}", printable(text_of(fleet, "run_id").empty() ? "n/a" : text_of(fleet, "run_id")));
  document.sections = {summary(fleet),
                       rank_section(fleet, top),
                       collective_section(fleet),
                       group_section(fleet, "nodes", "Nodes, slowest first", top),
                       group_section(fleet, "gpus", "GPUs", top),
                       kernel_section(fleet, top)};
  return document;
}

}  // namespace llmprof
