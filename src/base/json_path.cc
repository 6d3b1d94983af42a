// SPDX-License-Identifier: Apache-2.0
//
// Stable addresses of values in metrics.json, e.g. ledgers[stage=decode].window_ns.
//
// JSON pointers count rows, and rows move when something gets faster. Here a row is selected by its
// contents.
#include "base/json_path.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kLongest = 1 << 20;  // kernel names have been seen with 100 KB

// Recursive descent over `name[row].name[key=value].name`.
class PathParser {
 public:
  explicit PathParser(std::string_view text) : text_(text) {}

  std::vector<PathStep> parse() {
    std::vector<PathStep> path;
    do {
      path.push_back(step());
    } while (take('.'));
    if (at_ != text_.size() || text_.size() > kLongest) {
      fail();
    }
    return path;
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is not a key of metrics.json (error at character {})",
                            printable(text_.substr(0, 200)), at_ + 1),
                "keys look like capture.duration_ns or "
                "ledgers[stage=decode,device=cuda:0].buckets_ns.sync");
  }

  bool take(char c) {
    const bool is_there = at_ < text_.size() && text_[at_] == c;
    at_ += is_there ? 1 : 0;
    return is_there;
  }

  std::string word(std::string_view ends) {
    const std::size_t start = at_;
    at_ = std::min(text_.find_first_of(ends, at_), text_.size());
    if (at_ == start) {
      fail();
    }
    return std::string(text_.substr(start, at_ - start));
  }

  // One step: a name, and optionally a row chosen by index or by the values of its fields.
  PathStep step() {
    PathStep step;
    step.name = word(".[");
    if (!take('[')) {
      return step;
    }
    step.has_row = true;
    do {
      std::string name = word("=,]");
      if (take('=')) {
        step.choices.emplace_back(std::move(name), value());
        continue;
      }
      const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), step.row);
      if (failure != std::errc() || end != name.data() + name.size() || !step.choices.empty()) {
        fail();
      }
    } while (take(','));
    if (!take(']')) {
      fail();
    }
    return step;
  }

  // A JSON string, or plain characters up to the delimiter.
  std::string value() {
    if (at_ >= text_.size() || text_[at_] != '"') {
      return word(",]");
    }
    const std::size_t start = at_++;
    while (at_ < text_.size() && text_[at_] != '"') {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    if (!take('"')) {
      at_ = start;
      fail();
    }
    const Json parsed = Json::parse(text_.substr(start, at_ - start), nullptr, false);
    if (!parsed.is_string()) {
      at_ = start;
      fail();
    }
    return parsed.get<std::string>();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : to_json_line(value);
}

bool holds(const Json& row, const PathStep& step) {
  return row.is_object() && std::ranges::all_of(step.choices, [&](const auto& choice) {
           const auto field = row.find(choice.first);
           return field != row.end() && text_of(*field) == choice.second;
         });
}

}  // namespace

std::vector<PathStep> parse_path(std::string_view text) {
  return PathParser(text).parse();
}

std::string path_value(const std::string& value) {
  const bool is_plain = !value.empty() && value.find_first_of(",]=\"\\\n\r") == std::string::npos;
  return is_plain ? value : to_json_line(Json(value));
}

const Json* find_path(const Json& document, const std::vector<PathStep>& path) {
  const Json* value = &document;
  for (const PathStep& step : path) {
    const auto field = value->is_object() ? value->find(step.name) : value->end();
    if (field == value->end()) {
      return nullptr;
    }
    value = &*field;
    if (!step.has_row) {
      continue;
    }
    if (!value->is_array()) {
      return nullptr;
    }
    const auto row =
        step.row != SIZE_MAX
            ? (step.row < value->size() ? value->begin() + static_cast<std::ptrdiff_t>(step.row)
                                        : value->end())
            : std::ranges::find_if(*value, [&](const Json& one) { return holds(one, step); });
    if (row == value->end()) {
      return nullptr;
    }
    value = &*row;
  }
  return value;
}

std::string path_pattern(const std::vector<PathStep>& path) {
  std::string text;
  for (const PathStep& step : path) {
    text += (text.empty() ? "" : ".") + step.name + (step.has_row ? "[]" : "");
  }
  return text;
}

}  // namespace gpuwhy
