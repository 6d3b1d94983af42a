// SPDX-License-Identifier: Apache-2.0
//
// Simulated jobs with one late rank whose cause is known: a merge must name the rank and the cause.
//
// A step is compute, copies and the CPU's gaps, then a collective of the node and one of all ranks.
// Collectives end for all members one transfer after the last arrival. A rank with a slow network
// leaves that of its node later, and so comes late to the next.
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "compare/statistics.h"
#include "fleet/merge/job_report.h"
#include "results/duration_histogram.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kTransferNs = 30'000;
constexpr std::size_t kNumKernels = 12;

struct PlantedJob {
  LateCause cause = LateCause::kUnknown;
  std::int64_t num_ranks = 0;
  std::int64_t per_node = 0;
  std::int64_t num_steps = 0;
  std::int64_t late_rank = 0;
  std::size_t slow_kernel = 0;
  double severity = 0;  // lateness per step, as a share of the compute time
};

PlantedJob random_job(SteadyRandom& random) {
  constexpr std::array<LateCause, 6> kCauses = {LateCause::kKernel,  LateCause::kClocks,
                                                LateCause::kHost,    LateCause::kCopies,
                                                LateCause::kNetwork, LateCause::kUnknown};
  PlantedJob job;
  job.cause = kCauses[random.below(kCauses.size())];
  job.per_node = 4 + static_cast<std::int64_t>(random.below(5));
  job.num_ranks = job.per_node * (2 + static_cast<std::int64_t>(random.below(3)));
  job.num_steps = 10 + static_cast<std::int64_t>(random.below(20));
  job.late_rank = static_cast<std::int64_t>(random.below(static_cast<std::size_t>(job.num_ranks)));
  job.slow_kernel = random.below(kNumKernels);
  job.severity = 0.06 + 0.001 * static_cast<double>(random.below(340));
  return job;
}

// Means of a step on one rank.
struct StepTimes {
  std::array<std::int64_t, kNumKernels> kernel_ns{};
  std::int64_t compute_ns = 0;
  std::int64_t copy_ns = 0;
  std::int64_t host_ns = 0;
  std::int64_t leaves_late_ns = 0;
};

StepTimes step_of(const PlantedJob& job, std::int64_t rank, SteadyRandom& random) {
  const auto noisy = [&](double mean) {
    return static_cast<std::int64_t>(mean * (1 + 0.01 * random.normal()));
  };
  double whole_ns = 0;
  std::array<double, kNumKernels> means{};
  for (std::size_t kernel = 0; kernel < kNumKernels; ++kernel) {
    means[kernel] = 20'000 + 9'000 * static_cast<double>(kernel);
    whole_ns += means[kernel];
  }
  const double late_ns = rank == job.late_rank ? job.severity * whole_ns : 0;
  StepTimes step;
  for (std::size_t kernel = 0; kernel < kNumKernels; ++kernel) {
    double mean = means[kernel];
    if (job.cause == LateCause::kClocks) {
      mean *= 1 + late_ns / whole_ns;
    } else if (job.cause == LateCause::kKernel && kernel == job.slow_kernel) {
      mean += late_ns;
    }
    step.kernel_ns[kernel] = noisy(mean);
    step.compute_ns += step.kernel_ns[kernel];
  }
  step.copy_ns = noisy(15'000 + (job.cause == LateCause::kCopies ? late_ns : 0));
  step.host_ns = noisy(25'000 + (job.cause == LateCause::kHost ? late_ns : 0));
  step.leaves_late_ns = job.cause == LateCause::kNetwork ? static_cast<std::int64_t>(late_ns) : 0;
  return step;
}

class PlantedRanks {
 public:
  PlantedRanks(const PlantedJob& job, SteadyRandom& random) : job_(job) {
    for (std::int64_t rank = 0; rank < job.num_ranks; ++rank) {
      steps_.push_back(step_of(job, rank, random));
      RankSummary& summary = ranks_.emplace_back();
      summary.identity.run_id = "planted";
      summary.identity.rank = rank;
      summary.identity.num_ranks = job.num_ranks;
      summary.identity.node = fmt::format("node-{}", rank / job.per_node);
    }
    clock_ns_.resize(ranks_.size());
    comm_ns_.resize(ranks_.size());
    for (std::int64_t step = 0; step < job.num_steps; ++step) {
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        clock_ns_[i] += steps_[i].compute_ns + steps_[i].copy_ns + steps_[i].host_ns;
      }
      for (std::int64_t first = 0; first < job.num_ranks; first += job.per_node) {
        meet(fmt::format("node {}", first / job.per_node), step, first, first + job.per_node);
      }
      meet("world", step, 0, job.num_ranks);
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      close(i);
    }
  }

  const std::vector<RankSummary>& ranks() const { return ranks_; }

 private:
  void meet(const std::string& communicator, std::int64_t sequence, std::int64_t first,
            std::int64_t end) {
    std::int64_t last_ns = 0;
    for (std::int64_t rank = first; rank < end; ++rank) {
      last_ns = std::max(last_ns, clock_ns_[static_cast<std::size_t>(rank)]);
    }
    for (std::int64_t rank = first; rank < end; ++rank) {
      const auto i = static_cast<std::size_t>(rank);
      const std::int64_t late_ns = communicator == "world" ? 0 : steps_[i].leaves_late_ns;
      const std::int64_t duration_ns = last_ns + kTransferNs + late_ns - clock_ns_[i];
      ranks_[i].collectives.push_back(
          {communicator, sequence, "decode", "nccl", clock_ns_[i], duration_ns});
      comm_ns_[i] += duration_ns;
      clock_ns_[i] += duration_ns;
    }
  }

  void close(std::size_t i) {
    StageSums stage;
    stage.stage = "decode";
    stage.instances = job_.num_steps;
    const auto put = [&](Bucket bucket, std::int64_t time_ns) {
      stage.buckets_ns[static_cast<std::size_t>(bucket)] = time_ns;
      stage.window_ns += time_ns;
    };
    put(Bucket::kCompute, steps_[i].compute_ns * job_.num_steps);
    put(Bucket::kCopy, steps_[i].copy_ns * job_.num_steps);
    put(Bucket::kLaunchLate, steps_[i].host_ns * job_.num_steps);
    put(Bucket::kComm, comm_ns_[i]);
    stage.total_ns = stage.window_ns;
    ranks_[i].stages = {stage};
    for (std::size_t kernel = 0; kernel < kNumKernels; ++kernel) {
      const std::int64_t one_ns = steps_[i].kernel_ns[kernel];
      ranks_[i].kernels.push_back({{"decode", fmt::format("kernel_{:02}", kernel), "gemm"},
                                   {job_.num_steps,
                                    one_ns * job_.num_steps,
                                    one_ns,
                                    one_ns,
                                    {{bin_of(one_ns), job_.num_steps}}}});
    }
    ranks_[i].kernels.push_back(
        {{"decode", "nccl", "communication"},
         {2 * job_.num_steps, comm_ns_[i], 1, comm_ns_[i], {{bin_of(1), 2 * job_.num_steps}}}});
  }

  const PlantedJob& job_;
  std::vector<StepTimes> steps_;
  std::vector<RankSummary> ranks_;
  std::vector<std::int64_t> clock_ns_;
  std::vector<std::int64_t> comm_ns_;
};

// GPUWHY_SEED=N makes other jobs.
TEST(PlantedCauses, AreNamedInAThousandOfAThousandJobs) {
  const char* const seed_text = std::getenv("GPUWHY_SEED");
  SteadyRandom random(seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : 2026);
  std::array<int, 7> num_by_cause{};
  for (int seed = 0; seed < 1000; ++seed) {
    const PlantedJob job = random_job(random);
    const PlantedRanks planted(job, random);
    const FleetReport report = report_job(planted.ranks());
    const RankVerdict& worst = report.ranks[report.stragglers[0]];
    ++num_by_cause[static_cast<std::size_t>(job.cause)];
    const std::string what = fmt::format(
        "job {}: {} at rank {} of {}, severity {:.3f}; found {} at rank {}", seed, id_of(job.cause),
        job.late_rank, job.num_ranks, job.severity, id_of(worst.cause), worst.rank);
    std::int64_t blamed_ns = 0;
    for (const RankVerdict& verdict : report.ranks) {
      blamed_ns += verdict.blamed_ns;
    }
    ASSERT_EQ(blamed_ns, report.collectives.waiting_ns) << what;
    if (job.cause == LateCause::kUnknown) {
      // Nothing is planted: noise is not a straggler.
      ASSERT_FALSE(worst.is_straggler) << what;
      ASSERT_NE(report.lateness, FleetReport::Lateness::kPinned) << what;
      continue;
    }
    ASSERT_TRUE(worst.is_straggler) << what;
    ASSERT_EQ(worst.rank, job.late_rank) << what;
    ASSERT_EQ(id_of(worst.cause), id_of(job.cause)) << what;
    ASSERT_EQ(report.lateness, FleetReport::Lateness::kPinned) << what;
    if (job.cause == LateCause::kKernel) {
      ASSERT_EQ(worst.reason.kernel, fmt::format("kernel_{:02}", job.slow_kernel)) << what;
    }
    // What was planted is what the job lost, but for noise.
    const double planted_ns = job.severity * 834'000 * static_cast<double>(job.num_steps);
    ASSERT_NEAR(static_cast<double>(worst.lost_ns) / planted_ns, 1, 0.25) << what;
  }
  for (const LateCause cause : {LateCause::kUnknown, LateCause::kKernel, LateCause::kClocks,
                                LateCause::kHost, LateCause::kCopies, LateCause::kNetwork}) {
    EXPECT_GT(num_by_cause[static_cast<std::size_t>(cause)], 100);
  }
}

// Every rank is late in its turn: no single one is to blame.
TEST(PlantedCauses, LatenessThatRotatesIsNobodys) {
  std::vector<RankSummary> ranks(8);
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    RankSummary& summary = ranks[static_cast<std::size_t>(rank)];
    summary.identity.run_id = "turns";
    summary.identity.rank = rank;
    summary.identity.num_ranks = 8;
    summary.kernels = {{{"decode", "k", "gemm"}, {16, 16'000'000, 1, 2'000'000, {{80, 16}}}}};
    StageSums stage;
    stage.stage = "decode";
    stage.window_ns = 16'000'000;
    stage.buckets_ns[static_cast<std::size_t>(Bucket::kCompute)] = 16'000'000;
    summary.stages = {stage};
    for (std::int64_t sequence = 0; sequence < 16; ++sequence) {
      summary.collectives.push_back(
          {"world", sequence, "decode", "nccl", 0, sequence % 8 == rank ? 10'000 : 500'000});
    }
  }
  const FleetReport report = report_job(ranks);
  EXPECT_EQ(report.lateness, FleetReport::Lateness::kRotating);
  EXPECT_FALSE(report.ranks[report.stragglers[0]].is_straggler);
}

}  // namespace
}  // namespace gpuwhy
