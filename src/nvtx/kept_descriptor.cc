// SPDX-License-Identifier: Apache-2.0
//
// A descriptor kept in the traced program, and the proof that its number still is ours.
#include "nvtx/kept_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpuwhy {
namespace {

constexpr rlim_t kHighDescriptor = 200;

}  // namespace

void KeptDescriptor::keep(long fd) {
  struct stat facts = {};
  rlimit limit = {};
  if (syscall(SYS_fstat, fd, &facts) != 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return;
  }
  device_ = facts.st_dev;
  inode_ = facts.st_ino;
  const rlim_t least = limit.rlim_cur / 2 < kHighDescriptor ? limit.rlim_cur / 2 : kHighDescriptor;
  fd_ = static_cast<int>(syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, static_cast<int>(least)));
}

int KeptDescriptor::get() const {
  const int fd = fd_;
  struct stat facts = {};
  const bool is_ours = fd >= 0 && syscall(SYS_fstat, fd, &facts) == 0 && facts.st_dev == device_ &&
                       facts.st_ino == inode_;
  return is_ours ? fd : -1;
}

void KeptDescriptor::close() {
  if (const int fd = get(); fd >= 0) {
    syscall(SYS_close, fd);
  }
  fd_ = -1;
}

}  // namespace gpuwhy
