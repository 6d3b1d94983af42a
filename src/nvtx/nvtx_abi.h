// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuwhy {

// The binary interface between a program compiled with NVTX 2 or 3 and an injection library, as far
// as ranges need it. Repeated here so that the library builds without NVTX's headers. A unit test
// compares every value with them where they are installed. Source: nvtx3/nvToolsExt.h and
// nvtxDetail/nvtxTypes.h, whose layout NVIDIA keeps fixed.
inline constexpr std::uint32_t kNvtxTableCallbacks = 1;
inline constexpr std::uint32_t kNvtxTableVersion = 3;
inline constexpr std::uint32_t kNvtxModuleCore = 1;
inline constexpr std::uint32_t kNvtxModuleCore2 = 5;

// NVTX_VERSION that a program reports, and the size of the table of each module; module 0 is none.
inline constexpr std::uint16_t kNvtxVersion = 3;
inline constexpr unsigned kNvtxTableSizes[] = {0, 16, 9, 15, 7, 16, 7};

// Positions of the range functions in the table of module CORE.
enum NvtxCoreSlot : std::uint32_t {
  kNvtxRangeStartEx = 4,
  kNvtxRangeStartA = 5,
  kNvtxRangeStartW = 6,
  kNvtxRangeEnd = 7,
  kNvtxRangePushEx = 8,
  kNvtxRangePushA = 9,
  kNvtxRangePushW = 10,
  kNvtxRangePop = 11,
};

// Positions in the table of module CORE2: the same with a domain.
enum NvtxCore2Slot : std::uint32_t {
  kNvtxDomainRangeStartEx = 2,
  kNvtxDomainRangeEnd = 3,
  kNvtxDomainRangePushEx = 4,
  kNvtxDomainRangePop = 5,
  kNvtxDomainRegisterStringA = 10,
  kNvtxDomainRegisterStringW = 11,
  kNvtxDomainCreateA = 12,
  kNvtxDomainCreateW = 13,
};

enum NvtxMessageType : std::int32_t {
  kNvtxMessageAscii = 1,
  kNvtxMessageUnicode = 2,
  kNvtxMessageRegistered = 3,
};

enum NvtxPayloadType : std::int32_t {
  kNvtxPayloadUint64 = 1,
  kNvtxPayloadInt64 = 2,
  kNvtxPayloadDouble = 3,
  kNvtxPayloadUint32 = 4,
  kNvtxPayloadInt32 = 5,
  kNvtxPayloadFloat = 6,
};

// nvtxEventAttributes_t.
struct NvtxEventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;  // a union: narrower types use its first bytes
  std::int32_t message_type;
  const void* message;
};
static_assert(sizeof(NvtxEventAttributes) == 48);

using NvtxFunction = void (*)();
struct NvtxCallbackTable {
  std::size_t struct_size;
  // `table` becomes an array of `size` addresses of function pointers; 0 is never used.
  int (*get_module_table)(std::uint32_t module, NvtxFunction*** table, unsigned* size);
};
// Lets the injection state which version of the interface it was built for.
struct NvtxVersionTable {
  std::size_t struct_size;
  std::uint32_t version;
  std::uint32_t reserved;
  void (*set_injection_version)(std::uint32_t version);
};
using NvtxGetExportTable = const void* (*)(std::uint32_t table);

}  // namespace gpuwhy
