// SPDX-License-Identifier: Apache-2.0
//
// Facts about the recording as a whole: its extent, its GPUs, and its classes of kernels.
#include "analysis/stages/capture_summary.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/saturated_sum.h"
#include "base/units.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

template <typename Table>
void cover(const Table& table, Extent& extent) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    extent.start_ns = std::min(extent.start_ns, table.start_ns[row]);
    if (table.end_ns[row] != kOpenEnd) {
      extent.end_ns = std::max(extent.end_ns, table.end_ns[row]);
    }
  }
}

void cover_work(const Trace& trace, Extent& extent) {
  cover(trace.kernels, extent);
  cover(trace.copies, extent);
  cover(trace.graphs, extent);
}

// By StringId: kernels of one of these families.
template <std::size_t N>
std::vector<bool> names_in(const Trace& trace, const KernelFamilies& families,
                           const std::array<std::string_view, N>& wanted) {
  std::vector<bool> is_in(trace.strings.size());
  for (const StringId name : families.names()) {
    is_in[static_cast<std::size_t>(name)] =
        std::find(wanted.begin(), wanted.end(), families[name]) != wanted.end();
  }
  return is_in;
}

}  // namespace

Extent extent_of(const Trace& trace) {
  Extent extent{INT64_MAX, INT64_MIN};
  if (const auto& window = trace.capture.window) {
    // Work that begins in a window may end after it. Calls may begin before: they launched its
    // work.
    extent.end_ns = window->end_ns();
    cover_work(trace, extent);
    return {window->start_ns(), extent.end_ns};
  }
  cover_work(trace, extent);
  cover(trace.api_calls, extent);
  if (extent.end_ns < extent.start_ns) {
    cover(trace.ranges, extent);  // no CUDA at all: the ranges are what there is
  }
  return extent.end_ns < extent.start_ns ? Extent{} : extent;
}

Extent with_marks(Extent extent, const Trace& trace, const Stages& stages) {
  const bool reach_beyond =
      std::ranges::any_of(stages.instances, [&](const StageInstance& instance) {
        return instance.start_ns < extent.start_ns || instance.end_ns > extent.end_ns;
      });
  if (!reach_beyond || trace.capture.window || !stages.are_marked()) {
    return extent;
  }
  Extent of_work{INT64_MAX, INT64_MIN};
  cover_work(trace, of_work);
  Extent wider = extent;
  for (const StageInstance& instance : stages.instances) {
    if (instance.start_ns < of_work.end_ns && instance.end_ns > of_work.start_ns) {
      wider.start_ns = std::min(wider.start_ns, instance.start_ns);
      wider.end_ns = std::max(wider.end_ns, instance.end_ns);
    }
  }
  return wider;
}

CaptureRow capture_row(const CaptureInfo& info) {
  CaptureRow row{info};
  const std::string& path = info.files.empty() ? info.path : info.files.front().file;
  row.file = path.substr(path.find_last_of('/') + 1);
  row.format_name = info.format.name;
  row.tool = info.format.tool;
  return row;
}

std::string recorded_at(const CaptureRow& capture) {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  std::int64_t utc_ns = 0;
  if (!capture.utc_ns || __builtin_add_overflow(*capture.utc_ns, capture.start_ns, &utc_ns) ||
      utc_ns <= 0) {
    return "";
  }
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(static_cast<std::time_t>(utc_ns / kSecondNs)));
}

std::vector<DeviceRow> summarise_devices(const Trace& trace,
                                         const std::vector<std::int64_t>& busy_ns,
                                         std::int64_t capture_ns) {
  std::vector<DeviceRow> devices;
  std::vector<std::int64_t> num_kernels(trace.devices.size());
  for (const std::uint16_t device : trace.kernels.device) {
    ++num_kernels[device];
  }
  for (std::size_t i = 0; i < trace.devices.size(); ++i) {
    const DeviceInfo& device = trace.devices[i];
    DeviceRow& row = devices.emplace_back();
    row.device = device_label(device);
    row.name = device.name;
    row.busy_ns = busy_ns[i];
    row.busy_fraction = fraction_of(busy_ns[i], capture_ns);
    row.num_kernels = num_kernels[i];
    row.num_sms = device.num_sms;
    row.compute_major = device.compute_major;
    row.compute_minor = device.compute_minor;
    row.memory_bytes = static_cast<std::int64_t>(device.memory_bytes);
    row.memory_bytes_per_s = static_cast<std::int64_t>(device.memory_bytes_per_s);
  }
  for (std::size_t row = 0; row < trace.copies.size(); ++row) {
    DeviceRow& device = devices[trace.copies.device[row]];
    const std::int64_t time_ns = trace.copies.end_ns[row] - trace.copies.start_ns[row];
    const CopyKind kind = trace.copies.kind[row];
    device.copy_ns += time_ns;
    const bool is_pageable =
        kind == CopyKind::kPageableToDevice || kind == CopyKind::kDeviceToPageable;
    device.pageable_copy_ns += is_pageable ? time_ns : 0;
  }
  std::ranges::sort(devices, {}, &DeviceRow::device);
  return devices;
}

std::vector<CopyRow> summarise_copies(const Trace& trace) {
  const auto words = [](CopyKind kind) -> std::pair<const char*, const char*> {
    switch (kind) {
      case CopyKind::kHostToDevice:
        return {"host_to_device", "pinned"};
      case CopyKind::kDeviceToHost:
        return {"device_to_host", "pinned"};
      case CopyKind::kPageableToDevice:
        return {"host_to_device", "pageable"};
      case CopyKind::kDeviceToPageable:
        return {"device_to_host", "pageable"};
      case CopyKind::kDeviceToDevice:
        return {"device_to_device", ""};
      case CopyKind::kPeerToPeer:
        return {"peer_to_peer", ""};
      case CopyKind::kMemset:
        return {"memset", ""};
      default:
        return {"unknown", ""};
    }
  };
  std::map<std::pair<std::uint16_t, CopyKind>, CopyRow> totals;
  for (std::size_t row = 0; row < trace.copies.size(); ++row) {
    CopyRow& total = totals[{trace.copies.device[row], trace.copies.kind[row]}];
    ++total.count;
    total.size_bytes = saturated_sum(total.size_bytes, trace.copies.size_bytes[row]);
    total.total_ns += trace.copies.end_ns[row] - trace.copies.start_ns[row];
  }
  std::vector<CopyRow> rows;
  rows.reserve(totals.size());
  for (auto& [key, total] : totals) {
    total.device = device_label(trace.devices[key.first]);
    std::tie(total.direction, total.memory) = words(key.second);
    rows.push_back(std::move(total));
  }
  std::ranges::sort(rows, [](const CopyRow& a, const CopyRow& b) {
    return std::tie(a.device, b.total_ns, a.direction, a.memory) <
           std::tie(b.device, a.total_ns, b.direction, b.memory);
  });
  return rows;
}

std::int64_t count_numbered_calls(const Trace& trace) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spans(trace.processes.size(),
                                                             {UINT32_MAX, 0});
  const ApiCalls& calls = trace.api_calls;
  for (std::size_t row = 0; row < calls.size(); ++row) {
    if (calls.correlation[row] != 0) {
      auto& [first, last] = spans[trace.threads[calls.thread[row]].process];
      first = std::min(first, calls.correlation[row]);
      last = std::max(last, calls.correlation[row]);
    }
  }
  std::int64_t count = 0;
  for (const auto& [first, last] : spans) {
    count += first <= last ? std::int64_t{last} - first + 1 : 0;
  }
  return count;
}

std::vector<bool> communication_kernels(const Trace& trace, const KernelFamilies& families) {
  return names_in(trace, families, std::array{kCommunication});
}

std::vector<bool> model_kernels(const Trace& trace, const KernelFamilies& families) {
  return names_in(trace, families,
                  std::array<std::string_view, 5>{"gemm", "gemv", "attention", "moe", "ssm"});
}

bool has_diagnostic(const Diagnostics& diagnostics, std::string_view kind) {
  return std::ranges::any_of(diagnostics, [&](const Diagnostic& one) { return one.kind == kind; });
}

void add_orphans(const Origins& kernels, std::size_t num_kernels, Diagnostics& diagnostics) {
  const auto orphans = std::count(kernels.call.begin(), kernels.call.end(), kNone);
  if (orphans > 0) {
    diagnostics.push_back(
        {"orphan_kernel", Severity::kWarning, orphans,
         fmt::format("{} of {} kernels have no recorded launch: they began before "
                     "the capture, or their process was not traced",
                     orphans, num_kernels)});
  }
}

void add_joined(const Attribution& attribution, Diagnostics& diagnostics) {
  if (attribution.num_after_mark > 0) {
    diagnostics.push_back(
        {"joined_after_mark", Severity::kInfo, attribution.num_after_mark,
         fmt::format("{} kernels ({}) were launched after the mark of a step had ended and before "
                     "the next; they count as part of that step",
                     attribution.num_after_mark, format_duration_ns(attribution.after_mark_ns))});
  }
}

}  // namespace gpuwhy
