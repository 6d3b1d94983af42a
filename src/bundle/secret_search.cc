// SPDX-License-Identifier: Apache-2.0
//
// Search for secrets in binary files.
//
// Most binary formats contain their texts uncompressed: nsys and ncu reports are protobuf, PyTorch
// traces are gzipped JSON. So the bytes are split into runs of printable characters, which are
// searched like lines of text. In protobuf a name and its value are two runs with a tag and a
// length between them, so such pairs are checked too. UTF-16 is characters with zeros between them.
//
// Our HTML pages carry their data as base64 of gzip, which is unpacked. The markup is removed
// first, because `<td>password:</td>` names no password.
//
// What this gets wrong: a secret inside another kind of compression or a second gzip layer is not
// found. Known kinds are reported as unsearched rather than clean.
#include "bundle/secret_search.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/gzip_base64.h"
#include "base/gzip_reader.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/scrub.h"
#include "bundle/scrub_lines.h"
#include "bundle/secrets.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = kMiB;
constexpr std::size_t kLongestRun = kMiB;
constexpr std::size_t kOverlapBytes = 8 * kKiB;  // a name and its value, however a run is cut
constexpr std::size_t kShortestText = 8;
constexpr std::uint64_t kLargestPage = 256 * kMiB;
constexpr std::string_view kSeparators = " \t,;\"'";

bool is_text_byte(char c) {
  return is_of_class(c, kTextChar);
}

// Collects the runs of printable characters in a stream of bytes and passes them on as lines.
class RunReader {
 public:
  using Look = std::function<void(std::string_view)>;
  explicit RunReader(Look look) : look_(std::move(look)) {}

  void take(std::string_view text) {
    while (!text.empty()) {
      const std::size_t size = std::min(text.size(), kLongestRun - run_.size());
      run_.append(text.substr(0, size));
      text.remove_prefix(size);
      if (run_.size() >= kLongestRun) {
        cut();
      }
    }
  }

  void end_run() {
    if (run_.size() >= kShortestText) {
      look_(run_);
    }
    if (!run_.empty()) {
      run_.clear();
    }
  }

  const std::string& run() const { return run_; }

 private:
  // Passes on a run that is getting too long, up to the end of a word, and keeps an overlap for
  // what is cut.
  void cut() {
    const std::size_t last = run_.find_last_of(kSeparators);
    const std::size_t end =
        last == std::string::npos || last < run_.size() / 2 ? run_.size() : last + 1;
    look_(std::string_view(run_).substr(0, end));
    const std::size_t next = run_.find_first_of(kSeparators, end - kOverlapBytes);
    run_.erase(0, next < end ? next + 1 : end - kOverlapBytes);
  }

  Look look_;
  std::string run_;
};

// A protobuf varint, the length before a value: seven bits per byte, low ones first.
std::size_t varint_in(std::string_view bytes) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 4; ++i) {
    number |= (static_cast<std::size_t>(bytes[i]) & 0x7FU) << (7 * i);
  }
  return number;
}

// Search of one stream of bytes: a file, or the unpacked contents of one.
class StreamSearch {
 public:
  StreamSearch(const SecretValues& values, bool by_shape, SecretSearch& result)
      : values_(values), by_shape_(by_shape), result_(result) {}

  // The window keeps the end of the last piece, so that a value across two pieces is found.
  void take(std::string_view piece) {
    window_ += piece;
    result_.has_found = result_.has_found || values_.are_in(window_);
    const std::size_t kept = std::max<std::size_t>(values_.longest(), 1) - 1;
    window_.erase(0, window_.size() - std::min(window_.size(), kept));
    take_wide(piece);
    if (by_shape_) {
      take_narrow(piece);
    }
  }

  void end() {
    end_narrow();
    if (is_text_byte(pending_)) {
      wide_.take({&pending_, 1});
    }
    wide_.end_run();
  }

 private:
  void take_narrow(std::string_view piece) {
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = at;
      while (at < piece.size() && is_text_byte(piece[at])) {
        ++at;
      }
      narrow_.take(piece.substr(begin, at - begin));
      if (at < piece.size()) {
        take_between(piece[at++]);
      }
    }
  }

  // A byte that is not text.
  void take_between(char c) {
    if (!narrow_.run().empty()) {
      end_narrow();
    }
    if (name_.empty()) {
      return;  // there is nothing whose value could follow
    }
    between_ += c;
    if (between_.size() > 4) {
      name_.clear();
    }
  }

  // Remembers the last word of the run: it may be the name of the value in the next run.
  void end_narrow() {
    look_at_pair(narrow_.run());
    std::string_view run = narrow_.run();
    std::size_t begin = run.size();
    while (begin > 0 && is_name_char(run[begin - 1])) {
      --begin;
    }
    name_ = run.size() - begin <= 128 ? run.substr(begin) : std::string_view();
    between_.clear();
    narrow_.end_run();
  }

  // A protobuf map entry: field 1 is the name, field 2 (tag 0x12, a length) the value.
  void look_at_pair(std::string_view run) {
    if (name_.empty() || !between_.starts_with('\x12') || run.empty()) {
      return;
    }
    const bool is_length_printable = between_.size() == 1;
    const std::size_t length =
        is_length_printable ? varint_in(run.substr(0, 1)) : varint_in(between_.substr(1));
    const std::string_view value = run.substr(is_length_printable ? 1 : 0, length);
    if (value.size() >= kShortestText && is_secret_value(name_, value)) {
      result_.has_found = true;
      result_.keys.add(value);
    }
  }

  // UTF-16 in either byte order: every second byte is zero.
  void take_wide(std::string_view piece) {
    for (std::size_t at = 0; at < piece.size(); ++at) {
      if (wide_.run().empty()) {
        // A run begins with a zero, before or after its first character.
        const std::size_t zero = piece.find('\0', at);
        if (zero == std::string_view::npos) {
          pending_ = piece.back();
          return;
        }
        pending_ = zero > at ? piece[zero - 1] : pending_;
        at = zero;
      }
      const char c = piece[at];
      const char before = std::exchange(pending_, c);
      if (c == '\0' && is_text_byte(before)) {
        wide_.take({&before, 1});
      } else if (!(is_text_byte(c) && before == '\0')) {
        wide_.end_run();
      }
    }
  }

  void look(std::string_view line, LineScrubber& lines) {
    if (!by_shape_) {
      result_.has_found = result_.has_found || values_.are_in(line);
      return;
    }
    const std::string clean = lines.clean(line, values_);
    if (clean != line) {
      SecretValues found;
      add_removed(line, clean, found);
      result_.has_found = result_.has_found || !found.empty();
      result_.keys.add(found);
    }
  }

  const SecretValues& values_;
  bool by_shape_;
  SecretSearch& result_;
  std::string window_;  // the last bytes, for a value that lies across two pieces
  LineScrubber narrow_lines_{LineScrubber::Form::kText};
  LineScrubber wide_lines_{LineScrubber::Form::kText};
  RunReader narrow_{[this](std::string_view line) { look(line, narrow_lines_); }};
  RunReader wide_{[this](std::string_view line) { look(line, wide_lines_); }};
  char pending_ = '\x01';
  std::string name_;     // the word that the last run ended in
  std::string between_;  // and what came since
};

// Compression formats that are not unpacked here, by their first bytes.
const char* opaque_kind(std::string_view head) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 6> kKinds = {{
      {"PK\x03\x04", "zip"},
      {"\x28\xb5\x2f\xfd", "zstd"},
      {"\xfd"
       "7zXZ",
       "xz"},
      {"BZh", "bzip2"},
      {"7z\xbc\xaf", "7z"},
      {"\x04\x22\x4d\x18", "lz4"},
  }};
  for (const auto& [start, name] : kKinds) {
    if (head.starts_with(start)) {
      return name;
    }
  }
  return nullptr;
}

// Search of one file, including what it carries compressed.
class FileSearch {
 public:
  FileSearch(const fs::path& file, const SecretValues& values, bool by_shape)
      : file_(file), values_(values), by_shape_(by_shape) {}

  SecretSearch run() {
    std::ifstream in(file_, std::ios::binary);
    std::string piece(kPieceBytes, '\0');
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const std::string head = piece.substr(0, static_cast<std::size_t>(in.gcount()));
    if (is_page(head)) {
      search_page();
    } else {
      search_stream(in, head);
    }
    if (head.starts_with("\x1f\x8b")) {
      search_packed();
    }
    if (const char* kind = opaque_kind(head)) {
      result_.unsearched = fmt::format("{} is not unpacked", kind);
    }
    return std::move(result_);
  }

 private:
  void search_stream(std::ifstream& in, const std::string& head) {
    StreamSearch search(values_, by_shape_, result_);
    search.take(head);
    std::string piece(kPieceBytes, '\0');
    while (in && !is_over()) {
      in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      search.take(std::string_view(piece).substr(0, static_cast<std::size_t>(in.gcount())));
    }
    if (!in.is_open() || in.bad()) {
      throw Error(ErrorKind::kInput, fmt::format("cannot read {}", file_.string()),
                  "make it readable, or take it out of the folder");
    }
    search.end();
  }

  void search_text(std::string_view text) {
    StreamSearch search(values_, by_shape_, result_);
    search.take(text);
    search.end();
  }

  void search_packed() {
    try {
      GzipReader source(file_);
      StreamSearch search(values_, by_shape_, result_);
      std::string piece(kPieceBytes, '\0');
      for (std::size_t got = 1; got > 0 && !is_over();) {
        got = source.read(piece.data(), piece.size());
        search.take(std::string_view(piece).substr(0, got));
      }
      search.end();
      if (!is_over() && source.is_cut_off()) {
        result_.unsearched = "its gzip is damaged";
      }
    } catch (const Error& error) {
      result_.unsearched = error.message();
    }
  }

  // Data are in separate elements, base64 from the first character.
  void search_page() {
    const std::string page = read_file(file_, kLargestPage);
    std::string text;
    constexpr std::string_view kPackedStart = "H4sI";  // gzip's first three bytes
    for (std::size_t at = 0; at < page.size();) {
      if (page[at] != '<') {
        text += page[at++];
        continue;
      }
      const std::size_t end = std::min(page.find('>', at), page.size() - 1) + 1;
      text += '\n';
      at = end;
      if (std::string_view(page).substr(at).starts_with(kPackedStart)) {
        const std::size_t stop = std::min(page.find('<', at), page.size());
        search_page_data(std::string_view(page).substr(at, stop - at));
        at = stop;
      }
    }
    search_text(text);
    result_.has_found = result_.has_found || values_.are_in(page);
  }

  void search_page_data(std::string_view data) {
    try {
      search_text(gunzipped(from_base64(data), kLargestPage));
    } catch (const Error& error) {
      result_.unsearched = error.message();
    }
  }

  // Without a search by format the answer is yes or no, so the first hit ends it.
  bool is_over() const { return !by_shape_ && result_.has_found; }

  fs::path file_;
  const SecretValues& values_;
  bool by_shape_;
  SecretSearch result_;
};

}  // namespace

SecretSearch search_file(const fs::path& file, const SecretValues& values) {
  return FileSearch(file, values, true).run();
}

bool holds_value(const fs::path& file, const SecretValues& values) {
  return !values.empty() && FileSearch(file, values, false).run().has_found;
}

bool is_page(std::string_view head) {
  const std::string start = to_lower(trim(head.substr(0, 512)));
  return start.starts_with("<!doctype html") || start.starts_with("<html");
}

}  // namespace gpuwhy
