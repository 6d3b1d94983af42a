// SPDX-License-Identifier: Apache-2.0
//
// Entry points of libgpuwhy_marks.so, which makes NVTX ranges for Python modules that mark other
// people's programs.
//
// Python has NVTX only where the package nvtx is installed, and PyTorch's own has neither domains
// nor payloads. This is the other end of nvtx/: what NVTX's headers compile into a program, for the
// few calls that are needed. At the first call it loads the library named by NVTX_INJECTION64_PATH,
// of a profiler or of the stage timer, and lets it fill tables of function pointers. Without one,
// every call does nothing.
//
// Called by ctypes with Python's lock held, so the first call needs no lock of its own. The ranges
// are those of include/gpuwhy/nvtx.h: domain LLM, registered strings, the tokens as payload.
#include "marks/emit.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <dlfcn.h>

#include "nvtx/nvtx_abi.h"

namespace gpuwhy {
namespace {

// A tool may ask for the tables of all modules; only a few slots of one are called here.
constexpr std::size_t kNumModules = sizeof(kNvtxTableSizes) / sizeof(kNvtxTableSizes[0]);
constexpr std::size_t kMostSlots = 16;

constexpr const char* kNames[] = {"request",     "prefill", "decode_all",
                                  "decode_step", "verify",  "warmup"};
constexpr int kNumNames = sizeof(kNames) / sizeof(kNames[0]);
constexpr int kDecodeStep = 3;

NvtxFunction functions[kNumModules][kMostSlots];
NvtxFunction* tables[kNumModules][kMostSlots + 1];

using CreateDomain = void* (*)(const char*);
using RegisterString = void* (*)(void*, const char*);
using Push = int (*)(void*, const NvtxEventAttributes*);
using Pop = int (*)(void*);

struct Tool {
  bool is_asked = false;
  void* domain = nullptr;
  void* names[kNumNames] = {};
  Push push = nullptr;
  Pop pop = nullptr;
};
Tool tool;
thread_local int step_tokens = 0;

int module_table(std::uint32_t module, NvtxFunction*** table, unsigned* size) {
  if (module == 0 || module >= kNumModules) {
    return 0;
  }
  for (unsigned slot = 1; slot < kNvtxTableSizes[module]; ++slot) {
    tables[module][slot] = &functions[module][slot];
  }
  if (table != nullptr) {
    *table = tables[module];
  }
  if (size != nullptr) {
    *size = kNvtxTableSizes[module];
  }
  return 1;
}

void set_version(std::uint32_t /*version*/) {}

const void* export_table(std::uint32_t table) {
  static constexpr NvtxCallbackTable kCallbacks = {sizeof(NvtxCallbackTable), module_table};
  static constexpr NvtxVersionTable kVersions = {sizeof(NvtxVersionTable), kNvtxVersion, 0,
                                                 set_version};
  return table == kNvtxTableCallbacks ? static_cast<const void*>(&kCallbacks)
         : table == kNvtxTableVersion ? static_cast<const void*>(&kVersions)
                                      : nullptr;
}

template <typename Function>
Function core2(NvtxCore2Slot slot) {
  return reinterpret_cast<Function>(functions[kNvtxModuleCore2][slot]);
}

// The profiler's library stays loaded for good, as under NVTX itself.
bool attach() {
  const char* const path = ::secure_getenv("NVTX_INJECTION64_PATH");
  void* const library = path == nullptr ? nullptr : ::dlopen(path, RTLD_LAZY);
  using Entry = int (*)(NvtxGetExportTable);
  const auto entry = library == nullptr
                         ? nullptr
                         : reinterpret_cast<Entry>(::dlsym(library, "InitializeInjectionNvtx2"));
  return entry != nullptr && entry(export_table) != 0;
}

void open_tool() {
  tool.is_asked = true;
  if (!attach()) {
    return;
  }
  const auto create = core2<CreateDomain>(kNvtxDomainCreateA);
  const auto add_string = core2<RegisterString>(kNvtxDomainRegisterStringA);
  const auto push = core2<Push>(kNvtxDomainRangePushEx);
  const auto pop = core2<Pop>(kNvtxDomainRangePop);
  if (create == nullptr || add_string == nullptr || push == nullptr || pop == nullptr) {
    return;
  }
  tool.domain = create("LLM");
  for (int i = 0; i < kNumNames; ++i) {
    tool.names[i] = add_string(tool.domain, kNames[i]);
  }
  tool.push = push;
  tool.pop = pop;
}

void push(int name, std::int64_t tokens) {
  if (tool.push == nullptr || name < 0 || name >= kNumNames) {
    return;
  }
  NvtxEventAttributes event = {};
  event.version = kNvtxVersion;
  event.size = sizeof(event);
  if (tokens >= 0) {
    event.payload_type = kNvtxPayloadInt64;
    event.payload = static_cast<std::uint64_t>(tokens);
  }
  event.message_type = kNvtxMessageRegistered;
  event.message = tool.names[name];
  tool.push(tool.domain, &event);
}

}  // namespace

bool open_marks_tool() {
  if (!tool.is_asked) {
    open_tool();
  }
  return tool.push != nullptr;
}

void push_text_mark(const char* text, std::int64_t tokens) {
  if (tool.push == nullptr) {
    return;
  }
  NvtxEventAttributes event = {};
  event.version = kNvtxVersion;
  event.size = sizeof(event);
  event.payload_type = kNvtxPayloadInt64;
  event.payload = static_cast<std::uint64_t>(tokens);
  event.message_type = kNvtxMessageAscii;
  event.message = text;
  tool.push(tool.domain, &event);
}

void pop_mark() {
  if (tool.pop != nullptr) {
    tool.pop(tool.domain);
  }
}

}  // namespace gpuwhy

// 1 if a tool listens.
extern "C" __attribute__((visibility("default"))) int gpuwhy_marks_open() {
  return gpuwhy::open_marks_tool() ? 1 : 0;
}

// `name` counts the ranges above from 0. Tokens below 0: no payload.
extern "C" __attribute__((visibility("default"))) void gpuwhy_marks_push(int name,
                                                                         std::int64_t tokens) {
  gpuwhy::push(name, tokens);
}

// A decode step of as many tokens as this thread named last. ctypes takes half the time for a call
// without arguments.
extern "C" __attribute__((visibility("default"))) void gpuwhy_marks_step() {
  gpuwhy::push(gpuwhy::kDecodeStep, gpuwhy::step_tokens);
}
extern "C" __attribute__((visibility("default"))) void gpuwhy_marks_set_batch(int batch) {
  gpuwhy::step_tokens = batch;
}

extern "C" __attribute__((visibility("default"))) void gpuwhy_marks_pop() {
  gpuwhy::pop_mark();
}
