// SPDX-License-Identifier: Apache-2.0
//
// Line-by-line removal of secrets from logs and unparsable YAML.
//
// A log may be larger than the memory, and an unclosed quotation mark must not swallow the rest of
// a file. So each line is handled alone, with two exceptions.
//
// A private key: every line from BEGIN to END is replaced. Without an END, because the program died
// or another one wrote in between, it stops after as many lines as the longest key has.
//
// YAML that cannot be parsed: lines indented deeper than a revealing name belong to it, and so does
// `value:` after `name: HF_TOKEN`. A line keeps its indentation, so a block stays a block.
#include "bundle/scrub_lines.h"

#include <algorithm>

#include "base/text.h"
#include "bundle/scrub.h"
#include "bundle/secrets.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostKeyLines = 400;  // RSA of 16384 bits has 200

// The column where the text of a line starts; the dash of a list counts as indentation.
std::size_t indent_of(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return line.size();
  }
  return line.substr(begin).starts_with("- ") ? begin + 2 + indent_of(line.substr(begin + 2))
                                              : begin;
}

std::string_view without_quotes(std::string_view text) {
  text = trim(text);
  const bool is_quoted =
      text.size() >= 2 && text.front() == text.back() && (text[0] == '"' || text[0] == '\'');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

struct YamlEntry {
  std::string_view key;
  std::string_view value;
};

// `key: value`; both empty if the line is something else.
YamlEntry yaml_entry(std::string_view line) {
  const std::string_view text = line.substr(std::min(indent_of(line), line.size()));
  const std::size_t colon = text.find(':');
  if (text.starts_with('#') || colon == std::string_view::npos ||
      (colon + 1 < text.size() && text[colon + 1] != ' ')) {
    return {};
  }
  return {without_quotes(text.substr(0, colon)), without_quotes(text.substr(colon + 1))};
}

std::string scrubbed_behind(std::string_view line, std::size_t begin) {
  return std::string(line.substr(0, begin)).append(kScrubbed);
}

}  // namespace

bool LineScrubber::is_in_private_key(std::string_view line) {
  const bool was_inside = key_lines_left_ > 0;
  if (was_inside) {
    --key_lines_left_;
    if (line.find("-----END ") != std::string_view::npos) {
      key_lines_left_ = 0;
    }
  }
  if (ends_in_private_key(line)) {
    key_lines_left_ = kMostKeyLines;
  }
  return was_inside;
}

bool LineScrubber::is_in_yaml_block(std::string_view line) {
  if (trim(line).empty()) {
    return false;
  }
  const std::size_t begin = line.find_first_not_of(" \t");
  if (is_in_block_ && begin > block_indent_) {
    return true;
  }
  const YamlEntry entry = yaml_entry(line);
  const bool has_flow = entry.value.starts_with('[') || entry.value.starts_with('{');
  is_in_block_ = is_secret_name(entry.key) && !has_flow;
  block_indent_ = indent_of(line);
  return false;
}

bool LineScrubber::is_value_of_name(std::string_view line) {
  const YamlEntry entry = yaml_entry(line);
  const std::size_t indent = indent_of(line);
  if (entry.key == "name") {
    is_after_name_ = is_secret_name(entry.value);
    name_indent_ = indent;
    return false;
  }
  const bool is_value = is_after_name_ && entry.key == "value" && indent == name_indent_;
  is_after_name_ = is_after_name_ && indent >= name_indent_ && !is_value;
  if (is_value) {
    is_in_block_ = true;  // its own lines may follow
    block_indent_ = indent;
  }
  return is_value;
}

std::string LineScrubber::clean(std::string_view line, const SecretValues& values) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  if (is_in_private_key(line)) {
    return begin == line.size() ? std::string(line) : scrubbed_behind(line, begin);
  }
  if (form_ == Form::kYaml) {
    if (is_in_yaml_block(line)) {
      return scrubbed_behind(line, begin);
    }
    const bool is_value = is_value_of_name(line);
    // `password: |` opens a block: scrub_text() would take the bar for the password.
    const std::string_view value = yaml_entry(line).value;
    if (is_in_block_ && (value.starts_with('|') || value.starts_with('>'))) {
      return std::string(line);
    }
    if (is_value) {
      return scrubbed_behind(line, line.find(':') + 1).insert(line.find(':') + 1, " ");
    }
  }
  return scrub_text(line, values);
}

}  // namespace gpuwhy
