// SPDX-License-Identifier: Apache-2.0
#include "fleet/merge/merge.h"

#include <algorithm>

#include "compare/statistics.h"
#include "fleet/summary/columnar_file.h"
#include "fleet/summary/summary_file.h"
#include "results/duration_histogram.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// Small values, so that ties are frequent.
RankSummary random_rank(std::int64_t rank, SteadyRandom& random) {
  RankSummary summary;
  summary.identity.run_id = "run";
  summary.identity.rank = rank;
  summary.identity.num_ranks = 16;
  summary.identity.node = "n" + std::to_string(rank / 4);
  summary.stages.resize(1 + random.below(2));
  summary.stages[0].stage = "decode";
  summary.stages[0].total_ns = static_cast<std::int64_t>(random.below(100));
  if (summary.stages.size() > 1) {
    summary.stages[1].stage = "prefill";
  }
  for (const char* kernel : {"a", "b", "nccl"}) {
    if (random.flip(0.8)) {
      KernelSums cell;
      cell.stage = random.flip(0.5) ? "decode" : "prefill";
      cell.kernel = kernel;
      cell.family = kernel == std::string("nccl") ? "communication" : "gemm";
      cell.calls = static_cast<std::int64_t>(random.below(3));
      cell.min_ns = static_cast<std::int64_t>(random.below(5));
      cell.max_ns = cell.min_ns + 3;
      cell.total_ns = random.flip(0.05) ? INT64_MAX : cell.calls * (cell.min_ns + 1);
      cell.histogram[bin_of(cell.min_ns)] = cell.calls;
      summary.kernels.push_back(cell);
    }
  }
  for (const char* communicator : {"world", "pair"}) {
    for (std::int64_t sequence = 0; sequence < 4; ++sequence) {
      if (random.flip(0.8)) {
        summary.collectives.push_back({communicator, sequence, random.flip(0.9) ? "decode" : "all",
                                       random.flip(0.9) ? "nccl" : "mccl", 5,
                                       static_cast<std::int64_t>(random.below(4))});
      }
    }
  }
  for (const char* operation : {"all_reduce", "send"}) {
    if (random.flip(0.7)) {
      GroupRow cell;
      cell.communicator = random.flip(0.5) ? "world" : "ring";
      cell.operation = operation;
      cell.description = random.flip(0.9) ? "tp" : "dp";
      cell.calls = static_cast<std::int64_t>(random.below(9));
      cell.size = static_cast<std::int64_t>(random.below(3));
      summary.groups.push_back(cell);
    }
  }
  for (const char* part : {"qkv", "down"}) {
    if (random.flip(0.7)) {
      summary.parts.push_back({"forward", random.flip(0.5) ? "layer" : "layer B", part, 2,
                               static_cast<std::int64_t>(random.below(9)),
                               static_cast<std::int64_t>(random.below(5))});
    }
  }
  return summary;
}

std::vector<std::string> random_ranks(std::int64_t num, SteadyRandom& random) {
  std::vector<std::string> files;
  for (std::int64_t rank = 0; rank < num; ++rank) {
    files.push_back(summary_bytes(random_rank(rank, random)));
  }
  return files;
}

std::string merged(const std::vector<std::string>& files) {
  FleetMerge merge;
  for (const std::string& file : files) {
    merge.add(file);
  }
  return fleet_bytes(merge.finish());
}

void shuffle(std::vector<std::string>& files, SteadyRandom& random) {
  for (std::size_t i = files.size(); i > 1; --i) {
    std::swap(files[i - 1], files[random.below(i)]);
  }
}

// Merges random groups until one file is left.
std::string merged_as_a_tree(std::vector<std::string> files, SteadyRandom& random) {
  do {
    shuffle(files, random);
    const std::size_t size = 1 + random.below(std::min<std::size_t>(files.size(), 5));
    const auto rest = files.end() - static_cast<std::ptrdiff_t>(size);
    std::string group = merged({rest, files.end()});
    files.erase(rest, files.end());
    files.push_back(std::move(group));
  } while (files.size() > 1);
  return files[0];
}

TEST(Merge, AThousandOrdersAndTreesGiveTheSameBytes) {
  SteadyRandom random(7);
  for (int set = 0; set < 10; ++set) {
    const std::vector<std::string> files = random_ranks(16, random);
    const std::string expected = merged(files);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::string> order = files;
      shuffle(order, random);
      ASSERT_TRUE(merged(order) == expected);
      ASSERT_TRUE(merged_as_a_tree(files, random) == expected);
    }
  }
}

TEST(Merge, ReadsBackWhatItWrote) {
  SteadyRandom random(3);
  const std::string bytes = merged(random_ranks(16, random));
  EXPECT_TRUE(fleet_bytes(read_fleet(bytes)) == bytes);
  EXPECT_NE(bytes, merged(random_ranks(16, random)));
}

TEST(Merge, SumsAndWhoStandsOut) {
  RankSummary first;
  first.identity.run_id = "run";
  first.kernels = {{{"decode", "k", "gemm"}, {2, 20, 8, 12, {{8, 1}, {12, 1}}}}};
  first.collectives = {{"world", 0, "decode", "nccl", 100, 30}};
  RankSummary second = first;
  second.identity.rank = 1;
  second.kernels[0].total_ns = 50;
  second.kernels[0].max_ns = 40;
  second.collectives[0].duration_ns = 10;
  second.collectives[0].arrival_ns = 7;  // its own clock
  RankSummary third = second;
  third.identity.rank = 2;
  FleetMerge merge;
  for (const RankSummary& rank : {third, first, second}) {
    merge.add(summary_bytes(rank));
  }
  const FleetSummary fleet = merge.finish();
  ASSERT_EQ(fleet.kernels.size(), 1U);
  const FleetKernel& kernel = fleet.kernels[0];
  EXPECT_EQ(kernel.num_ranks, 3);
  EXPECT_EQ(kernel.calls, 6);
  EXPECT_EQ(kernel.total_ns, 120);
  EXPECT_EQ(kernel.min_ns, 8);
  EXPECT_EQ(kernel.max_ns, 40);
  EXPECT_EQ(kernel.histogram, (std::map<int, std::int64_t>{{8, 3}, {12, 3}}));
  EXPECT_EQ(kernel.slowest_mean_ns, 25);
  EXPECT_EQ(kernel.slowest_rank, 1);
  ASSERT_EQ(fleet.collectives.size(), 1U);
  EXPECT_EQ(fleet.collectives[0].num_ranks, 3);
  EXPECT_EQ(fleet.collectives[0].shortest_ns, 10);
  EXPECT_EQ(fleet.collectives[0].last_rank, 1);
  EXPECT_EQ(fleet.collectives[0].longest_ns, 30);
  EXPECT_EQ(fleet.collectives[0].total_ns, 50);
}

TEST(Merge, ARankCountsOnce) {
  SteadyRandom random(5);
  const std::vector<std::string> files = random_ranks(4, random);
  const std::string expected = merged(files);
  std::vector<std::string> twice = files;
  twice.insert(twice.end(), files.begin(), files.end());
  EXPECT_TRUE(merged(twice) == expected);
  EXPECT_TRUE(merged({expected, files[2], expected}) == expected);
  EXPECT_TRUE(merged({files[2], expected}) == expected);
  const std::string part = merged({files[0], files[1]});
  EXPECT_TRUE(merged({part, expected}) == expected);
  EXPECT_TRUE(merged({expected, part}) == expected);
}

TEST(Merge, WhatCannotBeTakenOutAgainIsRefused) {
  SteadyRandom random(5);
  const std::vector<std::string> files = random_ranks(3, random);
  expect_error(
      [&] {
        merged({merged({files[0], files[1]}), merged({files[1], files[2]})});
      },
      ErrorKind::kInput, HasSubstr("some ranks in common"), HasSubstr("own summaries"));
  RankSummary other = read_summary(files[1]);
  other.identity.started_unix_s = 99;
  expect_error(
      [&] {
        merged({files[1], summary_bytes(other)});
      },
      ErrorKind::kInput, HasSubstr("rank 1 of attempt 0 comes twice"), HasSubstr("leave one"));
  other.identity.run_id = "another";
  expect_error(
      [&] {
        merged({files[1], summary_bytes(other)});
      },
      ErrorKind::kInput, HasSubstr("two runs: 'run' and 'another'"), HasSubstr("one run"));
}

// Its checksum is right, and only a column is damaged: what was merged before must stay.
TEST(Merge, ADamagedSummaryChangesNothing) {
  SteadyRandom random(5);
  std::vector<std::string> files = random_ranks(4, random);
  FleetMerge merge;
  for (const std::string& file : files) {
    merge.add(file);
  }
  const std::string before = fleet_bytes(merge.finish());
  RankSummary later = random_rank(9, random);
  later.identity.attempt = 3;
  later.kernels = {{{"decode", "k", "gemm"}, {1, 5, 5, 5, {{80, 1}}}}};
  std::string bytes = summary_bytes(later);
  const std::size_t at = bytes.find("kernel.total_ns");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 15 + 1] = 7;  // another number of values
  with_checksum(bytes);
  EXPECT_THROW(merge.add(bytes), Error);
  EXPECT_EQ(fleet_bytes(merge.finish()), before);
  RankSummary other = random_rank(9, random);
  other.identity.run_id = "another";
  EXPECT_THROW(merge.add(summary_bytes(other)), MergeConflict);
}

TEST(Merge, TheHighestAttemptCounts) {
  SteadyRandom random(11);
  std::vector<std::string> files;
  std::vector<std::string> newest;
  for (std::int64_t attempt = 0; attempt < 3; ++attempt) {
    newest.clear();
    for (std::int64_t rank = attempt == 2 ? 1 : 0; rank < 4; ++rank) {
      RankSummary summary = random_rank(rank, random);
      summary.identity.attempt = attempt;
      newest.push_back(summary_bytes(summary));
    }
    files.insert(files.end(), newest.begin(), newest.end());
  }
  const std::string expected = merged(files);
  FleetSummary fleet = read_fleet(expected);
  EXPECT_EQ(fleet.ranks.size(), 3U);
  EXPECT_EQ(fleet.older.size(), 8U);
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(merged_as_a_tree(files, random) == expected);
  }
  fleet.older.clear();
  EXPECT_TRUE(fleet_bytes(fleet) == merged(newest));
}

TEST(Merge, HostileBytesEndInAnError) {
  SteadyRandom random(1);
  for (const std::string& good : {random_ranks(1, random)[0], merged(random_ranks(5, random))}) {
    std::size_t num_refused = 0;
    for (int round = 0; round < 10'000; ++round) {
      std::string bad = good;
      for (std::size_t change = 0; change <= random.below(3); ++change) {
        bad[12 + random.below(bad.size() - 12)] = static_cast<char>(random.next());
      }
      with_checksum(bad);
      FleetMerge merge;
      try {
        merge.add(bad);
        merge.add(good);
        fleet_bytes(merge.finish());
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kInput);
        ++num_refused;
      }
    }
    EXPECT_GT(num_refused, 1000U);
  }
}

}  // namespace
}  // namespace gpuwhy
