// SPDX-License-Identifier: Apache-2.0
//
// Labels of ranks: reading, and storage as one text.
//
// One text instead of a table of keys and values: a rank has a handful, ranks of a job share them,
// and the text table of a merged file stores equal texts once.
#include "fleet/summary/labels.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostLabels = 32;
constexpr std::size_t kLongestKey = 64;
constexpr std::size_t kLongestValue = 256;

bool is_key(std::string_view key) {
  return !key.empty() && key.size() <= kLongestKey &&
         std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
                  c == '-';
         });
}

bool is_value(std::string_view value) {
  return !value.empty() && value.size() <= kLongestValue && printable(value) == value;
}

}  // namespace

void add_labels(std::string_view text, Labels& labels) {
  for (const std::string_view given : split(text, ',')) {
    const std::string_view word = trim(given);
    if (word.empty()) {
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    if (equals == std::string_view::npos || !is_key(key) || !is_value(word.substr(equals + 1))) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("'{}' is not a label", printable(word.substr(0, 80))),
                  "as cluster=a,git_sha=1f3c: lower-case key, printable value");
    }
    labels[std::string(key)] = word.substr(equals + 1);
  }
  if (labels.size() > kMostLabels) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} labels, and a rank has at most {}", labels.size(), kMostLabels));
  }
}

std::string labels_text(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "\n", key, value);
  }
  return text;
}

bool has_label(std::string_view labels, std::string_view label) {
  const std::vector<std::string_view> lines = split(labels, '\n');
  return std::find(lines.begin(), lines.end(), label) != lines.end();
}

void put_labels(Labels labels, RankIdentity& identity) {
  const std::pair<const char*, std::string*> fields[] = {
      {"engine", &identity.engine},
      {"engine_version", &identity.engine_version},
      {"model", &identity.model}};
  for (const auto& [key, field] : fields) {
    if (const auto found = labels.find(key); found != labels.end()) {
      *field = found->second;
      labels.erase(found);
    }
  }
  identity.labels = labels_text(labels);
}

}  // namespace gpuwhy
