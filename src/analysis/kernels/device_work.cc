// SPDX-License-Identifier: Apache-2.0
//
// Order of the work of each GPU.
//
// Work that starts together is ordered by kind and launch time, never by row: the order of rows in
// a file is arbitrary.
#include "analysis/kernels/device_work.h"

#include <algorithm>
#include <tuple>

namespace gpuwhy {

std::vector<DeviceWork> work_by_device(const Trace& trace, const AllWork& all) {
  // Reserved for all tables at once: a growing list exists twice while it is moved, when memory use
  // is highest anyway.
  std::vector<std::size_t> counts(trace.devices.size());
  const auto each_table = [&](auto visit) {
    visit(trace.kernels.device);
    visit(trace.copies.device);
    visit(trace.graphs.device);
  };
  each_table([&](const Column<std::uint16_t>& devices_of) {
    for (const std::uint16_t device : devices_of) {
      ++counts[device];
    }
  });
  std::vector<DeviceWork> devices(trace.devices.size());
  for (std::size_t device = 0; device < devices.size(); ++device) {
    devices[device].reserve(counts[device]);
  }
  std::uint32_t number = 0;
  each_table([&](const Column<std::uint16_t>& devices_of) {
    for (const std::uint16_t device : devices_of) {
      devices[device].push_back(number++);
    }
  });
  const auto launch_ns = [&](std::uint32_t work) {
    const std::uint32_t call = all.call(work);
    return call == kNone ? INT64_MIN : trace.api_calls.start_ns[call];
  };
  const auto order = [&](std::uint32_t a, std::uint32_t b) {
    const std::int64_t a_ns = all.start_ns(a);
    const std::int64_t b_ns = all.start_ns(b);
    return a_ns != b_ns ? a_ns < b_ns
                        : std::tuple(all.end_ns(a), all.kind(a), launch_ns(a)) <
                              std::tuple(all.end_ns(b), all.kind(b), launch_ns(b));
  };
  const auto sort_part = [&](auto from, auto to) {
    if (!std::is_sorted(from, to, order)) {
      std::sort(from, to, order);
    }
  };
  for (DeviceWork& work : devices) {
    // Kernels come before copies and graphs, each mostly sorted already.
    const auto middle = std::lower_bound(work.begin(), work.end(), all.end_of_kernels());
    sort_part(work.begin(), middle);
    sort_part(middle, work.end());
    // The few others are put between the kernels, the last one first.
    const DeviceWork others(middle, work.end());
    auto end_of_kernels = middle;
    auto end = work.end();
    for (std::size_t i = others.size(); i-- > 0;) {
      const auto place = std::upper_bound(work.begin(), end_of_kernels, others[i], order);
      end = std::move_backward(place, end_of_kernels, end);
      end_of_kernels = place;
      *--end = others[i];
    }
  }
  return devices;
}

}  // namespace gpuwhy
