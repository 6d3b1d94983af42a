// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace gpuwhy {

// One YAML document as plain values, by the core rules of YAML 1.2 (`yes` and `on` are words, not
// booleans). Throws kInput with `name`, line and column for bad syntax, duplicate keys, keys that
// are not text, more than one document, and files built to explode (nesting, alias bombs). An empty
// text is null.
Json parse_yaml(std::string_view text, const std::string& name);

// The lines, from 1, at which the rows of the list `key` of a document that parse_yaml() took
// begin.
std::vector<int> yaml_row_lines(std::string_view text, const std::string& key);

// A row of a list, with its line from 1. A scalar is a list of one.
struct YamlRow {
  int line = 0;
  std::map<std::string, std::vector<std::string>> values;
};

// The rows of the list `key`; none if the document does not have it. Throws as parse_yaml() does,
// and kInput for rows that are not maps of scalars and lists of scalars.
std::vector<YamlRow> yaml_rows(std::string_view text, const std::string& name,
                               const std::string& key);

// One unquoted scalar: null, true, 42, 0.5, or the text itself.
Json resolve_yaml_scalar(std::string_view text);

// A printed line and the dotted path of the value on it.
struct YamlLine {
  std::string text;
  std::string path;
};

// Block style, with short lists of scalars on one line. parse_yaml() reads back an equal value.
std::vector<YamlLine> yaml_lines(const Json& value);
std::string to_yaml_text(const Json& value);

}  // namespace gpuwhy
