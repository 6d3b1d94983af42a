// SPDX-License-Identifier: Apache-2.0
//
// Words for the steps of a path: the field at its end, then what its rows are chosen by.
#include "report/words/key_words.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/error.h"
#include "base/json_path.h"
#include "base/text.h"
#include "report/comparison/comparison_parts.h"
#include "report/document/document.h"
#include "report/words/glossary.h"
#include "report/words/plain_words.h"
#include "results/row.h"

namespace gpuwhy {
namespace {

// "_ns" and the like say the unit, which stands at the number.
std::string field_words(std::string name) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"total_ns", "time"},
      {"kernel_ns", "kernel time"},
      {"covered_ns", "time measured by ncu"},
      {"sms", "multiprocessors"},
      {"mover_ns", "memory-bound kernels back to back"},
      {"attention_ns", "attention kernels"}};
  for (const auto& [field, words] : kWords) {
    if (name == field) {
      return std::string(words);
    }
  }
  for (const std::string_view unit : {"_ns", "_fraction", "_bytes"}) {
    if (name.ends_with(unit)) {
      name.resize(name.size() - unit.size());
    }
  }
  std::ranges::replace(name, '_', ' ');
  return name;
}

// A place in the program, PyTorch's DataLoader by its plain name.
std::string scope_words(const std::string& scope) {
  const std::string quoted = fmt::format("'{}'", scope);
  const std::string plain = with_plain_names(quoted);
  // "a' and 'b" is two places.
  return plain == quoted && scope.find('\'') == std::string::npos ? scope : plain;
}

std::string path_words(const std::vector<PathStep>& path) {
  const bool is_bucket = path.size() > 1 && path[path.size() - 2].name == "buckets_ns";
  std::string text =
      is_bucket ? std::string(bucket_label(path.back().name)) : field_words(path.back().name);
  std::string rows;
  for (const PathStep& step : path) {
    for (const auto& [name, chosen] : step.choices) {
      const std::string words = name == "bucket"  ? std::string(bucket_label(chosen))
                                : name == "kind"  ? kind_in_words(chosen)
                                : name == "scope" ? scope_words(chosen)
                                : row_name(chosen).kind == RowKind::kRecording ? "whole recording"
                                                                               : chosen;
      const bool is_said = name == "kind" && rows.ends_with(words);
      rows += is_said ? "" : (rows.empty() ? "" : ", ") + cut_name(words);
    }
  }
  return rows.empty() ? text : fmt::format("{} ({})", text, rows);
}

}  // namespace

std::string key_words(const std::string& key) {
  try {
    return path_words(parse_path(key));
  } catch (const Error&) {
    return cut_name(key);  // another program's metrics.json may hold anything
  }
}

}  // namespace gpuwhy
