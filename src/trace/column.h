// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "base/row_memory.h"

namespace gpuwhy {

// One attribute of all rows of a table, in contiguous memory. Allocated at its final size and not
// cleared: with a hundred million rows, growing and zeroing would take as long as reading the file.
// The creator writes every row.
template <typename T>
class Column {
 public:
  Column() = default;
  explicit Column(std::size_t size) : values_(row_memory<T>(size)), size_(size) {}

  T& operator[](std::size_t row) { return values_[row]; }
  const T& operator[](std::size_t row) const { return values_[row]; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<T> span() { return {values_.get(), size_}; }
  std::span<const T> span() const { return {values_.get(), size_}; }
  // Keeps the first rows only.
  void shrink(std::size_t size) {
    if (size < size_) {
      Column kept(size);
      std::copy_n(begin(), size, kept.values_.get());
      *this = std::move(kept);
    }
  }
  const T* begin() const { return values_.get(); }
  const T* end() const { return values_.get() + size_; }

 private:
  RowMemory<T> values_;
  std::size_t size_ = 0;
};

}  // namespace gpuwhy
