// SPDX-License-Identifier: Apache-2.0
//
// Loaded before the C library (LD_PRELOAD), it makes one call on files below a folder go wrong, or
// a request for memory:
//
//   GPUWHY_FAULT_DIR    the folder; calls on other files are left alone
//   GPUWHY_FAULT_KIND   full   from the n-th write on the disk is full (ENOSPC)
//                       eio    the n-th write fails with EIO
//                       eintr  the n-th write is interrupted, once
//                       short  the n-th write takes half of what it is given
//                       create the n-th file that is made may not be (EACCES)
//                       rename the n-th rename fails with EIO
//                       term   at the n-th write the process gets SIGTERM
//                       kill   at the n-th write the process is killed
//                       memory the n-th request for 4 KiB or more is refused (ENOMEM); the folder
//                              does not matter
//                       forwards, backwards  from the n-th question for the time of day on, the
//                              clock is an hour ahead, or behind; the folder does not matter
//   GPUWHY_FAULT_AT     n, from 1
//   GPUWHY_FAULT_TOLD   a file outside the folder, made when the fault came
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

enum class Call { kWrite, kCreate, kRename, kClock, kMemory };

const char* setting(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

bool is_kind(const char* kind) {
  return strcmp(setting("GPUWHY_FAULT_KIND"), kind) == 0;
}

bool is_clock_kind() {
  return is_kind("forwards") || is_kind("backwards");
}

bool is_below(const char* path) {
  const char* folder = setting("GPUWHY_FAULT_DIR");
  return *folder != '\0' && strncmp(path, folder, strlen(folder)) == 0;
}

bool is_ours(int descriptor) {
  char link[64];
  char path[PATH_MAX];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", descriptor);
  const ssize_t size = readlink(link, path, sizeof(path) - 1);
  if (size <= 0) {
    return false;
  }
  path[size] = '\0';
  return is_below(path);
}

// Whether this call, one of ours, is the one to go wrong.
bool is_due(Call call) {
  static long counts[5];
  static const long kAt = atol(setting("GPUWHY_FAULT_AT"));
  const long count = __atomic_add_fetch(&counts[static_cast<int>(call)], 1, __ATOMIC_RELAXED);
  const bool lasts = (call == Call::kWrite && is_kind("full")) || call == Call::kClock;
  const bool is_now = count == kAt || (lasts && count > kAt);
  if (is_now) {
    symlink("came", setting("GPUWHY_FAULT_TOLD"));  // one call, and none of those below
  }
  return is_now;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// 0: go on; 1: half of it; -1: errno is set.
int judge_write(int descriptor) {
  if (is_kind("create") || is_kind("rename") || is_kind("memory") || is_clock_kind() ||
      !is_ours(descriptor) || !is_due(Call::kWrite)) {
    return 0;
  }
  if (is_kind("kill") || is_kind("term")) {
    raise(is_kind("kill") ? SIGKILL : SIGTERM);
  }
  if (is_kind("short")) {
    return 1;
  }
  const int error = is_kind("full") ? ENOSPC : is_kind("eio") ? EIO : is_kind("eintr") ? EINTR : 0;
  errno = error;
  return error == 0 ? 0 : -1;
}

bool denies_memory(size_t size) {
  constexpr size_t kPage = 4096;
  return size >= kPage && is_kind("memory") && is_due(Call::kMemory);
}

time_t clock_error_s(clockid_t clock) {
  const bool is_of_day = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (!is_clock_kind() || !is_of_day || !is_due(Call::kClock)) {
    return 0;
  }
  return is_kind("forwards") ? 3600 : -3600;
}

bool denies_creation(const char* path, int flags) {
  if ((flags & O_CREAT) == 0 || !is_kind("create") || !is_below(path) || !is_due(Call::kCreate)) {
    return false;
  }
  errno = EACCES;
  return true;
}

}  // namespace

extern "C" {

void* __libc_malloc(size_t size);  // of glibc

void* malloc(size_t size) noexcept {
  if (denies_memory(size)) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_malloc(size);
}

ssize_t write(int descriptor, const void* data, size_t size) {
  static auto* const kReal = real<ssize_t(int, const void*, size_t)>("write");
  const int verdict = judge_write(descriptor);
  return verdict < 0 ? -1 : kReal(descriptor, data, verdict > 0 && size > 1 ? size / 2 : size);
}

ssize_t writev(int descriptor, const struct iovec* parts, int count) {
  static auto* const kReal = real<ssize_t(int, const struct iovec*, int)>("writev");
  const int verdict = judge_write(descriptor);
  return verdict < 0 ? -1 : kReal(descriptor, parts, verdict > 0 ? 1 : count);
}

ssize_t pwrite64(int descriptor, const void* data, size_t size, off64_t at) {
  static auto* const kReal = real<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  const int verdict = judge_write(descriptor);
  return verdict < 0 ? -1 : kReal(descriptor, data, verdict > 0 && size > 1 ? size / 2 : size, at);
}

int rename(const char* from, const char* to) {
  static auto* const kReal = real<int(const char*, const char*)>("rename");
  if (is_kind("rename") && is_below(to) && is_due(Call::kRename)) {
    errno = EIO;
    return -1;
  }
  return kReal(from, to);
}

int open(const char* path, int flags, ...) {
  static auto* const kReal = real<int(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return denies_creation(path, flags) ? -1 : kReal(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  static auto* const kReal = real<int(const char*, int, ...)>("open64");
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  return denies_creation(path, flags) ? -1 : kReal(path, flags, mode);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  static auto* const kReal = real<int(clockid_t, struct timespec*)>("clock_gettime");
  const int outcome = kReal(clock, now);
  now->tv_sec += outcome == 0 ? clock_error_s(clock) : 0;
  return outcome;
}

int gettimeofday(struct timeval* now, void* zone) {
  static auto* const kReal = real<int(struct timeval*, void*)>("gettimeofday");
  const int outcome = kReal(now, zone);
  now->tv_sec += outcome == 0 ? clock_error_s(CLOCK_REALTIME) : 0;
  return outcome;
}

time_t time(time_t* now) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) {
    *now = precise.tv_sec;
  }
  return precise.tv_sec;
}

}  // extern "C"
