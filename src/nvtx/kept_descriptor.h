// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include <sys/stat.h>

namespace gpuwhy {

// A descriptor that stays open in the traced program, under a number that programs, which count
// from 3, rarely meet. A program that closes all descriptors may reuse the number: get() tells.
// Plain and constant-initialized, because ranges may start before main().
class KeptDescriptor {
 public:
  void keep(long fd);  // a duplicate of it; the caller closes its own
  int get() const;     // -1: nothing was kept, or the program closed it
  void close();

 private:
  std::atomic<int> fd_{-1};
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace gpuwhy
