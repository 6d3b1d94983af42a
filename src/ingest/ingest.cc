// SPDX-License-Identifier: Apache-2.0
//
// Table of the supported input formats, and detection of the format of a file.
//
// The first importer whose sniff accepts the file reads it, so formats recognized by their contents
// come before those recognized by the file name.
#include "ingest/ingest.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/list_of.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "ingest/small_tables.h"
#include "ingest/sqlite/sqlite_file.h"

namespace gpuwhy {
namespace {

const Importer* const kImporters[] = {
    &kNsysSqlite,
    &kNsysReport,
    &kNsysCsv,
    &kKinetoJson,
};

const CounterImporter* const kCounterImporters[] = {
    &kNcuReport,
    &kNcuCsv,
};

constexpr std::size_t kHeadSize = 1024;  // gzip's text may follow 300 bytes of tables

// "a, b or c".
std::string either(const std::vector<std::string>& words) {
  return words.size() < 2 ? fmt::format("{}", fmt::join(words, ""))
                          : fmt::format("{} or {}", fmt::join(words.begin(), words.end() - 1, ", "),
                                        words.back());
}

// Kinds of files grouped by tool: "report of Nsight Systems, trace of PyTorch's profiler".
std::string kinds_text(const std::vector<FormatInfo>& formats) {
  std::vector<std::pair<std::string_view, std::vector<std::string>>> tools;
  for (const FormatInfo& format : formats) {
    auto tool =
        std::ranges::find_if(tools, [&](const auto& known) { return known.first == format.tool; });
    if (tool == tools.end()) {
      tool = tools.insert(tools.end(), {format.tool, {}});
    }
    tool->second.emplace_back(format.kind);
  }
  std::vector<std::string> groups;
  groups.reserve(tools.size());
  for (const auto& [tool, kinds] : tools) {
    groups.push_back(fmt::format("{} of {}", either(kinds), tool));
  }
  return fmt::format("{}", fmt::join(groups, ", "));
}

std::string reads_hint(const std::vector<FormatInfo>& formats) {
  return fmt::format("it reads: {}; gpuwhy list formats says how each is made",
                     kinds_text(formats));
}

const Importer& importer_of(const InputFile& file) {
  const std::string path = file.path().string();
  if (file.head().empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{} is empty", path),
                "the program that wrote it did not finish: write it again");
  }
  for (const Importer* importer : kImporters) {
    if (importer->sniff(file)) {
      return *importer;
    }
  }
  if (path.ends_with(".ncu-rep")) {
    throw Error(ErrorKind::kInput, fmt::format("{}: counters, not a recording", path),
                "gpuwhy ncu FILE shows them; gpuwhy analyze RECORDING --ncu FILE joins them");
  }
  if (file.head().find("nsight-systems") != std::string_view::npos &&
      file.head().find("/reports/") != std::string_view::npos) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: what nsys stats printed, not a recording", path),
                "give it the SQLite file that is named there, or: nsys stats --report "
                "cuda_gpu_kern_sum --format csv FILE.nsys-rep > kernels.csv");
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {}not a recording that gpuwhy reads", path,
                          file.sqlite() != nullptr ? "a SQLite database, but " : ""),
              reads_hint(recording_formats()));
}

// What may hold counters in a folder and below it. Links to folders are not followed.
struct CounterFiles {
  std::vector<std::pair<bool, std::filesystem::path>> files;  // printed, or a report
  std::vector<std::string> closed;  // folders that could not be read to the end, and why
};

CounterFiles counter_files_in(const std::filesystem::path& path) {
  constexpr std::size_t kMostCounterFiles = 4096;
  CounterFiles found;
  std::vector<std::filesystem::path> folders = {path};
  while (!folders.empty()) {
    const std::filesystem::path folder = std::move(folders.back());
    folders.pop_back();
    std::error_code failure;
    std::error_code ignored;
    for (std::filesystem::directory_iterator entry(folder, failure), end; !failure && entry != end;
         entry.increment(failure)) {
      const std::filesystem::path extension = entry->path().extension();
      if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
        folders.push_back(entry->path());
      } else if (extension == ".ncu-rep" || extension == ".csv" || extension == ".txt") {
        found.files.emplace_back(extension != ".ncu-rep", entry->path());
      }
      if (found.files.size() > kMostCounterFiles) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("{} has more than {} files that may hold counters "
                                "(.ncu-rep, .csv, .txt)",
                                path.string(), kMostCounterFiles),
                    "give a folder that has the counters alone, or the files by name");
      }
    }
    if (failure) {
      found.closed.push_back(fmt::format("{}: {}", folder.string(), failure.message()));
    }
  }
  // Reports come first: their values are not rounded.
  std::ranges::sort(found.files);
  std::ranges::sort(found.closed);
  return found;
}

}  // namespace

InputFile::InputFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path_, ignored)) {
    const bool is_result = std::filesystem::exists(path_ / layout::kMetrics, ignored);
    throw Error(ErrorKind::kUsage,
                fmt::format("{} {}", path_.string(),
                            is_result ? "holds the results of analyze, not the recording"
                                      : "is a directory"),
                fmt::format("give a file: {}", recording_kinds(true)));
  }
  // Opening a pipe would wait for a writer, maybe forever.
  if (std::filesystem::exists(path_, ignored) &&
      !std::filesystem::is_regular_file(path_, ignored)) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is not a regular file", path_.string()));
  }
  std::ifstream file(path_, std::ios::binary);
  if (!file) {
    throw Error(ErrorKind::kUsage,
                fmt::format("cannot read {}: {}", path_.string(), std::strerror(errno)));
  }
  head_.resize(kHeadSize);
  file.read(head_.data(), static_cast<std::streamsize>(head_.size()));
  head_.resize(static_cast<std::size_t>(file.gcount()));
}

InputFile::~InputFile() = default;
InputFile::InputFile(InputFile&& other) noexcept = default;
InputFile& InputFile::operator=(InputFile&& other) noexcept = default;

// Only the magic is checked here: whose database it is, the importers find out by its tables.
const SqliteFile* InputFile::sqlite() const {
  if (sqlite_ == nullptr && head_.starts_with("SQLite format 3")) {
    sqlite_ = std::make_unique<SqliteFile>(path_);
  }
  return sqlite_.get();
}

void require_16_bits(std::size_t num_processes, std::size_t num_devices) {
  if (num_processes > UINT16_MAX) {
    throw Error(ErrorKind::kInput, "the recording has more than 65,535 processes");
  }
  if (num_devices > kMostDevices) {
    throw Error(ErrorKind::kInput,
                fmt::format("the recording has more than {} GPUs: no machine has", kMostDevices));
  }
}

Recording load_input(const InputFile& file, unsigned num_threads) {
  const Importer& importer = importer_of(file);
  Recording recording = importer.load(file, num_threads);
  CaptureInfo& capture =
      std::visit([](auto& held) -> CaptureInfo& { return held.capture; }, recording);
  capture.path = file.path().string();
  capture.format = importer.format;
  if (const Trace* trace = std::get_if<Trace>(&recording)) {
    require_16_bits(trace->processes.size(), trace->devices.size());
  }
  return recording;
}

Trace load_trace(const InputFile& file, unsigned num_threads) {
  Recording recording = load_input(file, num_threads);
  if (Trace* trace = std::get_if<Trace>(&recording)) {
    return std::move(*trace);
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{} has totals of kernels, but no events", file.path().string()),
              fmt::format("give a {}", recording_kinds(false)));
}

TraceOutline outline_trace(const InputFile& file) {
  const Importer& importer = importer_of(file);
  if (importer.outline == nullptr) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: the memory it needs is not known before it is read, because it is "
                            "a {} of {}",
                            file.path().string(), importer.format.kind, importer.format.tool));
  }
  TraceOutline outline = importer.outline(file);
  outline.format = importer.format.name;
  return outline;
}

Counters load_counters(const InputFile& file) {
  for (const CounterImporter* importer : kCounterImporters) {
    if (importer->sniff(file)) {
      const std::string path = file.path().string();
      Counters counters = with_context(path, [&] { return importer->load(file); });
      counters.path = path;
      counters.format = importer->format.name;
      return counters;
    }
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: no counters that gpuwhy reads", file.path().string()),
              reads_hint(counter_formats()));
}

std::vector<Counters> load_counter_files(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::is_directory(path, failure)) {
    std::vector<Counters> one;
    one.push_back(load_counters(InputFile(path)));
    return one;
  }
  const CounterFiles found = counter_files_in(path);
  const auto& files = found.files;
  std::vector<Counters> all;
  std::string first_unread;
  std::int64_t num_unread = 0;
  for (const auto& [is_printed, file] : files) {
    try {
      all.push_back(load_counters(InputFile(file)));
    } catch (const Error& error) {
      if (!is_printed || error.kind() != ErrorKind::kInput) {
        throw;
      }
      first_unread = ++num_unread == 1 ? error.what() : first_unread;
    }
  }
  if (all.empty()) {
    const std::string why =
        !first_unread.empty() || found.closed.empty() ? first_unread : found.closed.front();
    throw Error(ErrorKind::kInput,
                fmt::format("{}: no file of it has counters that gpuwhy reads{}", path.string(),
                            why.empty() ? "" : "; " + why),
                reads_hint(counter_formats()));
  }
  if (const auto num_closed = static_cast<std::int64_t>(found.closed.size()); num_closed > 0) {
    all.front().diagnostics.push_back(
        {"counter_folders_left_out", Severity::kWarning, num_closed,
         fmt::format("{} of {} could not be read to the end: {}", count_of(num_closed, "folder"),
                     path.string(), found.closed.front())});
  }
  if (num_unread > 0) {
    all.front().diagnostics.push_back(
        {"counter_files_left_out", Severity::kWarning, num_unread,
         fmt::format("{} of {} files in {} were left out: {}", num_unread, files.size(),
                     path.string(), first_unread)});
  }
  return all;
}

std::vector<FormatInfo> recording_formats() {
  return list_of<FormatInfo>(kImporters, &Importer::format);
}

std::vector<FormatInfo> counter_formats() {
  return list_of<FormatInfo>(kCounterImporters, &CounterImporter::format);
}

FormatInfo format_named(std::string_view name) {
  for (const FormatInfo& format : recording_formats()) {
    if (format.name == name) {
      return format;
    }
  }
  return {};
}

std::string recording_kinds(bool with_totals) {
  std::vector<FormatInfo> formats = recording_formats();
  std::erase_if(formats,
                [&](const FormatInfo& format) { return !format.has_events && !with_totals; });
  return kinds_text(formats);
}

}  // namespace gpuwhy
