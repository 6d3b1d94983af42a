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

// Drops the rows of a small table that no column refers to any more, in their old order. Returns
// the new numbers.
template <typename Row, typename Number, std::size_t N>
std::vector<Number> drop_unused(std::vector<Row>& rows,
                                const std::array<Column<Number>*, N>& columns) {
  std::vector<bool> is_used(rows.size());
  for (const Column<Number>* column : columns) {
    for (const Number one : *column) {
      is_used[one] = true;
    }
  }
  std::vector<Number> number(rows.size());
  std::vector<Row> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    number[i] = static_cast<Number>(kept.size());
    if (is_used[i]) {
      kept.push_back(std::move(rows[i]));
    }
  }
  for (Column<Number>* column : columns) {
    for (Number& one : column->span()) {
      one = number[one];
    }
  }
  rows = std::move(kept);
  return number;
}

// Streams first, so that none names a device that is dropped.
void drop_idle_devices(Trace& trace) {
  drop_unused(trace.streams,
              std::array{&trace.kernels.stream, &trace.copies.stream, &trace.graphs.stream});
  const std::vector<std::uint16_t> number = drop_unused(
      trace.devices, std::array{&trace.kernels.device, &trace.copies.device, &trace.graphs.device});
  for (StreamInfo& stream : trace.streams) {
    stream.device = number[stream.device];
  }
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
  keep_where(
      trace,
      [](const auto& table, std::size_t row) {
        return is_plausible(table.start_ns[row], table.end_ns[row]);
      },
      [](const auto& table, std::size_t row) {
        const bool is_open = table.end_ns[row] == kOpenEnd;
        return is_plausible(table.start_ns[row], is_open ? table.start_ns[row] : table.end_ns[row]);
      });
  drop_idle_devices(trace);
}

}  // namespace gpuwhy
