// SPDX-License-Identifier: Apache-2.0
//
// Collectives of traces made by hand.
#include "analysis/collectives.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/ingest.h"
#include "temporary.h"

namespace llmprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Launch {
  const char* name;
  int device;
  int stream;
  int ts;
};

Trace trace_of(const std::vector<Launch>& launches) {
  std::string events;
  for (const Launch& launch : launches) {
    events += fmt::format(
        R"({}{{"ph": "X", "cat": "kernel", "name": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": 2,
            "args": {{"device": {}, "stream": {}, "correlation": {}}}}})",
        events.empty() ? "" : ",", launch.name, launch.device, launch.stream, launch.ts,
        launch.device, launch.stream, launch.ts);
  }
  const TemporaryDirectory directory;
  return load_trace(
      directory.add("t.json", R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}"), 1);
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
  const Collectives found = find_collectives(profile(
      trace_of(
          {{"nccl_b", 0, 9, 40}, {"gemm", 0, 3, 10}, {"nccl_a", 0, 12, 20}, {"nccl_c", 0, 12, 60}}),
      kRules));
  EXPECT_THAT(words_of(found),
              ElementsAre("cuda:0 stream 0 #0 at 10000", "cuda:0 stream 1 #0 at 30000",
                          "cuda:0 stream 0 #1 at 50000"));
  EXPECT_THAT(found.communicators_by, HasSubstr("streams"));
  EXPECT_EQ(found.launches[0].kernel, "nccl_a");
  EXPECT_EQ(found.launches[0].duration_ns, 2000);
}

TEST(Collectives, OfNothingAreNone) {
  const Collectives found = find_collectives(profile(trace_of({{"gemm", 0, 3, 10}}), kRules));
  EXPECT_TRUE(found.launches.empty());
  EXPECT_EQ(found.communicators_by, "");
}

}  // namespace
}  // namespace llmprof
