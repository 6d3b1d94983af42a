// SPDX-License-Identifier: Apache-2.0
//
// Lanes of the host: nested as the recording nests, free of overlaps, within their limits.
#include "analysis/timeline/timeline_host.h"

#include <algorithm>
#include <random>
#include <string>

#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

HostTimeline host_of(const Trace& trace, std::int64_t most = 1000,
                     const std::vector<KeptTime>& windows = {}) {
  return make_host_timeline(trace, attribute(trace, Stages()), windows, 0, 100'000, most);
}

std::string text_of(const HostTimeline& host) {
  std::string text;
  for (std::size_t i = 0; i < host.slices.size(); ++i) {
    const HostLane& lane = host.lanes[host.slices.lane[i]];
    text += (lane.is_calls ? "call" : "scope") + std::to_string(lane.level) + " " +
            host.names[host.slices.name[i]] + " " + std::to_string(host.slices.start_ns[i]) + "+" +
            std::to_string(host.slices.duration_ns[i]) + "\n";
  }
  return text;
}

TEST(TimelineHost, ScopesNestAndOperatorsLoseTheirNumbers) {
  TraceBuilder made;
  const std::uint16_t process = made.add_process();
  const std::uint32_t thread = made.add_thread(process);
  const std::uint32_t stream = made.add_stream(process, made.add_device());
  made.range(thread, 100, 900, "step");
  made.range(thread, 200, 400, "aten::mul, seq = 1, op_id = 7");
  made.range(thread, 500, 600, "aten::mul, seq = 2, op_id = 8");
  made.launch(thread, 250, stream, 300, 350, "gemm");
  const Trace trace = made.finish();
  const HostTimeline host = host_of(trace);
  EXPECT_EQ(text_of(host),
            "scope0 step 100+800\nscope1 aten::mul 200+200\nscope1 aten::mul 500+100\n"
            "call0 cudaLaunchKernel 250+2\n");
  ASSERT_EQ(host.slice_of_call.size(), 1U);
  EXPECT_EQ(host.slice_of_call.at(0), 3U);
  EXPECT_EQ(host.num_threads, 1);
  EXPECT_EQ(host.least_call_ns, 0);
}

Trace random_host(std::uint32_t seed, bool is_shuffled) {
  std::mt19937 random(seed);
  TraceBuilder made;
  const std::uint16_t process = made.add_process();
  const std::uint32_t threads[] = {made.add_thread(process), made.add_thread(process)};
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int i = 0; i < 400; ++i) {
    const int start = pick(0, 90'000);
    const std::uint32_t thread = threads[pick(0, 1)];
    const int most = pick(1, 9'000);
    made.range(thread, start, start + pick(1, most), "r" + std::to_string(pick(0, 9)));
    made.call(thread, start, start + pick(1, 40));
  }
  if (is_shuffled) {
    made.shuffle(random);
  }
  return made.finish();
}

TEST(TimelineHost, LanesAreFreeOfOverlapsAndIndependentOfTheOrderOfRows) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const Trace trace = random_host(seed, false);
    const HostTimeline host = host_of(trace, 150);
    for (std::size_t i = 1; i < host.slices.size(); ++i) {
      if (host.slices.lane[i] == host.slices.lane[i - 1]) {
        EXPECT_GE(host.slices.start_ns[i],
                  host.slices.start_ns[i - 1] + host.slices.duration_ns[i - 1]);
      }
    }
    EXPECT_LE(host.slices.size(), 300U);
    EXPECT_GT(host.least_scope_ns, 0);
    const Trace shuffled = random_host(seed, true);
    EXPECT_EQ(text_of(host), text_of(host_of(shuffled, 150)));
  }
}

TEST(TimelineHost, ShortCallsAreKeptInWindows) {
  TraceBuilder made;
  const std::uint32_t thread = made.add_thread(made.add_process());
  for (int i = 0; i < 100; ++i) {
    made.call(thread, i * 100, i * 100 + (i % 10 == 0 ? 90 : 5));
  }
  const Trace trace = made.finish();
  EXPECT_EQ(host_of(trace, 20).slices.size(), 10U);
  // Ten long ones, and of those in [0, 1000) nine short ones more.
  EXPECT_EQ(host_of(trace, 20, {{0, 1000}}).slices.size(), 19U);
}

}  // namespace
}  // namespace gpuwhy
