// SPDX-License-Identifier: Apache-2.0
//
// Completion and merging of kernel profiler results.
//
// Launch properties are spread over the metrics: a report stores the grid as a field, its raw CSV
// as three columns, its details CSV as a label or not at all. They are filled in here, so that
// importers only deal with their format. Where a file has only totals (256 blocks), the shape stays
// unknown.
#include "trace/counters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace gpuwhy {
namespace {

const CounterMetric* find_metric(const Counters& counters, const CounterResult& result,
                                 std::string_view name) {
  const std::optional<StringId> id = counters.strings.find(name);
  if (!id) {
    return nullptr;
  }
  const auto at = std::ranges::lower_bound(result.metrics, *id, {}, &CounterMetric::name);
  return at != result.metrics.end() && at->name == *id ? &*at : nullptr;
}

// A plausible integer; nullopt for a value that no launch can have.
std::optional<std::int64_t> whole_of(const Counters& counters, const CounterResult& result,
                                     std::string_view name) {
  const std::optional<double> value = number_of(counters, result, name);
  if (!value || !(*value >= 0) || *value > 1e15) {
    return std::nullopt;
  }
  return std::llround(*value);
}

std::int64_t product(const std::int32_t (&dims)[3]) {
  return std::int64_t{std::max(dims[0], 1)} * std::max(dims[1], 1) * std::max(dims[2], 1);
}

// From the most detailed source to the least: the six dimensions, then the two totals.
void complete_shape(const Counters& counters, CounterResult& result) {
  if (!result.shape) {
    static constexpr const char* kDims[] = {"launch__grid_dim_x",  "launch__grid_dim_y",
                                            "launch__grid_dim_z",  "launch__block_dim_x",
                                            "launch__block_dim_y", "launch__block_dim_z"};
    LaunchShape shape;
    int known = 0;
    for (int i = 0; i < 6; ++i) {
      const auto value = whole_of(counters, result, kDims[i]);
      if (value && *value <= INT32_MAX) {
        (i < 3 ? shape.grid[i] : shape.block[i - 3]) = static_cast<std::int32_t>(*value);
        ++known;
      }
    }
    if (known == 6) {
      result.shape = shape;
    }
  }
  if (result.shape) {
    // Three hostile dimensions of 2^31 exceed 64 bits; real grids are far smaller.
    const double blocks =
        static_cast<double>(result.shape->grid[0]) * result.shape->grid[1] * result.shape->grid[2];
    result.num_blocks = blocks < 1e15 ? product(result.shape->grid) : 0;
    const double threads = static_cast<double>(result.shape->block[0]) * result.shape->block[1] *
                           result.shape->block[2];
    result.threads_per_block = threads < 1e15 ? product(result.shape->block) : 0;
  }
  if (result.num_blocks == 0) {
    result.num_blocks = whole_of(counters, result, "launch__grid_size").value_or(0);
  }
  if (result.threads_per_block == 0) {
    result.threads_per_block = whole_of(counters, result, "launch__block_size").value_or(0);
  }
}

// Metrics of the launch come first, the report's device list fills the gaps.
void complete_device(Counters& counters, CounterResult& result) {
  if (const auto device = whole_of(counters, result, "device__attribute_device_index");
      device && *device <= UINT32_MAX) {
    result.device = static_cast<std::uint32_t>(*device);
  }
  if (const auto name = text_of(counters, result, "device__attribute_display_name")) {
    result.device_name = *counters.strings.find(*name);
  }
  for (const CounterDevice& device : counters.devices) {
    if (result.device_name == StringId{} && device.id == result.device) {
      result.device_name = device.name;
    }
  }
  const auto major = whole_of(counters, result, "device__attribute_compute_capability_major");
  const auto minor = whole_of(counters, result, "device__attribute_compute_capability_minor");
  if (result.compute_capability == StringId{} && major && minor) {
    result.compute_capability = counters.strings.intern(fmt::format("{}.{}", *major, *minor));
  }
}

void sort_metrics(std::vector<CounterMetric>& metrics) {
  std::ranges::stable_sort(metrics, {}, &CounterMetric::name);
  metrics.erase(
      std::unique(metrics.begin(), metrics.end(),
                  [](const CounterMetric& a, const CounterMetric& b) { return a.name == b.name; }),
      metrics.end());
}

// Converts string numbers of `from` to those of `to`.
class Translation {
 public:
  Translation(const StringPool& from, StringPool& to) : from_(from), to_(to) {}

  void operator()(StringId& id) { id = to_.intern(from_[id]); }

  void operator()(CounterResult& result) {
    for (StringId* id : {&result.mangled_name, &result.function_name, &result.demangled_name,
                         &result.process_name, &result.device_name, &result.compute_capability}) {
      (*this)(*id);
    }
    (*this)(result.metrics);
    for (CounterRange& range : result.ranges) {
      (*this)(range.domain);
      (*this)(range.name);
    }
    for (CounterRule& rule : result.rules) {
      (*this)(rule.rule);
      (*this)(rule.section);
      (*this)(rule.message);
    }
  }

  void operator()(std::vector<CounterMetric>& metrics) {
    for (CounterMetric& metric : metrics) {
      (*this)(metric.name);
      (*this)(metric.detail);
    }
  }

 private:
  const StringPool& from_;
  StringPool& to_;
};

}  // namespace

std::string_view name_of(const Counters& counters, const CounterResult& result) {
  for (const StringId id : {result.demangled_name, result.function_name, result.mangled_name}) {
    if (id != StringId{}) {
      return counters.strings[id];
    }
  }
  return result.is_range ? "[range]" : "[no name]";
}

std::optional<double> number_of(const Counters& counters, const CounterResult& result,
                                std::string_view name) {
  const CounterMetric* metric = find_metric(counters, result, name);
  return metric == nullptr || metric->is_text() ? std::nullopt : std::optional(metric->value);
}

std::optional<std::string_view> text_of(const Counters& counters, const CounterResult& result,
                                        std::string_view name) {
  const CounterMetric* metric = find_metric(counters, result, name);
  return metric == nullptr || !metric->is_text() ? std::nullopt
                                                 : std::optional(counters.strings[metric->text()]);
}

void complete_results(Counters& counters) {
  for (CounterResult& result : counters.results) {
    sort_metrics(result.metrics);
    complete_shape(counters, result);
    complete_device(counters, result);
  }
}

Counters merge_counters(std::vector<Counters> files) {
  Counters merged;
  // Identifies a launch across files. ncu numbers launches the same way in every run of a program.
  std::map<std::tuple<std::uint32_t, std::uint32_t, StringId, std::int64_t, std::int64_t,
                      std::uint32_t, std::uint32_t>,
           std::size_t>
      known;
  for (Counters& file : files) {
    Translation translate(file.strings, merged.strings);
    const std::size_t first_of_file = merged.results.size();
    for (CounterResult& result : file.results) {
      translate(result);
      const std::tuple key(result.pid, result.id, merged.strings.intern(name_of(merged, result)),
                           result.num_blocks, result.threads_per_block, result.context,
                           result.stream);
      const auto [at, is_new] = known.try_emplace(key, merged.results.size());
      // Two results in one file are two launches, whatever they have in common.
      if (is_new || result.pid == 0 || at->second >= first_of_file) {
        merged.results.push_back(std::move(result));
        continue;
      }
      CounterResult& first = merged.results[at->second];
      first.metrics.insert(first.metrics.end(), result.metrics.begin(), result.metrics.end());
      if (first.rules.size() < result.rules.size()) {
        first.rules = std::move(result.rules);
      }
      if (first.ranges.empty()) {
        first.ranges = std::move(result.ranges);
      }
    }
    for (CounterDevice& device : file.devices) {
      translate(device.name);
      translate(device.attributes);
      merged.devices.push_back(std::move(device));
    }
    // File-level properties are taken from the first file that has them.
    merged.diagnostics.insert(merged.diagnostics.end(), file.diagnostics.begin(),
                              file.diagnostics.end());
    if (merged.path.empty()) {
      merged.path = file.path;
      merged.format = file.format;
    }
    if (merged.tool_version.empty()) {
      merged.tool_version = file.tool_version;
    }
    if (merged.clock_control.empty()) {
      merged.clock_control = file.clock_control;
    }
  }
  complete_results(merged);
  return merged;
}

}  // namespace gpuwhy
