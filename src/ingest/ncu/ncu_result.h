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

// A field that is read: its number and wire type, and what takes its value.
template <typename Take>
struct MessageField {
  std::uint32_t tag = 0;
  Take take;
};
template <typename Take>
MessageField<Take> on_varint(std::uint32_t number, Take take) {
  return {protozero::tag_and_type(number, protozero::pbf_wire_type::varint), take};
}
template <typename Take>
MessageField<Take> on_fixed32(std::uint32_t number, Take take) {
  return {protozero::tag_and_type(number, protozero::pbf_wire_type::fixed32), take};
}
template <typename Take>
MessageField<Take> on_fixed64(std::uint32_t number, Take take) {
  return {protozero::tag_and_type(number, protozero::pbf_wire_type::fixed64), take};
}
template <typename Take>
MessageField<Take> on_bytes(std::uint32_t number, Take take) {
  return {protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited), take};
}

// Numbers, a text, and a message inside the message.
inline auto whole(std::uint32_t number, std::uint32_t& target) {
  return on_varint(number, [&](protozero::pbf_reader& field) { target = field.get_uint32(); });
}
inline auto whole(std::uint32_t number, std::uint64_t& target) {
  return on_varint(number, [&](protozero::pbf_reader& field) { target = field.get_uint64(); });
}
template <typename Take>
auto text(std::uint32_t number, Take take) {
  return on_bytes(number, [take](protozero::pbf_reader& field) {
    const protozero::data_view data = field.get_view();
    take(std::string_view(data.data(), data.size()));  // valid as long as the file's bytes
  });
}
template <typename Take>
auto inner(std::uint32_t number, Take take) {
  return on_bytes(number, [take](protozero::pbf_reader& field) { take(field.get_message()); });
}

// Reads these fields of a message and skips all others. Throws protozero::exception for invalid
// protobuf.
template <typename... Takes>
void read_fields(protozero::pbf_reader message, const MessageField<Takes>&... fields) {
  while (message.next()) {
    const std::uint32_t tag = message.tag_and_type();
    if (!((tag == fields.tag && (fields.take(message), true)) || ...)) {
      message.skip();
    }
  }
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

  // A text that becomes a number of the pool.
  auto name(std::uint32_t number, StringId& target) {
    return text(number, [this, &target](std::string_view found) {
      target = counters_.strings.intern(found);
    });
  }

  std::int64_t num_nameless() const { return num_nameless_; }
  std::int64_t num_not_finite() const { return num_not_finite_; }

 private:
  using Domains = std::vector<std::pair<std::uint64_t, StringId>>;

  void read_metric(protozero::pbf_reader message, CounterResult& result);
  bool read_value(protozero::pbf_reader message, CounterMetric& metric);
  void read_rule(protozero::pbf_reader message, CounterResult& result);
  void read_rule_item(protozero::pbf_reader message, CounterResult& result);
  void read_nvtx(protozero::pbf_reader message, CounterResult& result);
  void read_thread(protozero::pbf_reader message, const Domains& domains, CounterResult& result);
  void read_range_domain(protozero::pbf_reader message, const Domains& domains, RangeKind kind,
                         std::uint32_t thread, CounterResult& result);

  MetricNames& names_;
  Counters& counters_;
  std::int64_t num_nameless_ = 0;
  std::int64_t num_not_finite_ = 0;
};

}  // namespace gpuwhy
