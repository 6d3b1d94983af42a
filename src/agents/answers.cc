// SPDX-License-Identifier: Apache-2.0
//
// Selection of rows and fields of metrics.json for the tools.
#include "agents/answers.h"

#include <algorithm>
#include <functional>
#include <span>

#include <fmt/format.h>

#include "base/json.h"
#include "results/row.h"

namespace gpuwhy {
namespace {

using Names = std::span<const std::string_view>;

// A member of an object; null if there is none.
const Json& member(const Json& object, std::string_view name) {
  static const Json kNull;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNull;
}

std::string text_in(const Json& object, std::string_view name) {
  const Json& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

// An object with its key first, without the fields that are left out.
Json keyed(const Json& object, const std::string& key, Names left_out = {}) {
  Json row = Json::object();
  row["key"] = key;
  if (object.is_object()) {
    for (const auto& [name, value] : object.items()) {
      if (std::find(left_out.begin(), left_out.end(), name) == left_out.end()) {
        row[name] = value;
      }
    }
  }
  return row;
}

// Rows of an array with their keys: those that are wanted.
Json keyed_rows(const Json& rows, const std::string& key, Names left_out = {},
                const std::function<bool(const Json& row)>& is_wanted = {}) {
  Json kept = Json::array();
  for (std::size_t i = 0; rows.is_array() && i < rows.size(); ++i) {
    if (!is_wanted || is_wanted(rows[i])) {
      kept.push_back(keyed(rows[i], fmt::format("{}[{}]", key, i), left_out));
    }
  }
  return kept;
}

std::size_t num_rows(const Json& rows) {
  return rows.is_array() ? rows.size() : 0;
}

std::vector<std::string> stages_of(const Json& metrics) {
  std::vector<std::string> names;
  for (const Json& row : member(metrics, "stages")) {
    names.push_back(text_in(row, "stage"));
  }
  return names;
}

Json no_stage(const Json& metrics, const std::string& stage) {
  return cannot_answer(fmt::format("the recording has no stage '{}'", stage),
                       fmt::format("it has: {}", fmt::join(stages_of(metrics), ", ")));
}

bool has_stage(const Json& metrics, const std::string& stage) {
  const std::vector<std::string> names = stages_of(metrics);
  return std::find(names.begin(), names.end(), stage) != names.end();
}

}  // namespace

Json cannot_answer(const std::string& reason, const std::string& next) {
  Json answer = Json::object();
  answer["cannot_answer"] = reason;
  answer["next"] = text_or_null(next);
  return answer;
}

// The first question on a recording, so its answer names what else can be asked.
Json open_answer(const Json& metrics) {
  const Json& structure = member(metrics, "structure");
  Json answer = Json::object();
  answer["verdict"] = member(metrics, "verdict");
  answer["capture"] = keyed(member(metrics, "capture"), "capture");
  answer["devices"] = keyed_rows(member(metrics, "devices"), "devices");
  answer["stages"] = keyed_rows(member(metrics, "stages"), "stages");
  answer["rows"] = {{"findings", num_rows(member(metrics, "findings"))},
                    {"steps", num_rows(member(metrics, "steps"))},
                    {"passes", num_rows(member(structure, "passes"))},
                    {"parts", num_rows(member(structure, "parts"))},
                    {"kernels", num_rows(member(metrics, "kernels"))}};
  answer["possible_marks"] = keyed_rows(member(metrics, "possible_marks"), "possible_marks");
  answer["contract"] = member(metrics, "contract");
  answer["data_quality"] = keyed_rows(member(metrics, "data_quality"), "data_quality");
  return answer;
}

Json findings_answer(const Json& metrics) {
  Json answer = Json::object();
  answer["verdict"] = member(metrics, "verdict");
  answer["findings"] = keyed_rows(member(metrics, "findings"), "findings");
  // Where the time of the whole capture went, which every finding is a part of.
  answer["ledgers"] = keyed_rows(member(metrics, "ledgers"), "ledgers");
  answer["not_checked"] = member(metrics, "silent_rules");
  return answer;
}

// The length of each step is thousands of numbers: only if it is asked for.
Json steps_answer(const Json& metrics, const std::string& stage, bool has_durations) {
  static constexpr std::string_view kLists[] = {"durations_ns", "periods_ns"};
  if (!stage.empty() && !has_stage(metrics, stage)) {
    return no_stage(metrics, stage);
  }
  const auto is_wanted = [&](const Json& row) {
    return stage.empty() || text_in(row, "stage") == stage;
  };
  Json answer = Json::object();
  answer["aggregates"] = keyed(member(metrics, "aggregates"), "aggregates");
  answer["stages"] = keyed_rows(member(metrics, "stages"), "stages", {}, is_wanted);
  answer["steps"] = keyed_rows(member(metrics, "steps"), "steps",
                               has_durations ? Names() : Names(kLists), is_wanted);
  answer["compositions"] =
      keyed_rows(member(metrics, "compositions"), "compositions", {}, is_wanted);
  answer["ledgers"] = keyed_rows(member(metrics, "ledgers"), "ledgers", {}, is_wanted);
  if (num_rows(answer["steps"]) == 0 && num_rows(answer["stages"]) == 0) {
    return cannot_answer("the recording marks no stage",
                         "marks: gpuwhy analyze FILE --mark STAGE=NAME; open lists possible_marks");
  }
  return answer;
}

Json layers_answer(const Json& metrics) {
  const Json& structure = member(metrics, "structure");
  if (num_rows(member(structure, "passes")) == 0) {
    const std::string reason = text_in(structure, "reason");
    return cannot_answer(reason.empty() ? "the recording shows no layers" : reason,
                         "layers are read from the order of kernels: record some whole passes");
  }
  Json answer = Json::object();
  static constexpr std::string_view kTables[] = {"passes", "parts", "slow_passes", "slow_layers"};
  answer["structure"] = keyed(structure, "structure", kTables);
  for (const std::string_view table : kTables) {
    const std::string name(table);
    answer[name] = keyed_rows(member(structure, table), "structure." + name);
  }
  return answer;
}

// Rows are in order of their time, and keep the number that they have in metrics.json.
Json kernels_answer(const Json& metrics, const KernelChoice& choice) {
  static constexpr std::string_view kLists[] = {"histogram", "shapes"};
  if (!choice.stage.empty() && row_name(choice.stage).kind != RowKind::kOutside &&
      !has_stage(metrics, choice.stage)) {
    return no_stage(metrics, choice.stage);
  }
  std::size_t num_fitting = 0;
  const Json& rows = member(metrics, "kernels");
  Json answer = Json::object();
  answer["families"] = keyed_rows(member(metrics, "families"), "families");
  answer["kernels"] = keyed_rows(rows, "kernels", kLists, [&](const Json& row) {
    const bool fits = (choice.stage.empty() || text_in(row, "stage") == choice.stage) &&
                      (choice.family.empty() || text_in(row, "family") == choice.family) &&
                      (choice.name.empty() ||
                       text_in(row, "kernel_name").find(choice.name) != std::string::npos ||
                       text_in(row, "short_name").find(choice.name) != std::string::npos);
    num_fitting += fits ? 1 : 0;
    return fits && num_fitting <= choice.top;
  });
  answer["rows_that_fit"] = num_fitting;
  if (num_rows(rows) == 0) {
    return cannot_answer("no kernel was recorded", "the tool findings says what to do");
  }
  return answer;
}

}  // namespace gpuwhy
