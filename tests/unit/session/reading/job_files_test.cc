// SPDX-License-Identifier: Apache-2.0
//
// Files of PyTorch's profiler, one per rank, read as one job.
#include "session/reading/job_files.h"

#include <fmt/format.h>

#include "analysis/profile.h"
#include "session/reading/recording.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// Ten steps of one kernel and one all-reduce. Each rank calls itself pid 1 and its GPU cuda:0.
std::string rank_json(int late_us, std::int64_t base_ns, std::int64_t zero_us, int num_tokens) {
  std::string events;
  for (int step = 0; step < 10; ++step) {
    const std::int64_t start_us = zero_us + step * 1000 + step * step;  // no two periods are equal
    const auto add = [&](const char* cat, const std::string& name, std::int64_t ts, int dur,
                         const std::string& args) {
      events += fmt::format(
          R"({}{{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": 1, "ts": {}, "dur": {}, "args": {{{}}}}})",
          events.empty() ? "" : ",\n", cat, name, ts, dur, args);
    };
    add("user_annotation", fmt::format("execute_context_0(0)_generation_{0}({0})", num_tokens),
        start_us + late_us, 50, "");
    add("cuda_runtime", "cudaLaunchKernel", start_us + late_us + 5, 3,
        fmt::format(R"("correlation": {})", step + 1));
    add("kernel", "ncclDevKernel_AllReduce_Sum", start_us + 100 + late_us, 300 - late_us,
        fmt::format(R"("correlation": {}, "device": 0, "stream": 7)", step + 1));
  }
  return fmt::format(R"({{"schemaVersion": 1, "baseTimeNanoseconds": {}, "traceEvents": [{}]}})",
                     base_ns, events);
}

constexpr std::int64_t kBaseNs = 1'790'000'000'000'000'000;

std::string first_rank() {
  return rank_json(0, kBaseNs, 0, 8);
}
// The same clock, counted from one second earlier.
std::string second_rank(int num_tokens = 8) {
  return rank_json(7, kBaseNs - 1'000'000'000, 1'000'000, num_tokens);
}

TEST(JobFiles, OfPyTorchAreOneGroup) {
  const TemporaryDirectory folder;
  const auto one = folder.add("dp0_pp0_tp0_rank0.json", first_rank());
  const auto two = folder.add("dp0_pp0_tp1_rank1.json", second_rank());
  const Analysis analysis = profile_recordings({two.string(), one.string()}, {}, System()).analysis;
  ASSERT_EQ(analysis.rank_groups->size(), 1U);
  EXPECT_THAT((*analysis.rank_groups)[0].devices, ElementsAre("cuda:0", "cuda:1"));
  EXPECT_EQ((*analysis.rank_groups)[0].num_steps, 10);
  ASSERT_EQ(analysis.stages.size(), 1U);
  EXPECT_EQ(analysis.stages[0].num_instances, 10);
  ASSERT_EQ(analysis.capture.files.size(), 2U);
  EXPECT_EQ(analysis.capture.files[0].file, "dp0_pp0_tp0_rank0.json");
  EXPECT_EQ(analysis.capture.files[1].rank, 1);
  EXPECT_EQ(analysis.capture.files[1].shift_ns, -1'000'000'000);
  EXPECT_EQ(analysis.stage_steps[0].gpu_window_ns, 300'000);
}

TEST(JobFiles, OfReplicasAreKeptApart) {
  const TemporaryDirectory folder;
  const auto one = folder.add("dp0_pp0_tp0.json", first_rank());
  const auto two = folder.add("dp1_pp0_tp0.json", second_rank());
  EXPECT_EQ(
      profile_recordings({one.string(), two.string()}, {}, System()).analysis.rank_groups->size(),
      2U);
  const auto other = folder.add("rank-1.json", second_rank(9));
  EXPECT_EQ(
      profile_recordings({one.string(), other.string()}, {}, System()).analysis.rank_groups->size(),
      2U);
}

TEST(JobFiles, InFoldersAreNamedByThem) {
  const TemporaryDirectory folder;
  const auto one = folder.add("rank-0/trace.json", first_rank());
  const auto two = folder.add("rank-1/trace.json", second_rank());
  const Analysis analysis = profile_recordings({two.string(), one.string()}, {}, System()).analysis;
  EXPECT_EQ(analysis.capture.files[0].file, one.string());
  EXPECT_EQ(analysis.capture.files[1].rank, 1);
}

TEST(JobFiles, AreNotTooMany) {
  std::vector<std::string> paths;
  for (int i = 0; i < 65; ++i) {
    paths.push_back(fmt::format("rank{}.json", i));
  }
  expect_error([&] { check_job_files(paths); }, ErrorKind::kUsage, HasSubstr("at most 64"),
               HasSubstr("gpuwhy merge"));
}

TEST(JobFiles, MustFitTogether) {
  const TemporaryDirectory folder;
  const auto one = folder.add("rank-0.json", first_rank());
  const auto two = folder.add("rank-1.json", second_rank());
  const auto alone = folder.add("all.json", first_rank());
  RecordingOptions options;
  options.memory_limit_bytes =
      outline_recordings({alone.string()}).num_events();  // next to nothing
  expect_error(
      [&] {
        profile_recordings({one.string(), two.string()}, options, System());
      },
      ErrorKind::kEnvironment, HasSubstr("rank-0.json with 1 more needs"), _);
  EXPECT_EQ(outline_recordings({one.string(), two.string()}).file_bytes,
            outline_recordings({one.string()}).file_bytes +
                outline_recordings({two.string()}).file_bytes);
}

}  // namespace
}  // namespace gpuwhy
