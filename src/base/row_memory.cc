// SPDX-License-Identifier: Apache-2.0
//
// Memory of columns, in huge pages where the system has them.
//
// A column of millions of rows is written once, from beginning to end, and in pages of 4 KiB each
// page is a fault. numpy asks for huge pages in the same way. The last page of a column is a huge
// one only if the rows nearly fill it, so that a column takes little more memory than its rows.
//
// Huge pages are mapped, not taken from the heap: aligned blocks of megabytes leave holes there, a
// fifth of the memory in use.
#include "base/row_memory.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace gpuwhy {
namespace {

// A last page that rows fill this far (three quarters) is worth a huge one.
constexpr std::size_t kWorthOneBytes = kHugePageBytes / 4 * 3;

// The part of a block that lies in huge pages. 0: all of it is on the heap.
std::size_t huge_bytes(std::size_t size_bytes) {
  return size_bytes > SIZE_MAX / 2
             ? 0
             : (size_bytes + kHugePageBytes - kWorthOneBytes) / kHugePageBytes * kHugePageBytes;
}

std::size_t mapped_bytes(std::size_t size_bytes) {
  constexpr std::size_t kPageBytes = 4096;
  return std::max(huge_bytes(size_bytes), (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
}

// Maps one page more than needed, and gives back what lies before and after the aligned block.
void* map_aligned(std::size_t size_bytes) {
  void* mapped = mmap(nullptr, size_bytes + kHugePageBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  const std::size_t past = reinterpret_cast<std::uintptr_t>(mapped) % kHugePageBytes;
  const std::size_t before = past == 0 ? 0 : kHugePageBytes - past;
  char* rows = static_cast<char*>(mapped) + before;
  if (before > 0) {
    munmap(mapped, before);
  }
  munmap(rows + size_bytes, kHugePageBytes - before);
  return rows;
}

}  // namespace

void* allocate_rows(std::size_t size_bytes) {
  void* rows = nullptr;
  if (huge_bytes(size_bytes) == 0) {
    rows = std::malloc(size_bytes == 0 ? 1 : size_bytes);
  } else if ((rows = map_aligned(mapped_bytes(size_bytes))) != nullptr) {
    // A hint: a kernel without huge pages refuses it.
    madvise(rows, huge_bytes(size_bytes), MADV_HUGEPAGE);
  }
  if (rows == nullptr) {
    throw std::bad_alloc();
  }
  return rows;
}

void free_rows(void* rows, std::size_t size_bytes) {
  if (huge_bytes(size_bytes) == 0) {
    std::free(rows);
  } else {
    munmap(rows, mapped_bytes(size_bytes));
  }
}

}  // namespace gpuwhy
