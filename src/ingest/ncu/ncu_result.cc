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
void reserve_metrics(pbf_reader message, std::uint32_t field, CounterResult& result) {
  std::size_t count = 0;
  each_field(message, [&](std::uint32_t tag, pbf_reader&) {
    count += tag == bytes_field(field) ? 1 : 0;
    return false;
  });
  result.metrics.reserve(count);
}

void read_dimensions(pbf_reader message, std::int32_t (&dims)[3]) {
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    for (std::uint32_t axis = 0; axis < 3; ++axis) {
      if (tag == varint_field(axis + 1)) {
        const std::uint64_t size = field.get_uint64();
        dims[axis] = static_cast<std::int32_t>(std::min<std::uint64_t>(size, INT32_MAX));
        return true;
      }
    }
    return false;
  });
}

// 1 is local, 2 is global: the CSV of such a report prints the words.
void read_speedup(pbf_reader message, CounterRule& rule) {
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    if (tag == varint_field(1)) {
      rule.is_global = field.get_uint32() == 2;
      return true;
    }
    if (tag == fixed64_field(2)) {
      const double percent = field.get_double();
      if (std::isfinite(percent)) {
        rule.speedup_percent = percent;
      }
      return true;
    }
    return false;
  });
}

}  // namespace

StringId ResultReader::intern(pbf_reader& message) {
  return counters_.strings.intern(text_in(message));
}

void ResultReader::read_result(pbf_reader message, CounterResult& result) {
  reserve_metrics(message, 13, result);
  LaunchShape shape;
  int num_shapes = 0;
  // Field numbers of ProfileResult.
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    switch (tag) {
      case varint_field(1):
        result.thread = field.get_uint32();
        return true;
      case bytes_field(5):
        result.mangled_name = intern(field);
        return true;
      case bytes_field(6):
        result.function_name = intern(field);
        return true;
      case bytes_field(7):
        result.demangled_name = intern(field);
        return true;
      case bytes_field(10):
        read_dimensions(field.get_message(), shape.grid);
        ++num_shapes;
        return true;
      case bytes_field(11):
        read_dimensions(field.get_message(), shape.block);
        ++num_shapes;
        return true;
      case bytes_field(13):
        read_metric(field.get_message(), result);
        return true;
      case bytes_field(19):
        read_rule(field.get_message(), result);
        return true;
      case bytes_field(21):
        read_nvtx(field.get_message(), result);
        return true;
      case varint_field(22):
        result.context = field.get_uint32();
        return true;
      case varint_field(23):
        result.stream = field.get_uint32();
        return true;
      default:
        return false;
    }
  });
  // A shape needs both grid and block.
  if (num_shapes == 2) {
    result.shape = shape;
  }
}

// A result of range replay: it covers several kernels, so it has no launch shape.
void ResultReader::read_range_result(pbf_reader message, CounterResult& result) {
  reserve_metrics(message, 4, result);
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    switch (tag) {
      case varint_field(1):
        result.thread = field.get_uint32();
        return true;
      case bytes_field(4):
        read_metric(field.get_message(), result);
        return true;
      case bytes_field(10):
        read_nvtx(field.get_message(), result);
        return true;
      case varint_field(11):
        result.context = field.get_uint32();
        return true;
      default:
        return false;
    }
  });
}

// False if the attribute has no value of a known type.
bool ResultReader::read_attribute(pbf_reader message, CounterMetric& metric) {
  bool has_value = false;
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    if (tag == bytes_field(1)) {
      metric.name = intern(field);
      return true;
    }
    if (tag == bytes_field(2)) {
      has_value = read_value(field.get_message(), metric);
      return true;
    }
    return false;
  });
  return has_value;
}

void ResultReader::read_metric(pbf_reader message, CounterResult& result) {
  CounterMetric metric;
  std::optional<std::uint32_t> name;
  bool has_value = false;
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    if (tag == varint_field(1)) {
      name = field.get_uint32();
      return true;
    }
    if (tag == bytes_field(2)) {
      has_value = read_value(field.get_message(), metric);
      return true;
    }
    return false;
  });
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
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    switch (tag) {
      case bytes_field(1):
        metric = CounterMetric::of_text(metric.name, intern(field));
        has_value = metric.text() != StringId{};
        return true;
      case fixed32_field(2):
        metric.value = static_cast<double>(field.get_float());
        break;
      case fixed64_field(3):
        metric.value = field.get_double();
        break;
      case varint_field(4):
        metric.value = field.get_uint32();
        break;
      case varint_field(5):
        metric.value = static_cast<double>(field.get_uint64());
        break;
      default:
        return false;
    }
    metric.detail = StringId{};
    has_value = std::isfinite(metric.value);
    num_not_finite_ += has_value ? 0 : 1;
    return true;
  });
  return has_value;
}

// A rule may have several messages; its name and section may follow them, so they are set at the
// end.
void ResultReader::read_rule(pbf_reader message, CounterResult& result) {
  const std::size_t first = result.rules.size();
  StringId rule{};
  StringId section{};
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    switch (tag) {
      case bytes_field(1):
        rule = intern(field);
        return true;
      case bytes_field(3):
        each_field(field.get_message(), [&](std::uint32_t inner, pbf_reader& body) {
          if (inner != bytes_field(1)) {
            return false;
          }
          const CounterRule item = read_rule_item(body.get_message());
          if (item.message != StringId{}) {
            result.rules.push_back(item);
          }
          return true;
        });
        return true;
      case bytes_field(4):
        section = intern(field);
        return true;
      default:
        return false;
    }
  });
  for (std::size_t i = first; i < result.rules.size(); ++i) {
    result.rules[i].rule = rule;
    result.rules[i].section = section;
  }
}

// A rule's message is one level deeper than its estimated speedup.
CounterRule ResultReader::read_rule_item(pbf_reader message) {
  CounterRule rule;
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    if (tag == bytes_field(1)) {
      each_field(field.get_message(), [&](std::uint32_t inner, pbf_reader& text) {
        if (inner != bytes_field(1)) {
          return false;
        }
        rule.message = intern(text);
        return true;
      });
      return true;
    }
    if (tag == bytes_field(10)) {
      read_speedup(field.get_message(), rule);
      return true;
    }
    return false;
  });
  return rule;
}

// Domains are read first, because ranges refer to them by id.
void ResultReader::read_nvtx(pbf_reader message, CounterResult& result) {
  Domains domains;
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    if (tag != bytes_field(1)) {
      return false;
    }
    std::pair<std::uint64_t, StringId>& known = domains.emplace_back();
    each_field(field.get_message(), [&](std::uint32_t inner, pbf_reader& domain) {
      if (inner == varint_field(1)) {
        known.first = domain.get_uint64();
        return true;
      }
      if (inner == bytes_field(2)) {
        known.second = intern(domain);
        return true;
      }
      return false;
    });
    return true;
  });
  std::sort(domains.begin(), domains.end());
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    if (tag == bytes_field(2)) {
      read_thread(field.get_message(), domains, result);
      return true;
    }
    if (tag == bytes_field(3)) {
      read_range_domain(field.get_message(), domains, RangeKind::kStartEnd, 0, result);
      return true;
    }
    return false;
  });
}

void ResultReader::read_thread(pbf_reader message, const Domains& domains, CounterResult& result) {
  // Two passes: fields may come in any order, and the ranges need the thread's number.
  std::uint32_t thread = 0;
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    if (tag != varint_field(1)) {
      return false;
    }
    thread = field.get_uint32();
    return true;
  });
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    if (tag != bytes_field(2)) {
      return false;
    }
    read_range_domain(field.get_message(), domains, RangeKind::kPushPop, thread, result);
    return true;
  });
}

// Push/pop ranges have their name in field 1, start/end ranges in field 2.
void ResultReader::read_range_domain(pbf_reader message, const Domains& domains, RangeKind kind,
                                     std::uint32_t thread, CounterResult& result) {
  const std::uint32_t name_field = bytes_field(kind == RangeKind::kPushPop ? 1 : 2);
  std::uint64_t id = 0;
  const std::size_t first = result.ranges.size();
  each_field(message, [&](std::uint32_t tag, pbf_reader& field) {
    if (tag == varint_field(1)) {
      id = field.get_uint64();
      return true;
    }
    if (tag != bytes_field(3)) {
      return false;
    }
    each_field(field.get_message(), [&](std::uint32_t inner, pbf_reader& range) {
      if (inner != name_field) {
        return false;
      }
      result.ranges.push_back({StringId{}, intern(range), thread, kind});
      return true;
    });
    return true;
  });
  // The domain's id may follow its ranges, so names are set afterwards.
  const auto domain = std::lower_bound(domains.begin(), domains.end(), std::pair(id, StringId{}));
  for (std::size_t i = first; i < result.ranges.size(); ++i) {
    if (domain != domains.end() && domain->first == id) {
      result.ranges[i].domain = domain->second;
    }
  }
}

}  // namespace gpuwhy
