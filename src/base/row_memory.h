// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace llmprof {

// Memory for many rows, not cleared. Throws std::bad_alloc.
void* allocate_rows(std::size_t size_bytes);

struct FreeRows {
  void operator()(void* rows) const { std::free(rows); }
};

template <typename T>
using RowMemory = std::unique_ptr<T[], FreeRows>;

template <typename T>
RowMemory<T> row_memory(std::size_t size) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  if (size > SIZE_MAX / sizeof(T)) {
    throw std::bad_alloc();
  }
  return RowMemory<T>(static_cast<T*>(allocate_rows(size * sizeof(T))));
}

}  // namespace llmprof
