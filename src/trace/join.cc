// SPDX-License-Identifier: Apache-2.0
//
// Concatenation of the recordings of one job: tables row after row, with every number that refers
// to a small table moved to where that table's rows are now.
//
// Two files never share a process or a GPU: a container may give every rank the pid 1, and every
// rank may call its GPU cuda:0. Texts and launch shapes are shared.
#include "trace/join.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.h"
#include "trace/device_label.h"
#include "trace/filter.h"

namespace gpuwhy {
namespace {

// Where the small tables of a part begin in those of the whole.
struct Places {
  std::vector<StringId> strings;      // by the part's own number
  std::vector<std::uint32_t> shapes;  // likewise
  std::uint16_t first_process = 0;
  std::uint16_t first_device = 0;
  std::uint32_t first_thread = 0;
  std::uint32_t first_stream = 0;
  std::uint32_t first_node = 0;  // of those with ids
  std::int64_t shift_ns = 0;
};

void require(bool fits, const char* what) {
  if (!fits) {
    throw Error(ErrorKind::kInput,
                fmt::format("the files have too many {} for one recording", what),
                "gpuwhy merge joins the summaries of any number of ranks");
  }
}

template <typename Row>
void append(std::vector<Row>& all, std::vector<Row>& part) {
  all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  part.clear();
}

// Numbers of GPUs. All are renumbered if two parts use the same one.
void number_devices(const std::vector<TracePart>& parts, Trace& whole) {
  std::set<std::uint32_t> used;
  bool is_clash = false;
  for (const TracePart& part : parts) {
    for (const DeviceInfo& device : part.trace.devices) {
      is_clash |= !used.insert(device.ordinal).second;
    }
  }
  for (std::size_t i = 0; is_clash && i < whole.devices.size(); ++i) {
    whole.devices[i].ordinal = static_cast<std::uint32_t>(i);
  }
}

// Moves the small tables of a part to the end of those of the whole.
class SmallTables {
 public:
  explicit SmallTables(Trace& whole) : whole_(whole) {}

  Places add(Trace& part, std::uint16_t file) {
    Places places;
    places.first_process = static_cast<std::uint16_t>(whole_.processes.size());
    places.first_device = static_cast<std::uint16_t>(whole_.devices.size());
    places.first_thread = static_cast<std::uint32_t>(whole_.threads.size());
    places.first_stream = static_cast<std::uint32_t>(whole_.streams.size());
    require(whole_.processes.size() + part.processes.size() <= UINT16_MAX, "processes");
    require(whole_.devices.size() + part.devices.size() <= UINT16_MAX, "GPUs");
    require(whole_.threads.size() + part.threads.size() < kNone, "threads");
    require(whole_.streams.size() + part.streams.size() < kNone, "streams");
    for (ProcessInfo& process : part.processes) {
      process.file = file;
    }
    for (ThreadInfo& thread : part.threads) {
      thread.process = static_cast<std::uint16_t>(thread.process + places.first_process);
    }
    for (StreamInfo& stream : part.streams) {
      stream.process = static_cast<std::uint16_t>(stream.process + places.first_process);
      stream.device = static_cast<std::uint16_t>(stream.device + places.first_device);
    }
    append(whole_.processes, part.processes);
    append(whole_.threads, part.threads);
    append(whole_.streams, part.streams);
    whole_.devices.insert(whole_.devices.end(), part.devices.begin(), part.devices.end());
    add_texts(part, places);
    add_shapes(part, places);
    add_process_groups(part, places);
    add_graph_nodes(part, places);
    return places;
  }

 private:
  void add_texts(Trace& part, Places& places) {
    places.strings.reserve(part.strings.size());
    for (std::size_t id = 0; id < part.strings.size(); ++id) {
      places.strings.push_back(whole_.strings.intern(part.strings[static_cast<StringId>(id)]));
    }
    part.strings = StringPool();
  }

  void add_shapes(Trace& part, Places& places) {
    for (const LaunchShape& shape : part.shapes) {
      const auto number = static_cast<std::uint32_t>(whole_.shapes.size());
      const auto [entry, is_new] = shapes_.try_emplace(shape, number);
      if (is_new) {
        whole_.shapes.push_back(shape);
      }
      places.shapes.push_back(entry->second);
    }
  }

  // Groups stay those of their part: ranks of one group describe it alike.
  void add_process_groups(Trace& part, const Places& places) {
    const auto first_group = static_cast<std::uint32_t>(whole_.process_groups.size());
    append(whole_.process_groups, part.process_groups);
    for (CollectiveKernel kernel : part.collective_kernels) {
      kernel.process = static_cast<std::uint16_t>(kernel.process + places.first_process);
      kernel.group += first_group;
      kernel.collective = places.strings[static_cast<std::size_t>(kernel.collective)];
      whole_.collective_kernels.push_back(kernel);
    }
  }

  // Names of nodes were found in each part by itself.
  void add_graph_nodes(Trace& part, Places& places) {
    places.first_node = static_cast<std::uint32_t>(whole_.graph_nodes.size());
    const auto first_scope = static_cast<std::uint32_t>(whole_.host_scopes.size());
    for (std::size_t i = 2; i < part.graph_nodes.size(); ++i) {
      GraphNode node = part.graph_nodes[i];
      node.process = static_cast<std::uint16_t>(node.process + places.first_process);
      node.scope = node.scope == kNone ? kNone : node.scope + first_scope;
      whole_.graph_nodes.push_back(node);
    }
    for (HostScope scope : part.host_scopes) {
      scope.name = places.strings[static_cast<std::size_t>(scope.name)];
      scope.domain = places.strings[static_cast<std::size_t>(scope.domain)];
      scope.parent = scope.parent == kNone ? kNone : scope.parent + first_scope;
      whole_.host_scopes.push_back(scope);
    }
  }

  Trace& whole_;
  std::map<LaunchShape, std::uint32_t> shapes_;
};

// Rows of one part in the joined table.
struct RowSpan {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Lets the rows of a part refer to the small tables of the whole.
template <typename Table>
void move_rows(Table& table, const RowSpan& rows, const Places& places) {
  const auto each = [&](auto& column, auto change) {
    for (auto& value : column.span().subspan(rows.begin, rows.end - rows.begin)) {
      change(value);
    }
  };
  const auto add = [&](auto& column, auto first) {
    if (first != 0) {
      each(column, [=](auto& value) { value = static_cast<decltype(first)>(value + first); });
    }
  };
  const auto map = [&](auto& column, const auto& numbers) {
    each(column, [&](auto& value) { value = numbers[static_cast<std::size_t>(value)]; });
  };
  add(table.start_ns, places.shift_ns);
  if (const std::int64_t shift_ns = places.shift_ns; shift_ns != 0) {
    each(table.end_ns,
         [=](std::int64_t& end_ns) { end_ns = end_ns == kOpenEnd ? kOpenEnd : end_ns + shift_ns; });
  }
  if constexpr (requires { table.device; }) {
    add(table.device, places.first_device);
    add(table.process, places.first_process);
    add(table.stream, places.first_stream);
  }
  if constexpr (requires { table.thread; }) {
    add(table.thread, places.first_thread);
  }
  if constexpr (requires { table.shape; }) {
    map(table.shape, places.shapes);
    each(table.graph_node, [&](std::uint32_t& node) {
      node = node <= kUnnumberedNode ? node : node - (kUnnumberedNode + 1) + places.first_node;
    });
  }
  each_column(table, [&]<typename Column>(Column& column) {
    if constexpr (std::is_same_v<Column, gpuwhy::Column<StringId>>) {
      map(column, places.strings);
    }
  });
}

// The rows of all parts, in order. Each column of a part is freed as soon as it is copied.
template <typename Table>
void join_table(std::vector<TracePart>& parts, const std::vector<Places>& places,
                Table Trace::*member, Trace& whole) {
  std::vector<RowSpan> spans;
  std::size_t num_rows = 0;
  for (const TracePart& part : parts) {
    const std::size_t begin = num_rows;
    num_rows += (part.trace.*member).size();
    spans.push_back({begin, num_rows});
  }
  require(num_rows < kNone, "events");
  Table& table = whole.*member;
  const auto columns = columns_of(table);
  const auto join_column = [&]<std::size_t index>() {
    auto& column = std::get<index>(columns);
    column = std::remove_reference_t<decltype(column)>(num_rows);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      auto& from = std::get<index>(columns_of(parts[i].trace.*member));
      std::copy(from.begin(), from.end(),
                column.span().begin() + static_cast<std::ptrdiff_t>(spans[i].begin));
      from = {};
    }
  };
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (join_column.template operator()<index>(), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(columns_of(table))>>());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    move_rows(table, spans[i], places[i]);
  }
}

// Diagnostics of one kind are one row: that of the first file that has it.
void join_diagnostics(const std::vector<TracePart>& parts, Trace& whole) {
  struct Seen {
    std::size_t row = 0;
    std::size_t num_files = 0;
  };
  std::map<std::pair<std::string, Severity>, Seen> seen;
  for (const TracePart& part : parts) {
    for (const Diagnostic& one : part.trace.diagnostics) {
      const auto [entry, is_new] =
          seen.try_emplace({one.kind, one.severity}, Seen{whole.diagnostics.size(), 0});
      ++entry->second.num_files;
      if (is_new) {
        whole.diagnostics.push_back(one);
        whole.diagnostics.back().sentence = fmt::format("{}: {}", part.file.file, one.sentence);
      } else {
        whole.diagnostics[entry->second.row].count += one.count;
      }
    }
  }
  for (const auto& [kind, where] : seen) {
    if (where.num_files > 1) {
      whole.diagnostics[where.row].sentence +=
          fmt::format("; {} more of this kind in other files", where.num_files - 1);
    }
  }
}

// What the parts have in common; what they disagree on is unknown.
CaptureInfo join_captures(std::vector<TracePart>& parts) {
  CaptureInfo capture = parts.front().trace.capture;
  capture.messages.clear();
  std::set<std::string> messages;
  for (TracePart& part : parts) {
    const CaptureInfo& one = part.trace.capture;
    capture.has_cuda |= one.has_cuda;
    capture.has_kernel_table |= one.has_kernel_table;
    capture.has_cpu_samples |= one.has_cpu_samples;
    capture.graph_mode = capture.graph_mode == one.graph_mode ? capture.graph_mode : "";
    capture.tool_version = capture.tool_version == one.tool_version ? capture.tool_version : "";
    capture.schema_version =
        capture.schema_version == one.schema_version ? capture.schema_version : "";
    if (capture.world_size != one.world_size) {
      capture.world_size.reset();
    }
    for (const std::string& message : one.messages) {
      if (messages.insert(message).second) {
        capture.messages.push_back(message);
      }
    }
  }
  capture.rank.reset();
  return capture;
}

// The sum of all durations must fit, as that of each file does.
void check_sum(const Trace& whole) {
  double sum_ns = 0;
  const auto add = [&](const auto& table) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      sum_ns += static_cast<double>(table.end_ns[row] - table.start_ns[row]);
    }
  };
  add(whole.kernels);
  add(whole.copies);
  add(whole.graphs);
  add(whole.api_calls);
  require_sum_fits(sum_ns, "events");
}

void check_shift(const TracePart& part) {
  if (part.file.shift_ns == 0) {
    return;
  }
  const TimeSpan span = time_span(part.trace);
  std::int64_t moved_ns = 0;
  const auto fits = [&](std::int64_t time_ns) {
    return !__builtin_add_overflow(time_ns, part.file.shift_ns, &moved_ns) && moved_ns != kOpenEnd;
  };
  if (!fits(span.start_ns) || !fits(span.end_ns)) {
    throw Error(ErrorKind::kInput, fmt::format("the times in {} cannot be right", part.file.file));
  }
}

}  // namespace

TimeSpan time_span(const Trace& trace) {
  TimeSpan span{INT64_MAX, INT64_MIN};
  const auto cover = [&](const auto& table) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      const bool is_open = table.end_ns[row] == kOpenEnd;
      span.start_ns = std::min(span.start_ns, table.start_ns[row]);
      span.end_ns = std::max(span.end_ns, is_open ? table.start_ns[row] : table.end_ns[row]);
    }
  };
  cover(trace.kernels);
  cover(trace.copies);
  cover(trace.graphs);
  cover(trace.api_calls);
  cover(trace.ranges);
  cover(trace.ops);
  return span.end_ns < span.start_ns ? TimeSpan{} : span;
}

Trace join_traces(std::vector<TracePart> parts) {
  Trace whole;
  whole.capture = join_captures(parts);
  join_diagnostics(parts, whole);
  SmallTables tables(whole);
  std::vector<Places> places;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    check_shift(parts[i]);
    places.push_back(tables.add(parts[i].trace, static_cast<std::uint16_t>(i)));
    places.back().shift_ns = parts[i].file.shift_ns;
  }
  number_devices(parts, whole);
  join_table(parts, places, &Trace::kernels, whole);
  join_table(parts, places, &Trace::copies, whole);
  join_table(parts, places, &Trace::graphs, whole);
  join_table(parts, places, &Trace::api_calls, whole);
  join_table(parts, places, &Trace::ranges, whole);
  join_table(parts, places, &Trace::ops, whole);
  join_table(parts, places, &Trace::functions, whole);
  check_sum(whole);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    FileRow& file = whole.capture.files.emplace_back(std::move(parts[i].file));
    file.is_aligned = file.clock_number == whole.capture.files.front().clock_number;
    for (std::size_t d = 0; d < parts[i].trace.devices.size(); ++d) {
      file.devices.push_back(device_label(whole.devices[places[i].first_device + d]));
    }
  }
  return whole;
}

}  // namespace gpuwhy
