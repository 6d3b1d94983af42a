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
#include "base/yaml.h"
#include "report/metric_catalog.h"

namespace llmprof {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& key,
                       const std::string& what) {
  throw Error(ErrorKind::kUsage, fmt::format("{}: {}: {}", path.string(), printable(key), what),
              "a budget is {change: 2 %}, {at_most: NUMBER} or {at_least: NUMBER}");
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
                    : "llmprof report BUNDLE --format json lists keys");
}

// "2 %", or 0.02.
std::optional<double> change_of(const Json& value) {
  if (value.is_number()) {
    return value.get<double>();
  }
  if (!value.is_string()) {
    return std::nullopt;
  }
  const std::string_view text = trim(value.get_ref<const std::string&>());
  return text.ends_with('%') ? parse_percent(text) : std::nullopt;
}

MetricBudget budget_from(const std::filesystem::path& path, const std::string& key,
                         const Json& limits) {
  MetricBudget budget;
  budget.key = key;
  if (metric_info(path_pattern(parse_path(key))) == nullptr) {
    refuse_key(path, key);
  }
  if (!limits.is_object() || limits.empty()) {
    fail(path, key, "is not a budget");
  }
  for (const auto& [name, value] : limits.items()) {
    if (name == "change") {
      budget.change_fraction = change_of(value);
      if (!budget.change_fraction || !(*budget.change_fraction > 0)) {
        fail(path, key, "change takes a percentage above 0");
      }
    } else if ((name == "at_most" || name == "at_least") && value.is_number()) {
      (name == "at_most" ? budget.at_most : budget.at_least) = value.get<double>();
    } else {
      fail(path, key, fmt::format("'{}' is not understood", printable(name)));
    }
  }
  return budget;
}

}  // namespace

std::vector<MetricBudget> read_budgets(const std::filesystem::path& path) {
  const Json file = parse_yaml(read_file(path), path.string());
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

}  // namespace llmprof
