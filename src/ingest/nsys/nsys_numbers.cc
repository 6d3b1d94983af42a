// SPDX-License-Identifier: Apache-2.0
//
// Numbers of processes, threads, GPUs, streams, launch shapes and graph nodes of an nsys export.
//
// A device number is CUDA's number for the GPU within a process. Where the export says which GPU
// that was (TARGET_INFO_CUDA_DEVICE), device 0 of two processes may be two GPUs.
#include "ingest/nsys/nsys_numbers.h"

#include "ingest/nsys/nsys_columns.h"
#include "ingest/small_tables.h"

namespace gpuwhy {

void TraceNumbers::read_device_map(const NsysTables& tables) {
  if (!tables.has("TARGET_INFO_CUDA_DEVICE")) {
    return;
  }
  tables.file().query(
      "SELECT gpuId, cudaId, pid FROM TARGET_INFO_CUDA_DEVICE", [&](const auto& row) {
        gpu_of_[{static_cast<std::uint32_t>(row[2].as_integer()), row[1].as_integer()}] =
            row[0].as_integer();
      });
}

std::uint16_t TraceNumbers::process(std::uint64_t global_pid) {
  require_16_bits(trace_.processes.size(), trace_.devices.size());
  return number_in(trace_.processes, processes_, global_pid, [&] {
    return ProcessInfo{global_pid, pid_of(global_pid)};
  });
}

std::uint32_t TraceNumbers::thread(std::uint64_t global_tid) {
  return number_in(trace_.threads, threads_, global_tid, [&] {
    return ThreadInfo{global_tid, static_cast<std::uint32_t>(global_tid & 0xffffff),
                      process(process_part(global_tid))};
  });
}

std::uint32_t TraceNumbers::known_thread(std::uint64_t global_tid) const {
  const auto known = threads_.find(global_tid);
  return known == threads_.end() ? kNone : known->second;
}

std::uint16_t TraceNumbers::device(const DeviceKey& key) {
  const auto gpu = gpu_of_.find({pid_of(key.global_pid), key.ordinal});
  const bool is_known = gpu != gpu_of_.end();
  require_16_bits(trace_.processes.size(), trace_.devices.size());
  const std::pair<bool, std::int64_t> identity{is_known, is_known ? gpu->second : key.ordinal};
  return number_in(trace_.devices, devices_, identity, [&] {
    DeviceInfo device;
    device.ordinal = static_cast<std::uint32_t>(identity.second);
    return device;
  });
}

std::uint32_t TraceNumbers::stream(const StreamInfo& stream) {
  return number_in(trace_.streams, streams_, stream, [&] { return stream; });
}

std::uint32_t TraceNumbers::shape(const LaunchShape& shape) {
  return number_in(trace_.shapes, shapes_, shape, [&] { return shape; });
}

std::uint32_t TraceNumbers::node(const GraphNode& node) {
  return number_in(trace_.graph_nodes, nodes_, node, [&] { return node; });
}

// Adapters of other vendors are in the same table, with zeros and CUDA number 0, so a row counts
// only if it has memory bandwidth or processors.
void TraceNumbers::read_devices(const NsysTables& tables) {
  const auto is_zero = [](const SqlValue& value) {
    return !value.is_null() && value.as_integer() == 0;
  };
  const bool is_old = tables.has("TARGET_INFO_CUDA_GPU");
  const TableScan scan = tables.scan(
      is_old ? "TARGET_INFO_CUDA_GPU" : "TARGET_INFO_GPU",
      is_old ? column_names<OldNsysDeviceColumns>() : column_names<NsysDeviceColumns>());
  const auto fill = [&](const SqlValue* row, DeviceInfo& device) {
    const auto number = [&](int column) {
      return static_cast<std::uint64_t>(row[column].as_integer());
    };
    device.name = row[NsysDeviceColumns::kName].as_text();
    device.num_sms = static_cast<std::uint32_t>(number(NsysDeviceColumns::kNumSms));
    device.compute_major = static_cast<std::uint32_t>(number(NsysDeviceColumns::kComputeMajor));
    device.compute_minor = static_cast<std::uint32_t>(number(NsysDeviceColumns::kComputeMinor));
    device.memory_bytes = number(NsysDeviceColumns::kMemory) << (is_old ? 20 : 0);
    device.memory_bytes_per_s = number(NsysDeviceColumns::kMemoryBandwidth);
    device.clock_hz = number(NsysDeviceColumns::kClock) * (is_old ? 1000 : 1);
  };
  for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
    scan.scan(chunk, [&](std::size_t, const SqlValue* row, bool) {
      if (is_zero(row[NsysDeviceColumns::kMemoryBandwidth]) &&
          is_zero(row[NsysDeviceColumns::kNumSms])) {
        return;
      }
      for (const auto& [identity, number] : devices_) {
        // Old captures have no CUDA number; the row's own id is used instead.
        const SqlValue& cuda_device = row[NsysDeviceColumns::kCudaDevice];
        const bool is_by_row = identity.first || cuda_device.is_null();
        const std::int64_t id =
            (is_by_row ? row[NsysDeviceColumns::kId] : cuda_device).as_integer();
        if (id == identity.second && trace_.devices[number].name.empty()) {
          fill(row, trace_.devices[number]);
        }
      }
    });
  }
}

}  // namespace gpuwhy
