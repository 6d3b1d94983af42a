// SPDX-License-Identifier: Apache-2.0
//
// Marks the stages of an LLM program for gpuwhy, nsys and ncu. Copy this file or add include/ to
// the search path; it needs C++17 and NVTX 3, whose headers come with every CUDA toolkit. Without
// them, or with GPUWHY_NO_NVTX defined, every mark is an empty object.
//
//   #include <gpuwhy/nvtx.h>
//
//   void answer(const Prompt& prompt) {
//     gpuwhy::nvtx::Request request;                 // all of it
//     {
//       gpuwhy::nvtx::Prefill mark(prompt.size());   // the tokens it reads
//       read_prompt(prompt);
//     }
//     gpuwhy::nvtx::DecodeAll decode;                // how many tokens is not known yet
//     while (!done) {
//       gpuwhy::nvtx::DecodeStep mark(batch_size);   // the tokens it makes
//       make_next_tokens();
//     }
//   }
//
// A mark lasts from its construction to the end of its block, on one thread (NVTX push/pop): GPU
// work belongs to it when the call that launches it is made in between, on that thread. The ranges
// are `warmup`, `request`, `prefill`, `decode_all` and `decode_step` of domain `LLM`, all with
// registered strings (nsys opens its gate for no others by itself) and the tokens as their payload.
// With no tool to listen, a mark costs some three nanoseconds.
#pragma once

#include <cstdint>

#if !defined(GPUWHY_NO_NVTX) && defined(__has_include)
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define GPUWHY_HAS_NVTX 1
#endif
#endif
#ifndef GPUWHY_HAS_NVTX
#define GPUWHY_HAS_NVTX 0
#endif

namespace gpuwhy {
namespace nvtx {

#if GPUWHY_HAS_NVTX

// For marks of your own beside these. Never destroyed: threads may outlive main().
inline nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t kHandle = nvtxDomainCreateA("LLM");
  return kHandle;
}

#endif

// `Name` has a `kText`: the name of the range.
template <typename Name>
class [[maybe_unused]] Range {
 public:
#if GPUWHY_HAS_NVTX
  Range() noexcept {
    push(NVTX_PAYLOAD_UNKNOWN, 0);
  }
  explicit Range(std::int64_t tokens) noexcept {
    push(NVTX_PAYLOAD_TYPE_INT64, tokens);
  }
  ~Range() {
    nvtxDomainRangePop(domain());
  }
#else
  Range() noexcept {}
  explicit Range(std::int64_t /*tokens*/) noexcept {}
  ~Range() {}  // not trivial, so that an unused mark draws no warning
#endif
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

#if GPUWHY_HAS_NVTX
 private:
  static void push(nvtxPayloadType_t payload_type, std::int64_t payload) noexcept {
    static const nvtxStringHandle_t kHandle = nvtxDomainRegisterStringA(domain(), Name::kText);
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.payloadType = payload_type;
    attributes.payload.llValue = payload;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = kHandle;
    nvtxDomainRangePushEx(domain(), &attributes);
  }
#endif
};

struct WarmupName {
  static constexpr const char* kText = "warmup";
};
struct RequestName {
  static constexpr const char* kText = "request";
};
struct PrefillName {
  static constexpr const char* kText = "prefill";
};
struct DecodeAllName {
  static constexpr const char* kText = "decode_all";
};
struct DecodeStepName {
  static constexpr const char* kText = "decode_step";
};

using Warmup = Range<WarmupName>;  // runs before the first request: in no stage's figures
using Request = Range<RequestName>;
using Prefill = Range<PrefillName>;
using DecodeAll = Range<DecodeAllName>;
using DecodeStep = Range<DecodeStepName>;

}  // namespace nvtx
}  // namespace gpuwhy
