// SPDX-License-Identifier: Apache-2.0
//
// Importer of Nsight Systems SQLite exports, all versions since 2020.
//
// The schema drifts: tables exist only if they have rows, columns are inserted in the middle,
// metadata tables are renamed. So nothing is assumed: tables are probed, columns are requested by
// name, and what is missing reads as null. Two identities need care. A correlation id is unique
// only within a process, so rows carry their process. And a device number is CUDA's number for the
// GPU within that process; where the export says which GPU that was (TARGET_INFO_CUDA_DEVICE),
// device 0 of two processes may be two GPUs.
//
// Large tables are split into chunks that threads take in turn. Each chunk writes its rows to the
// final columns and numbers the processes, devices, streams and shapes in its own small dictionary.
// The dictionaries are joined in chunk order, so the result does not depend on thread timing.
//
// This is one class of more than five hundred lines: all its parts fill the same columns and
// dictionaries.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "ingest/ingest.h"
#include "ingest/nsys_keys.h"
#include "ingest/nsys_outline.h"
#include "ingest/run_tasks.h"
#include "ingest/sqlite_file.h"

namespace llmprof {
namespace {

// NVIDIA's layout of a global id: thread in the low 24 bits, process in the next 24, machine above.
std::uint64_t process_part(std::uint64_t global_tid) {
  return global_tid & ~0xffffffULL;
}
std::uint32_t pid_of(std::uint64_t global_id) {
  return static_cast<std::uint32_t>((global_id >> 24) & 0xffffff);
}

// Event types of NVTX_EVENTS (ENUM_NSYS_EVENT_TYPE; that table itself may be missing).
enum NvtxEvent : std::int64_t {
  kNvtxMark = 34,
  kNvtxPushPop = 59,
  kNvtxStartEnd = 60,
  kNvtxtPushPop = 70,
  kNvtxtStartEnd = 71,
  kNvtxDomainCreate = 75,
};

// cudaLaunchKernel from cudaLaunchKernel_v7000.
std::string_view without_version(std::string_view name) {
  const std::size_t at = name.rfind("_v");
  if (at == std::string_view::npos || at + 2 == name.size() || !name.starts_with("cu") ||
      name.find_first_not_of("0123456789", at + 2) != std::string_view::npos) {
    return name;
  }
  return name.substr(0, at);
}

std::uint32_t correlation_of(const SqlValue& value) {
  return value.kind == SqlValue::Kind::kInteger && value.integer >= 0 && value.integer < kNone
             ? static_cast<std::uint32_t>(value.integer)
             : kNone;
}

// Columns of all GPU work, by their position in a scan.
enum GpuColumn { kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, kFirstOwn };
const std::vector<std::string> kGpuColumns = {"start",    "end",           "deviceId", "contextId",
                                              "streamId", "correlationId", "globalPid"};

std::vector<std::string> gpu_columns(const std::vector<std::string>& own) {
  std::vector<std::string> columns = kGpuColumns;
  columns.insert(columns.end(), own.begin(), own.end());
  return columns;
}

// From copyKind, srcKind and dstKind. Memory kind 0 is pageable (ENUM_CUDA_MEM_KIND); recordings
// before 2021 lack it.
CopyKind copy_kind(const SqlValue* values) {
  const auto kind = static_cast<CopyKind>(values[0].as_integer());
  const auto is_pageable = [](const SqlValue& value) {
    return !value.is_null() && value.as_integer() == 0;
  };
  if (kind == CopyKind::kHostToDevice && is_pageable(values[1])) {
    return CopyKind::kPageableToDevice;
  }
  return kind == CopyKind::kDeviceToHost && is_pageable(values[2]) ? CopyKind::kDeviceToPageable
                                                                   : kind;
}

// Loads one export. Methods run in the order of run(); only the scan tasks are parallel.
class Loader {
 public:
  Loader(const SqliteFile& file, unsigned num_threads) : file_(file), num_threads_(num_threads) {}

  Trace run() {
    read_strings();
    read_capture_info();
    load_tables();
    read_devices();
    add_diagnostics();
    return std::move(trace_);
  }

 private:
  void read_strings() {
    const TableScan scan(file_, "StringIds", {"id", "value"});
    for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
      scan.scan(chunk, [&](std::size_t, const SqlValue* row) {
        const std::string_view text = row[1].as_text();
        names_.add(row[0].as_integer(), trace_.strings.intern(text));
        api_names_.add(row[0].as_integer(), trace_.strings.intern(without_version(text)));
      });
    }
  }

  void read_capture_info() {
    CaptureInfo& capture = trace_.capture;
    for (const char* table : {"EXPORT_META_DATA", "META_DATA_EXPORT", "META_DATA_CAPTURE"}) {
      if (!file_.has_table(table)) {
        continue;
      }
      file_.query(fmt::format("SELECT name, value FROM {}", table), [&](const auto& row) {
        const std::string_view name = row[0].as_text();
        if (name == "EXPORT_SCHEMA_VERSION") {
          capture.schema_version = row[1].as_text();
        } else if (name == "EXPORT_PRODUCT_VERSION") {
          capture.tool_version = row[1].as_text();
        } else if (name.ends_with("CUDA_GRAPH_TRACE_OPTIONS:MODE")) {
          capture.graph_mode = row[1].as_text();
        }
      });
    }
    // nsys writes the end of the recording as the end of ranges that had none.
    if (file_.has_table("ANALYSIS_DETAILS")) {
      file_.query("SELECT max(duration) FROM ANALYSIS_DETAILS", [&](const auto& row) {
        recording_end_ns_ = row[0].is_null() ? INT64_MAX : row[0].as_integer();
      });
    }
    if (file_.has_table("DIAGNOSTIC_EVENT")) {
      // Severity 1 is information, 2 a warning, 3 an error.
      file_.query("SELECT text FROM DIAGNOSTIC_EVENT WHERE severity >= 2 ORDER BY timestamp, text",
                  [&](const auto& row) { capture.messages.emplace_back(row[0].as_text()); });
    }
  }

  // One task per chunk. `keys` must not be resized while tasks run.
  template <typename Keep>
  void add_tasks(const TableScan& scan, std::vector<ChunkKeys>& keys,
                 std::vector<std::function<void()>>& tasks, Keep keep) {
    keys.resize(scan.num_chunks());
    for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
      tasks.push_back([&scan, &keys, chunk, keep] {
        ChunkKeys& mine = keys[chunk];
        scan.scan(chunk, [&](std::size_t row, const SqlValue* values) { keep(row, values, mine); });
        // Columns store them in 16 bits; no machine has more.
        if (mine.processes.keys.size() > kMostProcesses ||
            mine.devices.keys.size() > kMostProcesses) {
          throw Error(ErrorKind::kInput,
                      "the recording claims more processes than can be told apart");
        }
      });
    }
  }

  // The part of a GPU row that is the same for every kind of work.
  template <typename Table>
  static void keep_gpu_row(Table& table, std::size_t row, const SqlValue* values, ChunkKeys& keys) {
    table.start_ns[row] = values[kStart].as_integer();
    table.end_ns[row] = std::max(values[kEnd].as_integer(), table.start_ns[row]);
    keys.times.add(table.start_ns[row], table.end_ns[row]);
    table.correlation[row] = correlation_of(values[kCorrelation]);
    const auto global_pid = process_part(static_cast<std::uint64_t>(values[kProcess].as_integer()));
    const std::uint32_t device = keys.devices.id({global_pid, values[kDevice].as_integer()});
    table.process[row] = static_cast<std::uint16_t>(keys.processes.id(global_pid));
    table.device[row] = static_cast<std::uint16_t>(device);
    table.stream[row] =
        keys.streams.id({device, values[kContext].as_integer(), values[kStream].as_integer()});
  }

  template <typename Table>
  static void size_gpu_columns(Table& table, std::size_t rows) {
    table.start_ns = Column<std::int64_t>(rows);
    table.end_ns = Column<std::int64_t>(rows);
    table.correlation = Column<std::uint32_t>(rows);
    table.stream = Column<std::uint32_t>(rows);
    table.process = Column<std::uint16_t>(rows);
    table.device = Column<std::uint16_t>(rows);
  }

  void load_tables() {
    std::vector<std::function<void()>> tasks;
    const TableScan ranges(file_, "NVTX_EVENTS",
                           {"start", "end", "eventType", "text", "globalTid", "textId", "domainId",
                            "uint64Value", "int64Value", "uint32Value", "int32Value"});
    tasks.push_back([&] { load_ranges(ranges); });

    // Columns get their final size before the tasks start, so that chunks can write in parallel.
    const TableScan kernels(
        file_, "CUPTI_ACTIVITY_KIND_KERNEL",
        gpu_columns({"demangledName", "shortName", "mangledName", "gridX", "gridY", "gridZ",
                     "blockX", "blockY", "blockZ", "graphNodeId"}));
    size_gpu_columns(trace_.kernels, kernels.num_rows());
    trace_.kernels.name = Column<StringId>(kernels.num_rows());
    trace_.kernels.mangled_name = Column<StringId>(kernels.num_rows());
    trace_.kernels.shape = Column<std::uint32_t>(kernels.num_rows());
    trace_.kernels.is_graph_node = Column<std::uint8_t>(kernels.num_rows());
    std::vector<ChunkKeys> kernel_keys;
    add_tasks(kernels, kernel_keys, tasks,
              [this](std::size_t row, const SqlValue* values, ChunkKeys& keys) {
                keep_kernel(row, values, keys);
              });

    const TableScan calls(file_, "CUPTI_ACTIVITY_KIND_RUNTIME",
                          {"start", "end", "globalTid", "correlationId", "nameId"});
    trace_.api_calls.start_ns = Column<std::int64_t>(calls.num_rows());
    trace_.api_calls.end_ns = Column<std::int64_t>(calls.num_rows());
    trace_.api_calls.name = Column<StringId>(calls.num_rows());
    trace_.api_calls.correlation = Column<std::uint32_t>(calls.num_rows());
    trace_.api_calls.thread = Column<std::uint32_t>(calls.num_rows());
    std::vector<ChunkKeys> call_keys;
    add_tasks(calls, call_keys, tasks,
              [this](std::size_t row, const SqlValue* values, ChunkKeys& keys) {
                keep_call(row, values, keys);
              });

    // Copies and memsets share columns; memsets come after the copies.
    const TableScan copies(file_, "CUPTI_ACTIVITY_KIND_MEMCPY",
                           gpu_columns({"bytes", "copyKind", "srcKind", "dstKind"}));
    const TableScan memsets(file_, "CUPTI_ACTIVITY_KIND_MEMSET", gpu_columns({"bytes"}));
    const std::size_t num_copies = copies.num_rows() + memsets.num_rows();
    size_gpu_columns(trace_.copies, num_copies);
    trace_.copies.size_bytes = Column<std::int64_t>(num_copies);
    trace_.copies.kind = Column<CopyKind>(num_copies);
    std::vector<ChunkKeys> copy_keys;
    add_tasks(copies, copy_keys, tasks,
              [this](std::size_t row, const SqlValue* values, ChunkKeys& keys) {
                keep_gpu_row(trace_.copies, row, values, keys);
                trace_.copies.size_bytes[row] = values[kFirstOwn].as_integer();
                trace_.copies.kind[row] = copy_kind(values + kFirstOwn + 1);
              });
    std::vector<ChunkKeys> memset_keys;
    const std::size_t first_memset = copies.num_rows();
    add_tasks(memsets, memset_keys, tasks,
              [this, first_memset](std::size_t row, const SqlValue* values, ChunkKeys& keys) {
                keep_gpu_row(trace_.copies, first_memset + row, values, keys);
                trace_.copies.size_bytes[first_memset + row] = values[kFirstOwn].as_integer();
                trace_.copies.kind[first_memset + row] = CopyKind::kMemset;
              });

    const TableScan graphs(file_, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", gpu_columns({}));
    size_gpu_columns(trace_.graphs, graphs.num_rows());
    std::vector<ChunkKeys> graph_keys;
    add_tasks(graphs, graph_keys, tasks,
              [this](std::size_t row, const SqlValue* values, ChunkKeys& keys) {
                keep_gpu_row(trace_.graphs, row, values, keys);
              });

    run_tasks(tasks, num_threads_);
    trace_.capture.has_kernel_table = kernels.num_rows() > 0;
    trace_.capture.has_cuda =
        kernels.num_rows() + calls.num_rows() + num_copies + graphs.num_rows() > 0;

    // From here on single-threaded: chunk-local numbers become global ones.
    read_device_map();
    join_gpu_keys(kernels, kernel_keys, 0, trace_.kernels);
    join_shapes(kernels, kernel_keys);
    join_gpu_keys(copies, copy_keys, 0, trace_.copies);
    join_gpu_keys(memsets, memset_keys, first_memset, trace_.copies);
    join_gpu_keys(graphs, graph_keys, 0, trace_.graphs);
    join_threads(calls, call_keys);
    for (std::size_t row = 0; row < trace_.ranges.size(); ++row) {
      trace_.ranges.thread[row] = thread_number(range_threads_[trace_.ranges.thread[row]]);
    }
    check_times({&kernel_keys, &call_keys, &copy_keys, &memset_keys, &graph_keys});
  }

  void check_times(const std::vector<const std::vector<ChunkKeys>*>& tables) {
    for (const auto* keys : tables) {
      for (const ChunkKeys& chunk : *keys) {
        times_.add(chunk.times);
      }
    }
    require_sum_fits(times_.sum_ns, "events");
  }

  void keep_kernel(std::size_t row, const SqlValue* values, ChunkKeys& keys) {
    keep_gpu_row(trace_.kernels, row, values, keys);
    const SqlValue* own = values + kFirstOwn;
    // Old exports have only the short name.
    const SqlValue& name = own[0].is_null() ? own[1] : own[0];
    trace_.kernels.name[row] = names_[name.as_integer()];
    trace_.kernels.mangled_name[row] = own[2].is_null() ? StringId{} : names_[own[2].as_integer()];
    LaunchShape shape;
    for (int i = 0; i < 3; ++i) {
      shape.grid[i] = static_cast<std::int32_t>(own[3 + i].as_integer());
      shape.block[i] = static_cast<std::int32_t>(own[6 + i].as_integer());
    }
    trace_.kernels.shape[row] = keys.shapes.id(shape);
    trace_.kernels.is_graph_node[row] = own[9].is_null() || own[9].as_integer() == 0 ? 0 : 1;
  }

  void keep_call(std::size_t row, const SqlValue* values, ChunkKeys& keys) {
    ApiCalls& calls = trace_.api_calls;
    calls.start_ns[row] = values[0].as_integer();
    calls.end_ns[row] = std::max(values[1].as_integer(), calls.start_ns[row]);
    keys.times.add(calls.start_ns[row], calls.end_ns[row]);
    calls.thread[row] = keys.threads.id(static_cast<std::uint64_t>(values[2].as_integer()));
    calls.correlation[row] = correlation_of(values[3]);
    calls.name[row] = api_names_[values[4].as_integer()];
  }

  // A single task, because it interns texts; the other tasks do not touch the pool.
  void load_ranges(const TableScan& scan) {
    Ranges& ranges = trace_.ranges;
    const std::size_t capacity = scan.num_rows();
    size_ranges(ranges, capacity);
    std::map<std::pair<std::uint64_t, std::int64_t>, StringId> domains;
    std::vector<std::int64_t> domain_ids(capacity);
    Dictionary<std::uint64_t> threads;
    std::size_t kept = 0;
    for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
      scan.scan(chunk, [&](std::size_t, const SqlValue* row) {
        const std::int64_t type = row[2].as_integer();
        const auto global_tid = static_cast<std::uint64_t>(row[4].as_integer());
        const StringId text = row[3].kind == SqlValue::Kind::kText
                                  ? trace_.strings.intern(row[3].text)
                                  : names_[row[5].as_integer()];
        // Domains may be created after their first use, so they are resolved at the end.
        if (type == kNvtxDomainCreate) {
          domains[{process_part(global_tid), row[6].as_integer()}] = text;
          return;
        }
        RangeKind kind = RangeKind::kMark;
        if (type == kNvtxPushPop || type == kNvtxtPushPop) {
          kind = RangeKind::kPushPop;
        } else if (type == kNvtxStartEnd || type == kNvtxtStartEnd) {
          kind = RangeKind::kStartEnd;
        } else if (type != kNvtxMark) {
          return;
        }
        ranges.start_ns[kept] = row[0].as_integer();
        const bool is_open = row[1].is_null() || row[1].as_integer() >= recording_end_ns_;
        ranges.end_ns[kept] =
            is_open ? kOpenEnd : std::max(row[1].as_integer(), row[0].as_integer());
        times_.add(row[0].as_integer(), is_open ? row[0].as_integer() : ranges.end_ns[kept]);
        ranges.text[kept] = text;
        ranges.thread[kept] = threads.id(global_tid);
        ranges.kind[kept] = kind;
        ranges.payload[kept] = payload_of(row + 7);
        domain_ids[kept++] = row[6].as_integer();
      });
    }
    for (std::size_t i = 0; i < kept; ++i) {
      const auto found =
          domains.find({process_part(threads.keys[ranges.thread[i]]), domain_ids[i]});
      ranges.domain[i] = found == domains.end() ? StringId{} : found->second;
    }
    range_threads_ = threads.keys;
    shrink_ranges(ranges, kept);
  }

  static std::int64_t payload_of(const SqlValue* values) {
    for (int i = 0; i < 4; ++i) {
      if (values[i].kind == SqlValue::Kind::kInteger) {
        return values[i].integer;
      }
    }
    return kNoPayload;
  }

  static void size_ranges(Ranges& ranges, std::size_t rows) {
    ranges.start_ns = Column<std::int64_t>(rows);
    ranges.end_ns = Column<std::int64_t>(rows);
    ranges.text = Column<StringId>(rows);
    ranges.domain = Column<StringId>(rows);
    ranges.payload = Column<std::int64_t>(rows);
    ranges.thread = Column<std::uint32_t>(rows);
    ranges.kind = Column<RangeKind>(rows);
  }

  // Rows that are not ranges (domains, categories, names) were skipped.
  static void shrink_ranges(Ranges& ranges, std::size_t rows) {
    if (rows == ranges.size()) {
      return;
    }
    Ranges all = std::move(ranges);
    size_ranges(ranges, rows);
    for (std::size_t i = 0; i < rows; ++i) {
      ranges.start_ns[i] = all.start_ns[i];
      ranges.end_ns[i] = all.end_ns[i];
      ranges.text[i] = all.text[i];
      ranges.domain[i] = all.domain[i];
      ranges.payload[i] = all.payload[i];
      ranges.thread[i] = all.thread[i];
      ranges.kind[i] = all.kind[i];
    }
  }

  static constexpr std::size_t kMostProcesses = UINT16_MAX;

  std::uint16_t process_number(std::uint64_t global_pid) {
    if (trace_.processes.size() > kMostProcesses || trace_.devices.size() > kMostProcesses) {
      throw Error(ErrorKind::kInput, "the recording claims more processes than can be told apart");
    }
    const auto [entry, is_new] =
        processes_.try_emplace(global_pid, static_cast<std::uint16_t>(trace_.processes.size()));
    if (is_new) {
      trace_.processes.push_back({global_pid, pid_of(global_pid)});
    }
    return entry->second;
  }

  std::uint32_t thread_number(std::uint64_t global_tid) {
    const auto [entry, is_new] =
        threads_.try_emplace(global_tid, static_cast<std::uint32_t>(trace_.threads.size()));
    if (is_new) {
      trace_.threads.push_back({global_tid, static_cast<std::uint32_t>(global_tid & 0xffffff),
                                process_number(process_part(global_tid))});
    }
    return entry->second;
  }

  // The GPU of the machine behind a process's device number, if the export has it.
  void read_device_map() {
    if (!file_.has_table("TARGET_INFO_CUDA_DEVICE")) {
      return;
    }
    file_.query("SELECT gpuId, cudaId, pid FROM TARGET_INFO_CUDA_DEVICE", [&](const auto& row) {
      gpu_of_[{static_cast<std::uint32_t>(row[2].as_integer()), row[1].as_integer()}] =
          row[0].as_integer();
    });
  }

  // GPUs known by their number on the machine are distinguished from those known only by CUDA's
  // number.
  std::uint16_t device_number(const DeviceKey& key) {
    const auto gpu = gpu_of_.find({pid_of(key.global_pid), key.ordinal});
    const bool is_known = gpu != gpu_of_.end();
    const std::pair<bool, std::int64_t> identity{is_known, is_known ? gpu->second : key.ordinal};
    const auto [entry, is_new] =
        devices_.try_emplace(identity, static_cast<std::uint16_t>(trace_.devices.size()));
    if (is_new) {
      DeviceInfo device;
      device.ordinal = static_cast<std::uint32_t>(is_known ? gpu->second : key.ordinal);
      trace_.devices.push_back(device);
    }
    return entry->second;
  }

  std::uint32_t stream_number(const StreamInfo& stream) {
    const auto [entry, is_new] =
        streams_.try_emplace(stream, static_cast<std::uint32_t>(trace_.streams.size()));
    if (is_new) {
      trace_.streams.push_back(stream);
    }
    return entry->second;
  }

  // Replaces chunk-local numbers of processes, devices and streams, in chunk order.
  template <typename Table>
  void join_gpu_keys(const TableScan& scan, const std::vector<ChunkKeys>& keys, std::size_t offset,
                     Table& table) {
    for (std::size_t chunk = 0; chunk < keys.size(); ++chunk) {
      const ChunkKeys& mine = keys[chunk];
      std::vector<std::uint16_t> processes;
      for (const std::uint64_t global_pid : mine.processes.keys) {
        processes.push_back(process_number(global_pid));
      }
      std::vector<std::uint16_t> devices;
      for (const DeviceKey& key : mine.devices.keys) {
        devices.push_back(device_number(key));
      }
      std::vector<std::uint32_t> streams;
      for (const StreamKey& key : mine.streams.keys) {
        const DeviceKey& device = mine.devices.keys[key.device];
        streams.push_back(stream_number({process_number(device.global_pid), devices[key.device],
                                         static_cast<std::uint32_t>(key.context),
                                         static_cast<std::uint32_t>(key.stream)}));
      }
      const std::size_t first = offset + scan.first_row(chunk);
      const std::size_t last =
          offset + (chunk + 1 < keys.size() ? scan.first_row(chunk + 1) : scan.num_rows());
      for (std::size_t row = first; row < last; ++row) {
        table.process[row] = processes[table.process[row]];
        table.device[row] = devices[table.device[row]];
        table.stream[row] = streams[table.stream[row]];
      }
    }
  }

  // Chunks were read in parallel and number their shapes on their own. Joining them in order makes
  // the numbers independent of the threads.
  void join_shapes(const TableScan& scan, const std::vector<ChunkKeys>& keys) {
    std::map<LaunchShape, std::uint32_t> shapes;
    for (std::size_t chunk = 0; chunk < keys.size(); ++chunk) {
      std::vector<std::uint32_t> numbers;
      for (const LaunchShape& shape : keys[chunk].shapes.keys) {
        const auto [entry, is_new] =
            shapes.try_emplace(shape, static_cast<std::uint32_t>(trace_.shapes.size()));
        if (is_new) {
          trace_.shapes.push_back(shape);
        }
        numbers.push_back(entry->second);
      }
      const std::size_t last =
          chunk + 1 < keys.size() ? scan.first_row(chunk + 1) : scan.num_rows();
      for (std::size_t row = scan.first_row(chunk); row < last; ++row) {
        trace_.kernels.shape[row] = numbers[trace_.kernels.shape[row]];
      }
    }
  }

  void join_threads(const TableScan& scan, const std::vector<ChunkKeys>& keys) {
    for (std::size_t chunk = 0; chunk < keys.size(); ++chunk) {
      std::vector<std::uint32_t> numbers;
      for (const std::uint64_t global_tid : keys[chunk].threads.keys) {
        numbers.push_back(thread_number(global_tid));
      }
      const std::size_t last =
          chunk + 1 < keys.size() ? scan.first_row(chunk + 1) : scan.num_rows();
      for (std::size_t row = scan.first_row(chunk); row < last; ++row) {
        trace_.api_calls.thread[row] = numbers[trace_.api_calls.thread[row]];
      }
    }
  }

  // Names and properties of the GPUs that did work. Adapters of other vendors are in the same
  // table, with zeros and CUDA number 0, so a row counts only if it has memory bandwidth or
  // processors.
  void read_devices() {
    const auto is_zero = [](const SqlValue& value) {
      return !value.is_null() && value.as_integer() == 0;
    };
    const bool is_old = file_.has_table("TARGET_INFO_CUDA_GPU");
    const char* table = is_old ? "TARGET_INFO_CUDA_GPU" : "TARGET_INFO_GPU";
    const TableScan scan(
        file_, table,
        is_old
            ? std::vector<std::string>{"deviceId", "deviceId", "name", "numMultiprocessors",
                                       "globalMemorySize", "globalMemoryBandwidth", "coreClockRate"}
            : std::vector<std::string>{"cuDevice", "id", "name", "smCount", "totalMemory",
                                       "memoryBandwidth", "clockRate"});
    for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
      scan.scan(chunk, [&](std::size_t, const SqlValue* row) {
        for (const auto& [identity, number] : devices_) {
          // Old captures have no CUDA number; the row's own id is used instead.
          const bool by_row = identity.first || row[0].is_null();
          const std::int64_t id = (by_row ? row[1] : row[0]).as_integer();
          DeviceInfo& device = trace_.devices[number];
          if (id != identity.second || !device.name.empty() ||
              (is_zero(row[5]) && is_zero(row[3]))) {
            continue;
          }
          device.name = row[2].as_text();
          device.num_sms = static_cast<std::uint32_t>(row[3].as_integer());
          device.memory_bytes = static_cast<std::uint64_t>(row[4].as_integer())
                                << (is_old ? 20 : 0);
          device.memory_bytes_per_s = static_cast<std::uint64_t>(row[5].as_integer());
          device.clock_hz = static_cast<std::uint64_t>(row[6].as_integer()) * (is_old ? 1000 : 1);
        }
      });
    }
  }

  void add_diagnostics() {
    if (times_.num_implausible > 0) {
      drop_implausible(trace_);
      trace_.diagnostics.push_back(
          {"implausible_event", Severity::kWarning, times_.num_implausible,
           fmt::format("{} events lie a year or more from the recording's start, and were left out",
                       times_.num_implausible)});
    }
    std::int64_t num_open = 0;
    for (std::size_t row = 0; row < trace_.ranges.size(); ++row) {
      num_open +=
          trace_.ranges.kind[row] != RangeKind::kMark && trace_.ranges.end_ns[row] == kOpenEnd;
    }
    if (num_open > 0) {
      trace_.diagnostics.push_back({"open_range", Severity::kWarning, num_open,
                                    fmt::format("{} NVTX ranges have no end", num_open)});
    }
  }

  const SqliteFile& file_;
  unsigned num_threads_;
  std::int64_t recording_end_ns_ = INT64_MAX;
  Trace trace_;
  NameMap names_;
  NameMap api_names_;
  std::vector<std::uint64_t> range_threads_;
  SeenTimes times_;
  std::map<std::uint64_t, std::uint16_t> processes_;
  std::map<std::uint64_t, std::uint32_t> threads_;
  std::map<StreamInfo, std::uint32_t> streams_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t>
      gpu_of_;  // (pid, CUDA number) -> GPU
  std::map<std::pair<bool, std::int64_t>, std::uint16_t> devices_;
};

bool is_nsys_sqlite(const InputFile& file) {
  return file.sqlite() != nullptr && file.sqlite()->has_table("StringIds");
}

Recording load_nsys_sqlite(const InputFile& file, unsigned num_threads) {
  return Loader(*file.sqlite(), std::max(1U, num_threads)).run();
}

}  // namespace

const Importer kNsysSqlite = {
    {.name = "nsys SQLite",
     .tool = "Nsight Systems",
     .tool_id = "nsys",
     .kind = "SQLite export",
     .made_with = "nsys export --type sqlite FILE.nsys-rep",
     .kernels = "CUPTI_ACTIVITY_KIND_KERNEL",
     .copies = "CUPTI_ACTIVITY_KIND_MEMCPY and _MEMSET",
     .graphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
     .calls = "CUPTI_ACTIVITY_KIND_RUNTIME",
     .marks = "NVTX_EVENTS",
     .record_gpu =
         "llmprof doctor checks driver and tools; llmprof run follows forked children with "
         "pipeline.nsys.trace_fork_before_exec=true",
     .record_graphs = "nsys profile --cuda-graph-trace=node"},
    is_nsys_sqlite,
    load_nsys_sqlite,
    outline_nsys_sqlite};

}  // namespace llmprof
