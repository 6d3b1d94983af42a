// SPDX-License-Identifier: Apache-2.0
//
// The numbers that libgpuwhy_nvtx.so was written with, compared with NVTX's own headers where the
// machine has them.
#include "nvtx/nvtx_abi.h"

#include <cstddef>
#include <iterator>

#include "testing.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace gpuwhy {
namespace {

TEST(NvtxAbi, SlotsAreThoseOfTheHeaders) {
  EXPECT_EQ(kNvtxTableCallbacks, NVTX_ETID_CALLBACKS);
  EXPECT_EQ(kNvtxTableVersion, NVTX_ETID_VERSIONINFO);
  EXPECT_EQ(kNvtxModuleCore, NVTX_CB_MODULE_CORE);
  EXPECT_EQ(kNvtxModuleCore2, NVTX_CB_MODULE_CORE2);
  EXPECT_EQ(+kNvtxRangeStartEx, +NVTX_CBID_CORE_RangeStartEx);
  EXPECT_EQ(+kNvtxRangeStartA, +NVTX_CBID_CORE_RangeStartA);
  EXPECT_EQ(+kNvtxRangeStartW, +NVTX_CBID_CORE_RangeStartW);
  EXPECT_EQ(+kNvtxRangeEnd, +NVTX_CBID_CORE_RangeEnd);
  EXPECT_EQ(+kNvtxRangePushEx, +NVTX_CBID_CORE_RangePushEx);
  EXPECT_EQ(+kNvtxRangePushA, +NVTX_CBID_CORE_RangePushA);
  EXPECT_EQ(+kNvtxRangePushW, +NVTX_CBID_CORE_RangePushW);
  EXPECT_EQ(+kNvtxRangePop, +NVTX_CBID_CORE_RangePop);
  EXPECT_EQ(+kNvtxDomainRangeStartEx, +NVTX_CBID_CORE2_DomainRangeStartEx);
  EXPECT_EQ(+kNvtxDomainRangeEnd, +NVTX_CBID_CORE2_DomainRangeEnd);
  EXPECT_EQ(+kNvtxDomainRangePushEx, +NVTX_CBID_CORE2_DomainRangePushEx);
  EXPECT_EQ(+kNvtxDomainRangePop, +NVTX_CBID_CORE2_DomainRangePop);
  EXPECT_EQ(+kNvtxDomainRegisterStringA, +NVTX_CBID_CORE2_DomainRegisterStringA);
  EXPECT_EQ(+kNvtxDomainRegisterStringW, +NVTX_CBID_CORE2_DomainRegisterStringW);
  EXPECT_EQ(+kNvtxDomainCreateA, +NVTX_CBID_CORE2_DomainCreateA);
  EXPECT_EQ(+kNvtxDomainCreateW, +NVTX_CBID_CORE2_DomainCreateW);
}

TEST(NvtxAbi, TablesHaveTheSizesOfTheHeaders) {
  EXPECT_EQ(kNvtxVersion, NVTX_VERSION);
  ASSERT_EQ(std::size(kNvtxTableSizes), std::size_t{NVTX_CB_MODULE_SIZE});
  EXPECT_EQ(kNvtxTableSizes[NVTX_CB_MODULE_CORE], unsigned{NVTX_CBID_CORE_SIZE});
  EXPECT_EQ(kNvtxTableSizes[NVTX_CB_MODULE_CUDA], unsigned{NVTX_CBID_CUDA_SIZE});
  EXPECT_EQ(kNvtxTableSizes[NVTX_CB_MODULE_OPENCL], unsigned{NVTX_CBID_OPENCL_SIZE});
  EXPECT_EQ(kNvtxTableSizes[NVTX_CB_MODULE_CUDART], unsigned{NVTX_CBID_CUDART_SIZE});
  EXPECT_EQ(kNvtxTableSizes[NVTX_CB_MODULE_CORE2], unsigned{NVTX_CBID_CORE2_SIZE});
  EXPECT_EQ(kNvtxTableSizes[NVTX_CB_MODULE_SYNC], unsigned{NVTX_CBID_SYNC_SIZE});
}

TEST(NvtxAbi, TypesOfMessagesAndPayloadsAreThoseOfTheHeaders) {
  EXPECT_EQ(+kNvtxMessageAscii, +NVTX_MESSAGE_TYPE_ASCII);
  EXPECT_EQ(+kNvtxMessageUnicode, +NVTX_MESSAGE_TYPE_UNICODE);
  EXPECT_EQ(+kNvtxMessageRegistered, +NVTX_MESSAGE_TYPE_REGISTERED);
  EXPECT_EQ(+kNvtxPayloadUint64, +NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
  EXPECT_EQ(+kNvtxPayloadInt64, +NVTX_PAYLOAD_TYPE_INT64);
  EXPECT_EQ(+kNvtxPayloadDouble, +NVTX_PAYLOAD_TYPE_DOUBLE);
  EXPECT_EQ(+kNvtxPayloadUint32, +NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
  EXPECT_EQ(+kNvtxPayloadInt32, +NVTX_PAYLOAD_TYPE_INT32);
  EXPECT_EQ(+kNvtxPayloadFloat, +NVTX_PAYLOAD_TYPE_FLOAT);
}

TEST(NvtxAbi, StructsLieAsThoseOfTheHeaders) {
  EXPECT_EQ(sizeof(NvtxEventAttributes), sizeof(nvtxEventAttributes_t));
  EXPECT_EQ(offsetof(NvtxEventAttributes, size), offsetof(nvtxEventAttributes_t, size));
  EXPECT_EQ(offsetof(NvtxEventAttributes, payload_type),
            offsetof(nvtxEventAttributes_t, payloadType));
  EXPECT_EQ(offsetof(NvtxEventAttributes, payload), offsetof(nvtxEventAttributes_t, payload));
  EXPECT_EQ(offsetof(NvtxEventAttributes, message_type),
            offsetof(nvtxEventAttributes_t, messageType));
  EXPECT_EQ(offsetof(NvtxEventAttributes, message), offsetof(nvtxEventAttributes_t, message));
  EXPECT_EQ(sizeof(NvtxCallbackTable), sizeof(NvtxExportTableCallbacks));
  EXPECT_EQ(offsetof(NvtxCallbackTable, get_module_table),
            offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
  EXPECT_EQ(sizeof(NvtxVersionTable), sizeof(NvtxExportTableVersionInfo));
  EXPECT_EQ(offsetof(NvtxVersionTable, set_injection_version),
            offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));
}

}  // namespace
}  // namespace gpuwhy

#else

TEST(NvtxAbi, NeedsTheHeaders) {
  GTEST_SKIP() << "nvtx3/nvToolsExt.h is not here";
}

#endif
