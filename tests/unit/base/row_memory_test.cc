// SPDX-License-Identifier: Apache-2.0
#include "base/row_memory.h"

#include <algorithm>
#include <cstdint>
#include <new>

#include "testing.h"

namespace gpuwhy {
namespace {

// Around the sizes from which on rows lie in huge pages.
TEST(RowMemoryTest, EveryByteCanBeWritten) {
  constexpr std::size_t kPage = kHugePageBytes;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kPage / 4 * 3 - 1, kPage / 4 * 3,
                                 kPage - 1, kPage, kPage + 1, kPage + kPage / 4 * 3, 2 * kPage}) {
    const RowMemory<char> rows = row_memory<char>(size);
    std::fill_n(rows.get(), size, 'x');
    EXPECT_EQ(std::count(rows.get(), rows.get() + size, 'x'), static_cast<std::ptrdiff_t>(size));
  }
}

TEST(RowMemoryTest, HugeBlocksBeginAtAHugePage) {
  const RowMemory<char> rows = row_memory<char>(3 * kHugePageBytes + 5);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(rows.get()) % kHugePageBytes, 0u);
}

TEST(RowMemoryTest, RefusesMoreThanThereIs) {
  EXPECT_THROW(row_memory<std::int64_t>(SIZE_MAX / 2), std::bad_alloc);
  EXPECT_THROW(row_memory<std::int64_t>(SIZE_MAX / 32), std::bad_alloc);
}

TEST(RowMemoryTest, VectorsGrowAcrossHugePages) {
  RowVector<std::uint32_t> rows;
  for (std::uint32_t i = 0; i < 2'000'000; ++i) {
    rows.push_back(i);
  }
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i], i);
  }
}

}  // namespace
}  // namespace gpuwhy
