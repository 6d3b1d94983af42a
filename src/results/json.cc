// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing of metrics.json by its field descriptions.
//
// The file is untrusted: a value of another type than its member is an error that names the key. A
// null or missing key leaves its member unchanged.
#include "results/json.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "results/row_json.h"

namespace gpuwhy {

// Found where JSON of rows is made, by its argument.
inline Json json_form(const std::optional<CountersRow>& counters) {
  return counters ? object_json(*counters)
                  : Json{{"kernels", nullptr}, {"reason", "needs an ncu capture"}};
}

namespace {

// The position of a value in the file; converted to text only for an error.
struct Place {
  const Place* around = nullptr;
  std::string_view key;
  std::size_t row = SIZE_MAX;

  std::string text() const {
    const std::string before = around == nullptr ? "" : around->text();
    if (row != SIZE_MAX) {
      return fmt::format("{}[{}]", before, row);
    }
    return before.empty() ? std::string(key) : fmt::format("{}.{}", before, key);
  }
};

void expect(bool is_right, const char* wanted, const Place& place) {
  if (!is_right) {
    const std::string path = place.text();
    throw Error(ErrorKind::kInput, fmt::format("metrics.json: {} is not {}",
                                               path.empty() ? "the whole" : path, wanted));
  }
}

template <typename T>
void read_value(const Json& json, T& value, const Place& place);

template <typename T>
void read_object(const Json& json, T& object, const Place& place) {
  expect(json.is_object(), "an object", place);
  describe(&object, [&](const char* key, auto member, const Field& /*field*/) {
    // Computed values are written but never read.
    if constexpr (std::is_member_object_pointer_v<decltype(member)>) {
      if (const auto found = json.find(key); found != json.end()) {
        read_value(*found, object.*member, {&place, key});
      }
    }
  });
}

void read_integer(const Json& json, std::int64_t& value, const Place& place) {
  const auto number = json_integer(json);
  expect(number.has_value(), "a whole number", place);
  value = *number;
}

// A word of an enumeration. One that may be of a later version says so.
template <Worded T>
void read_word(const Json& json, T& value, const Place& place) {
  const auto words = words_of(value);
  const auto word = std::ranges::find_if(words, [&](const char* one) { return json == one; });
  if constexpr (requires { T::kUnknown; }) {
    value = word == words.end() ? T::kUnknown : static_cast<T>(word - words.begin());
  } else if (word != words.end()) {
    value = static_cast<T>(word - words.begin());
  } else {
    expect(false,
           fmt::format("{} or {}", fmt::join(words.first(words.size() - 1), ", "), words.back())
               .c_str(),
           place);
  }
}

template <typename T>
void read_list(const Json& json, T& list, const Place& place) {
  expect(json.is_array(), "an array", place);
  if constexpr (requires { list.resize(1); }) {
    list.resize(json.size());
  }
  expect(json.size() == list.size(), "an array of that length", place);
  for (std::size_t i = 0; i < json.size(); ++i) {
    read_value(json[i], list[i], {&place, "", i});
  }
}

// Reads a value by its type. Null leaves the default.
template <typename T>
void read_value(const Json& json, T& value, const Place& place) {
  if (json.is_null()) {
    return;
  }
  if constexpr (Worded<T>) {
    read_word(json, value, place);
  } else if constexpr (kIsText<T>) {
    expect(json.is_string(), "a text", place);
    read_member(json.get_ref<const std::string&>(), value);
  } else if constexpr (std::is_same_v<T, bool>) {
    expect(json.is_boolean(), "true or false", place);
    value = json.get<bool>();
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    read_integer(json, value, place);
  } else if constexpr (std::is_same_v<T, double>) {
    expect(json.is_number(), "a number", place);
    value = json.get<double>();
  } else if constexpr (std::is_same_v<T, std::optional<CountersRow>>) {
    expect(json.is_object(), "an object", place);
    if (const auto kernels = json.find("kernels"); kernels != json.end() && !kernels->is_null()) {
      read_object(json, value.emplace(), place);
    }
  } else if constexpr (std::is_same_v<T, BucketTimes>) {
    expect(json.is_object(), "an object", place);
    for (std::size_t i = 0; i < kNumBuckets; ++i) {
      if (const auto found = json.find(kBucketNames[i]); found != json.end()) {
        read_value(*found, value[i], {&place, kBucketNames[i]});
      }
    }
  } else if constexpr (std::is_same_v<T, NumberPair>) {
    expect(json.is_array() && json.size() == 2, "a pair", place);
    read_value(json[0], value.first, {&place, "", 0});
    read_value(json[1], value.second, {&place, "", 1});
  } else if constexpr (kIsOptional<T>) {
    read_value(json, value.emplace(), place);
  } else if constexpr (kIsList<T>) {
    read_list(json, value, place);
  } else {
    read_object(json, value, place);
  }
}

}  // namespace

Json metrics_json(const Results& metrics) {
  return object_json(metrics, json_document("metrics", kMetricsVersion));
}

std::string metrics_json_text(const Results& metrics) {
  return to_json_text(metrics_json(metrics));
}

Results metrics_from_json(const Json& json) {
  Results metrics;
  read_object(json, metrics, {});
  return metrics;
}

void make_current(Json& metrics) {
  metrics.erase("origins");
  metrics["schema_version"] = kMetricsVersion;
}

std::string unprofiled_json(const UnprofiledRun& run, const std::vector<StageTimes>& stages) {
  Json document = json_document("baseline", 1);
  document["wall_ns"] = run.wall_ns;
  document["exit_code"] = run.exit_code;
  document["processes"] = run.num_processes;
  document["ranges_lost"] = run.num_lost_ranges;
  document["stage_source"] = text_or_null(run.stage_source);
  document["stages"] = value_json(stages, {});
  return to_json_text(document);
}

Json contract_json(const std::vector<BreachRow>& breaches) {
  return value_json(breaches, {});
}

}  // namespace gpuwhy
