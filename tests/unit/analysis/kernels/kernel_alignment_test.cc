// SPDX-License-Identifier: Apache-2.0
#include "analysis/kernels/kernel_alignment.h"

#include <chrono>
#include <numeric>
#include <random>

#include "testing.h"
#include "trace/trace.h"

namespace gpuwhy {
namespace {

using Kernels32 = std::vector<std::uint32_t>;

Kernels32 counted(std::uint32_t first, std::size_t size) {
  Kernels32 numbers(size);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

std::vector<bool> starts_at(std::size_t size, const std::vector<std::size_t>& starts) {
  std::vector<bool> is_start(size);
  for (const std::size_t start : starts) {
    is_start[start] = true;
  }
  return is_start;
}

TEST(KernelAlignment, AReplayIsFoundWhereItsKernelsAre) {
  KnownLaunches known(counted(100, 50), {});
  EXPECT_EQ(known.align(counted(110, 20)), counted(10, 20));
  EXPECT_EQ(known.align(counted(100, 50)), counted(0, 50));
}

TEST(KernelAlignment, EqualPartsAreTakenInTheOrderOfTheirCapture) {
  Kernels32 layers;
  for (int layer = 0; layer < 3; ++layer) {
    for (std::uint32_t i = 0; i < 10; ++i) {
      layers.push_back(i);
    }
  }
  KnownLaunches known(layers, starts_at(30, {0, 10, 20}));
  for (int step = 0; step < 2; ++step) {
    for (std::uint32_t layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(known.align(counted(0, 10)), counted(10 * layer, 10));
    }
  }
}

TEST(KernelAlignment, KernelsThatOneSideLacksAreSteppedOver) {
  KnownLaunches known(counted(0, 40), {});
  Kernels32 replay = counted(0, 40);
  replay.insert(replay.begin() + 20, 999);
  replay.erase(replay.begin() + 30);
  Kernels32 expected = counted(0, 40);
  expected.insert(expected.begin() + 20, kNone);
  expected.erase(expected.begin() + 30);
  EXPECT_EQ(known.align(replay), expected);
  EXPECT_EQ(known.align(replay), expected);
}

TEST(KernelAlignment, TooLittleAgreementIsNone) {
  KnownLaunches known(counted(0, 40), {});
  Kernels32 replay = counted(0, 20);
  for (std::uint32_t i = 0; i < 20; i += 6) {
    replay[i] = 1000 + i;
  }
  EXPECT_THAT(known.align(replay), Each(kNone));
}

TEST(KernelAlignment, AShortGraphMustBeAWholeCapture) {
  KnownLaunches ran(counted(0, 20), {});
  EXPECT_THAT(ran.align(counted(0, 3)), Each(kNone));
  KnownLaunches captured(counted(0, 20), starts_at(20, {0, 3, 10}));
  EXPECT_THAT(captured.align(counted(0, 3)), ElementsAre(0, 1, 2));
  EXPECT_THAT(captured.align(counted(0, 2)), Each(kNone));
  EXPECT_EQ(captured.align(counted(3, 7)), counted(3, 7));
  EXPECT_THAT(captured.align(counted(4, 3)), Each(kNone));
  EXPECT_THAT(captured.align(counted(0, 3)), ElementsAre(0, 1, 2));
}

TEST(KernelAlignment, NothingKnownOrNothingReplayedIsNoTrouble) {
  KnownLaunches nothing({}, {});
  EXPECT_THAT(nothing.align(counted(0, 12)), Each(kNone));
  KnownLaunches one({7}, {true});
  EXPECT_TRUE(one.align({}).empty());
  EXPECT_THAT(one.align(Kernels32{7}), ElementsAre(0));
  EXPECT_THAT(one.align(counted(0, 12)), Each(kNone));
}

// Kernels of two names have seeds everywhere and agree nowhere: the work is bounded all the same.
TEST(KernelAlignment, SequencesThatNeverAgreeEnd) {
  std::mt19937 random(7);
  Kernels32 noise(50'000);
  for (std::uint32_t& kernel : noise) {
    kernel = random() % 2;
  }
  KnownLaunches known(noise, {});
  const auto start = std::chrono::steady_clock::now();
  for (int replay = 0; replay < 50; ++replay) {
    Kernels32 kernels(2'000);
    for (std::uint32_t& kernel : kernels) {
      kernel = random() % 3;
    }
    known.align(kernels);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

}  // namespace
}  // namespace gpuwhy
