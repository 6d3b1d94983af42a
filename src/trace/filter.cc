// SPDX-License-Identifier: Apache-2.0
//
// Restriction of a recording to a part of its rows: one GPU or process, a window of time, events
// with plausible times.
//
// The result looks as if nothing else had been recorded. Devices and processes keep their numbers;
// those without work are removed from the device table, so that no empty row is shown.
#include "trace/filter.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.h"

namespace gpuwhy {
namespace {

template <typename Table>
void keep_rows(Table& table, const std::vector<std::size_t>& rows) {
  each_column(table, [&]<typename Column>(Column& column) {
    Column kept(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      kept[i] = column[rows[i]];
    }
    column = std::move(kept);
  });
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

// Keeps the rows for which keep_work(table, row), or keep_host(table, row), is true.
template <typename KeepWork, typename KeepHost>
void keep_where(Trace& trace, KeepWork keep_work, KeepHost keep_host) {
  const auto keep = [](auto& table, const auto& keeps) {
    keep_rows(table, rows_where(table.size(), [&](std::size_t row) { return keeps(table, row); }));
  };
  keep(trace.kernels, keep_work);
  keep(trace.copies, keep_work);
  keep(trace.graphs, keep_work);
  keep(trace.api_calls, keep_host);
  keep(trace.ranges, keep_host);
  keep(trace.ops, keep_host);
  keep(trace.functions, keep_host);
}

// Streams that no work is left of, so that none names a device that is dropped.
void drop_idle_streams(Trace& trace) {
  const std::array columns = {&trace.kernels.stream, &trace.copies.stream, &trace.graphs.stream};
  std::vector<bool> works(trace.streams.size());
  for (const Column<std::uint32_t>* column : columns) {
    for (const std::uint32_t stream : *column) {
      works[stream] = true;
    }
  }
  std::vector<std::uint32_t> number(trace.streams.size());
  std::vector<StreamInfo> streams;
  for (std::size_t i = 0; i < works.size(); ++i) {
    number[i] = static_cast<std::uint32_t>(streams.size());
    if (works[i]) {
      streams.push_back(trace.streams[i]);
    }
  }
  for (Column<std::uint32_t>* column : columns) {
    for (std::uint32_t& stream : column->span()) {
      stream = number[stream];
    }
  }
  trace.streams = std::move(streams);
}

void drop_idle_devices(Trace& trace) {
  drop_idle_streams(trace);
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
  for (StreamInfo& stream : trace.streams) {
    stream.device = number[stream.device];
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

void keep_only(const KeptRows& kept, Trace& trace) {
  const auto keep = [](auto& table, const std::vector<bool>& flags) {
    keep_rows(table, rows_where(table.size(), [&](std::size_t row) { return flags[row]; }));
  };
  keep(trace.kernels, kept.kernels);
  keep(trace.copies, kept.copies);
  keep(trace.graphs, kept.graphs);
  keep(trace.api_calls, kept.api_calls);
  keep(trace.ranges, kept.ranges);
  keep(trace.ops, kept.ops);
  keep(trace.functions, kept.functions);
  drop_idle_devices(trace);
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

}  // namespace gpuwhy
