// SPDX-License-Identifier: Apache-2.0
//
// Messages inside a .ncu-rep. Fields are matched by number and wire type; all others are skipped.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include <protozero/pbf_reader.hpp>

#include "trace/counters.h"

namespace gpuwhy {

// Tags of the four wire types, for use in switch statements.
constexpr std::uint32_t varint_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::varint);
}
constexpr std::uint32_t bytes_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t fixed32_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::fixed32);
}
constexpr std::uint32_t fixed64_field(std::uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::fixed64);
}

// Calls `take(field, message)` for each field. It reads the value and returns true, or returns
// false to skip the field. Throws protozero::exception for invalid protobuf.
template <typename Take>
void each_field(protozero::pbf_reader message, Take&& take) {
  while (message.next()) {
    if (!take(message.tag_and_type(), message)) {
      message.skip();
    }
  }
}

// The view is valid as long as the file's bytes.
inline std::string_view text_in(protozero::pbf_reader& message) {
  const protozero::data_view data = message.get_view();
  return {data.data(), data.size()};
}

// Metric names by number: the string tables of all blocks, concatenated.
struct MetricNames {
  struct Entry {
    std::uint32_t offset = 0;  // into the report
    std::uint32_t size = 0;
    StringId id{};  // 0: no result used it so far
  };
  std::string_view report;
  std::deque<Entry> entries;
};

// Reads results into `counters`. Values without a name in the tables are counted.
class ResultReader {
 public:
  ResultReader(MetricNames& names, Counters& counters) : names_(names), counters_(counters) {}

  // Both throw protozero::exception if the message is damaged.
  void read_result(protozero::pbf_reader message, CounterResult& result);
  void read_range_result(protozero::pbf_reader message, CounterResult& result);

  // A device attribute: its name in field 1, its value in field 2. False if there is no value.
  bool read_attribute(protozero::pbf_reader message, CounterMetric& metric);

  std::int64_t num_nameless() const { return num_nameless_; }
  std::int64_t num_not_finite() const { return num_not_finite_; }

 private:
  using Domains = std::vector<std::pair<std::uint64_t, StringId>>;

  void read_metric(protozero::pbf_reader message, CounterResult& result);
  bool read_value(protozero::pbf_reader message, CounterMetric& metric);
  void read_rule(protozero::pbf_reader message, CounterResult& result);
  CounterRule read_rule_item(protozero::pbf_reader message);
  void read_nvtx(protozero::pbf_reader message, CounterResult& result);
  void read_thread(protozero::pbf_reader message, const Domains& domains, CounterResult& result);
  void read_range_domain(protozero::pbf_reader message, const Domains& domains, RangeKind kind,
                         std::uint32_t thread, CounterResult& result);
  StringId intern(protozero::pbf_reader& message);

  MetricNames& names_;
  Counters& counters_;
  std::int64_t num_nameless_ = 0;
  std::int64_t num_not_finite_ = 0;
};

}  // namespace gpuwhy
