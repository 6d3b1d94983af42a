// SPDX-License-Identifier: Apache-2.0
//
// Check of every path that a client names.
//
// The check comes before the file is opened, so it does not protect from a process that swaps
// files for links meanwhile: a process that can write below the root is trusted.
#include "agents/confined_root.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 1000;
constexpr std::size_t kMostChecked = 20'000;  // of a folder that is read as a bundle

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error(ErrorKind::kUsage, fmt::format("path '{}' {}", printable(path), why),
              "give a path relative to the root; tool open with path . lists it");
}

}  // namespace

ConfinedRoot::ConfinedRoot(const fs::path& folder) {
  std::error_code failure;
  root_ = fs::canonical(folder, failure);
  if (failure || !fs::is_directory(root_, failure)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--root {} is not a folder", printable(folder.string())));
  }
}

// By the words of the path, not its letters: /data-old is not inside of /data.
bool ConfinedRoot::is_inside(const fs::path& resolved) const {
  return std::mismatch(root_.begin(), root_.end(), resolved.begin(), resolved.end()).first ==
         root_.end();
}

// The words of a path are checked first, so that the message says what is wrong with it; then links
// are resolved, and what they lead to is checked.
fs::path ConfinedRoot::resolve(const std::string& path) const {
  const fs::path given(path);
  if (path.empty() || path.find('\0') != std::string::npos) {
    refuse(path, "is not a path");
  }
  if (given.is_absolute()) {
    refuse(path, "is absolute");
  }
  if (std::find(given.begin(), given.end(), "..") != given.end()) {
    refuse(path, "leaves the root");
  }
  std::error_code failure;
  fs::path resolved = fs::canonical(root_ / given, failure);
  if (failure) {
    refuse(path, "does not exist");
  }
  if (!is_inside(resolved)) {
    refuse(path, "leaves the root");
  }
  if (fs::is_regular_file(resolved, failure)) {
    return resolved;
  }
  if (!fs::is_directory(resolved, failure)) {
    refuse(path, "is neither a file nor a folder");
  }
  return resolved;
}

void ConfinedRoot::check_links(const fs::path& folder) const {
  std::error_code failure;
  std::size_t num_checked = 0;
  for (fs::recursive_directory_iterator at(folder, failure), end; at != end && !failure;
       at.increment(failure)) {
    if (++num_checked > kMostChecked) {
      refuse(shown(folder), "holds too many files to be a bundle");
    }
    std::error_code broken;
    if (at->is_symlink(broken) && !is_inside(fs::weakly_canonical(at->path(), broken))) {
      refuse(shown(folder), "holds a link that leaves the root");
    }
    if (!at->is_symlink(broken) && !at->is_regular_file(broken) && !at->is_directory(broken)) {
      refuse(shown(folder), "holds something that is neither a file nor a folder");
    }
  }
  if (failure) {
    refuse(shown(folder), "cannot be listed");
  }
}

std::vector<ConfinedRoot::Entry> ConfinedRoot::entries(const fs::path& folder) const {
  std::vector<Entry> found;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; at != end && !failure;
       at.increment(failure)) {
    std::error_code ignored;
    const fs::path resolved = fs::canonical(at->path(), ignored);
    const bool is_folder = fs::is_directory(resolved, ignored);
    const bool is_shown = !at->path().filename().string().starts_with('.') && is_inside(resolved) &&
                          (is_folder || fs::is_regular_file(resolved, ignored));
    if (is_shown) {
      const std::uintmax_t size_bytes = is_folder ? 0 : fs::file_size(resolved, ignored);
      found.push_back({shown(folder / at->path().filename()), is_folder, size_bytes});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const Entry& a, const Entry& b) { return a.path < b.path; });
  found.resize(std::min(found.size(), kMostEntries));
  return found;
}

std::string ConfinedRoot::shown(const fs::path& resolved) const {
  return resolved.lexically_relative(root_).string();
}

}  // namespace gpuwhy
