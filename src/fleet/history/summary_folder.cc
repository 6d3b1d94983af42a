// SPDX-License-Identifier: Apache-2.0
//
// Search for summary files in a folder. Links to folders are not followed: they may form a cycle.
#include "fleet/history/summary_folder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "fleet/summary/summary_file.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestSummary = 64 * kMiB;  // usual ones have 100 KB

// Rows with equal keys would be one row on a server and two in a folder.
void check_keys(const RankSummary& summary) {
  const auto is_same_stage = [](const StageSums& a, const StageSums& b) {
    return a.stage == b.stage;
  };
  const auto is_same_part = [](const PartRow& a, const PartRow& b) {
    return a.pass == b.pass && a.block == b.block && a.part == b.part;
  };
  const auto has_twice = [](const auto& rows, auto is_same) {
    return std::adjacent_find(rows.begin(), rows.end(), is_same) != rows.end();
  };
  if (has_twice(summary.kernels, std::equal_to<KernelName>()) ||
      has_twice(summary.stages, is_same_stage) || has_twice(summary.parts, is_same_part)) {
    throw Error(ErrorKind::kInput, "it lists a kernel, stage or part twice");
  }
}

// Merged files (fleet/summary/columnar_file.h: magic, checksum, version, then the kind) have no
// single rank.
bool is_merged(const fs::path& path) {
  std::array<char, 19> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return std::string_view(head.data() + 13, 6) ==
         "\x05"
         "fleet";
}

}  // namespace

std::vector<fs::path> summaries_in(const fs::path& path) {
  std::error_code failure;
  std::vector<fs::path> found;
  // A directory is searched for files of ranks. A file that is named is taken as it is, merged or
  // not.
  if (fs::is_directory(path, failure)) {
    fs::recursive_directory_iterator files(path, fs::directory_options::skip_permission_denied,
                                           failure);
    for (; !failure && files != fs::end(files); files.increment(failure)) {
      std::error_code ignored;
      if (files->path().extension() == ".gpuwhy" && files->is_regular_file(ignored) &&
          !is_merged(files->path())) {
        found.push_back(files->path());
      }
    }
  } else if (fs::exists(path, failure)) {
    found.push_back(path);
  }
  if (found.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("no summaries in {}", path.string()),
                "gpuwhy run and gpuwhy analyze --out DIR leave a rank's summary as summary.gpuwhy");
  }
  std::sort(found.begin(), found.end());
  return found;
}

StoredSummary load_summary(const fs::path& path) {
  return with_context("while reading " + path.string(), [&] {
    const std::string bytes = read_file(path, kLargestSummary);
    StoredSummary stored;
    stored.summary = read_summary(bytes);
    check_keys(stored.summary);
    stored.content = key_of(bytes);
    std::error_code ignored;
    const auto modified = fs::last_write_time(path, ignored);
    const auto since = std::chrono::file_clock::to_sys(modified).time_since_epoch();
    stored.modified_ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
    return stored;
  });
}

}  // namespace gpuwhy
