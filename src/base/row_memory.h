// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

namespace gpuwhy {

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Memory for many rows, not cleared. Throws std::bad_alloc.
void* allocate_rows(std::size_t size_bytes);
void free_rows(void* rows, std::size_t size_bytes);

struct FreeRows {
  std::size_t size_bytes = 0;
  void operator()(void* rows) const { free_rows(rows, size_bytes); }
};

template <typename T>
using RowMemory = std::unique_ptr<T[], FreeRows>;

template <typename T>
RowMemory<T> row_memory(std::size_t size) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  if (size > SIZE_MAX / sizeof(T)) {
    throw std::bad_alloc();
  }
  return RowMemory<T>(static_cast<T*>(allocate_rows(size * sizeof(T))), {size * sizeof(T)});
}

// A vector of one value per row. Use a Column where all rows are written anyway: it is not cleared.
template <typename T>
struct RowAllocator {
  using value_type = T;

  RowAllocator() = default;
  template <typename Other>
  explicit RowAllocator(const RowAllocator<Other>&) {}

  T* allocate(std::size_t size) { return row_memory<T>(size).release(); }
  void deallocate(T* rows, std::size_t size) { free_rows(rows, size * sizeof(T)); }
  bool operator==(const RowAllocator&) const = default;
};

template <typename T>
using RowVector = std::vector<T, RowAllocator<T>>;

}  // namespace gpuwhy
