// SPDX-License-Identifier: Apache-2.0
//
// Columns of the tables of an nsys export that are read: for each table the names, and an enum of
// their places in a row of a TableScan. The names are those of NVIDIA's schema.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace gpuwhy {

struct NsysStringColumns {
  enum { kId, kValue, kNumColumns };
  static constexpr std::array kNames = {"id", "value"};
  static_assert(kNames.size() == kNumColumns);
};

// Columns that all tables of GPU work share; those of one table follow them.
struct NsysGpuColumns {
  enum { kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, kNumColumns };
  static constexpr std::array kNames = {"start",    "end",           "deviceId", "contextId",
                                        "streamId", "correlationId", "globalPid"};
  static_assert(kNames.size() == kNumColumns);
};

struct NsysKernelColumns {
  enum {
    kDemangledName = NsysGpuColumns::kNumColumns,
    kShortName,
    kMangledName,
    kGridX,  // Y and Z follow
    kBlockX = kGridX + 3,
    kGraphNode = kBlockX + 3,
    kNumColumns,
  };
  static constexpr std::array kNames = {"demangledName", "shortName",  "mangledName", "gridX",
                                        "gridY",         "gridZ",      "blockX",      "blockY",
                                        "blockZ",        "graphNodeId"};
  static_assert(NsysGpuColumns::kNumColumns + kNames.size() == kNumColumns);
};

struct NsysCopyColumns {
  enum { kBytes = NsysGpuColumns::kNumColumns, kCopyKind, kSourceKind, kTargetKind, kNumColumns };
  static constexpr std::array kNames = {"bytes", "copyKind", "srcKind", "dstKind"};
  static_assert(NsysGpuColumns::kNumColumns + kNames.size() == kNumColumns);
};

struct NsysMemsetColumns {
  enum { kBytes = NsysGpuColumns::kNumColumns, kNumColumns };
  static constexpr std::array kNames = {"bytes"};
  static_assert(NsysGpuColumns::kNumColumns + kNames.size() == kNumColumns);
};

struct NsysCallColumns {
  enum { kStart, kEnd, kThread, kCorrelation, kName, kNumColumns };
  static constexpr std::array kNames = {"start", "end", "globalTid", "correlationId", "nameId"};
  static_assert(kNames.size() == kNumColumns);
};

// Calls of the operating system.
struct NsysSystemCallColumns {
  enum { kStart, kEnd, kThread, kName, kNumColumns };
  static constexpr std::array kNames = {"start", "end", "globalTid", "nameId"};
  static_assert(kNames.size() == kNumColumns);
};

struct NsysNvtxColumns {
  enum {
    kStart,
    kEnd,
    kEventType,
    kText,
    kThread,
    kTextId,
    kDomainId,
    kBinary,        // only with --include-blobs
    kFirstPayload,  // one column for each type of whole number
    kNumColumns = kFirstPayload + 4,
  };
  static constexpr std::array kNames = {"start",       "end",        "eventType",   "text",
                                        "globalTid",   "textId",     "domainId",    "binaryData",
                                        "uint64Value", "int64Value", "uint32Value", "int32Value"};
  static_assert(kNames.size() == kNumColumns);
};

// GPUs of the machine: TARGET_INFO_GPU, or TARGET_INFO_CUDA_GPU before 2021 with names of its own.
struct NsysNodeColumns {
  enum { kStart, kThread, kNode, kOriginal, kNumColumns };
  static constexpr std::array kNames = {"start", "globalTid", "graphNodeId", "originalGraphNodeId"};
  static_assert(kNames.size() == kNumColumns);
};

struct NsysDeviceColumns {
  enum {
    kCudaDevice,
    kId,
    kName,
    kNumSms,
    kMemory,
    kMemoryBandwidth,
    kClock,
    kComputeMajor,
    kComputeMinor,
    kNumColumns
  };
  static constexpr std::array kNames = {"cuDevice",  "id",           "name",
                                        "smCount",   "totalMemory",  "memoryBandwidth",
                                        "clockRate", "computeMajor", "computeMinor"};
  static_assert(kNames.size() == kNumColumns);
};
struct OldNsysDeviceColumns : NsysDeviceColumns {
  static constexpr std::array kNames = {"deviceId",
                                        "deviceId",
                                        "name",
                                        "numMultiprocessors",
                                        "globalMemorySize",
                                        "globalMemoryBandwidth",
                                        "coreClockRate",
                                        "computeCapabilityMajor",
                                        "computeCapabilityMinor"};
  static_assert(kNames.size() == kNumColumns);
};

// Names of the columns of these rows, one after the other.
template <typename... Rows>
std::vector<std::string> column_names() {
  std::vector<std::string> names;
  (names.insert(names.end(), Rows::kNames.begin(), Rows::kNames.end()), ...);
  return names;
}

}  // namespace gpuwhy
