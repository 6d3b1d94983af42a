// SPDX-License-Identifier: Apache-2.0
//
// The marks of gpuwhy/nvtx.h, or the same with plain strings, which is what programs do that mark
// without that header: gates of nsys treat the two differently.
#pragma once

#include <cstdint>
#include <optional>

#include "gpuwhy/nvtx.h"

namespace llama_runner {

template <typename Name>
class Mark {
 public:
  Mark(bool is_plain, std::int64_t tokens) : is_plain_(is_plain) {
    if (is_plain) {
      push_plain(tokens);
    } else {
      registered_.emplace(tokens);
    }
  }
  ~Mark() {
#if GPUWHY_HAS_NVTX
    if (is_plain_) {
      nvtxDomainRangePop(gpuwhy::nvtx::domain());
    }
#endif
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  static void push_plain([[maybe_unused]] std::int64_t tokens) {
#if GPUWHY_HAS_NVTX
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = tokens;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = Name::kText;
    nvtxDomainRangePushEx(gpuwhy::nvtx::domain(), &attributes);
#endif
  }

  bool is_plain_;
  std::optional<gpuwhy::nvtx::Range<Name>> registered_;
};

}  // namespace llama_runner
