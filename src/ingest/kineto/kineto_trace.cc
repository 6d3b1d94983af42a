// SPDX-License-Identifier: Apache-2.0
//
// Construction of a Trace from PyTorch profiler events.
//
// The profiler writes what CUPTI (or roctracer) reports, as nsys does, so nearly everything has its
// place: calls and GPU work are joined by correlation id, and a graph launch owns all kernels with
// its id. The differences are in placement. A GPU event has the device as process and the stream as
// thread; the launching process is not recorded. A profiler records its own process, so it is the
// one with the calls. Operators and modules go to a separate table (Ops), annotations are ranges.
//
// Impossible times are dropped and counted: profilers write them when a clock was not converted,
// and one event at time zero would stretch the recording over decades. It fails if the very first
// event is the wrong one.
#include "ingest/kineto/kineto_trace.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "base/units.h"
#include "ingest/bounded_text.h"
#include "ingest/small_tables.h"
#include "trace/op_inputs.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kDayNs = 86'400'000'000'000;
constexpr std::int64_t kMostSpanNs = 30 * kDayNs;  // between the first event and any other
// Sums of durations stay far below 2^63, whatever the file contains.
constexpr std::int64_t kMostSumNs = 4'000 * kDayNs;
constexpr std::size_t kMostProcesses = UINT16_MAX;
constexpr std::size_t kMostKept = UINT32_MAX - 1;
constexpr std::size_t kMostGroupText = 128;  // bytes of a name or description of processes

// From "Memcpy HtoD (Pageable -> Device)".
CopyKind copy_kind_of(std::string_view name) {
  const auto says = [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  const bool is_pageable = says("Pageable");
  if (says("HtoD")) {
    return is_pageable ? CopyKind::kPageableToDevice : CopyKind::kHostToDevice;
  }
  if (says("DtoH")) {
    return is_pageable ? CopyKind::kDeviceToPageable : CopyKind::kDeviceToHost;
  }
  if (says("PtoP")) {
    return CopyKind::kPeerToPeer;
  }
  return says("DtoD") ? CopyKind::kDeviceToDevice : CopyKind::kUnknown;
}

// From "[0, 1]". Empty if the list is cut ("[0, 1, ...]") or is not one.
std::vector<std::int64_t> ranks_in(std::string_view text) {
  std::vector<std::int64_t> ranks;
  if (!text.starts_with('[') || !text.ends_with(']')) {
    return ranks;
  }
  for (const std::string_view word : split(text.substr(1, text.size() - 2), ',')) {
    const auto rank = parse_whole(trim(word));
    if (!rank || *rank < 0) {
      return {};
    }
    ranks.push_back(*rank);
  }
  std::ranges::sort(ranks);
  return ranks;
}

std::uint32_t low_bits(std::int64_t number) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(number) & UINT32_MAX);
}

}  // namespace

bool KinetoTrace::is_plausible(const KinetoEvent& event) {
  first_ns_ = first_ns_.value_or(event.start_ns);
  const std::int64_t away_ns = event.start_ns - *first_ns_;
  return away_ns > -kMostSpanNs && away_ns < kMostSpanNs && event.duration_ns < kMostSpanNs &&
         event.duration_ns <= kMostSumNs - sum_ns_;
}

void KinetoTrace::add(const KinetoEvent& event) {
  if (!is_plausible(event)) {
    num_implausible_.add(event.kind == KinetoKind::kKernel);
    return;
  }
  sum_ns_ += event.duration_ns;
  // Row numbers have 32 bits.
  if (++num_kept_ > kMostKept) {
    throw Error(ErrorKind::kInput, "the trace holds more than 4 thousand million events");
  }
  switch (event.kind) {
    case KinetoKind::kKernel:
    case KinetoKind::kCopy:
    case KinetoKind::kMemset:
      add_gpu_work(event);
      break;
    case KinetoKind::kCall:
      add_call(event, intern_bounded(trace_.strings, event.name));
      break;
    case KinetoKind::kLegacyLaunch:
      add_call(event, trace_.strings.intern("launch"));
      break;
    case KinetoKind::kLegacyArrival:
      legacy_correlation_ = event.correlation;
      break;
    case KinetoKind::kAnnotation:
      add_range(event);
      break;
    case KinetoKind::kOperator:
      add_op(event, intern_bounded(trace_.strings, event.name), OpKind::kOperator);
      // Some exporters write the module's path into the operator: one event, two rows.
      if (!event.module_path.empty()) {
        add_op(event, intern_bounded(trace_.strings, event.module_path), OpKind::kModule);
      }
      break;
    case KinetoKind::kModule:
      add_op(event, intern_bounded(trace_.strings, event.name), OpKind::kModule);
      break;
    case KinetoKind::kFunction:
      add_host_columns(functions_, event);
      functions_.name.push_back(intern_bounded(trace_.strings, event.name));
      break;
    case KinetoKind::kCounted:
      ++num_counted_;
      break;
    case KinetoKind::kSession:
      trace_.capture.session_start_ns =
          std::min(trace_.capture.session_start_ns.value_or(event.start_ns), event.start_ns);
      break;
  }
}

template <typename Table>
void KinetoTrace::add_gpu_columns(Table& table, const KinetoEvent& event) {
  table.start_ns.push_back(event.start_ns);
  table.end_ns.push_back(event.start_ns + event.duration_ns);
  table.correlation.push_back(event.correlation);
  table.device.push_back(device_of(event.device));
  table.stream.push_back(stream_of(event));
}

template <typename Table>
void KinetoTrace::add_host_columns(Table& table, const KinetoEvent& event) {
  table.start_ns.push_back(event.start_ns);
  table.end_ns.push_back(event.start_ns + event.duration_ns);
  table.thread.push_back(thread_of(event));
}

void KinetoTrace::add_gpu_work(const KinetoEvent& event) {
  if (devices_.size() >= kMostDevices && !devices_.contains(event.device)) {
    num_implausible_.add(event.kind == KinetoKind::kKernel);
    return;
  }
  if (event.kind == KinetoKind::kKernel) {
    add_kernel(event);
  } else {
    add_copy(event);
  }
}

void KinetoTrace::add_kernel(const KinetoEvent& event) {
  KinetoEvent kernel = event;
  if (kernel.correlation == kNone) {
    kernel.correlation = std::exchange(legacy_correlation_, kNone);
  }
  add_gpu_columns(kernels_, kernel);
  kernels_.name.push_back(intern_bounded(trace_.strings, event.name));
  kernels_.shape.push_back(
      number_in(trace_.shapes, shapes_, event.shape, [&] { return event.shape; }));
  kernels_.graph_node.push_back(node_of(event.graph_node));
  if (!event.collective.empty() && kernel.correlation != kNone) {
    trace_.collective_kernels.push_back(
        {0, kernel.correlation, group_of(event), intern_bounded(trace_.strings, event.collective)});
  }
}

std::uint32_t KinetoTrace::group_of(const KinetoEvent& event) {
  const std::string key = fmt::format("{}\n{}", event.group, event.group_ranks);
  return number_in(trace_.process_groups, groups_, key, [&] {
    return ProcessGroup{std::string(event.group.substr(0, kMostGroupText)),
                        std::string(event.group_description.substr(0, kMostGroupText)),
                        ranks_in(event.group_ranks), std::max<std::int64_t>(event.group_size, 0)};
  });
}

void KinetoTrace::add_copy(const KinetoEvent& event) {
  add_gpu_columns(copies_, event);
  copies_.size_bytes.push_back(std::max<std::int64_t>(event.bytes, 0));
  copies_.kind.push_back(event.kind == KinetoKind::kMemset ? CopyKind::kMemset
                                                           : copy_kind_of(event.name));
}

void KinetoTrace::add_call(const KinetoEvent& event, StringId name) {
  add_host_columns(calls_, event);
  calls_.name.push_back(name);
  calls_.correlation.push_back(event.correlation);
  if (event.correlation != kNone && trace_.strings[name].ends_with("GraphLaunch")) {
    graph_launches_.push_back(event.correlation);
  }
  has_captures_ |= trace_.strings[name].find("BeginCapture") != std::string_view::npos;
  if (!event.launched.empty() && event.correlation != kNone) {
    launches_.push_back({event.correlation,
                         {event.start_ns, calls_.thread[calls_.size() - 1],
                          trace_.strings.intern(event.launched)}});
  }
}

void KinetoTrace::add_range(const KinetoEvent& event) {
  add_host_columns(ranges_, event);
  ranges_.text.push_back(intern_bounded(trace_.strings, event.name));
}

void KinetoTrace::add_op(const KinetoEvent& event, StringId name, OpKind kind) {
  add_host_columns(ops_, event);
  ops_.name.push_back(name);
  ops_.kind.push_back(kind);
  ops_.inputs.push_back(kind == OpKind::kOperator ? inputs_of(event) : StringId{});
}

// Only of operators that rates are computed for; equal ones are stored once.
StringId KinetoTrace::inputs_of(const KinetoEvent& event) {
  if (!has_kept_inputs(event.name)) {
    return {};
  }
  const std::string text =
      event.collective.empty()
          ? product_inputs(event.input_sizes, event.input_types,
                           has_kept_values(event.name) ? event.input_values : std::string_view())
          : message_inputs({std::string(event.collective), std::string(event.group),
                            std::string(event.dtype), event.group_size, event.in_elements,
                            event.out_elements});
  return text.empty() ? StringId{} : trace_.strings.intern(text);
}

// Consecutive events mostly share a thread, so the last one is cached.
std::uint32_t KinetoTrace::thread_of(const KinetoEvent& event) {
  const std::pair key(event.pid, event.tid);
  if (last_thread_ == kNone || key != last_thread_key_) {
    last_thread_key_ = key;
    last_thread_ = number_in(trace_.threads, threads_, key, [&] {
      return ThreadInfo{static_cast<std::uint64_t>(event.tid), low_bits(event.tid),
                        process_of(event.pid)};
    });
  }
  return last_thread_;
}

std::uint16_t KinetoTrace::process_of(std::int64_t pid) {
  return number_in(trace_.processes, processes_, pid, [&] {
    if (trace_.processes.size() == kMostProcesses) {
      throw Error(ErrorKind::kInput, "the trace has more than 65,535 processes");
    }
    return ProcessInfo{static_cast<std::uint64_t>(pid), low_bits(pid)};
  });
}

std::uint16_t KinetoTrace::device_of(std::int64_t ordinal) {
  return number_in(trace_.devices, devices_, ordinal, [&] {
    DeviceInfo device;
    device.ordinal = low_bits(ordinal);
    return device;
  });
}

std::uint32_t KinetoTrace::stream_of(const KinetoEvent& event) {
  const StreamInfo stream{0, device_of(event.device), low_bits(event.context),
                          low_bits(event.stream)};
  return number_in(trace_.streams, streams_, stream, [&] { return stream; });
}

std::uint32_t KinetoTrace::node_of(std::uint64_t id) {
  return id == 0 ? kNoNode : number_in(trace_.graph_nodes, nodes_, id, [&] {
    return GraphNode{id, 0};
  });
}

// The process with the most calls; a dummy if no CPU event was recorded.
std::uint16_t KinetoTrace::launching_process() {
  if (trace_.processes.empty()) {
    trace_.processes.emplace_back();
  }
  std::vector<std::size_t> num_calls(trace_.processes.size());
  for (const std::uint32_t thread : trace_.api_calls.thread) {
    ++num_calls[trace_.threads[thread].process];
  }
  const auto most = std::max_element(num_calls.begin(), num_calls.end());
  const auto others = static_cast<std::int64_t>(trace_.api_calls.size() - *most);
  if (others > 0) {
    trace_.diagnostics.push_back(
        {"several_processes", Severity::kWarning, others,
         fmt::format("{} from other processes than the one that launched most GPU work: analyze "
                     "joined traces one by one",
                     count_of(others, "API call"))});
  }
  return static_cast<std::uint16_t>(most - num_calls.begin());
}

void KinetoTrace::mark_graph_nodes() {
  std::ranges::sort(graph_launches_);
  for (std::size_t row = 0; row < trace_.kernels.size(); ++row) {
    const bool is_launched_so = std::binary_search(graph_launches_.begin(), graph_launches_.end(),
                                                   trace_.kernels.correlation[row]);
    if (is_launched_so && !trace_.kernels.is_graph_node(row)) {
      trace_.kernels.graph_node[row] = kUnnumberedNode;
    }
  }
}

// A launch that was captured ran nothing itself.
void KinetoTrace::find_captured_launches() {
  std::vector<std::uint32_t> ran(trace_.kernels.correlation.begin(),
                                 trace_.kernels.correlation.end());
  std::ranges::sort(ran);
  for (const auto& [correlation, launch] : launches_) {
    if (!std::binary_search(ran.begin(), ran.end(), correlation)) {
      trace_.captured_launches.push_back(launch);
    }
  }
  std::ranges::sort(trace_.captured_launches, {}, [](const CapturedLaunch& one) {
    return std::tuple(one.thread, one.time_ns, one.kernel);
  });
}

void KinetoTrace::place_gpu_work() {
  const std::uint16_t process = launching_process();
  for (StreamInfo& stream : trace_.streams) {
    stream.process = process;
  }
  std::ranges::fill(trace_.kernels.process.span(), process);
  std::ranges::fill(trace_.copies.process.span(), process);
  for (GraphNode& node : trace_.graph_nodes) {
    node.process = process;
  }
  for (CollectiveKernel& kernel : trace_.collective_kernels) {
    kernel.process = process;
  }
  std::ranges::sort(trace_.collective_kernels);
}

// Attributes that this format lacks are filled with their "absent" values.
void KinetoTrace::finish_columns() {
  // A column that no event writes is zeros: mangled names, processes, domains, kinds of ranges.
  const auto finish = [](auto& grown, auto& table) {
    const std::size_t num_rows = grown.size();
    const auto finish_column = [&]<typename Column>(Column& column, auto& grown_column) {
      if (grown_column.size() == num_rows) {
        column = grown_column.finish();
      } else {
        column = Column(num_rows);
        for (auto& value : column.span()) {
          value = {};
        }
      }
    };
    each_column(table, finish_column, grown);
  };
  finish(kernels_, trace_.kernels);
  finish(copies_, trace_.copies);
  finish(calls_, trace_.api_calls);
  finish(ranges_, trace_.ranges);
  finish(ops_, trace_.ops);
  finish(functions_, trace_.functions);
  std::ranges::fill(trace_.ranges.payload.span(), kNoPayload);
}

Trace KinetoTrace::finish() {
  finish_columns();
  place_gpu_work();
  mark_graph_nodes();
  if (has_captures_ && !launches_.empty()) {
    find_captured_launches();
  }
  if (num_counted_ > 0) {
    trace_.diagnostics.push_back({"range_profiling", Severity::kWarning, num_counted_,
                                  fmt::format("CUPTI counted in {} instead of recording kernels",
                                              count_of(num_counted_, "range"))});
  }
  trace_.capture.has_kernel_table = trace_.kernels.size() > 0;
  trace_.capture.has_cuda =
      trace_.kernels.size() + trace_.copies.size() + trace_.api_calls.size() > 0;
  return std::move(trace_);
}

}  // namespace gpuwhy
