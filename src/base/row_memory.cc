// SPDX-License-Identifier: Apache-2.0
//
// Memory of columns, in huge pages where the system has them.
//
// A column of millions of rows is written once, from beginning to end, and in pages of 4 KiB each
// page is a fault. numpy asks for huge pages in the same way. Only whole ones are asked for: a
// column takes no more memory than its rows.
#include "base/row_memory.h"

#include <new>

#include <sys/mman.h>

namespace llmprof {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

void* allocate_rows(std::size_t size_bytes) {
  void* rows = nullptr;
  if (size_bytes < kHugePageBytes) {
    rows = std::malloc(size_bytes == 0 ? 1 : size_bytes);
  } else if (posix_memalign(&rows, kHugePageBytes, size_bytes) == 0) {
    // A hint: a kernel without huge pages refuses it.
    madvise(rows, size_bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  }
  if (rows == nullptr) {
    throw std::bad_alloc();
  }
  return rows;
}

}  // namespace llmprof
