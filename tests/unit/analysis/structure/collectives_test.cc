// SPDX-License-Identifier: Apache-2.0
//
// Collectives of traces made by hand.
#include "analysis/structure/collectives.h"

#include <fmt/format.h>

#include "analysis/profile.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

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

Collectives collectives_of(const Profile& made) {
  return find_collectives(*made.trace, made.rules, made.stages, made.attribution, made.structure,
                          made.analysis.capture.start_ns);
}

std::vector<std::string> words_of(const Collectives& collectives) {
  std::vector<std::string> words;
  for (const CollectiveRow& launch : collectives.launches) {
    words.push_back(fmt::format("{} {} #{} at {}", launch.device, launch.communicator,
                                launch.sequence, launch.arrival_ns));
  }
  return words;
}

TEST(Collectives, StreamsAreNumberedByTheirFirst) {
  const Collectives found = collectives_of(
      profile(trace_of({{"nccl_b", 0, 40}, {"gemm", 0, 10}, {"nccl_a", 1, 20}, {"nccl_c", 1, 60}}),
              kRules));
  EXPECT_THAT(words_of(found), ElementsAre("cuda:0 stream 0 #0 at 10", "cuda:0 stream 1 #0 at 30",
                                           "cuda:0 stream 0 #1 at 50"));
  EXPECT_THAT(found.communicators_by, HasSubstr("streams"));
  EXPECT_EQ(found.launches[0].kernel, "nccl_a");
  EXPECT_EQ(found.launches[0].duration_ns, 2);
}

// Process groups of a recording are communicators; sends and receives are counted, not matched.
TEST(Collectives, AreOfTheGroupsThatARecordingNames) {
  Trace trace = trace_of({{"nccl_a", 0, 10},
                          {"nccl_b", 0, 20},
                          {"nccl_c", 0, 30},
                          {"nccl_d", 0, 40},
                          {"nccl_e", 1, 50}});
  trace.process_groups = {{"3", "mesh_tp", {0, 1}, 2}, {"4", "", {}, 64}};
  const StringId reduce = trace.strings.intern("allreduce");
  const StringId send = trace.strings.intern("send");
  for (std::uint32_t i = 0; i < 4; ++i) {
    trace.kernels.correlation[i] = 7 + i;
    trace.collective_kernels.push_back({0, 7 + i, i % 2, i == 3 ? send : reduce});
  }
  const Collectives found = collectives_of(profile(std::move(trace), kRules));
  EXPECT_THAT(words_of(found),
              ElementsAre("cuda:0 group 3, ranks 0-1 #0 at 0", "cuda:0 group 4, 64 ranks #0 at 10",
                          "cuda:0 group 3, ranks 0-1 #1 at 20", "cuda:0 stream 0 #0 at 40"));
  EXPECT_THAT(found.communicators_by, HasSubstr("process groups"));
  EXPECT_THAT(found.communicators_by, HasSubstr("streams"));
  ASSERT_EQ(found.groups.size(), 3U);
  EXPECT_EQ(found.groups[0].operation, "all_reduce");
  EXPECT_EQ(found.groups[0].description, "mesh_tp");
  EXPECT_EQ(found.groups[0].ranks, "0-1");
  EXPECT_EQ(found.groups[0].calls, 2);
  EXPECT_EQ(found.groups[0].total_ns, 4);
  EXPECT_EQ(found.groups[2].operation, "send");
  EXPECT_EQ(found.groups[2].size, 64);
}

TEST(Collectives, RanksAreShortTexts) {
  EXPECT_EQ(ranks_text({}), "");
  EXPECT_EQ(ranks_text({5}), "5");
  EXPECT_EQ(ranks_text({0, 1, 2}), "0-2");
  EXPECT_EQ(ranks_text({1, 9}), "1, 9");
  EXPECT_EQ(ranks_text({0, 8, 16}), "0-16 by 8");
  EXPECT_EQ(ranks_text({0, 1, 4}), "0, 1, 4");
}

TEST(Collectives, OfNothingAreNone) {
  const Collectives found = collectives_of(profile(trace_of({{"gemm", 0, 10}}), kRules));
  EXPECT_TRUE(found.launches.empty());
  EXPECT_EQ(found.communicators_by, "");
}

}  // namespace
}  // namespace gpuwhy
