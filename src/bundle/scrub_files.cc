// SPDX-License-Identifier: Apache-2.0
//
// Removal of secrets from all files of a bundle or folder.
//
// A recording is made on one machine and sent to another. Its secrets often come from elsewhere:
// nsys stores environments, programs print their settings, ranges are named after requests.
//
// A secret has a known format or a revealing name in one place and stands alone in the next. So
// there are two rounds: the first removes what can be recognized and remembers it, the second
// searches for those bytes everywhere. Texts, trees and SQLite files are rewritten. An nsys or ncu
// report, a compressed trace or an HTML page cannot be: if it contains a secret it is removed, and
// the result says so. Files that gpuwhy generated from a recording are removed as soon as any file
// lost a secret: short secrets are not searched for in binary files, and these files can be
// generated again.
//
// What this gets wrong: a secret with no known format and no name is not found, unless its value is
// given.
#include "bundle/scrub_files.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "base/yaml.h"
#include "bundle/json_with_duplicates.h"
#include "bundle/layout.h"
#include "bundle/manifest.h"
#include "bundle/scrub.h"
#include "bundle/scrub_lines.h"
#include "bundle/scrub_sqlite.h"
#include "bundle/secret_search.h"
#include "bundle/secret_shapes.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;
using What = ScrubbedFile::What;

constexpr std::uint64_t kLargestTree = 512 * kMiB;
constexpr std::size_t kHeadBytes = 4 * kKiB;
constexpr std::size_t kBlockBytes = 256 * kKiB;
constexpr std::string_view kLongLine = "[a line of more than 1 MiB]";

enum class FileKind { kSqlite, kJson, kYaml, kText, kBinary };

[[noreturn]] void cannot_scrub_unread(const fs::path& file) {
  throw Error(ErrorKind::kInput, fmt::format("cannot read {}", file.string()),
              "make it readable, or take it out of the folder");
}

std::string first_bytes(const fs::path& file) {
  std::string head(kHeadBytes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (!in.is_open() || in.bad()) {
    cannot_scrub_unread(file);
  }
  head.resize(static_cast<std::size_t>(in.gcount()));
  return head;
}

template <std::size_t Size>
bool has_ending(const fs::path& file, const char* const (&endings)[Size]) {
  const std::string name = file.filename().string();
  return std::any_of(std::begin(endings), std::end(endings),
                     [&](const char* ending) { return name.ends_with(ending); });
}

FileKind kind_of(const fs::path& file) {
  constexpr const char* kBinaries[] = {".nsys-rep", ".qdrep", ".qdstrm", ".ncu-rep", ".pftrace"};
  const std::string head = first_bytes(file);
  if (head.starts_with("SQLite format 3")) {
    return FileKind::kSqlite;
  }
  if (has_ending(file, kBinaries) || is_page(head) || head.starts_with("\x1f\x8b") ||
      head.starts_with("\xff\xfe") || head.starts_with("\xfe\xff") ||
      head.find('\0') != std::string::npos) {
    return FileKind::kBinary;
  }
  return has_ending(file, {".json"})           ? FileKind::kJson
         : has_ending(file, {".yaml", ".yml"}) ? FileKind::kYaml
                                               : FileKind::kText;
}

// Pages and traces that gpuwhy generates from a recording.
bool is_made_of_recording(const fs::path& file) {
  const std::string head = first_bytes(file);
  return has_ending(file, {".pftrace", ".pb.gz"}) || head.starts_with("gpuwhy\x1a") ||
         (is_page(head) &&
          head.find(R"(<meta name="generator" content="gpuwhy">)") != std::string::npos);
}

// Both trees have the same structure, so removed values are found by position.
void collect(const Json& before, const Json& after, SecretValues& keys) {
  if (!before.is_structured()) {
    if (after.is_string()) {
      const std::string text = before.is_string() ? before.get<std::string>() : before.dump();
      add_removed(text, after.get_ref<const std::string&>(), keys);
    }
    return;
  }
  auto other = after.items().begin();
  for (const auto& item : before.items()) {
    if (before.is_object()) {
      add_removed(item.key(), other.key(), keys);
    }
    collect(item.value(), other.value(), keys);
    ++other;
  }
}

// YAML comments are not part of the tree.
bool has_secret_comment(std::string_view text, SecretValues& values) {
  bool has_found = false;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t mark = line.find('#');
    if (mark != std::string_view::npos) {
      const std::string_view comment = line.substr(mark);
      const std::string clean = scrub_text(comment, values);
      has_found = has_found || clean != comment;
      add_removed(comment, clean, values);
    }
  }
  return has_found;
}

// Calls back with each line and its clean form, in order. Of a line longer than `longest` only so
// much is kept in memory, and none is passed on: it was not searched. Stops when `is_over` says so,
// and returns the bytes that were not read by then.
std::uint64_t for_each_clean_line(
    const fs::path& file, LineScrubber::Form form, const SecretValues& values, std::size_t longest,
    const std::function<bool()>& is_over,
    const std::function<void(std::string_view line, std::string_view clean)>& use) {
  std::ifstream in(file, std::ios::binary);
  LineScrubber lines(form);
  std::string block(kBlockBytes, '\0');
  std::string open;  // the beginning of a line that goes on in the next block
  bool is_too_long = false;
  const auto end_line = [&](std::string_view line) {
    if (is_too_long || line.size() > longest) {
      // Its end may be the beginning of a private key.
      lines.clean(line.substr(line.size() - std::min(line.size(), kHeadBytes)), values);
      use("", kLongLine);
    } else {
      use(line, lines.clean(line, values));
    }
    is_too_long = false;
  };
  std::uint64_t num_read = 0;
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0) {
    if (is_over && is_over()) {
      // A line that is cut may be a secret that is cut, and not recognized: it goes too.
      return fs::file_size(file) - num_read + open.size();
    }
    num_read += static_cast<std::uint64_t>(in.gcount());
    std::string_view rest(block.data(), static_cast<std::size_t>(in.gcount()));
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      if (open.empty()) {
        end_line(rest.substr(0, end));
      } else {
        end_line(open.append(rest.substr(0, end)));
        open.clear();
      }
      rest.remove_prefix(end + 1);
    }
    is_too_long = is_too_long || open.size() + rest.size() > longest;
    open.append(rest);
    if (is_too_long && open.size() > kHeadBytes) {
      open.erase(0, open.size() - kHeadBytes);
    }
  }
  if (!open.empty() || is_too_long) {
    end_line(open);
  }
  if (!in.is_open() || in.bad()) {
    cannot_scrub_unread(file);
  }
  return 0;
}

std::uint64_t rewrite_lines(const fs::path& file, LineScrubber::Form form,
                            const SecretValues& values, unsigned mode, std::size_t longest,
                            const std::function<bool()>& is_over) {
  FileWriter out(file, mode);
  std::string text;
  const std::uint64_t num_left = for_each_clean_line(file, form, values, longest, is_over,
                                                     [&](std::string_view, std::string_view clean) {
                                                       text.append(clean).append("\n");
                                                       if (text.size() >= kBlockBytes) {
                                                         out.write(text);
                                                         text.clear();
                                                       }
                                                     });
  if (num_left > 0) {
    text += fmt::format("[{} more bytes were not searched for secrets, and left out]\n", num_left);
  }
  out.write(text);
  out.commit();
  return num_left;
}

// One scrub of a file or folder. The set of known secrets grows while it runs.
class FileScrubber {
 public:
  FileScrubber(const fs::path& root, const std::vector<std::string>& values)
      : root_(root), values_(values), given_(values_.size()) {}

  ScrubResult run() {
    // Round one: each file by itself. Round two: with the secrets that other files revealed.
    find_files();
    for (const fs::path& file : files_) {
      clean(file);
    }
    for (const fs::path& file : files_) {
      if (fs::exists(file) && holds_value(file, values_)) {
        clean(file);  // now with the secrets found in other files
      }
    }
    for (const fs::path& file : files_) {
      if (has_lost_secret_ && fs::exists(file) && is_made_of_recording(file)) {
        remove(file, "made from a file with a secret; gpuwhy can make it again");
      }
    }
    rename_files();
    if (!result_.files.empty()) {
      renew_manifest();
    }
    verify();
    result_.num_keys = values_.size() - given_;
    result_.secrets = std::move(values_);
    return std::move(result_);
  }

 private:
  void find_files() {
    if (fs::is_regular_file(fs::symlink_status(root_))) {
      files_ = {root_};
      return;
    }
    std::error_code failure;
    for (auto file = fs::recursive_directory_iterator(root_, failure);
         !failure && file != fs::recursive_directory_iterator(); file.increment(failure)) {
      // Links are never followed: they may lead out of the bundle.
      const fs::file_status status = file->symlink_status();
      if (fs::is_symlink(status)) {
        note(file->path(), What::kSkipped, "a link");
      } else if (fs::is_regular_file(status)) {
        files_.push_back(file->path());
      }
      if (fs::is_regular_file(status) || fs::is_directory(status)) {
        named_.push_back(file->path());
      }
    }
    if (failure) {
      throw Error(ErrorKind::kInput,
                  fmt::format("cannot read {}: {}", root_.string(), failure.message()));
    }
    std::sort(files_.begin(), files_.end());
  }

  // The name as it may be shown: it may contain a secret too.
  std::string name_of(const fs::path& file) const {
    return scrub_text(
        file == root_ ? file.string() : file.lexically_relative(root_).generic_string(), values_);
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
        return clean_tree(file, FileKind::kJson);
      case FileKind::kYaml:
        return clean_tree(file, FileKind::kYaml);
      case FileKind::kText:
        return clean_text(file, LineScrubber::Form::kText);
      case FileKind::kBinary:
        return clean_binary(file);
    }
  }

  void clean_sqlite(const fs::path& file) {
    const SqliteScrub scrub = scrub_sqlite(file, values_);
    values_.add(scrub.keys);
    has_lost_secret_ = has_lost_secret_ || scrub.held_secret;
    if (scrub.changed_texts > 0) {
      note(file, What::kChanged, fmt::format("{} texts", scrub.changed_texts));
    }
  }

  // A tree that cannot be parsed is treated as text.
  void clean_tree(const fs::path& file, FileKind kind) {
    const bool is_yaml = kind == FileKind::kYaml;
    const auto form = is_yaml ? LineScrubber::Form::kYaml : LineScrubber::Form::kText;
    if (fs::file_size(file) > kLargestTree) {
      return clean_text(file, form);
    }
    const std::string text = read_file(file, kLargestTree);
    Json before;
    try {
      before = is_yaml ? parse_yaml(text, file.string()) : parse_whole_json(text, file.string());
    } catch (const Error&) {
      return clean_text(file, form);
    }
    const Json after = without_values(scrub_tree(before), values_);
    collect(before, after, values_);
    if (before != after || (is_yaml && has_secret_comment(text, values_))) {
      write_file(file, is_yaml ? to_yaml_text(after) : to_json_text(after), mode_of(file));
      has_lost_secret_ = true;
      note(file, What::kChanged, "");
    }
  }

  void clean_text(const fs::path& file, LineScrubber::Form form) {
    bool has_changed = false;
    for_each_clean_line(file, form, values_, SIZE_MAX, {},
                        [&](std::string_view line, std::string_view clean) {
                          has_changed = has_changed || clean != line;
                          add_removed(line, clean, values_);
                        });
    if (has_changed) {
      rewrite_lines(file, form, values_, mode_of(file), SIZE_MAX, {});
      has_lost_secret_ = true;
      note(file, What::kChanged, "");
    }
  }

  // Binary files cannot be rewritten without their tool: searched, and removed on a hit.
  void clean_binary(const fs::path& file) {
    const SecretSearch search = search_file(file, values_);
    if (search.has_found) {
      values_.add(search.keys);
      has_lost_secret_ = true;
      remove(file, "holds a secret and cannot be rewritten");
    } else if (!search.unsearched.empty()) {
      note(file, What::kNotSearched, search.unsearched);
    }
  }

  // Deepest first, so that parent names stay valid.
  void rename_files() {
    std::sort(named_.begin(), named_.end(), std::greater<>());
    for (const fs::path& old : named_) {
      const std::string name = old.filename().string();
      std::string clean = scrub_text(name, values_);
      if (clean == name || !fs::exists(old)) {
        continue;
      }
      std::replace(clean.begin(), clean.end(), '[', '_');  // shells take them for patterns
      std::replace(clean.begin(), clean.end(), ']', '_');
      fs::path renamed = old.parent_path() / clean;
      for (int i = 2; fs::exists(fs::symlink_status(renamed)); ++i) {
        renamed = old.parent_path() / fmt::format("{}-{}", clean, i);
      }
      add_removed(name, scrub_text(name, values_), values_);
      fs::rename(old, renamed);
      note(renamed, What::kChanged, "its name held a secret");
      move_below(old, renamed);
    }
  }

  // Updates the remembered paths below a renamed folder.
  void move_below(const fs::path& old, const fs::path& renamed) {
    for (fs::path& file : files_) {
      if (file == old) {
        file = renamed;
      } else if (const fs::path inner = file.lexically_relative(old);
                 !inner.empty() && *inner.begin() != "..") {
        file = renamed / inner;
      }
    }
  }

  // Recomputes the hashes of the files as they are now.
  void renew_manifest() {
    std::error_code ignored;
    if (!fs::is_regular_file(fs::symlink_status(root_ / layout::kManifest, ignored))) {
      return;
    }
    const Artifacts artifacts = Artifacts::from_root(root_);
    Json run;
    try {
      run = read_manifest(artifacts).run;
    } catch (const Error& error) {
      return note(root_ / layout::kManifest, What::kSkipped, "not renewed: " + error.message());
    }
    write_manifest(artifacts, run);
  }

  // A last search of all bytes: what is found now is a failure that the caller reports.
  void verify() {
    for (const fs::path& file : files_) {
      if (fs::exists(file) && holds_value(file, values_)) {
        result_.left.push_back(name_of(file));
      }
    }
  }

  fs::path root_;
  SecretValues values_;  // what must not be in any file; grows
  std::size_t given_;
  std::vector<fs::path> files_;
  std::vector<fs::path> named_;  // these, and folders
  bool has_lost_secret_ = false;
  ScrubResult result_;
};

// Why a text is a secret, in words.
std::string rule_of(const std::string& secret, const std::vector<std::string>& given) {
  if (std::find(given.begin(), given.end(), secret) != given.end()) {
    return "value given or in the environment";
  }
  if (secret.find("PRIVATE KEY") != std::string::npos) {
    return "private key";
  }
  for (const KeyShape& shape : secret_shapes().keys()) {
    if (secret.starts_with(shape.prefix)) {
      return fmt::format("key that begins with {}", shape.prefix);
    }
  }
  return "value after a name such as password, or of a URL";
}

// Number of times that a text contains a secret, by rule. One secret may be a part of another, as
// the token of "Bearer TOKEN": the longest counts, and is blanked.
std::vector<std::pair<std::string, std::int64_t>> places_in(std::string text,
                                                            const SecretValues& secrets,
                                                            const std::vector<std::string>& given) {
  std::vector<std::string> longest_first(secrets.all().begin(), secrets.all().end());
  std::sort(longest_first.begin(), longest_first.end(),
            [](const std::string& a, const std::string& b) {
              return std::pair(b.size(), a) < std::pair(a.size(), b);
            });
  std::map<std::string, std::int64_t> counts;
  for (const std::string& secret : longest_first) {
    for (std::size_t at = text.find(secret); at != std::string::npos;
         at = text.find(secret, at + secret.size())) {
      text.replace(at, secret.size(), secret.size(), '\0');
      ++counts[rule_of(secret, given)];
    }
  }
  return {counts.begin(), counts.end()};
}

// A folder that only its owner can read, deleted with all that is in it.
class PrivateFolder {
 public:
  explicit PrivateFolder(const fs::path& parent)
      : path_((parent / "gpuwhy-scrub-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) {
      throw Error(ErrorKind::kFailure, fmt::format("cannot make a folder in {}", parent.string()),
                  "export TMPDIR=/some/writable/directory");
    }
  }
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  fs::path path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

ScrubResult dry_scrub_files(const fs::path& root, const std::vector<std::string>& values,
                            const fs::path& scratch) {
  const PrivateFolder folder(scratch);
  // The name of a file says what kind it is.
  const fs::path copy = folder.path() / (root.has_filename() ? root.filename() : "folder");
  std::error_code failure;
  fs::copy(root, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks, failure);
  if (failure) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot copy {} to {}: {}", root.string(), folder.path().string(),
                            failure.message()),
                "export TMPDIR=/some/directory/with/more/space");
  }
  ScrubResult result = scrub_files(copy, values);
  for (ScrubbedFile& file : result.files) {
    const bool is_root = fs::path(file.path).is_absolute();
    file.path = is_root ? root.string() : file.path;
    const fs::path original = is_root ? root : root / file.path;
    if (fs::is_regular_file(original, failure) && fs::file_size(original) <= kLargestTree) {
      file.places = places_in(read_file(original, kLargestTree), result.secrets, values);
    }
  }
  return result;
}

std::uint64_t scrub_log(const fs::path& log, const SecretValues& values,
                        const std::function<bool()>& is_over) {
  return rewrite_lines(log, LineScrubber::Form::kText, values, 0600, kMiB, is_over);
}

ScrubResult scrub_files(const fs::path& root, const std::vector<std::string>& values) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(root, ignored)) || fs::is_symlink(fs::symlink_status(root))) {
    throw Error(ErrorKind::kInput, fmt::format("there is no file or folder {}", root.string()));
  }
  return FileScrubber(root, values).run();
}

}  // namespace gpuwhy
