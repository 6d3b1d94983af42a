// SPDX-License-Identifier: Apache-2.0
//
// List of the files that gpuwhy wrote into a folder that a user named.
//
// Names such as report.md are anybody's, and some of the files have no room for a mark. A file of
// the same size that somebody put in the place of ours counts as ours.
#include "session/writing/own_files.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "bundle/layout.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// Sizes by name; -1 while a file is being written.
using OwnFiles = std::map<std::string, std::int64_t, std::less<>>;

constexpr std::string_view kHeading = "Files that gpuwhy wrote here, and may replace:\n";

// Empty if there is no list, or another file under its name.
OwnFiles listed_in(const fs::path& folder) {
  OwnFiles files;
  std::error_code failure;
  if (!fs::is_regular_file(folder / layout::kOwnFiles, failure)) {
    return files;
  }
  const std::string text = read_file(folder / layout::kOwnFiles, kMiB);
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const auto size = parse_whole(line.substr(0, blank));
    if (text.starts_with(kHeading) && size && blank < line.size()) {
      files[std::string(line.substr(blank + 1))] = *size;
    }
  }
  return files;
}

void write_list(const fs::path& folder, const OwnFiles& files) {
  std::string text(kHeading);
  for (const auto& [name, size] : files) {
    text += fmt::format("{} {}\n", size, name);
  }
  write_file(folder / layout::kOwnFiles, text);
}

std::int64_t size_of(const fs::path& file) {
  std::error_code failure;
  const auto bytes = fs::file_size(file, failure);
  return failure ? -1 : static_cast<std::int64_t>(bytes);
}

}  // namespace

void claim_files(const fs::path& folder, const std::vector<std::string>& names) {
  OwnFiles files = listed_in(folder);
  std::error_code failure;
  for (const std::string& name : names) {
    const fs::path file = folder / name;
    const auto own = files.find(name);
    const bool is_own = own != files.end() && (own->second < 0 || own->second == size_of(file));
    if (!is_own && fs::exists(fs::symlink_status(file, failure))) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} would be replaced, and gpuwhy did not write it",
                              printable(file.string())),
                  "give another folder with --out, or move the file away");
    }
  }
  for (const std::string& name : names) {
    files[name] = -1;
  }
  write_list(folder, files);
}

void confirm_files(const fs::path& folder) {
  OwnFiles files = listed_in(folder);
  for (auto& [name, size] : files) {
    size = size_of(folder / name);
  }
  write_list(folder, files);
}

}  // namespace gpuwhy
