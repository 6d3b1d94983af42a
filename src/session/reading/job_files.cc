// SPDX-License-Identifier: Apache-2.0
//
// Several recordings of one job, one file per rank or host, read as one.
//
// A few files are read in full. Jobs of hundreds of ranks are joined from summaries instead
// (gpuwhy merge), whose size does not depend on the recording's.
#include "session/reading/job_files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "analysis/names/rules.h"
#include "analysis/ranks/clock_alignment.h"
#include "analysis/ranks/rank_names.h"
#include "base/error.h"
#include "base/task_graph.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostFiles = 64;

// File names where they tell the files apart, else paths as given.
std::vector<std::string> labels_of(const std::vector<std::string>& paths) {
  std::vector<std::string> labels;
  labels.reserve(paths.size());
  for (const std::string& path : paths) {
    labels.push_back(std::filesystem::path(path).filename().string());
  }
  const std::set<std::string> distinct(labels.begin(), labels.end());
  return distinct.size() == labels.size() && !distinct.contains("") ? labels : paths;
}

bool is_empty(const RankName& name) {
  return !name.rank && !name.tensor && !name.pipeline && !name.data;
}

// Of the file, or of the folder it lies in.
RankName name_of(const std::filesystem::path& path) {
  const RankName name = rank_in_name(path.filename().string());
  return is_empty(name) ? rank_in_name(path.parent_path().filename().string()) : name;
}

// In the order in which engines number ranks. Files that say nothing keep their order.
void sort_by_rank(std::vector<TracePart>& parts) {
  const auto key = [](const TracePart& part) {
    const RankName& name = part.file.name;
    return std::tuple(name.data.value_or(0), name.pipeline.value_or(0), name.tensor.value_or(0),
                      part.file.rank.value_or(0));
  };
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const TracePart& a, const TracePart& b) { return key(a) < key(b); });
}

void check_formats(const TracePart& first, const TracePart& part) {
  const FormatInfo& a = first.trace.capture.format;
  const FormatInfo& b = part.trace.capture.format;
  if (a.name != b.name) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is {}, and {} is {}: files of one job have one format",
                            first.file.file, a.name, part.file.file, b.name),
                "analyze them one by one");
  }
}

Trace trace_of(const InputFile& file, const std::string& label, unsigned num_threads) {
  Recording recording = load_input(file, num_threads);
  if (Trace* trace = std::get_if<Trace>(&recording)) {
    return std::move(*trace);
  }
  throw Error(
      ErrorKind::kUsage,
      fmt::format("{} has totals without times: it cannot be joined with other files", label),
      "use the recordings that the totals were made from");
}

// A process that neither used a GPU nor ran operators nor marked steps, as the front end of an
// engine does, which its profiler also records. It is not a rank, and nothing tells its time.
bool is_without_work(const Trace& trace) {
  return trace.kernels.size() + trace.copies.size() + trace.graphs.size() + trace.api_calls.size() +
             trace.ranges.size() + trace.ops.size() ==
         0;
}

// Leaves out the files without work, unless all are.
Diagnostics leave_out_idle_files(std::vector<TracePart>& parts) {
  Diagnostics notes;
  if (std::all_of(parts.begin(), parts.end(),
                  [](const TracePart& part) { return is_without_work(part.trace); })) {
    return notes;
  }
  std::erase_if(parts, [&](const TracePart& part) {
    if (is_without_work(part.trace)) {
      notes.push_back({"file_without_work", Severity::kInfo, 1,
                       fmt::format("{} is left out: it has no GPU work, operators or marks",
                                   printable(part.file.file))});
    }
    return is_without_work(part.trace);
  });
  return notes;
}

}  // namespace

void check_job_files(const std::vector<std::string>& paths) {
  if (paths.size() > kMostFiles) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} files are given, and at most {} are read together", paths.size(),
                            kMostFiles),
                "analyze each rank with --out DIR; gpuwhy merge joins the summaries of any number");
  }
  std::set<std::filesystem::path> seen;
  for (const std::string& path : paths) {
    std::error_code failure;
    const std::filesystem::path real = std::filesystem::canonical(path, failure);
    if (!failure && !seen.insert(real).second) {
      throw Error(ErrorKind::kUsage, fmt::format("{} is given twice", path),
                  "several files are taken as ranks of one job: give each once");
    }
  }
}

std::string job_name(const std::vector<std::string>& paths) {
  return paths.size() == 1 ? paths.front()
                           : fmt::format("{} and {} more", paths.front(), paths.size() - 1);
}

Trace load_job(const JobFiles& job) {
  const std::vector<std::string> labels = labels_of(job.paths);
  std::vector<TracePart> parts(job.files.size());
  // Files are read side by side, each by one thread where there are enough of them: what one thread
  // does alone (opening, schema, names) then overlaps too. All rows stay in memory in either case;
  // files_at_once bounds what is needed only to read them.
  const auto num_readers = std::max(
      1U, std::min({job.files_at_once, job.num_threads, static_cast<unsigned>(parts.size())}));
  const unsigned threads_each = std::max(1U, job.num_threads / num_readers);
  std::vector<std::function<void()>> tasks;
  tasks.reserve(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tasks.emplace_back([&, i] {
      TracePart& part = parts[i];
      part.trace = trace_of(job.files[i], labels[i], threads_each);
      name_graph_kernels(job.paths[i], job.graph_names, job.memory_limit_bytes, part.trace);
      part.file.file = labels[i];
      part.file.name = name_of(job.paths[i]);
      part.file.rank = part.file.name.rank ? part.file.name.rank : part.trace.capture.rank;
    });
  }
  run_tasks(tasks, num_readers);
  for (const TracePart& part : parts) {
    check_formats(parts.front(), part);
  }
  Diagnostics notes = leave_out_idle_files(parts);
  sort_by_rank(parts);
  for (const Diagnostic& note : align_clocks(job.rules, job.parallelism, parts)) {
    notes.push_back(note);
  }
  Trace whole = join_traces(std::move(parts));
  whole.diagnostics.insert(whole.diagnostics.end(), notes.begin(), notes.end());
  return whole;
}

}  // namespace gpuwhy
