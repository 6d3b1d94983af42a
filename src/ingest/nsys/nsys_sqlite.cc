// SPDX-License-Identifier: Apache-2.0
//
// Importer of Nsight Systems SQLite exports, all versions since 2020.
//
// The schema drifts: tables exist only if they have rows, columns are inserted in the middle,
// metadata tables are renamed. So nothing is assumed: tables are probed (nsys_tables.h), columns
// are requested by name (nsys_columns.h), and what is missing reads as null. A correlation id is
// unique only within a process, so rows carry their process.
//
// Large tables are split into chunks that threads take in turn. Each chunk writes its rows to the
// final columns and numbers the processes, devices, streams and shapes in its own small dictionary.
// The dictionaries are joined in chunk order, so the result does not depend on thread timing.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "base/list_of.h"
#include "base/task_graph.h"
#include "base/text.h"
#include "base/units.h"
#include "ingest/bounded_text.h"
#include "ingest/ingest.h"
#include "ingest/nsys/nsys_collectives.h"
#include "ingest/nsys/nsys_columns.h"
#include "ingest/nsys/nsys_graph_nodes.h"
#include "ingest/nsys/nsys_keys.h"
#include "ingest/nsys/nsys_numbers.h"
#include "ingest/nsys/nsys_outline.h"
#include "ingest/nsys/nsys_tables.h"
#include "ingest/small_tables.h"
#include "ingest/sqlite/sqlite_file.h"

namespace gpuwhy {
namespace {

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

// Memory kind 0 is pageable (ENUM_CUDA_MEM_KIND); recordings before 2021 lack it.
CopyKind copy_kind(const SqlValue* row) {
  const auto kind = static_cast<CopyKind>(row[NsysCopyColumns::kCopyKind].as_integer());
  const auto is_pageable = [&](int column) {
    return !row[column].is_null() && row[column].as_integer() == 0;
  };
  if (kind == CopyKind::kHostToDevice && is_pageable(NsysCopyColumns::kSourceKind)) {
    return CopyKind::kPageableToDevice;
  }
  const bool is_to_pageable =
      kind == CopyKind::kDeviceToHost && is_pageable(NsysCopyColumns::kTargetKind);
  return is_to_pageable ? CopyKind::kDeviceToPageable : kind;
}

// A whole number in whichever column of payloads has one.
std::int64_t payload_of(const SqlValue* row) {
  for (int column = NsysNvtxColumns::kFirstPayload; column < NsysNvtxColumns::kNumColumns;
       ++column) {
    if (row[column].kind == SqlValue::Kind::kInteger) {
      return row[column].integer;
    }
  }
  return kNoPayload;
}

// The kind of a range of this event type; none for what is neither a range nor a mark.
std::optional<RangeKind> range_kind(std::int64_t event_type) {
  switch (event_type) {
    case kNvtxPushPop:
    case kNvtxtPushPop:
      return RangeKind::kPushPop;
    case kNvtxStartEnd:
    case kNvtxtStartEnd:
      return RangeKind::kStartEnd;
    case kNvtxMark:
      return RangeKind::kMark;
    default:
      return std::nullopt;
  }
}

// Replaces the numbers of a chunk's own dictionary by those of the Trace.
template <typename T>
void renumber(std::span<T> column, const std::vector<T>& numbers) {
  bool is_same = true;  // as where there is one process and one GPU
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    is_same = is_same && numbers[i] == i;
  }
  if (is_same) {
    return;
  }
  for (T& value : column) {
    value = numbers[value];
  }
}

// Loads one export. Methods run in the order of run(); only the scan tasks are parallel.
class Loader {
 public:
  Loader(const SqliteFile& file, unsigned num_threads)
      : tables_(file), num_threads_(num_threads), nccl_(tables_) {}

  Trace run() {
    read_strings();
    read_capture_info();
    load_tables();
    numbers_.read_devices(tables_);
    read_node_creations(tables_, numbers_, trace_);
    nccl_.add_groups(trace_);
    add_diagnostics();
    return std::move(trace_);
  }

 private:
  void read_strings() {
    const TableScan scan = tables_.scan("StringIds", column_names<NsysStringColumns>());
    for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
      scan.scan(chunk, [&](std::size_t, const SqlValue* row, bool) {
        const std::int64_t id = row[NsysStringColumns::kId].as_integer();
        const std::string_view text = row[NsysStringColumns::kValue].as_text();
        names_.add(id, intern_bounded(trace_.strings, text));
        api_names_.add(id, intern_bounded(trace_.strings, without_version(text)));
      });
    }
  }

  void read_capture_info() {
    CaptureInfo& capture = trace_.capture;
    for (const char* table : {"EXPORT_META_DATA", "META_DATA_EXPORT", "META_DATA_CAPTURE"}) {
      if (!tables_.has(table)) {
        continue;
      }
      tables_.file().query(fmt::format("SELECT name, value FROM {}", table), [&](const auto& row) {
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
    capture.has_cpu_samples = tables_.has("COMPOSITE_EVENTS") || tables_.has("SCHED_EVENTS");
    if (tables_.has("TARGET_INFO_SESSION_START_TIME")) {
      tables_.file().query("SELECT min(utcEpochNs) FROM TARGET_INFO_SESSION_START_TIME",
                           [&](const auto& row) {
                             if (row[0].as_integer() > 0) {
                               capture.utc_ns = row[0].as_integer();
                               capture.session_start_ns = 0;
                             }
                           });
    }
    // nsys writes the end of the recording as the end of ranges that had none.
    if (tables_.has("ANALYSIS_DETAILS")) {
      tables_.file().query("SELECT max(duration) FROM ANALYSIS_DETAILS", [&](const auto& row) {
        recording_end_ns_ = row[0].is_null() ? INT64_MAX : row[0].as_integer();
      });
    }
    if (tables_.has("DIAGNOSTIC_EVENT")) {
      // Severity 1 is information, 2 a warning, 3 an error. Sorted here: SQLite would write what it
      // sorts into temporary files.
      std::vector<std::pair<std::int64_t, std::string>> messages;
      tables_.file().query(
          "SELECT timestamp, text FROM DIAGNOSTIC_EVENT WHERE severity >= 2",
          [&](const auto& row) { messages.emplace_back(row[0].as_integer(), row[1].as_text()); });
      std::ranges::sort(messages);
      for (auto& [time, text] : messages) {
        capture.messages.push_back(std::move(text));
      }
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
        scan.scan(chunk, [&](std::size_t row, const SqlValue* values, bool are_whole) {
          mine.times.has_text = !are_whole;
          keep(row, values, mine);
        });
        require_16_bits(mine.processes.keys.size(), mine.devices.keys.size());
      });
    }
  }

  // The part of a GPU row that is the same for every kind of work.
  template <typename Table>
  static void keep_gpu_row(Table& table, std::size_t row, const SqlValue* values, ChunkKeys& keys) {
    keys.times.read(values[NsysGpuColumns::kStart], values[NsysGpuColumns::kEnd],
                    table.start_ns[row], table.end_ns[row]);
    table.correlation[row] = correlation_of(values[NsysGpuColumns::kCorrelation]);
    const GpuNumbers numbers = keys.numbers_of({values[NsysGpuColumns::kProcess].as_integer(),
                                                values[NsysGpuColumns::kDevice].as_integer(),
                                                values[NsysGpuColumns::kContext].as_integer(),
                                                values[NsysGpuColumns::kStream].as_integer()});
    table.process[row] = numbers.process;
    table.device[row] = numbers.device;
    table.stream[row] = numbers.stream;
  }

  void load_tables() {
    // Columns get their final size before the tasks start, so that chunks can write in parallel.
    std::vector<std::function<void()>> tasks;
    const TableScan ranges = tables_.scan("NVTX_EVENTS", column_names<NsysNvtxColumns>());
    tasks.push_back([&] { load_ranges(ranges); });

    const TableScan kernels = tables_.scan("CUPTI_ACTIVITY_KIND_KERNEL",
                                           column_names<NsysGpuColumns, NsysKernelColumns>());
    make_rows(trace_.kernels, kernels.num_rows());
    std::vector<ChunkKeys> kernel_keys;
    add_tasks(kernels, kernel_keys, tasks, [this](auto&&... row) { keep_kernel(row...); });

    const TableScan calls =
        tables_.scan("CUPTI_ACTIVITY_KIND_RUNTIME", column_names<NsysCallColumns>());
    make_rows(trace_.api_calls, calls.num_rows());
    std::vector<ChunkKeys> call_keys;
    add_tasks(calls, call_keys, tasks, [this](auto&&... row) { keep_call(row...); });

    // Copies and memsets share columns; memsets come after the copies.
    const TableScan copies =
        tables_.scan("CUPTI_ACTIVITY_KIND_MEMCPY", column_names<NsysGpuColumns, NsysCopyColumns>());
    const TableScan memsets = tables_.scan("CUPTI_ACTIVITY_KIND_MEMSET",
                                           column_names<NsysGpuColumns, NsysMemsetColumns>());
    const std::size_t first_memset = copies.num_rows();
    make_rows(trace_.copies, copies.num_rows() + memsets.num_rows());
    std::vector<ChunkKeys> copy_keys;
    add_tasks(copies, copy_keys, tasks,
              [this](std::size_t row, const SqlValue* values, ChunkKeys& keys) {
                keep_gpu_row(trace_.copies, row, values, keys);
                trace_.copies.size_bytes[row] = values[NsysCopyColumns::kBytes].as_integer();
                trace_.copies.kind[row] = copy_kind(values);
              });
    std::vector<ChunkKeys> memset_keys;
    add_tasks(memsets, memset_keys, tasks,
              [this, first_memset](std::size_t row, const SqlValue* values, ChunkKeys& keys) {
                keep_gpu_row(trace_.copies, first_memset + row, values, keys);
                trace_.copies.size_bytes[first_memset + row] =
                    values[NsysMemsetColumns::kBytes].as_integer();
                trace_.copies.kind[first_memset + row] = CopyKind::kMemset;
              });

    const TableScan graphs =
        tables_.scan("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", column_names<NsysGpuColumns>());
    make_rows(trace_.graphs, graphs.num_rows());
    std::vector<ChunkKeys> graph_keys;
    add_tasks(graphs, graph_keys, tasks,
              [this](std::size_t row, const SqlValue* values, ChunkKeys& keys) {
                keep_gpu_row(trace_.graphs, row, values, keys);
              });

    const TableScan system_calls = tables_.scan("OSRT_API", column_names<NsysSystemCallColumns>());
    std::vector<std::vector<LongCall>> long_calls(system_calls.num_chunks());
    std::vector<ChunkKeys> system_keys(system_calls.num_chunks());
    for (std::size_t chunk = 0; chunk < long_calls.size(); ++chunk) {
      tasks.push_back([&, chunk] {
        find_long_calls(system_calls, chunk, system_keys[chunk].times, long_calls[chunk]);
      });
    }
    run_tasks(tasks, num_threads_);
    trace_.capture.has_kernel_table = kernels.num_rows() > 0;
    trace_.capture.has_cuda = trace_.kernels.size() + trace_.api_calls.size() +
                                  trace_.copies.size() + trace_.graphs.size() >
                              0;

    // From here on single-threaded: chunk-local numbers become global ones.
    numbers_.read_device_map(tables_);
    join_gpu_keys(kernels, kernel_keys, 0, trace_.kernels);
    join_column(
        kernels, kernel_keys, &ChunkKeys::shapes, trace_.kernels.shape, {},
        [this](const ChunkKeys&, const LaunchShape& shape) { return numbers_.shape(shape); });
    join_column(
        kernels, kernel_keys, &ChunkKeys::nodes, trace_.kernels.graph_node, {kNoNode},
        [this](const ChunkKeys& mine, const NodeKey& key) {
          return numbers_.node({key.node, numbers_.process(mine.processes.keys[key.process])});
        });
    join_gpu_keys(copies, copy_keys, 0, trace_.copies);
    join_gpu_keys(memsets, memset_keys, first_memset, trace_.copies);
    join_gpu_keys(graphs, graph_keys, 0, trace_.graphs);
    join_column(calls, call_keys, &ChunkKeys::threads, trace_.api_calls.thread, {},
                [this](const ChunkKeys&, std::uint64_t tid) { return numbers_.thread(tid); });
    for (std::uint32_t& thread : trace_.ranges.thread.span()) {
      thread = numbers_.thread(range_threads_[thread]);
    }
    check_times({&kernel_keys, &call_keys, &copy_keys, &memset_keys, &graph_keys, &system_keys});
    all_ = {static_cast<std::int64_t>(kernels.num_rows()),
            static_cast<std::int64_t>(calls.num_rows() + trace_.copies.size() + graphs.num_rows() +
                                      trace_.ranges.size() + system_calls.num_rows())};
    keep_long_calls(long_calls);
  }

  // A long call of the operating system.
  struct LongCall {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint64_t global_tid = 0;
    std::int64_t name = 0;
  };

  static void find_long_calls(const TableScan& scan, std::size_t chunk, SeenTimes& times,
                              std::vector<LongCall>& calls) {
    scan.scan(chunk, [&](std::size_t, const SqlValue* row, bool are_whole) {
      std::int64_t start_ns = 0;
      std::int64_t end_ns = 0;
      times.has_text = !are_whole;
      if (times.read(row[NsysSystemCallColumns::kStart], row[NsysSystemCallColumns::kEnd], start_ns,
                     end_ns) &&
          end_ns - start_ns >= kLeastFunctionNs) {
        calls.push_back(
            {start_ns, end_ns,
             static_cast<std::uint64_t>(row[NsysSystemCallColumns::kThread].as_integer()),
             row[NsysSystemCallColumns::kName].as_integer()});
      }
    });
  }

  // Of threads that launch work or mark ranges; "()" tells them from a program's own names.
  void keep_long_calls(const std::vector<std::vector<LongCall>>& chunks) {
    std::vector<std::pair<const LongCall*, std::uint32_t>> kept;  // with its thread
    for (const std::vector<LongCall>& calls : chunks) {
      for (const LongCall& call : calls) {
        const std::uint32_t thread = numbers_.known_thread(call.global_tid);
        if (thread != kNone) {
          kept.emplace_back(&call, thread);
        }
      }
    }
    HostFunctions& functions = trace_.functions;
    make_rows(functions, kept.size());
    for (std::size_t row = 0; row < kept.size(); ++row) {
      const auto& [call, thread] = kept[row];
      functions.start_ns[row] = call->start_ns;
      functions.end_ns[row] = call->end_ns;
      functions.name[row] =
          trace_.strings.intern(std::string(trace_.strings[names_[call->name]]) + "()");
      functions.thread[row] = thread;
    }
  }

  void check_times(const std::vector<const std::vector<ChunkKeys>*>& tables) {
    double sum_ns = range_times_.sum_ns;
    const auto add = [this](const SeenTimes& times, bool is_kernel) {
      for (std::size_t why = 0; why < left_out_.size(); ++why) {
        left_out_[why].add(is_kernel, times.num_left_out[why]);
      }
    };
    add(range_times_, false);
    for (const auto* keys : tables) {
      for (const ChunkKeys& chunk : *keys) {
        sum_ns += chunk.times.sum_ns;
        add(chunk.times, keys == tables.front());
      }
    }
    require_sum_fits(sum_ns, "events");
  }

  [[gnu::flatten]] void keep_kernel(std::size_t row, const SqlValue* values, ChunkKeys& keys) {
    keep_gpu_row(trace_.kernels, row, values, keys);
    // Old exports have only the short name.
    const bool has_name = !values[NsysKernelColumns::kDemangledName].is_null();
    const SqlValue& name =
        values[has_name ? NsysKernelColumns::kDemangledName : NsysKernelColumns::kShortName];
    trace_.kernels.name[row] = names_[name.as_integer()];
    const SqlValue& mangled = values[NsysKernelColumns::kMangledName];
    trace_.kernels.mangled_name[row] =
        mangled.is_null() ? StringId{} : names_[mangled.as_integer()];
    LaunchShape shape;
    for (int i = 0; i < 3; ++i) {
      shape.grid[i] = static_cast<std::int32_t>(values[NsysKernelColumns::kGridX + i].as_integer());
      shape.block[i] =
          static_cast<std::int32_t>(values[NsysKernelColumns::kBlockX + i].as_integer());
    }
    trace_.kernels.shape[row] = keys.shapes.id(shape);
    const SqlValue& node = values[NsysKernelColumns::kGraphNode];
    const auto id = node.is_null() ? 0 : static_cast<std::uint64_t>(node.as_integer());
    // Chunks number their nodes from 1, because 0 is kNoNode.
    trace_.kernels.graph_node[row] =
        id == 0 ? kNoNode : keys.nodes.id({trace_.kernels.process[row], id}) + 1;
  }

  void keep_call(std::size_t row, const SqlValue* values, ChunkKeys& keys) {
    ApiCalls& calls = trace_.api_calls;
    keys.times.read(values[NsysCallColumns::kStart], values[NsysCallColumns::kEnd],
                    calls.start_ns[row], calls.end_ns[row]);
    calls.thread[row] =
        keys.threads.id(static_cast<std::uint64_t>(values[NsysCallColumns::kThread].as_integer()));
    calls.correlation[row] = correlation_of(values[NsysCallColumns::kCorrelation]);
    calls.name[row] = api_names_[values[NsysCallColumns::kName].as_integer()];
  }

  // A single task, because it interns texts; the other tasks do not touch the pool.
  void load_ranges(const TableScan& scan) {
    Ranges& ranges = trace_.ranges;
    make_rows(ranges, scan.num_rows());
    std::map<std::pair<std::uint64_t, std::int64_t>, StringId> domains;
    std::vector<std::int64_t> domain_ids(scan.num_rows());
    Dictionary<std::uint64_t> threads;
    std::size_t kept = 0;
    for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
      scan.scan(chunk, [&](std::size_t, const SqlValue* row, bool) {
        const auto global_tid =
            static_cast<std::uint64_t>(row[NsysNvtxColumns::kThread].as_integer());
        const std::int64_t domain_id = row[NsysNvtxColumns::kDomainId].as_integer();
        const StringId text = row[NsysNvtxColumns::kText].kind == SqlValue::Kind::kText
                                  ? intern_bounded(trace_.strings, row[NsysNvtxColumns::kText].text)
                                  : names_[row[NsysNvtxColumns::kTextId].as_integer()];
        const std::int64_t event_type = row[NsysNvtxColumns::kEventType].as_integer();
        // Domains may be created after their first use, so they are resolved at the end.
        if (event_type == kNvtxDomainCreate) {
          domains[{process_part(global_tid), domain_id}] = text;
        }
        const std::optional<RangeKind> kind = range_kind(event_type);
        range_times_.has_text = !row[NsysNvtxColumns::kThread].is_whole_or_null();
        if (!row[NsysNvtxColumns::kEventType].is_whole_or_null()) {
          range_times_.leave_out(Unusable::kNoNumber);
        }
        if (!kind) {
          return;
        }
        const SqlValue& start = row[NsysNvtxColumns::kStart];
        const SqlValue& end = row[NsysNvtxColumns::kEnd];
        const bool is_open = end.is_null() || end.as_integer() >= recording_end_ns_;
        if (range_times_.read(start, is_open ? start : end, ranges.start_ns[kept],
                              ranges.end_ns[kept]) &&
            is_open) {
          ranges.end_ns[kept] = kOpenEnd;
        }
        ranges.text[kept] = text;
        ranges.thread[kept] = threads.id(global_tid);
        ranges.kind[kept] = *kind;
        ranges.payload[kept] = payload_of(row);
        nccl_.add(static_cast<std::uint32_t>(kept), domain_id, row[NsysNvtxColumns::kBinary]);
        domain_ids[kept++] = domain_id;
      });
    }
    for (std::size_t i = 0; i < kept; ++i) {
      const auto found =
          domains.find({process_part(threads.keys[ranges.thread[i]]), domain_ids[i]});
      ranges.domain[i] = found == domains.end() ? StringId{} : found->second;
    }
    range_threads_ = threads.keys;
    // Rows that are not ranges (domains, categories, names) were skipped.
    each_column(ranges, [kept](auto& column) { column.shrink(kept); });
  }

  // Calls join(keys, first row, number of rows) for each chunk of a table.
  template <typename Join>
  static void each_chunk(const TableScan& scan, const std::vector<ChunkKeys>& keys, Join join) {
    for (std::size_t chunk = 0; chunk < keys.size(); ++chunk) {
      const std::size_t first = scan.first_row(chunk);
      const bool is_last = chunk + 1 == keys.size();
      join(keys[chunk], first, (is_last ? scan.num_rows() : scan.first_row(chunk + 1)) - first);
    }
  }

  // Replaces chunk-local numbers of processes, devices and streams, in chunk order.
  template <typename Table>
  void join_gpu_keys(const TableScan& scan, const std::vector<ChunkKeys>& keys, std::size_t offset,
                     Table& table) {
    each_chunk(scan, keys, [&](const ChunkKeys& mine, std::size_t first, std::size_t num_rows) {
      const auto processes = list_of<std::uint16_t>(
          mine.processes.keys,
          [&](const std::uint64_t global_pid) { return numbers_.process(global_pid); });
      const auto devices = list_of<std::uint16_t>(
          mine.devices.keys, [&](const DeviceKey& key) { return numbers_.device(key); });
      std::vector<std::uint32_t> streams;
      for (const StreamKey& key : mine.streams.keys) {
        const DeviceKey& device = mine.devices.keys[key.device];
        streams.push_back(numbers_.stream({numbers_.process(device.global_pid), devices[key.device],
                                           static_cast<std::uint32_t>(key.context),
                                           static_cast<std::uint32_t>(key.stream)}));
      }
      renumber(table.process.span().subspan(offset + first, num_rows), processes);
      renumber(table.device.span().subspan(offset + first, num_rows), devices);
      renumber(table.stream.span().subspan(offset + first, num_rows), streams);
    });
  }

  // Chunks were read in parallel and numbered their keys on their own. Joining them in order makes
  // the numbers of a column independent of the threads. `numbers` are those without a key.
  template <typename Key, typename T, typename NumberOf>
  static void join_column(const TableScan& scan, const std::vector<ChunkKeys>& keys,
                          Dictionary<Key> ChunkKeys::*of, Column<T>& column,
                          const std::vector<T>& numbers, NumberOf number_of) {
    each_chunk(scan, keys, [&](const ChunkKeys& mine, std::size_t first, std::size_t num_rows) {
      std::vector<T> joined = numbers;
      for (const Key& key : (mine.*of).keys) {
        joined.push_back(number_of(mine, key));
      }
      renumber(column.span().subspan(first, num_rows), joined);
    });
  }

  void add_diagnostics() {
    trace_.diagnostics = tables_.left_out();
    if (sum_of(left_out_).sum() > 0) {
      drop_implausible(trace_);
      add_left_out(left_out_, all_,
                   {"text, or nothing, where a number belongs", "they end before they start",
                    "a year or more from the recording's start"},
                   trace_.diagnostics);
    }
    std::int64_t num_open = 0;
    for (std::size_t row = 0; row < trace_.ranges.size(); ++row) {
      num_open +=
          trace_.ranges.kind[row] != RangeKind::kMark && trace_.ranges.end_ns[row] == kOpenEnd;
    }
    if (num_open > 0) {
      trace_.diagnostics.push_back(
          {"open_range", Severity::kWarning, num_open,
           fmt::format("{} without an end", count_of(num_open, "NVTX range"))});
    }
  }

  NsysTables tables_;
  unsigned num_threads_;
  std::int64_t recording_end_ns_ = INT64_MAX;
  Trace trace_;
  TraceNumbers numbers_{trace_};
  NameMap names_;
  NameMap api_names_;
  NcclPayloads nccl_;
  std::vector<std::uint64_t> range_threads_;
  SeenTimes range_times_;
  EventCounts all_;
  LeftOut left_out_;
};

bool is_nsys_sqlite(const InputFile& file) {
  return file.sqlite() != nullptr && file.sqlite()->has_table("StringIds");
}

Recording load_nsys_sqlite(const InputFile& file, unsigned num_threads) {
  Recording recording = Loader(*file.sqlite(), std::max(1U, num_threads)).run();
  file.sqlite()->release();
  return recording;
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
     .record_gpu = "gpuwhy doctor checks driver and tools; gpuwhy run follows forked children with "
                   "pipeline.nsys.trace_fork_before_exec=true",
     .record_graphs = "nsys profile --cuda-graph-trace=node",
     .record_less = "record again, shorter: gpuwhy run with run.mode=light or a narrower run.gate"},
    is_nsys_sqlite,
    load_nsys_sqlite,
    outline_nsys_sqlite};

}  // namespace gpuwhy
