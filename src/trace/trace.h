// SPDX-License-Identifier: Apache-2.0
//
// The contents of a recording as tables of columns, independent of the tool that wrote it.
// Importers fill it, analyses read it.
//
// A table is a struct of columns, and a template of their kind: Column here, columns that grow
// where a file does not say how many rows it holds. trace/table.h loops over them.
//
// Times are nanoseconds on the recording's own clock and signed, because some precede its zero.
// Rows are in file order, which is not time order. Devices, processes, threads and streams are
// indexes into the small tables at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/capture.h"
#include "results/diagnostic.h"
#include "trace/column.h"
#include "trace/string_pool.h"
#include "trace/table.h"

namespace gpuwhy {

inline constexpr std::uint32_t kNone = UINT32_MAX;   // no such row
inline constexpr std::uint32_t kNoNode = 0;          // of a kernel that no CUDA graph launched
inline constexpr std::uint32_t kUnnumberedNode = 1;  // one did, but its nodes have no ids

// Grid and block of a launch. There are few distinct ones, so kernels refer to them by index.
struct LaunchShape {
  std::int32_t grid[3] = {0, 0, 0};
  std::int32_t block[3] = {0, 0, 0};

  auto operator<=>(const LaunchShape&) const = default;

  // "8x1x1/128x1x1": grid and block.
  std::string text() const {
    std::string text;
    for (const std::int32_t* sizes : {grid, block}) {
      text += text.empty() ? "" : "/";
      text += std::to_string(sizes[0]) + "x" + std::to_string(sizes[1]) + "x" +
              std::to_string(sizes[2]);
    }
    return text;
  }
};

// GPU kernels, 44 bytes each.
template <template <typename> class Column>
struct KernelsOf {
  Column<std::int64_t> start_ns;
  Column<std::int64_t> end_ns;
  Column<StringId> name;          // demangled
  Column<StringId> mangled_name;  // 0 where the recording has none
  Column<std::uint32_t> correlation;
  Column<std::uint32_t> shape;       // into Trace::shapes
  Column<std::uint32_t> stream;      // into Trace::streams
  Column<std::uint16_t> process;     // into Trace::processes
  Column<std::uint16_t> device;      // into Trace::devices
  Column<std::uint32_t> graph_node;  // into Trace::graph_nodes; kNoNode outside CUDA graphs

  std::size_t size() const { return start_ns.size(); }
  bool is_graph_node(std::size_t row) const { return graph_node[row] != kNoNode; }
};
using Kernels = KernelsOf<Column>;

// The numbers of CUPTI, and above 100 our own.
enum class CopyKind : std::uint8_t {
  kUnknown = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 8,
  kPeerToPeer = 10,
  // Like 1 and 2, but the host memory is known to be pageable: CUDA copies twice. Not a CUPTI
  // number.
  kPageableToDevice = 101,
  kDeviceToPageable = 102,
  kMemset = 255,
};

// Copies and memsets.
template <template <typename> class Column>
struct CopiesOf {
  Column<std::int64_t> start_ns;
  Column<std::int64_t> end_ns;
  Column<std::int64_t> size_bytes;
  Column<std::uint32_t> correlation;
  Column<std::uint32_t> stream;
  Column<std::uint16_t> process;
  Column<std::uint16_t> device;
  Column<CopyKind> kind;

  std::size_t size() const { return start_ns.size(); }
};
using Copies = CopiesOf<Column>;

// Whole CUDA graphs whose kernels were not recorded (graph mode): time without kernel names.
template <template <typename> class Column>
struct GraphLaunchesOf {
  Column<std::int64_t> start_ns;
  Column<std::int64_t> end_ns;
  Column<std::uint32_t> correlation;
  Column<std::uint32_t> stream;
  Column<std::uint16_t> process;
  Column<std::uint16_t> device;

  std::size_t size() const { return start_ns.size(); }
};
using GraphLaunches = GraphLaunchesOf<Column>;

// Calls of the CUDA runtime and driver API on the host, 28 bytes each.
template <template <typename> class Column>
struct ApiCallsOf {
  Column<std::int64_t> start_ns;
  Column<std::int64_t> end_ns;
  Column<StringId> name;  // without the version suffix: cudaLaunchKernel
  Column<std::uint32_t> correlation;
  Column<std::uint32_t> thread;  // into Trace::threads

  std::size_t size() const { return start_ns.size(); }
};
using ApiCalls = ApiCallsOf<Column>;

enum class RangeKind : std::uint8_t { kPushPop, kStartEnd, kMark };

// NVTX ranges and marks.
template <template <typename> class Column>
struct RangesOf {
  Column<std::int64_t> start_ns;
  Column<std::int64_t> end_ns;  // kOpenEnd where the recording has none
  Column<StringId> text;
  Column<StringId> domain;
  Column<std::int64_t> payload;  // a whole number of the range, kNoPayload where it has none
  Column<std::uint32_t> thread;
  Column<RangeKind> kind;

  std::size_t size() const { return start_ns.size(); }
};
using Ranges = RangesOf<Column>;
inline constexpr std::int64_t kOpenEnd = INT64_MAX;
inline constexpr std::int64_t kNoPayload = INT64_MIN;

enum class OpKind : std::uint8_t { kOperator, kModule };

// Operators and modules as a framework's own profiler recorded them on the host. Those of one
// thread nest. 29 bytes per row; nsys recordings have none (their operators are NVTX ranges).
template <template <typename> class Column>
struct OpsOf {
  Column<std::int64_t> start_ns;
  Column<std::int64_t> end_ns;
  Column<StringId> name;
  Column<std::uint32_t> thread;
  Column<OpKind> kind;
  Column<StringId> inputs;  // as trace/op_inputs.h writes them; 0 where they are not kept

  std::size_t size() const { return start_ns.size(); }
};
using Ops = OpsOf<Column>;

// Long functions of the host: Python's, as PyTorch's profiler records them, and calls of the
// operating system, as nsys does. They name what a thread did while a GPU waited for it; shorter
// ones than kLeastFunctionNs are not kept. 24 bytes per row.
template <template <typename> class Column>
struct HostFunctionsOf {
  Column<std::int64_t> start_ns;
  Column<std::int64_t> end_ns;
  Column<StringId> name;
  Column<std::uint32_t> thread;

  std::size_t size() const { return start_ns.size(); }
};
using HostFunctions = HostFunctionsOf<Column>;
inline constexpr std::int64_t kLeastFunctionNs = 250'000;

// Small tables that the columns refer to by index.
struct ProcessInfo {
  std::uint64_t global_id = 0;  // as the recording identifies it
  std::uint32_t pid = 0;
  std::uint16_t file = 0;  // into CaptureInfo::files, where there are several
};

struct ThreadInfo {
  std::uint64_t global_id = 0;
  std::uint32_t tid = 0;
  std::uint16_t process = 0;
};

struct StreamInfo {
  std::uint16_t process = 0;
  std::uint16_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;

  auto operator<=>(const StreamInfo&) const = default;
};

// How a graph node got its names, the most trusted way first.
enum class NameRoute : std::uint8_t { kUnnamed, kNvtx, kAnnotations, kOrder };

// A node of a CUDA graph that ran as a kernel, once or many times.
struct GraphNode {
  std::uint64_t id = 0;  // unique in its process; 0 where the recording does not number nodes
  std::uint16_t process = 0;
  NameRoute route = NameRoute::kUnnamed;
  std::uint32_t scope = kNone;  // into Trace::host_scopes: the innermost around its creation

  auto operator<=>(const GraphNode&) const = default;
};

// An operator, module or NVTX range that was open on the host when graph nodes were made. Its
// parent, the one around it, comes before it in the table.
enum class ScopeKind : std::uint8_t { kOperator, kModule, kRange };
struct HostScope {
  StringId name{};
  StringId domain{};  // of a range
  std::uint32_t parent = kNone;
  ScopeKind kind = ScopeKind::kOperator;
};

// Creation of a graph node on the host, by capture or as a copy of another node.
struct NodeCreation {
  std::uint64_t node = 0;
  std::uint64_t original = 0;  // the node it copies; 0: none
  std::int64_t time_ns = 0;
  std::uint32_t thread = 0;
};

// A launch that was captured into a graph instead of run, where the recording names its kernel.
struct CapturedLaunch {
  std::int64_t time_ns = 0;
  std::uint32_t thread = 0;
  StringId kernel{};
};

// Processes that communicate with each other, as a framework describes them.
struct ProcessGroup {
  std::string name;                 // the same on all its ranks; empty: not recorded
  std::string description;          // in the words of the program; empty: none
  std::vector<std::int64_t> ranks;  // sorted; empty: not recorded
  std::int64_t size = 0;            // 0: not recorded

  auto operator<=>(const ProcessGroup&) const = default;
};

// What a recording tells of the kernels of one collective.
struct CollectiveKernel {
  std::uint16_t process = 0;
  std::uint32_t correlation = kNone;
  std::uint32_t group = 0;   // into Trace::process_groups
  StringId collective = {};  // as recorded: "allreduce"

  auto operator<=>(const CollectiveKernel&) const = default;
};

// A GPU that did work. Unknown properties are 0 or empty.
// The runtime that launches work on a GPU. A recording that neither names the GPU nor its calls may
// not say.
enum class GpuRuntime : std::uint8_t { kCuda, kHip, kUnknown };

struct DeviceInfo {
  std::uint32_t ordinal = 0;  // as CUDA numbers it
  std::string name;
  std::uint32_t num_sms = 0;
  std::uint32_t compute_major = 0;  // of the compute capability, as the vendor numbers it
  std::uint32_t compute_minor = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_bytes_per_s = 0;
  std::uint64_t clock_hz = 0;
  GpuRuntime runtime = GpuRuntime::kCuda;
};

// A whole recording in memory.
struct Trace {
  CaptureInfo capture;
  StringPool strings;
  Kernels kernels;
  Copies copies;
  GraphLaunches graphs;
  ApiCalls api_calls;
  Ranges ranges;
  Ops ops;
  HostFunctions functions;
  std::vector<LaunchShape> shapes;
  std::vector<StreamInfo> streams;
  std::vector<ProcessInfo> processes;
  std::vector<ThreadInfo> threads;
  std::vector<DeviceInfo> devices;
  std::vector<ProcessGroup> process_groups;
  std::vector<CollectiveKernel> collective_kernels;  // sorted
  std::vector<GraphNode> graph_nodes =
      std::vector<GraphNode>(2);       // kNoNode, kUnnumberedNode, those with ids
  std::vector<HostScope> host_scopes;  // of graph nodes that have names
  // What names are found by (analysis/kernels/graph_names.h).
  std::vector<NodeCreation> node_creations;
  std::vector<CapturedLaunch> captured_launches;  // by thread and time
  Diagnostics diagnostics;
};

}  // namespace gpuwhy
