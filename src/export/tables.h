// SPDX-License-Identifier: Apache-2.0
//
// Tables of a recording for data tools: kernels, steps, layers, launches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/profile.h"
#include "export/parquet.h"

namespace gpuwhy {

// The version of all tables. A new column leaves it; a changed or removed one raises it.
inline constexpr int kTablesVersion = 1;

// The columns of each table, made of a profile row by row. Documented in docs/formats.md.
class RecordingTables {
 public:
  explicit RecordingTables(const Profile& profile);  // must outlive this object
  RecordingTables(const RecordingTables&) = delete;
  RecordingTables& operator=(const RecordingTables&) = delete;

  // Of a kernel summary: kernels alone. Valid as long as this object.
  std::vector<ColumnTable> tables() const;

  // Pairs for the file of a table: its schema and the recording it is of.
  std::vector<std::pair<std::string, std::string>> metadata_of(const ColumnTable& table) const;

 private:
  // Kernels of a pass before, in or after its layers.
  struct LayerRow {
    std::uint32_t stream = 0;  // into Structure::streams
    std::uint32_t pass = 0;    // into KernelStream::passes
    std::int32_t layer = 0;    // -1: prologue; the number of layers: epilogue
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t kernel_ns = 0;
    std::int64_t num_kernels = 0;
  };

  // Finds the layers of all passes, and the layer of each kernel.
  void add_layers();
  // Sorts launches by start, unless the recording has them so.
  void order_launches();
  const ModelPass& pass_of(const LayerRow& row) const;
  std::string_view device_text(std::int64_t device) const;

  // One row per kernel, GPU and stage: the kernel table of a report.
  ColumnTable kernels_table() const;
  // One row per instance of a stage, counted once for all ranks of its group.
  ColumnTable steps_table() const;
  // One row per layer of each pass, with what is before its first and after its last layer.
  ColumnTable layers_table() const;
  // One row per kernel that ran, and per CUDA graph that was recorded as a whole.
  ColumnTable launches_table() const;
  // Parts of the last one, in its order.
  void add_launch_place(ColumnTable& table) const;
  void add_launch_call(ColumnTable& table) const;

  const Profile& profile_;
  std::vector<std::string> devices_;  // "cuda:0", by number in the trace
  std::vector<LayerRow> layers_;
  std::vector<std::uint32_t> layer_of_kernel_;  // into layers_, or kNone; empty: no structure
  std::unordered_map<std::string_view, std::uint32_t> records_;  // by kernel: into the kernel table
  // Kernels, then whole graphs, in order of start.
  std::vector<std::uint32_t> launches_;  // a graph: the number of kernels and its row
};

}  // namespace gpuwhy
