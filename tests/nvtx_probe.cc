// SPDX-License-Identifier: Apache-2.0
//
// Calls NVTX in every way that libgpuwhy_nvtx.so records, and in many that are wrong. Built twice:
// as a program, and as a shared library with an NVTX of its own that the program loads. Exits with
// the line of the first thing that is not as it should be.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

nvtxEventAttributes_t plain(const char* text) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text;
  return attributes;
}

}  // namespace

#ifdef GPUWHY_PROBE_LIBRARY

extern "C" __attribute__((visibility("default"))) void mark_elsewhere() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("probe");
  const auto attributes = plain("second copy");
  nvtxDomainRangePushEx(domain, &attributes);
  nvtxDomainRangePop(domain);
}

#else

namespace {

void require(bool condition, int line) {
  if (!condition) {
    std::fprintf(stderr, "nvtx_probe.cc:%d\n", line);
    _exit(1);
  }
}

void mark_texts() {
  require(nvtxRangePushA("outer") == 0, __LINE__);
  require(nvtxRangePushW(L"wide \u00e9 \U0001F600") == 1, __LINE__);
  require(nvtxRangePop() == 1, __LINE__);
  require(nvtxRangePop() == 0, __LINE__);
  char reused[8] = "one";
  nvtxRangePushA(reused);
  nvtxRangePop();
  std::snprintf(reused, sizeof(reused), "two");
  nvtxRangePushA(reused);
  nvtxRangePop();
  nvtxRangePushA(std::string(10000, 'x').c_str());
  nvtxRangePop();
  nvtxRangePushA(nullptr);
  nvtxRangePop();
  const nvtxDomainHandle_t domain = nvtxDomainCreateW(L"wide domain");
  nvtxEventAttributes_t attributes = plain("");
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringW(domain, L"wide registered");
  nvtxDomainRangePushEx(domain, &attributes);
  nvtxDomainRangePop(domain);
}

// More than are remembered, all of one length.
void mark_many_names() {
  for (int i = 0; i < 4000; ++i) {
    char name[16];
    std::snprintf(name, sizeof(name), "name %04d", i % 2000);
    nvtxRangePushA(name);
    nvtxRangePop();
  }
}

void mark_payloads() {
  nvtxEventAttributes_t attributes = plain("payload");
  attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  attributes.payload.dValue = 0.25;
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  attributes.payload.iValue = -5;
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = UINT64_MAX;
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
  attributes.payloadType = 12345;
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
}

// Handles and calls that no sane program makes.
void misuse() {
  require(nvtxRangePop() < 0, __LINE__);
  nvtxRangeEnd(12345);
  nvtxRangeEnd(~0ULL);
  nvtxRangePushEx(nullptr);
  nvtxRangePop();
  nvtxEventAttributes_t attributes = plain("");
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = reinterpret_cast<nvtxStringHandle_t>(0xdeadbeef0);
  const auto wrong = reinterpret_cast<nvtxDomainHandle_t>(0x7fff12345678);
  nvtxDomainRangePushEx(wrong, &attributes);
  nvtxDomainRangePop(wrong);
  attributes.size = 4;
  nvtxRangePushEx(&attributes);
  nvtxRangePop();
}

void interleave_domains() {
  const nvtxDomainHandle_t a = nvtxDomainCreateA("probe a");
  const nvtxDomainHandle_t b = nvtxDomainCreateA("probe b");
  require(nvtxDomainCreateA("probe a") == a, __LINE__);
  const auto attributes = plain("interleaved");
  nvtxDomainRangePushEx(a, &attributes);
  nvtxDomainRangePushEx(b, &attributes);
  usleep(2000);
  nvtxDomainRangePop(a);
  usleep(2000);
  nvtxDomainRangePop(b);
}

void fork_inside_a_range() {
  nvtxRangePushA("around the fork");
  const nvtxRangeId_t started = nvtxRangeStartA("started before the fork");
  const pid_t child = fork();
  if (child == 0) {
    nvtxRangePushA("in the child");
    nvtxRangePop();
    nvtxRangePop();         // its parent's
    nvtxRangeEnd(started);  // its parent's
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  require(status == 0, __LINE__);
  nvtxRangeEnd(started);
  nvtxRangePop();
}

// Children of a process whose other threads are in the middle of anything.
void fork_amid_threads() {
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over) {
        std::thread([] {
          nvtxRangePushA("busy");
          nvtxRangePop();
        }).join();
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (int range = 0; range < 10; ++range) {
        nvtxRangePushA("in a busy child");
        nvtxRangePop();
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    require(status == 0, __LINE__);
  }
  is_over = true;
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void use_threads() {
  const nvtxRangeId_t started = nvtxRangeStartA("ended by another thread");
  std::thread([&] { nvtxRangeEnd(started); }).join();
  for (int i = 0; i < 3000; ++i) {
    std::thread([] {
      nvtxRangePushA("short thread");
      nvtxRangePop();
    }).join();
  }
}

void nest_deeply() {
  for (int i = 0; i < 70000; ++i) {
    nvtxRangePushA("deep");
  }
  for (int i = 0; i < 70000; ++i) {
    nvtxRangePop();
  }
  require(nvtxRangePushA("after the deep") == 0, __LINE__);
  nvtxRangePop();
}

}  // namespace

int main(int argc, char** argv) {
  require(argc == 2, __LINE__);
  errno = 77;
  mark_texts();
  require(errno == 77, __LINE__);
  mark_many_names();
  mark_payloads();
  misuse();
  interleave_domains();
  void* const library = dlopen(argv[1], RTLD_NOW);
  require(library != nullptr, __LINE__);
  reinterpret_cast<void (*)()>(dlsym(library, "mark_elsewhere"))();
  fork_inside_a_range();
  fork_amid_threads();
  use_threads();
  nest_deeply();
  return 0;
}

#endif
