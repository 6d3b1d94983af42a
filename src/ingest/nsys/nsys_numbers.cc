// SPDX-License-Identifier: Apache-2.0
//
// Numbers of processes, threads, GPUs, streams, launch shapes and graph nodes of an nsys export.
//
// A device number is CUDA's number for the GPU within a process. Where the export says which GPU
// that was (TARGET_INFO_CUDA_DEVICE), device 0 of two processes may be two GPUs.
#include "ingest/nsys/nsys_numbers.h"

#include <fmt/format.h>

#include "base/error.h"
#include "ingest/nsys/nsys_columns.h"

namespace gpuwhy {
namespace {

// The number of a key: its place in a table, to which a new key is appended as make().
template <typename Number, typename Key, typename Row, typename Make>
Number number_in(std::vector<Row>& table, std::map<Key, Number>& numbers, const Key& key,
                 Make make) {
  const auto [entry, is_new] = numbers.try_emplace(key, static_cast<Number>(table.size()));
  if (is_new) {
    table.push_back(make());
  }
  return entry->second;
}

}  // namespace

void require_16_bits(std::size_t num_processes, std::size_t num_devices) {
  if (num_processes > UINT16_MAX) {
    throw Error(ErrorKind::kInput, "the recording has more than 65,535 processes");
  }
  if (num_devices > kMostDevices) {
    throw Error(ErrorKind::kInput,
                fmt::format("the recording has more than {} GPUs: no machine has", kMostDevices));
  }
}

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
    device.name = row[NsysDeviceColumns::kName].as_text();
    device.num_sms = static_cast<std::uint32_t>(row[NsysDeviceColumns::kNumSms].as_integer());
    device.compute_major =
        static_cast<std::uint32_t>(row[NsysDeviceColumns::kComputeMajor].as_integer());
    device.compute_minor =
        static_cast<std::uint32_t>(row[NsysDeviceColumns::kComputeMinor].as_integer());
    device.memory_bytes = static_cast<std::uint64_t>(row[NsysDeviceColumns::kMemory].as_integer())
                          << (is_old ? 20 : 0);
    device.memory_bytes_per_s =
        static_cast<std::uint64_t>(row[NsysDeviceColumns::kMemoryBandwidth].as_integer());
    device.clock_hz = static_cast<std::uint64_t>(row[NsysDeviceColumns::kClock].as_integer()) *
                      (is_old ? 1000 : 1);
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
