// SPDX-License-Identifier: Apache-2.0
//
// Reader of one profiled launch in a .ncu-rep.
//
// Field numbers are those of NVIDIA's extras/FileFormat, which only ever grew: rules got a speedup
// estimate after 2023.1, and one required field was dropped. Values per instance and per
// instruction are skipped, and so are the sections, which only describe ncu's layout.
#include "ingest/ncu/ncu_result.h"

#include <algorithm>
#include <cmath>

#include "ingest/ncu/ncu_units.h"

namespace gpuwhy {

using protozero::pbf_reader;

namespace {

// Metrics are most of a result; counting them first avoids wasted capacity.
void reserve_metrics(pbf_reader message, std::uint32_t number, CounterResult& result) {
  std::size_t count = 0;
  read_fields(message, on_bytes(number, [&](pbf_reader& field) {
                ++count;
                field.skip();
              }));
  result.metrics.reserve(count);
}

void read_dimensions(pbf_reader message, std::int32_t (&dims)[3]) {
  const auto axis = [&](std::uint32_t number) {
    return on_varint(number, [&dims, number](pbf_reader& field) {
      const std::uint64_t size = field.get_uint64();
      dims[number - 1] = static_cast<std::int32_t>(std::min<std::uint64_t>(size, INT32_MAX));
    });
  };
  read_fields(message, axis(1), axis(2), axis(3));
}

// 1 is local, 2 is global: the CSV of such a report prints the words.
void read_speedup(pbf_reader message, CounterRule& rule) {
  read_fields(message,
              on_varint(1, [&](pbf_reader& field) { rule.is_global = field.get_uint32() == 2; }),
              on_fixed64(2, [&](pbf_reader& field) {
                if (const double percent = field.get_double(); std::isfinite(percent)) {
                  rule.speedup_percent = percent;
                }
              }));
}

}  // namespace

// Field numbers of ProfileResult.
void ResultReader::read_result(pbf_reader message, CounterResult& result) {
  reserve_metrics(message, 13, result);
  LaunchShape shape;
  int num_shapes = 0;
  const auto dimensions = [&](std::uint32_t number, std::int32_t(&dims)[3]) {
    return inner(number, [&](pbf_reader field) {
      read_dimensions(field, dims);
      ++num_shapes;
    });
  };
  read_fields(message, inner(13, [&](pbf_reader field) { read_metric(field, result); }),
              inner(19, [&](pbf_reader field) { read_rule(field, result); }),
              inner(21, [&](pbf_reader field) { read_nvtx(field, result); }),
              whole(1, result.thread), name(5, result.mangled_name), name(6, result.function_name),
              name(7, result.demangled_name), dimensions(10, shape.grid),
              dimensions(11, shape.block), whole(22, result.context), whole(23, result.stream));
  // A shape needs both grid and block.
  if (num_shapes == 2) {
    result.shape = shape;
  }
}

// A result of range replay: it covers several kernels, so it has no launch shape.
void ResultReader::read_range_result(pbf_reader message, CounterResult& result) {
  reserve_metrics(message, 4, result);
  read_fields(message, inner(4, [&](pbf_reader field) { read_metric(field, result); }),
              inner(10, [&](pbf_reader field) { read_nvtx(field, result); }),
              whole(1, result.thread), whole(11, result.context));
}

// False if the attribute has no value of a known type.
bool ResultReader::read_attribute(pbf_reader message, CounterMetric& metric) {
  bool has_value = false;
  read_fields(message, name(1, metric.name),
              inner(2, [&](pbf_reader field) { has_value = read_value(field, metric); }));
  return has_value;
}

void ResultReader::read_metric(pbf_reader message, CounterResult& result) {
  CounterMetric metric;
  std::optional<std::uint32_t> name;
  bool has_value = false;
  read_fields(message, on_varint(1, [&](pbf_reader& field) { name = field.get_uint32(); }),
              inner(2, [&](pbf_reader field) { has_value = read_value(field, metric); }));
  if (!name || !has_value) {
    return;
  }
  // A value without a name in the string table cannot be used.
  if (*name >= names_.entries.size()) {
    ++num_nameless_;
    return;
  }
  MetricNames::Entry& known = names_.entries[*name];
  if (known.id == StringId{}) {
    known.id = counters_.strings.intern(names_.report.substr(known.offset, known.size));
  }
  metric.name = known.id;
  if (!metric.is_text()) {
    metric.detail = counters_.strings.intern(unit_of_metric(counters_.strings[known.id]));
  }
  result.metrics.push_back(metric);
}

// False if there is no value, an empty text, or a number that is not finite.
bool ResultReader::read_value(pbf_reader message, CounterMetric& metric) {
  bool has_value = false;
  const auto take = [&](double value) {
    metric.value = value;
    metric.detail = StringId{};
    has_value = std::isfinite(value);
    num_not_finite_ += has_value ? 0 : 1;
  };
  read_fields(
      message, on_fixed64(3, [&](pbf_reader& field) { take(field.get_double()); }),
      on_varint(5, [&](pbf_reader& field) { take(static_cast<double>(field.get_uint64())); }),
      on_varint(4, [&](pbf_reader& field) { take(field.get_uint32()); }),
      on_fixed32(2, [&](pbf_reader& field) { take(static_cast<double>(field.get_float())); }),
      text(1, [&](std::string_view found) {
        metric = CounterMetric::of_text(metric.name, counters_.strings.intern(found));
        has_value = metric.text() != StringId{};
      }));
  return has_value;
}

// A rule may have several messages; its name and section may follow them, so they are set at the
// end.
void ResultReader::read_rule(pbf_reader message, CounterResult& result) {
  const std::size_t first = result.rules.size();
  StringId rule{};
  StringId section{};
  read_fields(message, name(1, rule),
              inner(3,
                    [&](pbf_reader body) {
                      read_fields(body,
                                  inner(1, [&](pbf_reader item) { read_rule_item(item, result); }));
                    }),
              name(4, section));
  for (std::size_t i = first; i < result.rules.size(); ++i) {
    result.rules[i].rule = rule;
    result.rules[i].section = section;
  }
}

// A rule's message is one level deeper than its estimated speedup.
void ResultReader::read_rule_item(pbf_reader message, CounterResult& result) {
  CounterRule rule;
  read_fields(message,
              inner(1, [&](pbf_reader field) { read_fields(field, name(1, rule.message)); }),
              inner(10, [&](pbf_reader field) { read_speedup(field, rule); }));
  if (rule.message != StringId{}) {
    result.rules.push_back(rule);
  }
}

// Domains are read first, because ranges refer to them by id.
void ResultReader::read_nvtx(pbf_reader message, CounterResult& result) {
  Domains domains;
  read_fields(message, inner(1, [&](pbf_reader domain) {
                std::pair<std::uint64_t, StringId>& known = domains.emplace_back();
                read_fields(domain, whole(1, known.first), name(2, known.second));
              }));
  std::ranges::sort(domains);
  read_fields(message, inner(2, [&](pbf_reader thread) { read_thread(thread, domains, result); }),
              inner(3, [&](pbf_reader range) {
                read_range_domain(range, domains, RangeKind::kStartEnd, 0, result);
              }));
}

void ResultReader::read_thread(pbf_reader message, const Domains& domains, CounterResult& result) {
  // Two passes: fields may come in any order, and the ranges need the thread's number.
  std::uint32_t thread = 0;
  read_fields(message, whole(1, thread));
  read_fields(message, inner(2, [&](pbf_reader range) {
                read_range_domain(range, domains, RangeKind::kPushPop, thread, result);
              }));
}

// Push/pop ranges have their name in field 1, start/end ranges in field 2.
void ResultReader::read_range_domain(pbf_reader message, const Domains& domains, RangeKind kind,
                                     std::uint32_t thread, CounterResult& result) {
  const std::uint32_t name_field = kind == RangeKind::kPushPop ? 1 : 2;
  std::uint64_t id = 0;
  const std::size_t first = result.ranges.size();
  read_fields(
      message, whole(1, id), inner(3, [&](pbf_reader range) {
        read_fields(
            range, text(name_field, [&](std::string_view found) {
              result.ranges.push_back({StringId{}, counters_.strings.intern(found), thread, kind});
            }));
      }));
  // The domain's id may follow its ranges, so names are set afterwards.
  const auto domain = std::lower_bound(domains.begin(), domains.end(), std::pair(id, StringId{}));
  for (std::size_t i = first; i < result.ranges.size(); ++i) {
    if (domain != domains.end() && domain->first == id) {
      result.ranges[i].domain = domain->second;
    }
  }
}

}  // namespace gpuwhy
