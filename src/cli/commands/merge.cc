// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy merge: the summaries of a job's ranks, one answer. Twice over the files, the second time
// only over those of late ranks: they hold what made them late.
#include "fleet/merge/merge.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "fleet/merge/fleet_report.h"
#include "fleet/merge/job_report.h"
#include "fleet/summary/summary_file.h"
#include "report/fleet/fleet.h"
#include "session/writing/rank_folder.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostSummaryBytes = 2 * kGiB;  // of a merged summary of a large job

struct MergeCommandOptions {
  std::vector<std::string> inputs;
  std::string out;
  std::string html;
  RowLimit top{10};
  std::string keep_raw = "all";
  bool is_json = false;
  JsonPages pages;
};

bool is_summary(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("summary") && path.extension() == ".gpuwhy";
}

// What lies in the directories given.
struct FoundRanks {
  std::vector<fs::path> files;
  std::vector<OlderRank> unfinished;
};

void look_into(const fs::path& folder, bool goes_deeper, FoundRanks& found) {
  bool has_summary = false;
  std::vector<fs::path> inside;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored) && is_summary(entry.path())) {
      found.files.push_back(entry.path());
      has_summary = true;
    } else if (goes_deeper && entry.is_directory(ignored)) {
      inside.push_back(entry.path());
    }
  }
  if (failed) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {}", printable(folder.string()), failed.message()));
  }
  const auto place = rank_of_folder(folder.filename().string());
  if (place && !has_summary) {
    found.unfinished.push_back({place->rank, place->attempt});
  }
  for (const fs::path& path : inside) {
    look_into(path, false, found);
  }
}

FoundRanks find_ranks(const std::vector<std::string>& inputs) {
  FoundRanks found;
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (fs::is_directory(input, ignored)) {
      look_into(input, true, found);
    } else {
      found.files.emplace_back(input);
    }
  }
  std::sort(found.files.begin(), found.files.end());
  std::sort(found.unfinished.begin(), found.unfinished.end());
  if (found.files.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("no summary in {}{}", printable(inputs[0]),
                            found.unfinished.empty() ? "" : ", though ranks have begun there"),
                "gpuwhy run and gpuwhy analyze --out DIR write summary.gpuwhy");
  }
  return found;
}

struct MergedRanks {
  FleetSummary fleet;
  std::map<std::int64_t, fs::path> files;  // by rank
  std::vector<std::string> unreadable;     // files without a usable summary, and why
};

// Recordings of several ranks are the likely mistake.
std::string recordings_hint(const std::vector<fs::path>& files) {
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(files.size(), 2); ++i) {
    names += " " + printable(files[i].string());
  }
  return fmt::format(
      "merge joins summaries (summary.gpuwhy). Recordings of one job, a file per rank: gpuwhy "
      "analyze{}{}",
      names, files.size() > 2 ? " ..." : "");
}

MergedRanks merge_files(const std::vector<fs::path>& files) {
  FleetMerge merge;
  MergedRanks merged;
  for (const fs::path& file : files) {
    try {
      with_context(fmt::format("while reading {}", printable(file.string())), [&] {
        if (const auto rank = merge.add(read_file(file, kMostSummaryBytes))) {
          merged.files[*rank] = file;
        }
      });
    } catch (const MergeConflict&) {
      throw;
    } catch (const Error& error) {
      // One damaged file among thousands must not cost the answer. The report names it.
      merged.unreadable.emplace_back(error.what());
      if (merged.unreadable.size() == files.size()) {
        throw Error(error.kind(), error.what(), recordings_hint(files));
      }
    }
  }
  merged.fleet = merge.finish();
  return merged;
}

bool is_raw(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".nsys-rep" || extension == ".sqlite" || extension == ".ncu-rep";
}

// Removes recordings of all ranks but the late ones and the one nearest to the median.
std::string prune(const MergedRanks& merged, const FleetReport& report) {
  const std::set<std::int64_t> kept = ranks_to_keep(report);
  if (kept.empty()) {
    return "no rank stands out: all recordings were kept\n";
  }
  std::uint64_t bytes = 0;
  std::size_t num = 0;
  for (const auto& [rank, file] : merged.files) {
    for (const char* folder : {"nsys", "ncu"}) {
      std::error_code ignored;
      if (kept.contains(rank) || !rank_of_folder(file.parent_path().filename().string())) {
        continue;
      }
      for (const fs::directory_entry& entry :
           fs::directory_iterator(file.parent_path() / folder, ignored)) {
        if (is_raw(entry.path()) && fs::is_regular_file(entry.symlink_status(ignored))) {
          bytes += entry.file_size(ignored);
          num += fs::remove(entry.path(), ignored) ? 1 : 0;
        }
      }
    }
  }
  return fmt::format("removed {} recordings ({}); kept those of ranks {}\n", num,
                     format_bytes(bytes), fmt::join(kept, ", "));
}

int run_merge(const MergeCommandOptions& options, Context& context) {
  check_pages(options.pages, options.is_json);
  const FoundRanks found = find_ranks(options.inputs);
  const MergedRanks merged = merge_files(found.files);
  FleetReport report = report_fleet(merged.fleet);
  explain_stragglers(
      merged.fleet,
      [&](std::int64_t rank) {
        const auto file = merged.files.find(rank);
        return file == merged.files.end()
                   ? std::nullopt
                   : std::optional(read_summary(read_file(file->second, kMostSummaryBytes)));
      },
      report);
  report.presence.unfinished = by_attempt(found.unfinished);
  report.presence.unreadable = merged.unreadable;
  if (!options.out.empty()) {
    write_file(options.out, fleet_bytes(merged.fleet));
  }
  if (!options.html.empty()) {
    write_file(options.html, fleet_page(report, options.top.rows));
  }
  context.console.out(options.is_json ? paged(fleet_json_text(report), options.pages)
                                      : terminal_text(fleet_document(report, options.top.rows),
                                                      context.console.form()));
  if (options.keep_raw == "outliers") {
    context.console.err(prune(merged, report));
  }
  const bool is_whole = report.presence.num_missing == 0 && merged.unreadable.empty();
  return is_whole ? kExitOk : kExitIncomplete;
}

}  // namespace

Command merge_command() {
  auto options = std::make_shared<MergeCommandOptions>();
  Command command;
  command.name = "merge";
  command.summary = "Merge the ranks of a job: which are late and why, slow nodes";
  command.options = {
      required({"RANKS", "",
                "A run's directory, or summaries: of ranks (summary.gpuwhy) or merged ones",
                &options->inputs}),
      {"-o,--out", "FILE", "Write the merged summary: it merges like a rank's", &options->out},
      {"--html", "FILE", "Write the report as a page, with a heat map", &options->html},
      {"--top", "N", "Rows per table, or all", &options->top},
      one_of({"all", "outliers"},
             {"--keep-raw", "WHICH",
              "outliers: remove recordings but those of late ranks and of one at the median",
              &options->keep_raw}),
      json_option(options->is_json),
  };
  add_page_options(command, options->pages);
  command.examples =
      "  gpuwhy merge gpuwhy-runs/4711 --html report.html\n"
      "  gpuwhy merge rack1.gpuwhy rack2.gpuwhy --out all.gpuwhy --json\n";
  command.run = [options](Context& context) { return run_merge(*options, context); };
  return command;
}

}  // namespace gpuwhy
