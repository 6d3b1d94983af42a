// SPDX-License-Identifier: Apache-2.0
//
// A builder of recordings in memory, row by row, for tests.
//
// Each add_ function returns the index of its row in the small tables of a Trace, and rows of GPU
// work name their stream, which belongs to one process and one device. Correlation numbers restart
// with each process, as those of CUDA do, and are never row numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace gpuwhy {

// Attributes of a kernel that most tests leave out.
struct KernelExtras {
  std::string_view mangled = "";
  std::uint32_t shape = 0;
  bool is_graph_node = false;
};

struct RangeExtras {
  std::string_view domain = "";
  std::int64_t payload = kNoPayload;
  RangeKind kind = RangeKind::kPushPop;
};

class TraceBuilder {
 public:
  // Of work whose launch was not recorded.
  static constexpr std::uint32_t kNoCall = 0;

  TraceBuilder() { trace_.capture.has_cuda = true; }

  std::uint16_t add_process() {
    const auto pid = static_cast<std::uint32_t>(trace_.processes.size() + 1);
    trace_.processes.push_back({std::uint64_t{pid} << 24, pid});
    num_calls_.push_back(0);
    return static_cast<std::uint16_t>(pid - 1);
  }

  std::uint32_t add_thread(std::uint16_t process) {
    const auto tid = static_cast<std::uint32_t>(trace_.threads.size() + 1);
    trace_.threads.push_back({trace_.processes[process].global_id + tid, tid, process});
    return tid - 1;
  }

  std::uint16_t add_device(std::uint32_t ordinal) {
    trace_.devices.push_back({ordinal, "Test", 1, 0, 0, 1, 1, 1});
    return static_cast<std::uint16_t>(trace_.devices.size() - 1);
  }
  std::uint16_t add_device() {
    return add_device(static_cast<std::uint32_t>(trace_.devices.size()));
  }

  std::uint32_t add_stream(std::uint16_t process, std::uint16_t device) {
    const auto stream = static_cast<std::uint32_t>(trace_.streams.size());
    trace_.streams.push_back({process, device, 1, 7 + stream});
    return stream;
  }

  std::uint32_t add_shape(const LaunchShape& shape) {
    trace_.shapes.push_back(shape);
    return static_cast<std::uint32_t>(trace_.shapes.size() - 1);
  }

  void range(std::uint32_t thread, std::int64_t start_ns, std::int64_t end_ns,
             std::string_view text, const RangeExtras& extras = {}) {
    append(ranges_, start_ns, end_ns, trace_.strings.intern(text),
           trace_.strings.intern(extras.domain), extras.payload, thread, extras.kind);
  }

  void op(std::uint32_t thread, std::int64_t start_ns, std::int64_t end_ns, std::string_view name,
          OpKind kind = OpKind::kOperator, std::string_view inputs = "") {
    append(ops_, start_ns, end_ns, trace_.strings.intern(name), thread, kind,
           trace_.strings.intern(inputs));
  }

  void function(std::uint32_t thread, std::int64_t start_ns, std::int64_t end_ns,
                std::string_view name) {
    append(functions_, start_ns, end_ns, trace_.strings.intern(name), thread);
  }

  // Returns the correlation number, for the work it launches.
  std::uint32_t call(std::uint32_t thread, std::int64_t start_ns, std::int64_t end_ns,
                     std::string_view name = "cudaLaunchKernel") {
    const std::uint32_t correlation = 7 + 3 * num_calls_[trace_.threads[thread].process]++;
    append(calls_, start_ns, end_ns, trace_.strings.intern(name), correlation, thread);
    return correlation;
  }

  void kernel(std::uint32_t stream, std::int64_t start_ns, std::int64_t end_ns,
              std::string_view name, std::uint32_t correlation = kNoCall,
              const KernelExtras& extras = {}) {
    const StreamInfo& of = trace_.streams[stream];
    append(kernels_, start_ns, end_ns, trace_.strings.intern(name),
           trace_.strings.intern(extras.mangled), correlation, extras.shape, stream, of.process,
           of.device, extras.is_graph_node ? kUnnumberedNode : kNoNode);
  }

  void copy(std::uint32_t stream, std::int64_t start_ns, std::int64_t end_ns,
            std::uint32_t correlation = kNoCall, CopyKind kind = CopyKind::kMemset,
            std::int64_t size_bytes = 1) {
    const StreamInfo& of = trace_.streams[stream];
    append(copies_, start_ns, end_ns, size_bytes, correlation, stream, of.process, of.device, kind);
  }

  // A graph whose kernels were not recorded.
  void graph(std::uint32_t stream, std::int64_t start_ns, std::int64_t end_ns,
             std::uint32_t correlation = kNoCall) {
    const StreamInfo& of = trace_.streams[stream];
    append(graphs_, start_ns, end_ns, correlation, stream, of.process, of.device);
  }

  // A call of two nanoseconds and the kernel it launches.
  void launch(std::uint32_t thread, std::int64_t call_ns, std::uint32_t stream,
              std::int64_t start_ns, std::int64_t end_ns, std::string_view name,
              const KernelExtras& extras = {}) {
    kernel(stream, start_ns, end_ns, name, call(thread, call_ns, call_ns + 2), extras);
  }

  // Rows in any other order: it means nothing in a file.
  void shuffle(std::mt19937& random) {
    shuffle(kernels_, random);
    shuffle(copies_, random);
    shuffle(graphs_, random);
    shuffle(calls_, random);
    shuffle(ranges_, random);
    shuffle(ops_, random);
    shuffle(functions_, random);
  }

  // The recording. The builder is empty afterwards.
  Trace finish() {
    if (trace_.shapes.empty()) {
      add_shape({});
    }
    fill(trace_.kernels, kernels_);
    fill(trace_.copies, copies_);
    fill(trace_.graphs, graphs_);
    fill(trace_.api_calls, calls_);
    fill(trace_.ranges, ranges_);
    fill(trace_.ops, ops_);
    fill(trace_.functions, functions_);
    return std::move(trace_);
  }

 private:
  template <typename T>
  using Rows = std::vector<T>;

  template <typename Table, typename... Values>
  static void append(Table& table, const Values&... values) {
    std::apply([&](auto&... columns) { (columns.push_back(values), ...); }, columns_of(table));
  }

  template <typename Table>
  static void shuffle(Table& table, std::mt19937& random) {
    std::vector<std::size_t> order(table.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    each_column(table, [&](auto& column) {
      const auto old = column;
      std::transform(order.begin(), order.end(), column.begin(),
                     [&](std::size_t row) { return old[row]; });
    });
  }

  template <typename Table, typename Made>
  static void fill(Table& table, Made& made) {
    make_rows(table, made.size());
    each_column(
        table,
        [](auto& to, const auto& from) { std::copy(from.begin(), from.end(), to.span().begin()); },
        made);
  }

  Trace trace_;
  std::vector<std::uint32_t> num_calls_;  // by process
  KernelsOf<Rows> kernels_;
  CopiesOf<Rows> copies_;
  GraphLaunchesOf<Rows> graphs_;
  ApiCallsOf<Rows> calls_;
  RangesOf<Rows> ranges_;
  OpsOf<Rows> ops_;
  HostFunctionsOf<Rows> functions_;
};

}  // namespace gpuwhy
