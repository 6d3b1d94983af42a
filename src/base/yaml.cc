// SPDX-License-Identifier: Apache-2.0
//
// YAML reader on top of yaml-cpp, and a small YAML writer.
//
// yaml-cpp silently accepts a duplicate key (the first wins), and its emitter writes the string
// "true" so that it reads back as a boolean. So the reader walks yaml-cpp's nodes itself, and the
// writer quotes whatever would read back as something else. Aliases are expanded and therefore
// counted: nine lines of "billion laughs" are a small node graph for yaml-cpp and would fill the
// disk when copied.
#include "base/yaml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr int kDeepestYaml = 64;
constexpr int kMostNodes = 20'000;

template <typename... Names>
bool is_one_of(std::string_view text, Names... names) {
  return ((text == names) || ...);
}

// A whole number in one of the core schema's three notations.
bool parse_whole(std::string_view text, Json& number) {
  bool is_negative = false;
  if (text.starts_with('-') || text.starts_with('+')) {
    is_negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0o")) {
    base = text[1] == 'x' ? 16 : 8;
    text.remove_prefix(2);
  }
  std::uint64_t magnitude = 0;
  const auto [end, failure] =
      std::from_chars(text.data(), text.data() + text.size(), magnitude, base);
  if (text.empty() || failure != std::errc() || end != text.data() + text.size() ||
      magnitude > static_cast<std::uint64_t>(INT64_MAX)) {
    return false;
  }
  const auto value = static_cast<std::int64_t>(magnitude);
  number = is_negative ? -value : value;
  return true;
}

// A decimal number of the core schema. Names such as .inf and .nan stay text.
bool parse_real(std::string_view text, Json& number) {
  if (text.find_first_not_of("0123456789+-.eE") != std::string_view::npos ||
      text.find_first_of("0123456789") == std::string_view::npos) {
    return false;  // from_chars would also take "inf" and "nan", which JSON cannot say
  }
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) {
    return false;
  }
  number = value;
  return true;
}

// Turns yaml-cpp's nodes into plain values and rejects what yaml-cpp lets pass.
class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  Json read(const YAML::Node& node, int depth) {
    // Limits against input made to exhaust memory: aliases can repeat a subtree without end.
    if (depth > kDeepestYaml) {
      fail(node.Mark(), fmt::format("nested deeper than {}", kDeepestYaml));
    }
    if (++num_nodes_ > kMostNodes) {
      fail(node.Mark(), fmt::format("more than {} values", kMostNodes));
    }
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        // The tag "!" marks a quoted scalar, which is always text.
        return node.Tag() == "!" ? Json(text_of(node)) : resolve_yaml_scalar(text_of(node));
      case YAML::NodeType::Sequence:
        return read_list(node, depth);
      case YAML::NodeType::Map:
        return read_map(node, depth);
      case YAML::NodeType::Null:
      case YAML::NodeType::Undefined:
        return nullptr;
    }
    return nullptr;
  }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& what) const {
    if (mark.is_null()) {
      throw Error(ErrorKind::kInput, fmt::format("{}: {}", name_, what));
    }
    throw Error(ErrorKind::kInput,
                fmt::format("{}:{}:{}: {}", name_, mark.line + 1, mark.column + 1, what));
  }

 private:
  // yaml-cpp turns "\N" and "\_" into one byte each, which is not UTF-8.
  const std::string& text_of(const YAML::Node& scalar) const {
    if (find_not_utf8(scalar.Scalar()) != std::string::npos) {
      fail(scalar.Mark(), "the escapes \\N and \\_ are not understood: write \\x85 and \\xa0");
    }
    return scalar.Scalar();
  }

  Json read_list(const YAML::Node& node, int depth) {
    Json list = Json::array();
    for (const YAML::Node& item : node) {
      list.push_back(read(item, depth + 1));
    }
    return list;
  }

  Json read_map(const YAML::Node& node, int depth) {
    Json map = Json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) {
        fail(entry.first.Mark(), "a key must be plain text");
      }
      const std::string& key = text_of(entry.first);
      if (map.contains(key)) {
        fail(entry.first.Mark(), fmt::format("key '{}' is given twice", key));
      }
      if (map.size() == kMostMembers) {
        fail(entry.first.Mark(), fmt::format("a mapping of more than {} keys", kMostMembers));
      }
      map[key] = read(entry.second, depth + 1);
    }
    return map;
  }

  const std::string& name_;
  int num_nodes_ = 0;
};

// Text that reads back as itself without quotes, by a rule stricter than YAML's own.
bool is_plain(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@%+=- ";
  if (text.empty() || text.front() == ' ' || text.back() == ' ' ||
      text.starts_with("...") ||  // ends a document at the start of a line
      std::string_view("@%=-+").find(text.front()) != std::string_view::npos ||
      text.find_first_not_of(kPlain) != std::string_view::npos) {
    return false;
  }
  return resolve_yaml_scalar(text).is_string();
}

std::string scalar_text(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    // Text that could deceive a terminal is written with escapes, which read back the same.
    const bool is_deceptive = printable(text) != text;
    return is_plain(text) ? text
                          : value.dump(-1, ' ', is_deceptive, Json::error_handler_t::replace);
  }
  return to_json_line(value);
}

bool fits_on_a_line(const Json& list) {
  const bool all_scalar =
      std::ranges::all_of(list, [](const Json& item) { return item.is_primitive(); });
  return all_scalar && to_json_line(list).size() < 80;
}

// Writes block style line by line and remembers the path of each line's value.
class Writer {
 public:
  // `prefix` precedes the value on its first line: indentation, key, dash.
  void write(const Json& value, const std::string& prefix, int indent, const std::string& path) {
    if (value.is_object() && !value.empty()) {
      open(prefix, path);
      write_map(value, indent, path);
    } else if (value.is_array() && !fits_on_a_line(value)) {
      open(prefix, path);
      for (const Json& item : value) {
        write(item, std::string(static_cast<std::size_t>(indent), ' ') + "-", indent + 2, path);
      }
    } else {
      lines.push_back({prefix + (prefix.empty() ? "" : " ") + inline_text(value), path});
    }
  }

  std::vector<YamlLine> lines;

 private:
  void open(const std::string& prefix, const std::string& path) {
    if (!prefix.empty()) {
      lines.push_back({prefix, path});
    }
  }

  void write_map(const Json& map, int indent, const std::string& path) {
    for (const auto& [key, value] : map.items()) {
      const std::string label =
          std::string(static_cast<std::size_t>(indent), ' ') + scalar_text(key) + ":";
      write(value, label, indent + 2, path.empty() ? key : path + "." + key);
    }
  }

  static std::string inline_text(const Json& value) {
    if (value.is_object()) {
      return "{}";
    }
    if (!value.is_array()) {
      return scalar_text(value);
    }
    std::string text;
    for (const Json& item : value) {
      text += (text.empty() ? "" : ", ") + scalar_text(item);
    }
    return "[" + text + "]";
  }
};

// Scans a text before anything is built from it: yaml-cpp finds endless documents in some texts of
// twenty bytes and would keep them all.
class Outline : public YAML::EventHandler {
 public:
  explicit Outline(const Reader& reader) : reader_(reader) {}
  const YAML::Mark& start() const { return start_; }

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {
    count(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {
    count(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    count(mark);
  }
  void OnMapEnd() override {}

 private:
  void count(const YAML::Mark& mark) {
    if (++num_nodes_ > 2 * kMostNodes) {  // keys are nodes here
      reader_.fail(mark, fmt::format("more than {} values", kMostNodes));
    }
  }

  const Reader& reader_;
  YAML::Mark start_;
  int num_nodes_ = 0;
};

}  // namespace

Json resolve_yaml_scalar(std::string_view text) {
  if (text.empty() || is_one_of(text, "~", "null", "Null", "NULL")) {
    return nullptr;
  }
  if (is_one_of(text, "true", "True", "TRUE")) {
    return true;
  }
  if (is_one_of(text, "false", "False", "FALSE")) {
    return false;
  }
  Json number;
  if (parse_whole(text, number) || parse_real(text, number)) {
    return number;
  }
  return std::string(text);
}

Json parse_yaml(std::string_view text, const std::string& name) {
  Reader reader(name);
  // yaml-cpp takes a text with zero bytes for UTF-16 or UTF-32.
  const std::size_t at = std::min(find_not_utf8(text), text.find('\0'));
  if (at != std::string_view::npos) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not UTF-8 (at byte {})", name, at));
  }
  try {
    const std::string copy(text);
    std::istringstream stream(copy);
    YAML::Parser parser(stream);
    Outline outline(reader);
    int num_documents = 0;
    while (parser.HandleNextDocument(outline)) {
      if (++num_documents > 1) {
        reader.fail(outline.start(), "holds more than one document");
      }
    }
    return num_documents == 0 ? Json(nullptr) : reader.read(YAML::Load(copy), 0);
  } catch (const YAML::Exception& error) {
    reader.fail(error.mark, error.msg);
  }
}

std::vector<int> yaml_row_lines(std::string_view text, const std::string& key) {
  std::vector<int> lines;
  const YAML::Node document = YAML::Load(std::string(text));
  if (!document.IsMap() || !document[key].IsSequence()) {
    return lines;
  }
  lines.reserve(document[key].size());
  for (const YAML::Node& row : document[key]) {
    lines.push_back(row.Mark().line + 1);
  }
  return lines;
}

std::vector<YamlRow> yaml_rows(std::string_view text, const std::string& name,
                               const std::string& key) {
  const Json document = parse_yaml(text, name);
  std::vector<YamlRow> rows;
  if (!document.is_object() || !document.contains(key) || document[key].is_null()) {
    return rows;
  }
  const auto check = [&](bool is_right, const char* what) {
    if (!is_right) {
      throw Error(ErrorKind::kInput, fmt::format("{}: {} {}", name, key, what));
    }
  };
  check(document[key].is_array(), "is not a list");
  const std::vector<int> lines = yaml_row_lines(text, key);
  rows.reserve(document[key].size());
  for (const Json& row : document[key]) {
    check(row.is_object(), "has a row without keys");
    YamlRow made{rows.size() < lines.size() ? lines[rows.size()] : 0, {}};
    for (const auto& [column, value] : row.items()) {
      for (const Json& item : value.is_array() ? value : Json::array({value})) {
        check(item.is_primitive() && !item.is_null(), "has a value that is neither text nor list");
        made.values[column].push_back(item.is_string() ? item.get<std::string>() : item.dump());
      }
    }
    rows.push_back(std::move(made));
  }
  return rows;
}

std::vector<YamlLine> yaml_lines(const Json& value) {
  Writer writer;
  writer.write(value, "", 0, "");
  return std::move(writer.lines);
}

std::string to_yaml_text(const Json& value) {
  std::string text;
  for (const YamlLine& line : yaml_lines(value)) {
    text += line.text + "\n";
  }
  return text;
}

}  // namespace gpuwhy
