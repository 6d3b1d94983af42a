// SPDX-License-Identifier: Apache-2.0
//
// Report of a merged job: ranks present, stragglers with causes, collectives, outlier nodes and
// kernels.
//
// The first paragraphs are sufficient by themselves.
#include "report/fleet.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/kernel_names.h"
#include "base/cut_name.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "report/section_parts.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostNamed = 12;  // gaps, folders and failures in a sentence

std::string percent(const Json& fraction) {
  return fraction.is_number() ? format_change(fraction.get<double>()) : "n/a";
}

std::string short_kernel(const std::string& name) {
  return printable(short_kernel_names({name}).front());
}

std::string joined(const Json& texts, std::string_view separator = ", ") {
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
  return fmt::format("{}", fmt::join(words, separator));
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

// Why a rank is late, in the terms of the ledger. Empty if nothing is known.
std::string cause_phrase(const Json& row) {
  const Json& reason = field_of(row, "reason");
  const Json& excess = field_of(row, "excess");
  const std::string cause = text_of(row, "cause");
  const auto more = [&](const char* part) { return format_duration_ns(integer_of(excess, part)); };
  const std::string kernel = short_kernel(text_of(reason, "kernel"));
  if (cause == "kernel") {
    return fmt::format("its kernels: {} takes {:.2f}x as long as on the others in {}", kernel,
                       number_of(reason, "kernel_ratio"), printable(text_of(reason, "stage")));
  }
  if (cause == "clocks") {
    return fmt::format(
        "its clocks (or power, or heat): all kernels together take {:.2f}x as long as on the "
        "others, most of all {} in {}",
        number_of(reason, "compute_ratio"), kernel, printable(text_of(reason, "stage")));
  }
  if (cause == "kernels") {
    return fmt::format("its kernels: {} more than the median rank", more("compute_ns"));
  }
  if (cause == "host") {
    return fmt::format(
        "its CPU: the GPU waits {} more for launches and sync calls than the median "
        "rank's",
        more("host_ns"));
  }
  if (cause == "copies") {
    return fmt::format("its copies: {} more than the median rank", more("copy_ns"));
  }
  if (cause == "network") {
    return fmt::format("its network: it leaves collectives after the other members, {} in all",
                       more("network_ns"));
  }
  constexpr double kAsFast = 1.02;
  const bool has_kernels = !text_of(reason, "kernel").empty();
  if (excess.is_object()) {
    return "unknown: its kernels, CPU, copies and network are like those of the median rank";
  }
  return has_kernels && number_of(reason, "compute_ratio") < kAsFast
             ? "unknown: its kernels are as fast as those of the others, so its CPU launches late or "
               "waits"
             : "";
}

// Who, by how much, and why, in one sentence.
std::string late_sentence(const Json& fleet, const Json& row) {
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
    if (integer_of(row, "lost_ns") > 0) {
      signs.push_back(fmt::format(
          "the job lost {}{}", format_duration_ns(integer_of(row, "lost_ns")),
          text_of(fleet, "lateness") == "pinned" ? " (pinned to this rank)"
                                                 : " (other ranks are late too, in turns)"));
    }
  }
  if (signs.empty()) {
    signs.push_back(percent(field_of(row, "deviation_fraction")) + " off the median");
  }
  std::string text =
      fmt::format("rank {}{} is late: {}", integer_of(row, "rank"),
                  node.empty() ? "" : " on " + printable_name(node), fmt::join(signs, ", "));
  const std::string cause = cause_phrase(row);
  return cause.empty() ? text : text + "; cause: " + cause;
}

// Ranks that are late in turns have no single cause.
std::string nobody_sentence(const Json& fleet) {
  if (text_of(fleet, "lateness") != "rotating") {
    return "No rank is late.";
  }
  const std::int64_t total_ns = integer_of(fleet, "collectives.total_ns");
  return fmt::format(
      "No single rank is late: ranks are last in turns. Waiting takes {} of the {} in collectives.",
      format_fraction(fraction_of(integer_of(fleet, "collectives.waiting_ns"), total_ns)),
      format_duration_ns(total_ns));
}

std::string spoken_kind(const std::string& kind) {
  return kind.empty() ? "" : kind == "pipeline" ? kind : kind + " parallel";
}

// Groups of one kind and size, with the one that loses most.
void add_groups(const Json& fleet, Section& section) {
  struct Alike {
    Json ranks = Json::array();
    const Json* worst = nullptr;
  };
  std::map<std::pair<std::string, std::int64_t>, Alike> kinds;
  for (const Json& row : rows_of(fleet, "groups")) {
    Alike& alike = kinds[{text_of(row, "kind"), integer_of(row, "size")}];
    alike.ranks.push_back(text_of(row, "ranks").empty() ? printable(text_of(row, "communicator"))
                                                        : text_of(row, "ranks"));
    if (alike.worst == nullptr ||
        integer_of(row, "lost_ns") > integer_of(*alike.worst, "lost_ns")) {
      alike.worst = &row;
    }
  }
  for (const auto& [key, alike] : kinds) {
    const auto num = static_cast<std::int64_t>(alike.ranks.size());
    const Json& worst = *alike.worst;
    const std::string kind = spoken_kind(key.first);
    std::string text = num == 1
                           ? fmt::format("{}group", kind.empty() ? "" : kind + " ")
                           : fmt::format("{}{}{}", kind.empty() ? "" : kind + ": ", num, " groups");
    if (key.second > 0) {
      text += fmt::format(" of {}", count_of(key.second, "rank"));
    }
    text +=
        fmt::format(": {} ({})", joined(alike.ranks, "; "), printable(text_of(worst, "evidence")));
    if (integer_of(worst, "lost_ns") > 0) {
      text += fmt::format("; rank {} is last at {} of {}{}, which cost {}",
                          integer_of(worst, "late_rank"), integer_of(worst, "last"),
                          count_of(integer_of(worst, "collectives.num"), "collective"),
                          num == 1 ? "" : " in " + text_of(worst, "ranks"),
                          format_duration_ns(integer_of(worst, "lost_ns")));
    }
    section.paragraphs.push_back(std::move(text));
  }
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
  Json not_recorded = Json::array();
  for (const Json& row : rows_of(ranks, "not_recorded")) {
    not_recorded.push_back(
        fmt::format("{} ({})", integer_of(row, "rank"), printable(text_of(row, "reason"))));
  }
  if (!not_recorded.empty()) {
    section.notes.push_back(fmt::format(
        "no recording of ranks {}: the profiler failed, not the program", joined(not_recorded)));
  }
  const Json& unreadable = rows_of(ranks, "unreadable");
  for (std::size_t i = 0; i < std::min(unreadable.size(), kMostNamed); ++i) {
    section.notes.push_back("skipped: " + printable(unreadable[i].get<std::string>()));
  }
  if (unreadable.size() > kMostNamed) {
    section.notes.push_back(fmt::format("skipped: {} more files", unreadable.size() - kMostNamed));
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
  section.paragraphs.push_back(has_straggler ? late_sentence(fleet, ranks[0])
                                             : nobody_sentence(fleet));
  const Json& nodes = rows_of(fleet, "nodes");
  if (!nodes.empty() && field_of(nodes[0], "outlier") == Json(true)) {
    section.paragraphs.push_back(fmt::format("node {} is slow: its {} are {} off the median",
                                             printable_name(text_of(nodes[0], "name")),
                                             count_of(integer_of(nodes[0], "ranks"), "rank"),
                                             percent(field_of(nodes[0], "deviation_fraction"))));
  }
  const Json& kernels = rows_of(fleet, "kernels");
  if (!kernels.empty()) {
    section.paragraphs.push_back(fmt::format(
        "kernel {} in {} is slow on {} of {} ranks: up to {:.2f}x, about {} lost",
        short_kernel(text_of(kernels[0], "kernel")), printable_name(text_of(kernels[0], "stage")),
        integer_of(kernels[0], "slow_ranks"), integer_of(kernels[0], "ranks"),
        number_of(kernels[0], "slow_ratio"),
        format_duration_ns(integer_of(kernels[0], "excess_ns"))));
  }
  add_groups(fleet, section);
  add_troubles(fleet, section);
  return section;
}

Section rank_section(const Json& fleet, std::size_t top) {
  Section section;
  section.id = "ranks";
  section.title = "Late ranks, worst first";
  ReportTable table = table_of(fleet, "rank_table",
                               {{"rank", "rank", CellFormat::kCount},
                                {"node", "node", CellFormat::kText},
                                {"own time", "own_ns", CellFormat::kDuration},
                                {"off median", "deviation_fraction", CellFormat::kFraction},
                                {"collectives", "collectives.total_ns", CellFormat::kDuration},
                                {"waiting", "collectives.waiting_ns", CellFormat::kDuration},
                                {"last at", "last", CellFormat::kCount},
                                {"others waited", "blamed_ns", CellFormat::kDuration}},
                               top);
  section.tables.push_back(std::move(table));
  const Json& rows = rows_of(fleet, "rank_table");
  const auto num_late = std::count_if(rows.begin(), rows.end(), [](const Json& row) {
    return field_of(row, "straggler") == Json(true);
  });
  const std::int64_t num_measured = integer_of(fleet, "num_measured");
  const auto num_ranks = static_cast<std::int64_t>(rows.size());
  section.notes.push_back(fmt::format(
      "{} late; own time is {}{}", count_of(num_late, "rank"), text_of(fleet, "quantity"),
      num_measured == num_ranks
          ? ""
          : fmt::format(", which {} of {} ranks have", num_measured, num_ranks)));
  return section;
}

Section collective_section(const Json& fleet) {
  Section section;
  section.id = "collectives";
  section.title = "Collectives: waiting and transfer";
  // A job of one rank, or one without communication kernels, has no collectives.
  if (integer_of(fleet, "collectives.num") == 0) {
    section.missing =
        "n/a: no collectives were found; sends and receives are not matched between ranks";
    return section;
  }
  section.facts = {
      {"collectives", value_at(fleet, "collectives.num", CellFormat::kCount), ""},
      {"time in them, all ranks", value_at(fleet, "collectives.total_ns", CellFormat::kDuration),
       ""},
      {"of it transfer", value_at(fleet, "collectives.transfer_ns", CellFormat::kDuration), ""},
      {"of it waiting", value_at(fleet, "collectives.waiting_ns", CellFormat::kDuration), ""},
      {"seen by one rank alone", value_at(fleet, "collectives.alone_ns", CellFormat::kDuration),
       ""}};
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

// One row per group; how each shares the model is in the summary, with the evidence.
Section rank_group_section(const Json& fleet, std::size_t top) {
  Section section;
  section.id = "groups";
  section.title = "Groups of ranks";
  if (rows_of(fleet, "groups").empty()) {
    section.missing = "n/a: the recordings do not name the groups of their collectives";
    return section;
  }
  section.tables.push_back(
      table_of(fleet, "groups",
               {{"kind", "kind", CellFormat::kText},
                {"ranks", "ranks", CellFormat::kText},
                {"size", "size", CellFormat::kCount},
                {"in collectives", "collectives.total_ns", CellFormat::kDuration},
                {"waiting", "collectives.waiting_ns", CellFormat::kDuration},
                {"late rank", "late_rank", CellFormat::kCount},
                {"last at", "last", CellFormat::kCount},
                {"lost", "lost_ns", CellFormat::kDuration}},
               top));
  return section;
}

// Which part of a layer takes the time of the job, and on which rank it takes longest.
Section part_section(const Json& fleet, std::size_t top) {
  Section section;
  section.id = "parts";
  section.title = "Parts of the model, over all ranks";
  if (rows_of(fleet, "parts").empty()) {
    section.missing = "n/a: no layers were recognized in these recordings";
    return section;
  }
  section.tables.push_back(table_of(fleet, "parts",
                                    {{"pass", "pass", CellFormat::kText},
                                     {"block", "block", CellFormat::kText},
                                     {"part", "part", CellFormat::kText},
                                     {"ranks", "ranks", CellFormat::kCount},
                                     {"launches", "launches", CellFormat::kCount},
                                     {"time", "total_ns", CellFormat::kDuration},
                                     {"slowest rank", "slowest_rank", CellFormat::kCount},
                                     {"its time", "slowest_ns", CellFormat::kDuration}},
                                    top));
  return section;
}

Section group_section(const Json& fleet, const char* array, const char* title, std::size_t top) {
  Section section;
  section.id = array;
  section.title = title;
  const Json& rows = rows_of(fleet, array);
  if (std::all_of(rows.begin(), rows.end(),
                  [](const Json& row) { return text_of(row, "name") == "n/a"; })) {
    section.missing = "n/a: the summaries do not name them";
    return section;
  }
  section.tables.push_back(table_of(fleet, array,
                                    {{"name", "name", CellFormat::kText},
                                     {"ranks", "ranks", CellFormat::kCount},
                                     {"off median", "deviation_fraction", CellFormat::kFraction},
                                     {"worst rank", "worst_rank", CellFormat::kCount}},
                                    top));
  return section;
}

// Kernels that are slow on some ranks only: a sign of a slow GPU rather than slow code.
Section kernel_section(const Json& fleet, std::size_t top) {
  Section section;
  section.id = "kernels";
  section.title = "Kernels slower on some ranks";
  if (rows_of(fleet, "kernels").empty()) {
    section.missing = "None: no kernel is slower on one rank than its other kernels";
    return section;
  }
  section.tables.push_back(table_of(fleet, "kernels",
                                    {{"stage", "stage", CellFormat::kText},
                                     {"slow ranks", "slow_ranks", CellFormat::kCount},
                                     {"of", "ranks", CellFormat::kCount},
                                     {"mean", "mean_ns", CellFormat::kDuration},
                                     {"about lost", "excess_ns", CellFormat::kDuration},
                                     {"worst rank", "worst_rank", CellFormat::kCount},
                                     {"kernel", "kernel", CellFormat::kName}},
                                    top));
  return section;
}

}  // namespace

Document fleet_document(const Json& fleet, std::size_t top) {
  Document document;
  const std::string run = text_of(fleet, "run_id");
  document.title = run.empty() ? "Ranks of a job" : "Run " + printable(run);
  document.sections = {summary(fleet),
                       rank_section(fleet, top),
                       collective_section(fleet),
                       rank_group_section(fleet, top),
                       part_section(fleet, top),
                       group_section(fleet, "nodes", "Nodes, slowest first", top),
                       group_section(fleet, "gpus", "GPUs", top),
                       kernel_section(fleet, top)};
  return document;
}

}  // namespace gpuwhy
