// SPDX-License-Identifier: Apache-2.0
//
// Whether the program has installed a system call filter, found without a call that a filter may
// kill for.
//
// The kernel tells it in /proc/self/status, which is opened at the start and read again through the
// same descriptor. A forked child needs its own, and opens it at the fork, before it can install a
// filter, if its parent had no new one just before.
//
// What it gets wrong: the status is that of the program's first thread, so a filter that another
// thread installs for itself alone is not seen. Kernels before 5.9 do not count filters: there, a
// second one, such as a program's own in a container, is not seen.
#include "nvtx/call_filter.h"

#include <atomic>
#include <cstring>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nvtx/kept_descriptor.h"

namespace gpuwhy {
namespace {

// The lines of a status about filters; empty if they could not be read.
struct Filters {
  char lines[128];
};

KeptDescriptor g_status;
Filters g_first;
std::atomic<bool> g_may_child_open{false};

Filters read_filters() {
  Filters filters = {};
  char status[4096];
  const int fd = g_status.get();
  const long got = fd < 0 ? -1 : syscall(SYS_pread64, fd, status, sizeof(status) - 1, 0);
  if (got <= 0) {
    return filters;
  }
  status[got] = '\0';
  constexpr char kName[] = "\nSeccomp";
  std::size_t size = 0;
  for (const char* at = std::strstr(status, kName); at != nullptr; at = std::strstr(at, kName)) {
    const std::size_t length = std::strcspn(at + 1, "\n") + 1;
    if (size + length >= sizeof(filters.lines)) {
      return {};
    }
    std::memcpy(filters.lines + size, at, length);
    size += length;
    at += length;
  }
  return filters;
}

void keep_status() {
  const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
  if (fd >= 0) {
    g_status.keep(fd);
    syscall(SYS_close, fd);
  }
}

}  // namespace

void note_filters() {
  keep_status();
  g_first = read_filters();
}

void note_filters_before_fork() {
  g_may_child_open = may_open_files();
}

void note_filters_after_fork() {
  g_status.close();
  if (g_may_child_open) {
    keep_status();
  }
}

bool may_open_files() {
  const Filters now = read_filters();
  return now.lines[0] != '\0' && std::strcmp(now.lines, g_first.lines) == 0;
}

}  // namespace gpuwhy
