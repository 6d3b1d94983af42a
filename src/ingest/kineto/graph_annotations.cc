// SPDX-License-Identifier: Apache-2.0
//
// Reader of the names that PyTorch gives to nodes of CUDA graphs.
//
//   {"42949672961": [{"name": "layers.0.attention.wq", "stream": 7}], ...}
//
// The keys are node ids as Kineto and nsys record them. A value is a list with one entry for each
// scope around the node, the innermost last; newer versions merge them into one. An entry is an
// object with a name, or the name alone. Entries without a name are skipped.
#include "ingest/kineto/graph_annotations.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/parse_number.h"
#include "base/units.h"
#include "ingest/simdjson_parser.h"

namespace gpuwhy {
namespace {

namespace dom = simdjson::dom;

constexpr std::uint64_t kMostFileBytes = 256 * kMiB;

// Empty if the entry has none.
std::string_view name_of_entry(const dom::element& entry) {
  std::string_view name;
  if (entry.get(name) == simdjson::SUCCESS) {
    return name;
  }
  for (const char* key : {"module_fqn", "name"}) {
    if (entry.is_object() && entry[key].get(name) == simdjson::SUCCESS) {
      return name;
    }
  }
  return {};
}

// Of one entry, or of the last entry of a list that has one.
std::string_view annotated_name(const dom::element& value) {
  dom::array entries;
  if (value.get(entries) != simdjson::SUCCESS) {
    return name_of_entry(value);
  }
  std::string_view innermost;
  for (const dom::element entry : entries) {
    const std::string_view name = name_of_entry(entry);
    innermost = name.empty() ? innermost : name;
  }
  return innermost;
}

}  // namespace

GraphAnnotations parse_graph_annotations(std::string_view text, const std::string& name) {
  GraphAnnotations annotations;
  dom::parser parser;
  dom::object nodes;
  if (parser.parse(simdjson::padded_string(text)).get(nodes) == simdjson::SUCCESS) {
    for (const dom::key_value_pair& node : nodes) {
      const std::uint64_t id = parse_all<std::uint64_t>(node.key).value_or(0);
      const std::string_view given = annotated_name(node.value);
      if (id != 0 && !given.empty()) {
        annotations.emplace(id, given);
      }
    }
  }
  if (annotations.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{} names no nodes of CUDA graphs", name),
                "it takes what PyTorch writes as kernel_annotations_rank0_*.json: "
                "{\"node id\": [{\"name\": ...}]}");
  }
  return annotations;
}

GraphAnnotations load_graph_annotations(const std::filesystem::path& path) {
  return parse_graph_annotations(read_file(path, kMostFileBytes), path.string());
}

}  // namespace gpuwhy
