// SPDX-License-Identifier: Apache-2.0
//
// Restriction of a recording to one GPU or process, and removal of implausible events.
//
// The result looks as if nothing else had been recorded. Devices and processes keep their numbers;
// those without work are removed from the device table, so that no empty row is shown.
#include "trace/filter.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace llmprof {
namespace {

template <typename T>
void keep_rows(Column<T>& column, const std::vector<std::size_t>& rows) {
  Column<T> kept(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    kept[i] = column[rows[i]];
  }
  column = std::move(kept);
}

template <typename Keep>
std::vector<std::size_t> rows_where(std::size_t size, Keep keep) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < size; ++row) {
    if (keep(row)) {
      rows.push_back(row);
    }
  }
  return rows;
}

template <typename Table>
void keep_common(Table& table, const std::vector<std::size_t>& rows) {
  keep_rows(table.correlation, rows);
  keep_rows(table.stream, rows);
  keep_rows(table.process, rows);
  keep_rows(table.device, rows);
  keep_rows(table.start_ns, rows);
  keep_rows(table.end_ns, rows);
}

// Keeps the rows for which the predicate of their kind of table returns true.
template <typename KeepWork, typename KeepHost>
void keep_where(Trace& trace, KeepWork keep_work, KeepHost keep_host) {
  const auto work_rows = [&](const auto& table) {
    return rows_where(table.size(), [&](std::size_t row) { return keep_work(table, row); });
  };
  const auto host_rows = [&](const auto& table) {
    return rows_where(table.size(), [&](std::size_t row) { return keep_host(table, row); });
  };
  // Every column of every table is listed here: a forgotten one would no longer match its rows.
  const std::vector<std::size_t> kernels = work_rows(trace.kernels);
  keep_rows(trace.kernels.name, kernels);
  keep_rows(trace.kernels.mangled_name, kernels);
  keep_rows(trace.kernels.shape, kernels);
  keep_rows(trace.kernels.is_graph_node, kernels);
  keep_common(trace.kernels, kernels);
  const std::vector<std::size_t> copies = work_rows(trace.copies);
  keep_rows(trace.copies.size_bytes, copies);
  keep_rows(trace.copies.kind, copies);
  keep_common(trace.copies, copies);
  keep_common(trace.graphs, work_rows(trace.graphs));

  const std::vector<std::size_t> calls = host_rows(trace.api_calls);
  keep_rows(trace.api_calls.name, calls);
  keep_rows(trace.api_calls.correlation, calls);
  keep_rows(trace.api_calls.thread, calls);
  keep_rows(trace.api_calls.start_ns, calls);
  keep_rows(trace.api_calls.end_ns, calls);
  const std::vector<std::size_t> ranges = host_rows(trace.ranges);
  keep_rows(trace.ranges.text, ranges);
  keep_rows(trace.ranges.domain, ranges);
  keep_rows(trace.ranges.payload, ranges);
  keep_rows(trace.ranges.kind, ranges);
  keep_rows(trace.ranges.thread, ranges);
  keep_rows(trace.ranges.start_ns, ranges);
  keep_rows(trace.ranges.end_ns, ranges);
  const std::vector<std::size_t> ops = host_rows(trace.ops);
  keep_rows(trace.ops.name, ops);
  keep_rows(trace.ops.kind, ops);
  keep_rows(trace.ops.thread, ops);
  keep_rows(trace.ops.start_ns, ops);
  keep_rows(trace.ops.end_ns, ops);
}

void drop_idle_devices(Trace& trace) {
  // New numbers of the devices that still have work, in their old order.
  std::vector<bool> works(trace.devices.size());
  const auto mark = [&](const Column<std::uint16_t>& device) {
    for (const std::uint16_t one : device) {
      works[one] = true;
    }
  };
  mark(trace.kernels.device);
  mark(trace.copies.device);
  mark(trace.graphs.device);
  std::vector<std::uint16_t> number(trace.devices.size());
  std::vector<DeviceInfo> devices;
  for (std::size_t i = 0; i < works.size(); ++i) {
    number[i] = static_cast<std::uint16_t>(devices.size());
    if (works[i]) {
      devices.push_back(trace.devices[i]);
    }
  }
  for (Column<std::uint16_t>* column :
       {&trace.kernels.device, &trace.copies.device, &trace.graphs.device}) {
    for (std::uint16_t& device : column->span()) {
      device = number[device];
    }
  }
  trace.devices = std::move(devices);
}

}  // namespace

void apply_filter(const TraceFilter& filter, Trace& trace) {
  const auto keeps_process = [&](std::uint16_t process) {
    return !filter.pid || trace.processes[process].pid == *filter.pid;
  };
  keep_where(
      trace,
      [&](const auto& table, std::size_t row) {
        return keeps_process(table.process[row]) &&
               (!filter.device || trace.devices[table.device[row]].ordinal == *filter.device);
      },
      [&](const auto& table, std::size_t row) {
        return keeps_process(trace.threads[table.thread[row]].process);
      });
  drop_idle_devices(trace);
}

bool is_plausible(std::int64_t start_ns, std::int64_t end_ns) {
  constexpr std::int64_t kMostNs = 365LL * 24 * 3600 * 1'000'000'000;
  return start_ns > -kMostNs && start_ns < kMostNs && end_ns > -kMostNs && end_ns < kMostNs;
}

void require_sum_fits(double sum_ns, std::string_view what) {
  constexpr double kMostSumNs = 4e18;
  if (sum_ns > kMostSumNs) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("the recording's {} last longer than a century together: it is damaged", what));
  }
}

void drop_implausible(Trace& trace) {
  const auto keep = [](const auto& table, std::size_t row) {
    const bool is_open = table.end_ns[row] == kOpenEnd;
    return is_plausible(table.start_ns[row], is_open ? table.start_ns[row] : table.end_ns[row]);
  };
  keep_where(
      trace,
      [](const auto& table, std::size_t row) {
        return is_plausible(table.start_ns[row], table.end_ns[row]);
      },
      keep);
  drop_idle_devices(trace);
}

}  // namespace llmprof
