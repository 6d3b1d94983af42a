// SPDX-License-Identifier: Apache-2.0
//
// Report of a merged job: ranks present, stragglers with causes, collectives, outlier nodes and
// kernels.
//
// The first paragraphs are sufficient by themselves.
#include "report/fleet/fleet.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/names/kernel_names.h"
#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "report/document/member_table.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostNamed = 12;  // gaps, folders and failures in a sentence

std::string short_kernel(const std::string& name) {
  return printable(short_kernel_names({printable(name)}).front());
}

std::string joined(std::vector<std::string> words, std::string_view separator = ", ") {
  const std::size_t num = words.size();
  if (num > kMostNamed) {
    words.resize(kMostNamed);
    words.push_back(fmt::format("and {} more", num - kMostNamed));
  }
  return fmt::format("{}", fmt::join(words, separator));
}

std::string presence_text(const RankPresence& ranks) {
  std::string text = fmt::format(
      "{} of {} ranks", ranks.num_present,
      ranks.num_expected > 0 ? fmt::to_string(ranks.num_expected) : "an unknown number of");
  if (ranks.num_missing > 0) {
    text += fmt::format("; missing {}", joined(ranks.missing));
  }
  return text;
}

// Why a rank is late, in the terms of the ledger. Empty if nothing is known.
std::string cause_phrase(const RankVerdict& rank) {
  const StragglerCause& reason = rank.reason;
  const LateParts excess = rank.parts.value_or(LateParts());
  switch (rank.cause) {
    case LateCause::kKernel:
      return fmt::format("its kernels: {} takes {:.2f}x as long as on the others in {}",
                         short_kernel(reason.kernel), reason.kernel_ratio, printable(reason.stage));
    case LateCause::kClocks:
      return fmt::format(
          "its clocks (or power, or heat): all kernels together take {:.2f}x as long as on the "
          "others, most of all {} in {}",
          reason.compute_ratio, short_kernel(reason.kernel), printable(reason.stage));
    case LateCause::kKernels:
      return fmt::format("its kernels: {} more than the median rank",
                         format_duration_ns(excess.compute_ns));
    case LateCause::kHost:
      return fmt::format(
          "its CPU: the GPU waits {} more for launches and sync calls than the median "
          "rank's",
          format_duration_ns(excess.host_ns));
    case LateCause::kCopies:
      return fmt::format("its copies: {} more than the median rank",
                         format_duration_ns(excess.copy_ns));
    case LateCause::kNetwork:
      return fmt::format("its network: it leaves collectives after the other members, {} in all",
                         format_duration_ns(excess.network_ns));
    case LateCause::kUnknown:
      break;
  }
  constexpr double kAsFast = 1.02;
  if (rank.parts) {
    return "unknown: its kernels, CPU, copies and network are like those of the median rank";
  }
  return !reason.kernel.empty() && reason.compute_ratio < kAsFast
             ? "unknown: its kernels are as fast as those of the others, so its CPU launches late or "
               "waits"
             : "";
}

// Who, by how much, and why, in one sentence.
std::string late_sentence(const FleetReport& report, const RankVerdict& rank) {
  // A twentieth off the median is a reason of its own; below, only the collectives tell.
  constexpr double kSlower = 0.05;
  const double slower = rank.deviation_fraction.value_or(0);
  std::vector<std::string> signs;
  if (slower >= kSlower) {
    signs.push_back(fmt::format("{:.1f} % slower than the median", slower * 100));
  }
  if (rank.num_met > 0) {
    signs.push_back(fmt::format("last at {} of {} collectives, others waited {} for it",
                                rank.num_last, rank.num_met, format_duration_ns(rank.blamed_ns)));
    if (rank.lost_ns > 0) {
      signs.push_back(fmt::format("the job lost {}{}", format_duration_ns(rank.lost_ns),
                                  report.lateness == FleetReport::Lateness::kPinned
                                      ? " (pinned to this rank)"
                                      : " (other ranks are late too, in turns)"));
    }
  }
  if (signs.empty()) {
    signs.push_back((rank.deviation_fraction ? format_change(slower) : "n/a") + " off the median");
  }
  const std::string node = printable(rank.node);
  std::string text =
      fmt::format("rank {}{} is late: {}", rank.rank,
                  node.empty() ? "" : " on " + printable_name(node), fmt::join(signs, ", "));
  const std::string cause = cause_phrase(rank);
  return cause.empty() ? text : text + "; cause: " + cause;
}

// Ranks that are late in turns have no single cause.
std::string nobody_sentence(const FleetReport& report) {
  if (report.lateness != FleetReport::Lateness::kRotating) {
    return "No rank is late.";
  }
  const CollectiveTime& time = report.collectives;
  return fmt::format(
      "No single rank is late: ranks are last in turns. Waiting takes {} of the {} in collectives.",
      format_fraction(fraction_of(time.waiting_ns, time.total_ns)),
      format_duration_ns(time.total_ns));
}

std::string spoken_kind(ParallelKind kind) {
  return kind == ParallelKind::kUnknown    ? ""
         : kind == ParallelKind::kPipeline ? "pipeline"
                                           : fmt::format("{} parallel", id_of(kind));
}

// Groups of one kind and size, with the one that loses most.
void add_groups(const FleetReport& report, Section& section) {
  struct Alike {
    std::vector<std::string> ranks;
    const JobGroup* worst = nullptr;
  };
  std::map<std::pair<std::string, std::int64_t>, Alike> kinds;
  for (const JobGroup& group : report.groups) {
    Alike& alike = kinds[{spoken_kind(group.kind), group.size}];
    alike.ranks.push_back(printable(group.ranks.empty() ? group.communicator : group.ranks));
    if (alike.worst == nullptr || group.lost_ns > alike.worst->lost_ns) {
      alike.worst = &group;
    }
  }
  for (const auto& [key, alike] : kinds) {
    const auto num = static_cast<std::int64_t>(alike.ranks.size());
    const auto& [kind, size] = key;
    const JobGroup& worst = *alike.worst;
    std::string text = num == 1 ? fmt::format("{}group", kind.empty() ? "" : kind + " ")
                                : fmt::format("{}{} groups", kind.empty() ? "" : kind + ": ", num);
    if (size > 0) {
      text += fmt::format(" of {}", count_of(size, "rank"));
    }
    text += fmt::format(": {} ({})", joined(alike.ranks, "; "), printable(worst.evidence));
    if (worst.lost_ns > 0) {
      text += fmt::format(
          "; rank {} is last at {} of {}{}, which cost {}", worst.late_rank.value_or(0),
          worst.num_last, count_of(worst.collectives.num, "collective"),
          num == 1 ? "" : " in " + printable(worst.ranks), format_duration_ns(worst.lost_ns));
    }
    section.paragraphs.push_back(std::move(text));
  }
}

// Anything that makes the picture incomplete: unfinished, failed and requeued ranks.
void add_troubles(const FleetReport& report, Section& section) {
  const RankPresence& ranks = report.presence;
  for (const AttemptRanks& row : ranks.unfinished) {
    section.notes.push_back(fmt::format(
        "ranks {} began attempt {} and left no summary: they were killed, or are still running",
        joined(row.ranks), row.attempt));
  }
  std::vector<std::string> failed;
  for (const FailedRank& row : ranks.failed) {
    failed.push_back(fmt::format("{} (code {})", row.rank, row.exit_code));
  }
  if (!failed.empty()) {
    section.notes.push_back(fmt::format("the program failed on ranks {}", joined(failed)));
  }
  std::vector<std::string> not_recorded;
  for (const UnrecordedRank& row : ranks.not_recorded) {
    not_recorded.push_back(fmt::format("{} ({})", row.rank, printable(row.reason)));
  }
  if (!not_recorded.empty()) {
    section.notes.push_back(fmt::format(
        "no recording of ranks {}: the profiler failed, not the program", joined(not_recorded)));
  }
  const std::vector<std::string>& unreadable = ranks.unreadable;
  for (std::size_t i = 0; i < std::min(unreadable.size(), kMostNamed); ++i) {
    section.notes.push_back("skipped: " + printable(unreadable[i]));
  }
  if (unreadable.size() > kMostNamed) {
    section.notes.push_back(fmt::format("skipped: {} more files", unreadable.size() - kMostNamed));
  }
  for (const AttemptRanks& row : ranks.earlier_attempts) {
    section.notes.push_back(
        fmt::format("the job was restarted: attempt {} counts; attempt {} of ranks {} is left out",
                    report.attempt, row.attempt, joined(row.ranks)));
  }
}

Section section_of(const char* id, const char* title) {
  Section section;
  section.id = id;
  section.title = title;
  return section;
}

// Rows are sorted by severity, so the first one of each table is the one to name.
Section summary(const FleetReport& report) {
  Section section = section_of("summary", "Ranks");
  section.paragraphs.push_back(presence_text(report.presence));
  const RankVerdict* worst =
      report.stragglers.empty() ? nullptr : &report.ranks[report.stragglers[0]];
  section.paragraphs.push_back(worst != nullptr && worst->is_straggler
                                   ? late_sentence(report, *worst)
                                   : nobody_sentence(report));
  if (!report.nodes.empty() && report.nodes[0].is_outlier) {
    const GroupSpread& node = report.nodes[0];
    section.paragraphs.push_back(fmt::format(
        "node {} is slow: its {} are {} off the median", printable_name(printable(node.name)),
        count_of(node.num_ranks, "rank"), format_change(node.deviation_fraction)));
  }
  if (!report.kernels.empty()) {
    const KernelOutlier& kernel = report.kernels[0];
    section.paragraphs.push_back(fmt::format(
        "kernel {} in {} is slow on {} of {} ranks: up to {:.2f}x, about {} lost",
        short_kernel(kernel.kernel), printable_name(printable(kernel.stage)), kernel.num_slow,
        kernel.num_ranks, kernel.slow_ratio, format_duration_ns(kernel.excess_ns)));
  }
  add_groups(report, section);
  add_troubles(report, section);
  return section;
}

Section rank_section(const FleetReport& report, std::size_t top) {
  using T = RankVerdict;
  Section section = section_of("ranks", "Late ranks, worst first");
  const std::vector<RankVerdict> ranks = report.rank_table();
  section.tables.push_back(
      table_of(MetricRows<T>{"rank_table", &ranks},
               {{"rank", CellFormat::kCount, &T::rank},
                {"node", CellFormat::kText, &T::node},
                {"own time", CellFormat::kDuration, &T::own_ns},
                {"off median", CellFormat::kFraction, &T::deviation_fraction},
                {"collectives", CellFormat::kDuration, &T::collectives, &CollectiveTime::total_ns},
                {"waiting", CellFormat::kDuration, &T::collectives, &CollectiveTime::waiting_ns},
                {"last at", CellFormat::kCount, &T::num_last},
                {"others waited", CellFormat::kDuration, &T::blamed_ns}},
               top));
  const auto num_late = std::count_if(ranks.begin(), ranks.end(),
                                      [](const RankVerdict& rank) { return rank.is_straggler; });
  const auto num_ranks = static_cast<std::int64_t>(ranks.size());
  section.notes.push_back(fmt::format(
      "{} late; own time is {}{}", count_of(num_late, "rank"), report.quantity,
      report.num_measured == num_ranks
          ? ""
          : fmt::format(", which {} of {} ranks have", report.num_measured, num_ranks)));
  return section;
}

// A section with one table; where it has no rows, `missing` says why.
template <typename Row>
Section table_section(const char* id, const char* title, const std::vector<Row>& rows,
                      const char* missing,
                      const std::vector<MemberColumn<std::type_identity_t<Row>>>& columns,
                      std::size_t top) {
  Section section = section_of(id, title);
  if (rows.empty()) {
    section.missing = missing;
  } else {
    section.tables.push_back(table_of(MetricRows<Row>{id, &rows}, columns, top));
  }
  return section;
}

Section collective_section(const FleetReport& report) {
  Section section = section_of("collectives", "Collectives: waiting and transfer");
  const JobCollectives& collectives = report.collectives;
  // A job of one rank, or one without communication kernels, has no collectives.
  if (collectives.num == 0) {
    section.missing =
        "n/a: no collectives were found; sends and receives are not matched between ranks";
    return section;
  }
  const auto fact = [&](const char* label, CellFormat format, auto member) {
    section.facts.push_back(
        {label, value_at(report, format, &FleetReport::collectives, member), ""});
  };
  fact("collectives", CellFormat::kCount, &JobCollectives::num);
  fact("time in them, all ranks", CellFormat::kDuration, &JobCollectives::total_ns);
  fact("of it transfer", CellFormat::kDuration, &JobCollectives::transfer_ns);
  fact("of it waiting", CellFormat::kDuration, &JobCollectives::waiting_ns);
  fact("seen by one rank alone", CellFormat::kDuration, &JobCollectives::alone_ns);
  for (const std::string& way : collectives.communicators_by) {
    section.notes.push_back("communicators: " + way);
  }
  if (collectives.num_mismatched > 0) {
    section.notes.push_back(
        fmt::format("{} of {} collectives have different kernels on different ranks: their "
                    "recordings do not begin at the same one, so waiting is not reliable",
                    collectives.num_mismatched, collectives.num));
  }
  return section;
}

// One row per group; how each shares the model is in the summary, with the evidence.
Section rank_group_section(const FleetReport& report, std::size_t top) {
  using T = JobGroup;
  return table_section(
      "groups", "Groups of ranks", report.groups,
      "n/a: the recordings do not name the groups of their collectives",
      {{"kind", CellFormat::kText, &T::kind},
       {"ranks", CellFormat::kText, &T::ranks},
       {"size", CellFormat::kCount, &T::size},
       {"in collectives", CellFormat::kDuration, &T::collectives, &GroupCollectives::total_ns},
       {"waiting", CellFormat::kDuration, &T::collectives, &GroupCollectives::waiting_ns},
       {"late rank", CellFormat::kCount, &T::late_rank},
       {"last at", CellFormat::kCount, &T::num_last},
       {"lost", CellFormat::kDuration, &T::lost_ns}},
      top);
}

// Which part of a layer takes the time of the job, and on which rank it takes longest.
Section part_section(const FleetReport& report, std::size_t top) {
  using T = FleetPart;
  return table_section("parts", "Parts of the model, over all ranks", report.parts,
                       "n/a: no layers were recognized in these recordings",
                       {{"pass", CellFormat::kText, &T::pass},
                        {"block", CellFormat::kText, &T::block},
                        {"part", CellFormat::kText, &T::part},
                        {"ranks", CellFormat::kCount, &T::num_ranks},
                        {"launches", CellFormat::kCount, &T::launches},
                        {"time", CellFormat::kDuration, &T::total_ns},
                        {"slowest rank", CellFormat::kCount, &T::slowest_rank},
                        {"its time", CellFormat::kDuration, &T::slowest_ns}},
                       top);
}

bool are_named(const std::vector<GroupSpread>& groups) {
  return std::any_of(groups.begin(), groups.end(),
                     [](const GroupSpread& group) { return group.is_named; });
}

Section spread_section(const char* id, const char* title, const std::vector<GroupSpread>& groups,
                       std::size_t top) {
  using T = GroupSpread;
  return table_section(id, title, are_named(groups) ? groups : std::vector<GroupSpread>(),
                       "n/a: the summaries do not name them",
                       {{"name", CellFormat::kText, &T::name},
                        {"ranks", CellFormat::kCount, &T::num_ranks},
                        {"off median", CellFormat::kFraction, &T::deviation_fraction},
                        {"worst rank", CellFormat::kCount, &T::worst_rank}},
                       top);
}

// Kernels that are slow on some ranks only: a sign of a slow GPU rather than slow code.
Section kernel_section(const FleetReport& report, std::size_t top) {
  using T = KernelOutlier;
  return table_section("kernels", "Kernels slower on some ranks", report.kernels,
                       "None: no kernel is slower on one rank than its other kernels",
                       {{"stage", CellFormat::kText, &T::stage},
                        {"slow ranks", CellFormat::kCount, &T::num_slow},
                        {"of", CellFormat::kCount, &T::num_ranks},
                        {"mean", CellFormat::kDuration, &T::mean_ns},
                        {"about lost", CellFormat::kDuration, &T::excess_ns},
                        {"worst rank", CellFormat::kCount, &T::worst_rank},
                        {"kernel", CellFormat::kName, &T::kernel}},
                       top);
}

}  // namespace

std::vector<FleetSection> fleet_sections(const FleetReport& report, std::size_t top) {
  return {
      {summary(report), "Ranks"},
      {rank_section(report, top), "Late ranks"},
      {collective_section(report), "Collectives", report.collectives.num > 0},
      {rank_group_section(report, top), "Groups of ranks", !report.groups.empty()},
      {part_section(report, top), "Parts of the model", !report.parts.empty()},
      {spread_section("nodes", "Nodes, slowest first", report.nodes, top), "Nodes",
       are_named(report.nodes)},
      {spread_section("gpus", "GPUs", report.gpus, top), "GPUs", are_named(report.gpus)},
      {kernel_section(report, top), "Kernels slower on some ranks"},
  };
}

std::string fleet_title(const FleetReport& report) {
  return report.run_id.empty() ? "Ranks of a job" : "Run " + printable(report.run_id);
}

Document fleet_document(const FleetReport& report, std::size_t top) {
  Document document;
  document.title = fleet_title(report);
  for (FleetSection& made : fleet_sections(report, top)) {
    document.sections.push_back(std::move(made.section));
  }
  return document;
}

}  // namespace gpuwhy
