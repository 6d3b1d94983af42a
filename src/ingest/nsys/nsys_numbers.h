// SPDX-License-Identifier: Apache-2.0
//
// Numbers of processes, threads, GPUs, streams and launch shapes of an nsys export: places in the
// small tables of a Trace, given in the order in which they are first met.
#pragma once

#include <map>
#include <utility>

#include "ingest/nsys/nsys_keys.h"
#include "ingest/nsys/nsys_tables.h"
#include "trace/trace.h"

namespace gpuwhy {

class TraceNumbers {
 public:
  explicit TraceNumbers(Trace& trace) : trace_(trace) {}

  // Which GPU of the machine a process means by its device number, where the export says. Before
  // any device is numbered.
  void read_device_map(const NsysTables& tables);
  // Names and sizes of the GPUs that were numbered.
  void read_devices(const NsysTables& tables);

  std::uint16_t process(std::uint64_t global_pid);
  std::uint32_t thread(std::uint64_t global_tid);
  // Only of a thread that has one; else kNone.
  std::uint32_t known_thread(std::uint64_t global_tid) const;
  std::uint16_t device(const DeviceKey& key);
  std::uint32_t stream(const StreamInfo& stream);
  std::uint32_t shape(const LaunchShape& shape);
  std::uint32_t node(const GraphNode& node);

 private:
  Trace& trace_;
  std::map<std::uint64_t, std::uint16_t> processes_;
  std::map<std::uint64_t, std::uint32_t> threads_;
  // By (whether the export says which GPU of the machine it is, its number there or CUDA's).
  std::map<std::pair<bool, std::int64_t>, std::uint16_t> devices_;
  std::map<StreamInfo, std::uint32_t> streams_;
  std::map<LaunchShape, std::uint32_t> shapes_;
  std::map<GraphNode, std::uint32_t> nodes_;
  std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t> gpu_of_;  // (pid, CUDA's number)
};

}  // namespace gpuwhy
