// SPDX-License-Identifier: Apache-2.0
//
// Results of a kernel profiler: one per profiled launch, whatever file they came from.
//
// Values are in base units, named as in Nsight Compute: time in nsecond, traffic in byte, rates in
// byte/second and cycle/second, shares in percent (0..100). Metrics are identified by the
// profiler's own names, e.g. gpu__time_duration.sum. A label of a printed table with no known
// identifier is kept as "section/label".
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/diagnostic.h"
#include "trace/string_pool.h"
#include "trace/trace.h"

namespace gpuwhy {

// A number with its base unit, or a text. 16 bytes, about as much as in a report.
struct CounterMetric {
  StringId name{};
  StringId detail{};  // a number's unit (0: none known), or the text
  double value = 0;   // nan: a text; numbers are finite

  bool is_text() const { return std::isnan(value); }
  StringId unit() const { return is_text() ? StringId{} : detail; }
  StringId text() const { return is_text() ? detail : StringId{}; }

  static CounterMetric number(StringId name, StringId unit, double value) {
    return {name, unit, value};
  }
  static CounterMetric of_text(StringId name, StringId text) {
    return {name, text, std::numeric_limits<double>::quiet_NaN()};
  }
};

// An NVTX range that was open at the launch, outermost first.
struct CounterRange {
  StringId domain{};
  StringId name{};
  std::uint32_t thread = 0;  // of push/pop ranges
  RangeKind kind = RangeKind::kPushPop;
};

// A message of one of the profiler's rules about the launch.
struct CounterRule {
  StringId rule{};
  StringId section{};
  StringId message{};
  std::optional<double> speedup_percent;  // its estimate, where it makes one
  bool is_global = false;                 // the estimate is of the whole kernel, not of one part
};

// One profiled launch, or range of launches.
struct CounterResult {
  std::uint32_t id = 0;  // as the profiler numbers it
  StringId mangled_name{};
  StringId function_name{};
  StringId demangled_name{};
  bool is_range = false;  // counters of a range of launches, not of one
  std::uint32_t pid = 0;
  StringId process_name{};
  std::uint32_t thread = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t device = 0;  // as CUDA numbers it
  StringId device_name{};
  StringId compute_capability{};  // "8.6"; 0: not said
  std::optional<LaunchShape> shape;
  std::int64_t num_blocks = 0;         // of the grid; 0: not said
  std::int64_t threads_per_block = 0;  // 0: not said
  std::int64_t invocations = 1;        // launches the values are a mean of
  std::vector<CounterMetric> metrics;  // by name's number; no name twice
  std::vector<CounterRange> ranges;
  std::vector<CounterRule> rules;
};

// A GPU of the machine, as the report describes it.
struct CounterDevice {
  std::uint32_t id = 0;
  StringId name{};
  std::vector<CounterMetric> attributes;
};

// All results of one file, or of several merged ones.
struct Counters {
  std::string path;
  std::string format;         // "ncu report", "ncu output"
  std::string tool_version;   // empty if the file does not say
  std::string clock_control;  // "Base", "None"; empty if the file does not say
  StringPool strings;
  std::vector<CounterResult> results;
  std::vector<CounterDevice> devices;
  Diagnostics diagnostics;
};

// The name to show: demangled, or else function, or else mangled.
std::string_view name_of(const Counters& counters, const CounterResult& result);

// The value of a metric, if the result has it as a number (as a text, respectively).
std::optional<double> number_of(const Counters& counters, const CounterResult& result,
                                std::string_view name);
std::optional<std::string_view> text_of(const Counters& counters, const CounterResult& result,
                                        std::string_view name);

// Sorts the metrics, drops duplicates, and fills in shape, device and compute capability from the
// metrics. Importers call it once per file.
void complete_results(Counters& counters);

// Merges several files. Results of the same launch (process, number, kernel, shape) become one with
// all metrics; where two have a value, the first file wins.
Counters merge_counters(std::vector<Counters> files);

}  // namespace gpuwhy
