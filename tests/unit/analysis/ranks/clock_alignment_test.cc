// SPDX-License-Identifier: Apache-2.0
//
// One job, recorded in one file and in one file per rank: the same is found.
#include "analysis/ranks/clock_alignment.h"

#include <fmt/format.h>

#include "analysis/engine_trace.h"
#include "analysis/profile.h"
#include "analysis/ranks/rank_names.h"
#include "testing.h"
#include "trace/filter.h"

namespace gpuwhy {
namespace {

const Rules kJobRules = {{{"communication", {"nccl"}}}, {}};
constexpr std::int64_t kUtcNs = 1'790'000'000'000'000'000;
constexpr std::int64_t kSessionNs =
    1'234'567;  // from the start of one rank's recording to the next

struct JobShape {
  EngineShape engine;
  bool has_utc = true;
  std::int64_t clock_error_ns = 0;  // of each rank against the one before
  bool are_named = false;
  Parallelism told;
};

void move_times(Trace& trace, std::int64_t shift_ns) {
  const auto move = [&](auto& table) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      table.start_ns[row] += shift_ns;
      table.end_ns[row] += table.end_ns[row] == kOpenEnd ? 0 : shift_ns;
    }
  };
  move(trace.kernels);
  move(trace.copies);
  move(trace.graphs);
  move(trace.api_calls);
  move(trace.ranges);
  move(trace.ops);
}

// What each rank of the engine records alone, on a clock of its own.
std::vector<TracePart> parts_of(const JobShape& job) {
  std::vector<TracePart> parts;
  const EngineTrace whole = make_engine_trace(job.engine);
  for (const Replica& replica : whole.replicas) {
    for (const std::int64_t pid : replica.pids) {
      const auto rank = static_cast<std::int64_t>(parts.size());
      TracePart& part = parts.emplace_back();
      part.trace = make_engine_trace(job.engine).trace;
      apply_filter({std::nullopt, static_cast<std::uint32_t>(pid)}, part.trace);
      move_times(part.trace, -rank * kSessionNs);
      if (job.has_utc) {
        part.trace.capture.utc_ns = kUtcNs + rank * (kSessionNs + job.clock_error_ns);
      }
      part.file.file = fmt::format("{}", rank);
      if (job.are_named) {
        part.file.file =
            fmt::format("dp{}_tp{}", rank / job.engine.num_workers, rank % job.engine.num_workers);
        part.file.name = rank_in_name(part.file.file);
      }
    }
  }
  return parts;
}

Analysis joined(const JobShape& job, std::size_t num_notes = 0) {
  std::vector<TracePart> parts = parts_of(job);
  EXPECT_EQ(align_clocks(kJobRules, job.told, parts).size(), num_notes);
  ProfileOptions options;
  options.parallelism = job.told;
  return profile(join_traces(std::move(parts)), kJobRules, options).analysis;
}

void expect_same(const Analysis& a, const Analysis& b) {
  ASSERT_EQ(a.rank_groups->size(), b.rank_groups->size());
  for (std::size_t i = 0; i < a.rank_groups->size(); ++i) {
    EXPECT_EQ((*a.rank_groups)[i].pids, (*b.rank_groups)[i].pids);
    EXPECT_EQ((*a.rank_groups)[i].devices, (*b.rank_groups)[i].devices);
    EXPECT_EQ((*a.rank_groups)[i].num_steps, (*b.rank_groups)[i].num_steps);
  }
  ASSERT_EQ(a.stage_steps.size(), b.stage_steps.size());
  for (std::size_t i = 0; i < a.stage_steps.size(); ++i) {
    EXPECT_EQ(a.stage_steps[i].start_ns, b.stage_steps[i].start_ns);
    EXPECT_EQ(a.stage_steps[i].tokens, b.stage_steps[i].tokens);
    EXPECT_EQ(a.stage_steps[i].gpu_start_ns, b.stage_steps[i].gpu_start_ns);
    EXPECT_EQ(a.stage_steps[i].gpu_window_ns, b.stage_steps[i].gpu_window_ns);
    EXPECT_EQ(a.stage_steps[i].period_ns, b.stage_steps[i].period_ns);
  }
  EXPECT_EQ(a.capture.kernel_ns, b.capture.kernel_ns);
  EXPECT_EQ(a.kernels.size(), b.kernels.size());
}

Analysis in_one_file(const JobShape& job) {
  return profile(make_engine_trace(job.engine).trace, kJobRules).analysis;
}

TEST(ClockAlignment, FilesOfRanksAreOneJob) {
  for (const int num_workers : {1, 2, 4, 8}) {
    for (const int num_replicas : {1, 2}) {
      for (const std::int64_t clock_error_ns : {0, 40'000}) {
        SCOPED_TRACE(fmt::format("{} x {}, {} ns", num_replicas, num_workers, clock_error_ns));
        JobShape job;
        job.engine.num_workers = num_workers;
        job.engine.num_replicas = num_replicas;
        // Ranks that share no collective have nothing that would correct UTC.
        job.clock_error_ns = num_replicas == 1 ? clock_error_ns : 0;
        expect_same(joined(job), in_one_file(job));
      }
    }
  }
}

TEST(ClockAlignment, NamesOrTheUserReplaceUtc) {
  JobShape job;
  job.engine.num_workers = 4;
  job.has_utc = false;
  job.are_named = true;
  expect_same(joined(job), in_one_file(job));
  job.are_named = false;
  job.told.tensor = 4;
  expect_same(joined(job), in_one_file(job));
}

TEST(ClockAlignment, FilesWithoutCommonClockAreNoGroup) {
  JobShape job;
  job.engine.num_workers = 2;
  job.has_utc = false;
  const Analysis analysis = joined(job, 1);
  ASSERT_EQ(analysis.rank_groups->size(), 2);
  EXPECT_NE((*analysis.rank_groups)[0].why.find("no clock in common"), std::string::npos);
}

TEST(ClockAlignment, NamesTellReplicasOfOneLoadApart) {
  JobShape job;
  job.engine.num_workers = 2;
  std::vector<TracePart> parts = parts_of(job);
  parts[0].file.name = rank_in_name("dp0");
  parts[1].file.name = rank_in_name("dp1");
  EXPECT_TRUE(align_clocks(kJobRules, {}, parts).empty());
  const Analysis analysis = profile(join_traces(std::move(parts)), kJobRules).analysis;
  ASSERT_EQ(analysis.rank_groups->size(), 2);
  EXPECT_NE((*analysis.rank_groups)[0].why.find("dp numbers"), std::string::npos);
}

TEST(ClockAlignment, RefusesRecordingsOfOtherTimes) {
  JobShape job;
  job.engine.num_workers = 2;
  std::vector<TracePart> parts = parts_of(job);
  parts[1].trace.capture.utc_ns = kUtcNs + 3'600'000'000'000;
  expect_error([&] { align_clocks(kJobRules, {}, parts); }, ErrorKind::kUsage,
               testing::HasSubstr("not recorded at the same time"), testing::_);
}

TEST(ClockAlignment, IgnoresImpossibleUtc) {
  for (const std::int64_t utc_ns : {INT64_MAX, std::int64_t{1}, INT64_MIN}) {
    JobShape job;
    job.engine.num_workers = 2;
    std::vector<TracePart> parts = parts_of(job);
    parts[1].trace.capture.utc_ns = utc_ns;
    EXPECT_EQ(align_clocks(kJobRules, {}, parts).size(), 1);
  }
}

}  // namespace
}  // namespace gpuwhy
