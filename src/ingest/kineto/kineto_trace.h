// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ingest/kineto/kineto_events.h"
#include "trace/trace.h"

namespace gpuwhy {

// A column of unknown length, in blocks that do not move while it grows.
template <typename T>
class GrowingColumn {
 public:
  void push_back(T value) {
    if (size_ % kBlock == 0) {
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(kBlock));
    }
    blocks_.back()[size_++ % kBlock] = value;
  }
  std::size_t size() const { return size_; }
  const T& operator[](std::size_t row) const { return blocks_[row / kBlock][row % kBlock]; }

  // All rows in one contiguous column; leaves this one empty.
  Column<T> finish() {
    Column<T> column(size_);
    for (std::size_t row = 0; row < size_; ++row) {
      column[row] = blocks_[row / kBlock][row % kBlock];
      if (row % kBlock == kBlock - 1) {
        blocks_[row / kBlock].reset();
      }
    }
    blocks_.clear();
    size_ = 0;
    return column;
  }

 private:
  static constexpr std::size_t kBlock = 8192;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
};

// Builds a Trace from events as they arrive.
class KinetoTrace {
 public:
  void add(const KinetoEvent& event);

  // Events dropped because of impossible times.
  const EventCounts& num_implausible() const { return num_implausible_; }
  std::uint64_t num_kept() const { return num_kept_; }
  // Start of the first event of the file.
  std::optional<std::int64_t> first_ns() const { return first_ns_; }

  // Completes the trace. Its devices are those that did work, without names.
  Trace finish();

 private:
  bool is_plausible(const KinetoEvent& event);
  void add_gpu_work(const KinetoEvent& event);
  void add_kernel(const KinetoEvent& event);
  std::uint32_t group_of(const KinetoEvent& event);
  void add_copy(const KinetoEvent& event);
  void add_call(const KinetoEvent& event, StringId name);
  void add_range(const KinetoEvent& event);
  void add_op(const KinetoEvent& event, StringId name, OpKind kind);
  StringId inputs_of(const KinetoEvent& event);
  std::uint32_t thread_of(const KinetoEvent& event);
  std::uint16_t process_of(std::int64_t pid);
  std::uint16_t device_of(std::int64_t ordinal);
  std::uint32_t stream_of(const KinetoEvent& event);
  std::uint32_t node_of(std::uint64_t id);
  std::uint16_t launching_process();
  void mark_graph_nodes();
  void find_captured_launches();
  void place_gpu_work();
  void finish_columns();

  template <typename Table>
  void add_gpu_columns(Table& table, const KinetoEvent& event);
  template <typename Table>
  void add_host_columns(Table& table, const KinetoEvent& event);

  Trace trace_;
  KernelsOf<GrowingColumn> kernels_;
  CopiesOf<GrowingColumn> copies_;
  ApiCallsOf<GrowingColumn> calls_;
  RangesOf<GrowingColumn> ranges_;
  OpsOf<GrowingColumn> ops_;
  HostFunctionsOf<GrowingColumn> functions_;
  std::int64_t num_counted_ = 0;

  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> threads_;  // (pid, tid)
  std::pair<std::int64_t, std::int64_t> last_thread_key_{-1, -1};
  std::uint32_t last_thread_ = kNone;
  std::unordered_map<std::int64_t, std::uint16_t> processes_;
  std::map<std::int64_t, std::uint16_t> devices_;
  std::map<StreamInfo, std::uint32_t> streams_;
  std::map<LaunchShape, std::uint32_t> shapes_;
  std::unordered_map<std::uint64_t, std::uint32_t> nodes_;  // by their ids
  std::vector<std::uint32_t> graph_launches_;               // correlation ids
  std::vector<std::pair<std::uint32_t, CapturedLaunch>>
      launches_;                                 // that tell their kernel, by correlation
  std::map<std::string, std::uint32_t> groups_;  // by name and ranks, as recorded
  bool has_captures_ = false;
  std::uint32_t legacy_correlation_ = kNone;  // of the kernel that comes next

  std::optional<std::int64_t> first_ns_;
  std::int64_t sum_ns_ = 0;
  EventCounts num_implausible_;
  std::uint64_t num_kept_ = 0;
};

}  // namespace gpuwhy
