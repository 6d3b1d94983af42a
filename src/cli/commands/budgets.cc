// SPDX-License-Identifier: Apache-2.0
//
// A budget is a key of metrics.json and what it may be: change by so much against the baseline, or
// be at most or at least so much in every run.
#include "cli/commands/budgets.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_path.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"
#include "base/yaml.h"
#include "results/catalog.h"

namespace gpuwhy {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& key,
                       const std::string& what) {
  throw Error(ErrorKind::kUsage, fmt::format("{}: {}: {}", path.string(), printable(key), what),
              "a budget is {change: 2 %}, {at_most: 12 ms} or {at_least: 45}");
}

// A key that no metrics.json has would be a budget that never fails.
[[noreturn]] void refuse_key(const std::filesystem::path& path, const std::string& key) {
  std::vector<std::string> known;
  for (const CatalogRow& row : metric_catalog()) {
    if (!row.info.unit.empty()) {
      known.push_back(row.keys);
    }
  }
  const auto longer =
      std::ranges::find_if(known, [&](const std::string& one) { return one.starts_with(key); });
  const auto meant = longer != known.end() ? std::optional(*longer) : nearest(key, known);
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: metrics.json has no key '{}'", path.string(), printable(key)),
              meant ? fmt::format("did you mean {}?", *meant)
                    : "gpuwhy report BUNDLE --format json lists keys");
}

// "2 %". A bare number is refused: 5 could mean 5 % or five times as much.
std::optional<double> change_of(const Json& value) {
  if (!value.is_string()) {
    return std::nullopt;
  }
  const std::string_view text = trim(value.get_ref<const std::string&>());
  return text.ends_with('%') ? parse_percent(text) : std::nullopt;
}

// A number in the unit of the key, or a text with a unit: "12 ms", "80 %", "4 GiB".
std::optional<double> limit_of(const Json& value, std::string_view unit) {
  if (value.is_number()) {
    return value.get<double>();
  }
  if (!value.is_string()) {
    return std::nullopt;
  }
  const std::string_view text = trim(value.get_ref<const std::string&>());
  const char last = text.empty() ? '0' : text.back();
  if (last >= '0' && last <= '9') {
    return std::nullopt;  // a number in quotes has no unit
  }
  if (unit == "ns") {
    const std::optional<std::int64_t> time_ns = parse_duration_ns(text);
    return time_ns ? std::optional(static_cast<double>(*time_ns)) : std::nullopt;
  }
  if ((unit == "bytes" || unit == "B")) {
    const std::optional<std::uint64_t> size = parse_bytes(text);
    return size ? std::optional(static_cast<double>(*size)) : std::nullopt;
  }
  return unit == "fraction" && last == '%' ? parse_percent(text) : std::nullopt;
}

std::string limit_words(std::string_view unit) {
  return unit == "ns"                       ? "a time with its unit, as 12 ms, or a number in ns"
         : (unit == "bytes" || unit == "B") ? "a size with its unit, as 4 GiB, or a number in bytes"
         : unit == "fraction"               ? "a percentage, as 80 %, or a number from 0 to 1"
                                            : "a number in the unit of the key";
}

MetricBudget budget_from(const std::filesystem::path& path, const std::string& key,
                         const Json& limits) {
  MetricBudget budget;
  budget.key = key;
  const MetricInfo* info = metric_info(path_pattern(parse_path(key)));
  if (info == nullptr) {
    refuse_key(path, key);
  }
  const std::string_view unit = info->unit;
  if (!limits.is_object() || limits.empty()) {
    fail(path, key, "is not a budget");
  }
  for (const auto& [name, value] : limits.items()) {
    if (name == "change") {
      budget.change_fraction = change_of(value);
      if (!budget.change_fraction || !(*budget.change_fraction > 0)) {
        fail(path, key, "change takes a percentage above 0, with its sign: 2 %");
      }
    } else if (name == "at_most" || name == "at_least") {
      const std::optional<double> limit = limit_of(value, unit);
      // 80 for a fraction means 80 %; above 100 % a limit always fails or never does.
      if (!limit || (unit == "fraction" && *limit > 1)) {
        fail(path, key, fmt::format("{} takes {}", name, limit_words(unit)));
      }
      (name == "at_most" ? budget.at_most : budget.at_least) = limit;
    } else {
      fail(path, key, fmt::format("'{}' is not understood", printable(name)));
    }
  }
  if (budget.at_most && budget.at_least && *budget.at_most < *budget.at_least) {
    fail(path, key, "at_most is below at_least: no value is within both");
  }
  return budget;
}

// A file that is missing or not YAML is a mistake of the command line, as a budget that is not one.
Json read_yaml(const std::filesystem::path& path) {
  try {
    return parse_yaml(read_file(path), path.string());
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, error.what(), error.hint());
  }
}

}  // namespace

std::vector<MetricBudget> read_budgets(const std::filesystem::path& path) {
  const Json file = read_yaml(path);
  if (!file.is_object() || file.size() != 1 || !file.contains("budgets") ||
      !file.at("budgets").is_object()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: not a budget file: it must have one key, budgets", path.string()));
  }
  std::vector<MetricBudget> budgets;
  for (const auto& [key, limits] : file.at("budgets").items()) {
    budgets.push_back(budget_from(path, key, limits));
  }
  return budgets;
}

std::vector<MetricBudget> read_all_budgets(const std::vector<std::string>& paths) {
  std::vector<MetricBudget> all;
  for (const std::string& path : paths) {
    for (MetricBudget& budget : read_budgets(path)) {
      if (std::ranges::any_of(all,
                              [&](const MetricBudget& one) { return one.key == budget.key; })) {
        fail(path, budget.key, "an earlier --budget limits it already");
      }
      all.push_back(std::move(budget));
    }
  }
  return all;
}

}  // namespace gpuwhy
