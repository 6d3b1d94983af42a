// SPDX-License-Identifier: Apache-2.0
//
// The catalog of metrics.json, its schema and its table of keys, generated from the field
// descriptions.
#include "results/catalog.h"

#include <algorithm>
#include <map>
#include <span>

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"
#include "bundle/layout.h"
#include "results/json.h"

namespace gpuwhy {
namespace {

template <typename T>
void add_rows(const std::string& keys, const MetricInfo& info, std::vector<CatalogRow>& rows);

template <typename T>
void add_fields(const std::string& keys, const MetricInfo& info, std::vector<CatalogRow>& rows) {
  describe(static_cast<const T*>(nullptr), [&](const char* key, auto member, const Field& field) {
    using Value = ValueOf<T, decltype(member)>;
    add_rows<Value>(keys.empty() ? key : fmt::format("{}.{}", keys, key),
                    field.info.text.empty() ? info : field.info, rows);
  });
}

// Key patterns of a member by its type: lists add "[]", structs their fields. Structs have no unit
// themselves, so their row has only a description.
template <typename T>
void add_rows(const std::string& keys, const MetricInfo& info, std::vector<CatalogRow>& rows) {
  if constexpr (kIsOptional<T>) {
    add_rows<typename T::value_type>(keys, info, rows);
  } else if constexpr (kIsList<T>) {
    add_rows<typename T::value_type>(keys + "[]", info, rows);
  } else if constexpr (std::is_same_v<T, NumberPair>) {
    rows.push_back({keys + "[]", info});
  } else if constexpr (std::is_same_v<T, BucketTimes>) {
    rows.push_back({keys + ".*", info});
  } else if constexpr (kIsText<T> || std::is_arithmetic_v<T>) {
    rows.push_back({keys, info});
  } else {
    rows.push_back({keys, {"", "", "", "", info.text}});
    add_fields<T>(keys, info, rows);
  }
}

// Equal, or with any name in place of the last.
bool fits(std::string_view pattern, std::string_view key) {
  if (!pattern.ends_with('*')) {
    return pattern == key;
  }
  pattern.remove_suffix(1);
  return key.starts_with(pattern) && key.find('.', pattern.size()) == std::string_view::npos;
}

template <typename T>
Json schema_of(const Field& field);

template <typename T>
Json object_schema() {
  Json properties = Json::object();
  Json required = Json::array();
  describe(static_cast<const T*>(nullptr), [&](const char* key, auto member, const Field& field) {
    properties[key] = schema_of<ValueOf<T, decltype(member)>>(field);
    required.push_back(key);
  });
  return {{"type", "object"},
          {"properties", properties},
          {"required", required},
          {"additionalProperties", false}};
}

Json nullable(Json schema) {
  if (schema.contains("enum")) {
    schema["enum"].push_back(nullptr);
  } else {
    schema["type"] = Json::array({schema["type"], "null"});
  }
  return schema;
}

template <typename T>
Json list_schema(const Field& field) {
  Json schema = {{"type", "array"}, {"items", schema_of<typename T::value_type>(Field{})}};
  if (field.least_items > 0) {
    schema["minItems"] = field.least_items;
  }
  if (field.most_items != SIZE_MAX) {
    schema["maxItems"] = field.most_items;
  }
  return field.is_null_if_empty ? nullable(schema) : schema;
}

Json number_schema(const char* type, const Field& field) {
  Json schema = {{"type", type}};
  if ((type == std::string_view("integer") && !field.is_signed) || field.is_part) {
    schema["minimum"] = 0;
  }
  if (field.is_part) {
    schema["maximum"] = 1;
  }
  return schema;
}

// Without an ncu capture there is only the reason.
Json counters_schema() {
  Json schema = object_schema<CountersRow>();
  schema["properties"]["kernels"] = nullable(schema["properties"]["kernels"]);
  schema["properties"]["reason"] = {{"type", "string"}};
  schema["required"] = Json::array({"kernels"});
  return schema;
}

// JSON schema of a member by its type. An empty optional is written as null, so its schema allows
// null.
template <typename T>
Json schema_of(const Field& field) {
  if constexpr (kIsText<T>) {
    std::span<const char* const> words = field.words;
    if constexpr (Worded<T>) {
      words = words.empty() ? words_of(T{}) : words;
    }
    if constexpr (requires { T::kUnknown; }) {
      words = words.first(static_cast<std::size_t>(T::kUnknown));  // never written
    }
    if (!words.empty()) {
      return {{"enum", std::vector<std::string>(words.begin(), words.end())}};
    }
    const Json schema = {{"type", "string"}};
    return field.is_null_if_empty ? nullable(schema) : schema;
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return number_schema(std::is_integral_v<T> ? "integer" : "number", field);
  } else if constexpr (std::is_same_v<T, std::optional<CountersRow>>) {
    return counters_schema();
  } else if constexpr (std::is_same_v<T, BucketTimes>) {
    Json properties = Json::object();
    for (const char* name : kBucketNames) {
      properties[name] = number_schema("integer", {});
    }
    return {{"type", "object"},
            {"properties", properties},
            {"required", kBucketNames},
            {"additionalProperties", false}};
  } else if constexpr (std::is_same_v<T, NumberPair>) {
    return {{"type", "array"}, {"items", number_schema("integer", {})}};
  } else if constexpr (kIsOptional<T>) {
    return nullable(schema_of<typename T::value_type>(field));
  } else if constexpr (kIsList<T>) {
    return list_schema<T>(field);
  } else {
    return object_schema<T>();
  }
}

}  // namespace

const std::vector<CatalogRow>& metric_catalog() {
  static const std::vector<CatalogRow> kRows = [] {
    std::vector<CatalogRow> rows = {
        {"schema_version", {"1", "", "", "schema", "the version of this file's form"}}};
    add_fields<Results>("", {}, rows);
    return rows;
  }();
  return kRows;
}

const MetricInfo* metric_info(std::string_view pattern) {
  const std::vector<CatalogRow>& rows = metric_catalog();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const CatalogRow& row) {
    return !row.info.unit.empty() && fits(row.keys, pattern);
  });
  return found == rows.end() ? nullptr : &found->info;
}

Json metrics_schema() {
  const Json body = object_schema<Results>();
  Json schema = {
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "metrics.json of gpuwhy"},
      {"description",
       "Times are whole nanoseconds. A fraction is 0..1. What is not known is null. What "
       "the keys mean: docs/metrics.md."},
      {"type", "object"},
      {"properties",
       {{"schema", {{"const", "gpuwhy.metrics"}}},
        {"schema_version", {{"const", kMetricsVersion}}}}},
      {"required", {"schema", "schema_version"}},
      {"additionalProperties", false}};
  // Every field of Results is required: a figure that is not known is null, never absent.
  schema["properties"].update(body["properties"]);
  schema["required"].insert(schema["required"].end(), body["required"].begin(),
                            body["required"].end());
  return schema;
}

std::string key_table() {
  std::string text = "| key | unit | n | from | formula | meaning |\n|---|---|---|---|---|---|\n";
  for (const auto& [keys, info] : metric_catalog()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", keys, info.unit,
                        info.count.empty() ? "" : fmt::format("`{}`", info.count),
                        fmt::join(split(info.sources, ' '), ", "), info.formula, info.text);
  }
  return text;
}

std::string source_text(std::string_view source, const FormatInfo& format) {
  const std::pair<std::string_view, std::string_view> texts[] = {
      {"kernels", format.kernels},
      {"copies", format.copies},
      {"graphs", format.graphs},
      {"calls", format.calls},
      {"marks", format.marks},
      {"baseline", layout::kRanges},
      {"ncu", "ncu's reports"},
      {"model", "the model's configuration"},
      {"gpus", "conf/hardware/gpus.yaml"},
      {"requests", "the file of --requests"},
  };
  const auto* found = std::find_if(std::begin(texts), std::end(texts),
                                   [&](const auto& row) { return row.first == source; });
  return std::string(found == std::end(texts) ? source : found->second);
}

}  // namespace gpuwhy
