// SPDX-License-Identifier: Apache-2.0
//
// sort_runs against std::stable_sort, on values that are nearly sorted and on others.
#include "base/sort_runs.h"

#include <random>
#include <utility>

#include "testing.h"

namespace gpuwhy {
namespace {

using Value = std::pair<int, int>;  // key, position

bool is_less(const Value& a, const Value& b) {
  return a.first < b.first;
}

TEST(SortRuns, IsAStableSort) {
  std::mt19937 random(3);
  const auto pick = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  for (int i = 0; i < 2'000; ++i) {
    std::vector<Value> values;
    const int num_runs = pick(12);
    for (int run = 0; run < num_runs; ++run) {
      int key = pick(10);
      for (int length = pick(i % 2 == 0 ? 2 : 40); length > 0; --length) {
        values.emplace_back(key, static_cast<int>(values.size()));
        key += pick(3);
      }
    }
    std::vector<Value> expected = values;
    std::stable_sort(expected.begin(), expected.end(), is_less);
    sort_runs(values, is_less);
    ASSERT_EQ(values, expected) << "case " << i;
  }
}

TEST(SortRuns, OneSequenceIsComparedOnce) {
  std::vector<int> values(10'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int>(i / 2);
  }
  std::size_t num_compared = 0;
  sort_runs(values, [&](int a, int b) {
    ++num_compared;
    return a < b;
  });
  EXPECT_LT(num_compared, values.size());
}

}  // namespace
}  // namespace gpuwhy
