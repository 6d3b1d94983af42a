// SPDX-License-Identifier: Apache-2.0
//
// Meaning and origin of a word or a number, as JSON. `gpuwhy explain` prints the same for people,
// and adds rows of the recording.
#include "agents/explanation.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/json_path.h"
#include "base/text.h"
#include "ingest/ingest.h"
#include "report/words/glossary.h"
#include "results/catalog.h"

namespace gpuwhy {
namespace {

Json term_json(const Term& term) {
  Json json = Json::object();
  json["word"] = term.name;
  json["kind"] = term.kind;
  json["means"] = term.meaning;
  json["found_by"] = term.found;
  json["what_to_do"] = text_or_null(term.advice);
  return json;
}

// Unit, formula and sources of a number.
void add_origin(const std::vector<PathStep>& path, const Json& metrics, Json& json) {
  const MetricInfo* info = metric_info(path_pattern(path));
  if (info == nullptr) {
    return;
  }
  json["unit"] = text_or_null(info->unit);
  json["formula"] = info->formula;
  json["means"] = info->text;
  const Json* name = find_path(metrics, parse_path("capture.format"));
  const FormatInfo format =
      format_named(name != nullptr && name->is_string() ? name->get<std::string>() : "");
  json["sources"] = Json::array();
  for (const std::string_view source : split(info->sources, ' ')) {
    if (!source.empty()) {
      json["sources"].push_back(source_text(source, format));
    }
  }
  json["count_key"] = text_or_null(info->count);
}

// The keys that a finding is based on, each with its value.
void add_evidence(const Json& finding, const Json& metrics, Json& json) {
  const auto evidence = finding.is_object() ? finding.find("evidence") : finding.end();
  if (!finding.is_object() || evidence == finding.end() || !evidence->is_array()) {
    return;
  }
  Json values = Json::object();
  for (const Json& key : *evidence) {
    if (key.is_string()) {
      const Json* value = find_path(metrics, parse_path(key.get_ref<const std::string&>()));
      values[key.get<std::string>()] = value == nullptr ? Json(nullptr) : *value;
    }
  }
  json["evidence"] = std::move(values);
}

// How a saving comes about, with numbers.
void add_bound(const std::vector<PathStep>& path, const Json& metrics, Json& json) {
  if (path.size() < 2 || path[0].name != "findings" || !path.back().name.starts_with("saving")) {
    return;
  }
  const Json* finding = find_path(metrics, {path[0]});
  if (finding != nullptr && finding->is_object() && finding->contains("bound")) {
    json["bound"] = finding->at("bound");
  }
}

}  // namespace

// A word first: no key of metrics.json is one.
Json explanation(const std::string& key, const Json& metrics) {
  if (const Term* term = find_term(key)) {
    return term_json(*term);
  }
  const std::vector<PathStep> path = parse_path(key);
  Json json = Json::object();
  json["key"] = key;
  if (metrics.is_object()) {
    const Json* value = find_path(metrics, path);
    if (value == nullptr) {
      throw Error(ErrorKind::kUsage, fmt::format("metrics.json has no {}", printable(key)),
                  "a key is that of a row in an answer, a dot and the name of a field");
    }
    json["value"] = *value;
    if (value->is_null() && path.size() > 1) {
      const std::vector<PathStep> parent(path.begin(), path.end() - 1);
      const Json* around = find_path(metrics, parent);
      const bool has_reason =
          around != nullptr && around->is_object() && around->contains("reason");
      json["reason"] = has_reason ? around->at("reason") : Json(nullptr);
    }
    add_evidence(*value, metrics, json);
    add_bound(path, metrics, json);
  }
  add_origin(path, metrics, json);
  if (json.size() == 1) {
    if (const Term* column = find_column(key)) {
      return term_json(*column);
    }
    throw Error(ErrorKind::kUsage, fmt::format("there is no word or key '{}'", printable(key)),
                "a key of a recording needs its path, too");
  }
  json["definitions"] = "docs/metrics.md, " + path[0].name;
  return json;
}

}  // namespace gpuwhy
