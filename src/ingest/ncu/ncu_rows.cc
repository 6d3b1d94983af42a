// SPDX-License-Identifier: Apache-2.0
//
// Grouping of the rows of ncu's printed tables into launches.
//
// One launch is described by many rows, each of which repeats the launch's identity. Two launches
// differ in number, process or kernel; in a summary, which has no numbers, in device or shape.
// Values are converted to base units using the unit printed next to each.
#include "ingest/ncu/ncu_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "ingest/ncu/ncu_units.h"

namespace gpuwhy {
namespace {

std::uint32_t whole_number(std::string_view text) {
  const auto value = parse_number(text);
  return value && *value >= 0 && *value <= UINT32_MAX ? static_cast<std::uint32_t>(*value) : 0;
}

// "(128, 1, 1)"; false for a total such as "128".
bool read_dimensions(std::string_view text, std::int32_t (&dims)[3]) {
  if (!text.starts_with('(') || !text.ends_with(')')) {
    return false;
  }
  text = text.substr(1, text.size() - 2);
  for (std::int32_t& dim : dims) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view number = trim(text.substr(0, comma));
    if (std::from_chars(number.data(), number.data() + number.size(), dim).ec != std::errc() ||
        dim < 0) {
      return false;
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

// 12345  "domain:name:none:none:none:none:none:none"  "..." : a thread or id, then the ranges, each
// with six more attributes after its name.
void read_ranges(std::string_view cell, RangeKind kind, StringPool& strings,
                 CounterResult& result) {
  constexpr int kAttributes = 6;
  const std::uint32_t thread =
      kind == RangeKind::kPushPop ? whole_number(cell.substr(0, cell.find(' '))) : 0;
  while (true) {
    const std::size_t open = cell.find('"');
    const std::size_t close = open == std::string_view::npos ? open : cell.find('"', open + 1);
    if (close == std::string_view::npos) {
      return;
    }
    std::string_view range = cell.substr(open + 1, close - open - 1);
    cell.remove_prefix(close + 1);
    for (int i = 0; i < kAttributes; ++i) {
      range = range.substr(0, range.rfind(':'));
    }
    const std::size_t colon = range.find(':');
    if (colon != std::string_view::npos) {
      result.ranges.push_back({strings.intern(range.substr(0, colon)),
                               strings.intern(range.substr(colon + 1)), thread, kind});
    }
  }
}

}  // namespace

CounterResult& NcuRowCollector::result_of(const NcuRow& row) {
  // Rule rows of 2022 omit context and stream, so the number decides if there is one.
  std::string key;
  for (const std::string_view part : {row.id, row.pid, row.kernel}) {
    key.append(part).push_back('\n');
  }
  if (row.id.empty()) {
    key.append(row.device).append("\n").append(row.block).append("\n").append(row.grid);
  }
  if (key == last_key_ && !counters_.results.empty()) {
    return counters_.results[last_];
  }
  const auto [at, is_new] = known_.try_emplace(key, counters_.results.size());
  last_key_ = std::move(key);
  last_ = at->second;
  if (!is_new) {
    return counters_.results[last_];
  }
  StringPool& strings = counters_.strings;
  CounterResult& result = counters_.results.emplace_back();
  result.id = whole_number(row.id);
  result.demangled_name = strings.intern(row.kernel);
  result.pid = whole_number(row.pid);
  result.process_name = strings.intern(row.process);
  result.context = whole_number(row.context);
  result.stream = whole_number(row.stream);
  result.device = whole_number(row.device);
  result.compute_capability = strings.intern(row.compute_capability);
  result.invocations = std::max<std::int64_t>(whole_number(row.invocations), 1);
  LaunchShape shape;
  if (read_dimensions(row.grid, shape.grid) && read_dimensions(row.block, shape.block)) {
    result.shape = shape;
  } else {
    result.num_blocks = whole_number(row.grid);
    result.threads_per_block = whole_number(row.block);
  }
  read_ranges(row.push_pop, RangeKind::kPushPop, strings, result);
  read_ranges(row.start_stop, RangeKind::kStartEnd, strings, result);
  return result;
}

void NcuRowCollector::add_metric(const NcuRow& row, CounterResult& result) {
  StringPool& strings = counters_.strings;
  if (row.value.empty() || row.value == "n/a" || row.value == "nan" || row.value == "-nan" ||
      row.value == "inf") {
    return;
  }
  // Labels of the details page are translated to metric names; unknown ones keep their section.
  std::string_view name = row.metric;
  std::string label;
  if (name.find("__") == std::string_view::npos && !row.section.empty()) {
    name = metric_of_label(row.section, row.item, row.metric);
    if (name.empty()) {
      label.append(row.section).append("/");
      if (!row.item.empty()) {
        label.append(row.item).append("/");
      }
      name = label.append(row.metric);
    }
  }
  const StringId id = strings.intern(name);
  if (const auto number = parse_number(row.value)) {
    const UnitScale scale = unit_scale(row.unit);
    if (const double value = *number * scale.factor; std::isfinite(value)) {
      result.metrics.push_back(CounterMetric::number(id, strings.intern(scale.base), value));
    }
  } else {
    result.metrics.push_back(CounterMetric::of_text(id, strings.intern(row.value)));
  }
}

void NcuRowCollector::add(const NcuRow& row) {
  CounterResult& result = result_of(row);
  if (!row.metric.empty()) {
    add_metric(row, result);
  }
  if (!row.rule.empty() || !row.rule_text.empty()) {
    StringPool& strings = counters_.strings;
    result.rules.push_back({strings.intern(row.rule), strings.intern(row.section),
                            strings.intern(row.rule_text), parse_number(row.speedup),
                            row.speedup_type == "global"});
  }
}

Counters NcuRowCollector::finish() {
  complete_results(counters_);
  return std::move(counters_);
}

}  // namespace gpuwhy
