// SPDX-License-Identifier: Apache-2.0
//
// Collectives of traces made by hand.
#include "analysis/collectives.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace_builder.h"

namespace llmprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Launch {
  const char* name;
  std::uint32_t stream;  // 0 or 1
  std::int64_t start_ns;
};

Trace trace_of(const std::vector<Launch>& launches) {
  TraceBuilder made;
  const std::uint16_t process = made.add_process();
  const std::uint16_t device = made.add_device();
  made.add_stream(process, device);
  made.add_stream(process, device);
  for (const Launch& launch : launches) {
    made.kernel(launch.stream, launch.start_ns, launch.start_ns + 2, launch.name);
  }
  return made.finish();
}

const Rules kRules = {{{"communication", {"nccl"}}}, {}};

std::vector<std::string> words_of(const Collectives& collectives) {
  std::vector<std::string> words;
  for (const CollectiveLaunch& launch : collectives.launches) {
    words.push_back(fmt::format("{} {} #{} at {}", launch.device, launch.communicator,
                                launch.sequence, launch.start_ns));
  }
  return words;
}

TEST(Collectives, StreamsAreNumberedByTheirFirst) {
  const Collectives found = find_collectives(
      profile(trace_of({{"nccl_b", 0, 40}, {"gemm", 0, 10}, {"nccl_a", 1, 20}, {"nccl_c", 1, 60}}),
              kRules));
  EXPECT_THAT(words_of(found), ElementsAre("cuda:0 stream 0 #0 at 10", "cuda:0 stream 1 #0 at 30",
                                           "cuda:0 stream 0 #1 at 50"));
  EXPECT_THAT(found.communicators_by, HasSubstr("streams"));
  EXPECT_EQ(found.launches[0].kernel, "nccl_a");
  EXPECT_EQ(found.launches[0].duration_ns, 2);
}

TEST(Collectives, OfNothingAreNone) {
  const Collectives found = find_collectives(profile(trace_of({{"gemm", 0, 10}}), kRules));
  EXPECT_TRUE(found.launches.empty());
  EXPECT_EQ(found.communicators_by, "");
}

}  // namespace
}  // namespace llmprof
