// SPDX-License-Identifier: Apache-2.0
//
// Entry points of libgpuwhy_nvtx.so, which records a program's NVTX ranges without a profiler.
//
// NVTX loads the library named by NVTX_INJECTION64_PATH at the program's first NVTX call and passes
// it tables of function pointers. Those for ranges are set to functions of this file. Each shared
// object compiled with NVTX has its own copy of NVTX and calls the entry again, with its own
// tables.
//
// This code runs inside other people's programs: no exceptions, no lock in the hot path, no library
// but the C library, and what cannot be done is skipped. Handles are small numbers, so that a wrong
// one (of another tool, or stale) is detected and never dereferenced.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "nvtx/nvtx_abi.h"
#include "nvtx/range_file.h"
#include "nvtx/recorder.h"
#include "nvtx/texts.h"

namespace gpuwhy {
namespace {

// A buffer on the stack: no allocation inside the traced program.
struct Text {
  char bytes[kMaxRangeTextBytes];
  std::size_t size = 0;
};

std::size_t text_size(const char* text) {
  return strnlen(text, kMaxRangeTextBytes);
}

// Converts a wide string to UTF-8. Invalid characters become U+FFFD.
void to_utf8(const wchar_t* wide, Text& text) {
  for (; *wide != 0 && text.size + 4 <= sizeof(text.bytes); ++wide) {
    std::uint32_t c = 0;
    static_assert(sizeof(c) == sizeof(*wide));
    std::memcpy(&c, wide, sizeof(c));
    c = c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0xfffd : c;
    const auto put = [&](std::uint32_t byte) { text.bytes[text.size++] = static_cast<char>(byte); };
    if (c < 0x80) {
      put(c);
      continue;
    }
    if (c < 0x800) {
      put(0xc0 | c >> 6);
    } else {
      if (c < 0x10000) {
        put(0xe0 | c >> 12);
      } else {
        put(0xf0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3f));
      }
      put(0x80 | (c >> 6 & 0x3f));
    }
    put(0x80 | (c & 0x3f));
  }
}

template <typename To>
To first_bytes(std::uint64_t bits) {
  To value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void set_integer(BeginningRange& range, std::int64_t value) {
  range.payload_flags = kRangeHasInteger;
  range.payload = static_cast<std::uint64_t>(value);
}

void set_double(BeginningRange& range, double value) {
  range.payload_flags = kRangeHasDouble;
  std::memcpy(&range.payload, &value, sizeof(value));
}

// Narrow integers and floats are widened, so that the file has only two payload types.
void set_payload(BeginningRange& range, std::int32_t type, std::uint64_t bits) {
  switch (type) {
    case kNvtxPayloadUint64:
      bits > INT64_MAX ? set_double(range, static_cast<double>(bits))
                       : set_integer(range, static_cast<std::int64_t>(bits));
      break;
    case kNvtxPayloadInt64:
      set_integer(range, static_cast<std::int64_t>(bits));
      break;
    case kNvtxPayloadDouble:
      set_double(range, first_bytes<double>(bits));
      break;
    case kNvtxPayloadUint32:
      set_integer(range, first_bytes<std::uint32_t>(bits));
      break;
    case kNvtxPayloadInt32:
      set_integer(range, first_bytes<std::int32_t>(bits));
      break;
    case kNvtxPayloadFloat:
      set_double(range, static_cast<double>(first_bytes<float>(bits)));
      break;
    default:
      break;  // none, or an extension whose bits are an address
  }
}

void set_name(BeginningRange& range, const char* name) {
  range.name = name;
  range.name_bytes = name == nullptr ? 0 : text_size(name);
}

// Calls `use` with the range. The converted text lives on the stack during the call.
template <typename Use>
auto with_wide(const wchar_t* wide, BeginningRange range, Use use) {
  Text text;
  if (wide != nullptr) {
    to_utf8(wide, text);
    range.name = text.bytes;
    range.name_bytes = text.size;
  }
  return use(range);
}

template <typename Use>
auto with_attributes(std::uintptr_t domain, const NvtxEventAttributes* event, Use use) {
  BeginningRange range;
  range.domain = static_cast<std::uint16_t>(is_domain(domain) ? domain : 0);
  if (event == nullptr || event->size < sizeof(NvtxEventAttributes)) {
    return use(range);
  }
  set_payload(range, event->payload_type, event->payload);
  if (event->message_type == kNvtxMessageRegistered) {
    const auto number = reinterpret_cast<std::uintptr_t>(event->message);
    range.registered_name = is_registered_name(number) ? static_cast<std::uint32_t>(number) : 0;
  } else if (event->message_type == kNvtxMessageAscii) {
    set_name(range, static_cast<const char*>(event->message));
  } else if (event->message_type == kNvtxMessageUnicode) {
    return with_wide(static_cast<const wchar_t*>(event->message), range, use);
  }
  return use(range);
}

// Domains and strings are NVTX handles: pointers that are never dereferenced.
int domain_push(std::uintptr_t domain, const NvtxEventAttributes* event) {
  return with_attributes(domain, event, push_range);
}
int domain_pop(std::uintptr_t domain) {
  return pop_range(static_cast<std::uint16_t>(is_domain(domain) ? domain : 0));
}
std::uint64_t domain_start(std::uintptr_t domain, const NvtxEventAttributes* event) {
  return with_attributes(domain, event, start_range);
}
void domain_end(std::uintptr_t /*domain*/, std::uint64_t number) {
  end_range(number);
}
std::uintptr_t domain_create(const char* name) {
  return name == nullptr ? 0 : register_domain(name, text_size(name));
}
std::uintptr_t domain_create_wide(const wchar_t* name) {
  Text text;
  if (name != nullptr) {
    to_utf8(name, text);
  }
  return name == nullptr ? 0 : register_domain(text.bytes, text.size);
}
std::uintptr_t domain_register(std::uintptr_t /*domain*/, const char* string) {
  return string == nullptr ? 0 : register_name(string, text_size(string));
}
std::uintptr_t domain_register_wide(std::uintptr_t /*domain*/, const wchar_t* string) {
  Text text;
  if (string != nullptr) {
    to_utf8(string, text);
  }
  return string == nullptr ? 0 : register_name(text.bytes, text.size);
}

// The same without a domain.
int push_attributes(const NvtxEventAttributes* event) {
  return domain_push(0, event);
}
int push_text(const char* name) {
  BeginningRange range;
  set_name(range, name);
  return push_range(range);
}
int push_wide(const wchar_t* name) {
  return with_wide(name, {}, push_range);
}
int pop() {
  return pop_range(0);
}
std::uint64_t start_attributes(const NvtxEventAttributes* event) {
  return domain_start(0, event);
}
std::uint64_t start_text(const char* name) {
  BeginningRange range;
  set_name(range, name);
  return start_range(range);
}
std::uint64_t start_wide(const wchar_t* name) {
  return with_wide(name, {}, start_range);
}

class ModuleTable {
 public:
  ModuleTable(const NvtxCallbackTable& callbacks, std::uint32_t module) {
    if (callbacks.get_module_table(module, &slots_, &size_) == 0 || slots_ == nullptr) {
      size_ = 0;
    }
  }

  template <typename Function>
  void set(std::uint32_t slot, Function* function) const {
    if (slot < size_ && slots_[slot] != nullptr) {
      *slots_[slot] = reinterpret_cast<NvtxFunction>(function);
    }
  }

 private:
  NvtxFunction** slots_ = nullptr;
  unsigned size_ = 0;
};

// Points the range functions of one NVTX instance to this file.
void attach(const NvtxCallbackTable& callbacks) {
  const ModuleTable core(callbacks, kNvtxModuleCore);
  core.set(kNvtxRangePushEx, push_attributes);
  core.set(kNvtxRangePushA, push_text);
  core.set(kNvtxRangePushW, push_wide);
  core.set(kNvtxRangePop, pop);
  core.set(kNvtxRangeStartEx, start_attributes);
  core.set(kNvtxRangeStartA, start_text);
  core.set(kNvtxRangeStartW, start_wide);
  core.set(kNvtxRangeEnd, end_range);
  const ModuleTable core2(callbacks, kNvtxModuleCore2);
  core2.set(kNvtxDomainRangePushEx, domain_push);
  core2.set(kNvtxDomainRangePop, domain_pop);
  core2.set(kNvtxDomainRangeStartEx, domain_start);
  core2.set(kNvtxDomainRangeEnd, domain_end);
  core2.set(kNvtxDomainRegisterStringA, domain_register);
  core2.set(kNvtxDomainRegisterStringW, domain_register_wide);
  core2.set(kNvtxDomainCreateA, domain_create);
  core2.set(kNvtxDomainCreateW, domain_create_wide);
}

}  // namespace
}  // namespace gpuwhy

// Returning 0 makes NVTX unload the library and disable its functions.
// NOLINTNEXTLINE(readability-identifier-naming): NVTX looks for this name
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    gpuwhy::NvtxGetExportTable get_table) {
  using namespace gpuwhy;
  const auto* const callbacks =
      get_table == nullptr ? nullptr
                           : static_cast<const NvtxCallbackTable*>(get_table(kNvtxTableCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxCallbackTable) ||
      !start_recorder()) {
    return 0;
  }
  const auto* const version = static_cast<const NvtxVersionTable*>(get_table(kNvtxTableVersion));
  if (version != nullptr && version->struct_size >= sizeof(NvtxVersionTable)) {
    version->set_injection_version(3);
  }
  attach(*callbacks);
  return 1;
}
