// SPDX-License-Identifier: Apache-2.0
//
// A recording is made on one machine and sent to another. What must not go with it was often
// written by somebody else: nsys keeps environments, programs print what they were told, ranges are
// named after requests.
//
// A secret has a shape or a name in front of it in one place, and in the next it stands alone. So
// there are two rounds: the first takes out what can be told and remembers it, the second looks for
// those bytes everywhere. Texts and SQLite files are written anew. A report of nsys or ncu, a
// packed page or trace cannot be: it is removed, and said to be. What is made of the recording, and
// packed, is removed too when a text of the recording changed, since its bytes cannot be searched.
//
// What this gets wrong: a secret that looks like nothing and has no name is not found, unless it is
// given.
#include "bundle/scrub_files.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/units.h"
#include "bundle/scrub.h"
#include "bundle/scrub_sqlite.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;
using What = ScrubbedFile::What;

constexpr std::uint64_t kLargestJson = 512 * kMiB;
constexpr const char* kPackedFiles[] = {"report.html", "compare.html", "trace.pftrace",
                                        "kernels.pb.gz"};

enum class FileKind { kSqlite, kJson, kText, kPacked };

std::string first_bytes(const fs::path& file) {
  std::string head(512, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return head;
}

FileKind kind_of(const fs::path& file) {
  const std::string head = first_bytes(file);
  if (head.starts_with("SQLite format 3")) {
    return FileKind::kSqlite;
  }
  const bool is_packed = std::any_of(std::begin(kPackedFiles), std::end(kPackedFiles),
                                     [&](const char* name) { return file.filename() == name; });
  if (is_packed || head.find('\0') != std::string::npos || head.starts_with("\x1f\x8b")) {
    return FileKind::kPacked;
  }
  return file.extension() == ".json" ? FileKind::kJson : FileKind::kText;
}

// Values in every text of a tree, keys included.
Json without_values(const Json& tree, const std::vector<std::string>& values) {
  if (tree.is_string()) {
    return scrub_text(tree.get_ref<const std::string&>(), values);
  }
  if (!tree.is_structured()) {
    return tree;
  }
  Json clean = tree.is_array() ? Json::array() : Json::object();
  for (const auto& [key, value] : tree.items()) {
    if (tree.is_array()) {
      clean.push_back(without_values(value, values));
    } else {
      clean[scrub_text(key, values)] = without_values(value, values);
    }
  }
  return clean;
}

void collect(const Json& before, const Json& after, std::vector<std::string>& keys) {
  if (before.is_string() && after.is_string()) {
    add_removed(before.get_ref<const std::string&>(), after.get_ref<const std::string&>(), keys);
  } else if (before.is_array() && after.is_array() && before.size() == after.size()) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      collect(before[i], after[i], keys);
    }
  } else if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.items()) {
      if (const auto other = after.find(key); other != after.end()) {
        collect(value, *other, keys);
      }
    }
  }
}

// True when `file` holds one of `values`, also across the pieces it is read in.
bool holds_any(const fs::path& file, const std::vector<std::string>& values) {
  std::size_t longest = 1;
  for (const std::string& value : values) {
    longest = std::max(longest, value.size());
  }
  std::ifstream in(file, std::ios::binary);
  std::string window;
  std::string piece(4 * kMiB, '\0');
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    window.append(piece, 0, static_cast<std::size_t>(in.gcount()));
    for (const std::string& value : values) {
      if (window.find(value) != std::string::npos) {
        return true;
      }
    }
    window.erase(0, window.size() - std::min(window.size(), longest - 1));
  }
  return false;
}

class FileScrubber {
 public:
  FileScrubber(const fs::path& root, std::vector<std::string> values)
      : root_(root), values_(std::move(values)) {}

  ScrubResult run() {
    find_files();
    for (const fs::path& file : files_) {
      clean(file);
    }
    keep_once(values_);
    for (const fs::path& file : files_) {
      if (fs::exists(file) && holds_any(file, values_)) {
        clean(file);  // now with what other files told
      }
    }
    if (recording_changed_) {
      for (const fs::path& file : files_) {
        if (kind_is_packed(file) && !is_report(file)) {
          remove(file, "made of the recording, which held a secret");
        }
      }
    }
    verify();
    result_.num_keys = values_.size() - given_;
    return std::move(result_);
  }

 private:
  void find_files() {
    keep_once(values_);
    given_ = values_.size();
    if (fs::is_regular_file(fs::symlink_status(root_))) {
      files_ = {root_};
      return;
    }
    std::error_code failure;
    for (auto file = fs::recursive_directory_iterator(root_, failure);
         !failure && file != fs::recursive_directory_iterator(); file.increment(failure)) {
      if (fs::is_symlink(file->symlink_status())) {
        result_.files.push_back({name_of(file->path()), What::kSkipped, "a link"});
      } else if (fs::is_regular_file(file->symlink_status())) {
        files_.push_back(file->path());
      }
    }
    if (failure) {
      throw Error(ErrorKind::kInput,
                  fmt::format("cannot read {}: {}", root_.string(), failure.message()));
    }
    std::sort(files_.begin(), files_.end());
  }

  std::string name_of(const fs::path& file) const {
    return file == root_ ? file.string() : file.lexically_relative(root_).generic_string();
  }

  static void keep_once(std::vector<std::string>& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }

  static bool kind_is_packed(const fs::path& file) {
    return fs::exists(file) && kind_of(file) == FileKind::kPacked;
  }
  static bool is_report(const fs::path& file) {
    return file.extension() == ".nsys-rep" || file.extension() == ".ncu-rep" ||
           file.extension() == ".qdrep";
  }

  void note(const fs::path& file, What what, std::string why) {
    const std::string name = name_of(file);
    const auto known = std::find_if(result_.files.begin(), result_.files.end(),
                                    [&](const ScrubbedFile& row) { return row.path == name; });
    if (known != result_.files.end()) {
      *known = {name, what, std::move(why)};
    } else {
      result_.files.push_back({name, what, std::move(why)});
    }
  }

  void remove(const fs::path& file, const char* why) {
    fs::remove(file);
    note(file, What::kRemoved, why);
  }

  void clean(const fs::path& file) {
    switch (kind_of(file)) {
      case FileKind::kSqlite:
        return clean_sqlite(file);
      case FileKind::kJson:
        return clean_json(file);
      case FileKind::kText:
        return clean_text(file);
      case FileKind::kPacked:
        if (!values_.empty() && holds_any(file, values_)) {
          remove(file, "holds a secret and cannot be rewritten");
        }
    }
  }

  void clean_sqlite(const fs::path& file) {
    const SqliteScrub scrub = scrub_sqlite(file, values_);
    values_.insert(values_.end(), scrub.keys.begin(), scrub.keys.end());
    recording_changed_ = recording_changed_ || !scrub.keys.empty();
    if (scrub.changed_texts > 0) {
      note(file, What::kChanged, fmt::format("{} texts", scrub.changed_texts));
    }
  }

  void clean_json(const fs::path& file) {
    if (fs::file_size(file) > kLargestJson) {
      return clean_text(file);
    }
    const Json before = parse_json(read_file(file, kLargestJson), file.string());
    const Json after = without_values(scrub_tree(before), values_);
    if (before != after) {
      collect(before, after, values_);
      write_file(file, to_json_text(after));
      note(file, What::kChanged, "");
    }
  }

  void clean_text(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::string line;
    bool has_changed = false;
    while (std::getline(in, line)) {
      const std::string clean = scrub_text(line, values_);
      has_changed = has_changed || clean != line;
      add_removed(line, clean, values_);
    }
    in.close();
    if (has_changed) {
      scrub_log(file, values_);
      note(file, What::kChanged, "");
    }
  }

  void verify() {
    for (const fs::path& file : files_) {
      if (fs::exists(file) && holds_any(file, values_)) {
        result_.left.push_back(name_of(file));
      }
    }
  }

  fs::path root_;
  std::vector<std::string> values_;  // what must not be in any file; grows
  std::size_t given_ = 0;
  std::vector<fs::path> files_;
  bool recording_changed_ = false;
  ScrubResult result_;
};

}  // namespace

void scrub_log(const fs::path& log, const std::vector<std::string>& values) {
  constexpr std::size_t kLongestLine = kMiB;
  std::ifstream in(log, std::ios::binary);
  FileWriter out(log, 0600);
  std::string line;
  while (std::getline(in, line)) {
    out.write(line.size() > kLongestLine ? "[a line of more than 1 MiB]"
                                         : scrub_text(line, values));
    out.write("\n");
  }
  if (in.bad()) {
    throw Error(ErrorKind::kFailure, fmt::format("cannot read {}", log.string()));
  }
  out.commit();
}

ScrubResult scrub_files(const fs::path& root, std::vector<std::string> values) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(root, ignored)) || fs::is_symlink(fs::symlink_status(root))) {
    throw Error(ErrorKind::kInput, fmt::format("there is no file or folder {}", root.string()));
  }
  return FileScrubber(root, std::move(values)).run();
}

}  // namespace llmprof
