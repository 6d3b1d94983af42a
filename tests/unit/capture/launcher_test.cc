// SPDX-License-Identifier: Apache-2.0
#include "capture/launcher.h"

#include "testing.h"

namespace gpuwhy {
namespace {

std::optional<LaunchedRank> rank_in(std::map<std::string, std::string> environment) {
  System system;
  system.environment = std::move(environment);
  return launched_rank(system);
}

TEST(Launcher, NobodyLaunchedThis) {
  EXPECT_FALSE(rank_in({}));
  EXPECT_FALSE(rank_in({{"RANK", "3"}}));  // of how many?
  // A batch script of Slurm, and a single task.
  EXPECT_FALSE(rank_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "5"}}));
  EXPECT_FALSE(rank_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
}

TEST(Launcher, Slurm) {
  const auto rank = rank_in({{"SLURM_PROCID", "7"},
                             {"SLURM_STEP_NUM_TASKS", "16"},
                             {"SLURM_NTASKS", "16"},
                             {"SLURM_JOB_ID", "4711"},
                             {"SLURM_STEP_ID", "2"},
                             {"SLURM_RESTART_COUNT", "1"},
                             {"SLURMD_NODENAME", "n3"}});
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->launcher, "srun");
  EXPECT_EQ(rank->rank, 7);
  EXPECT_EQ(rank->num_ranks, 16);
  EXPECT_EQ(rank->attempt, 1);
  EXPECT_EQ(rank->run_id, "slurm-4711.2");
  EXPECT_EQ(rank->node, "n3");
}

// mpirun inside a Slurm job: SLURM_PROCID counts its daemons.
TEST(Launcher, TheInnermostIsBelieved) {
  const std::map<std::string, std::string> slurm = {{"SLURM_PROCID", "1"},
                                                    {"SLURM_STEP_NUM_TASKS", "4"},
                                                    {"SLURM_JOB_ID", "9"},
                                                    {"SLURM_STEP_ID", "0"}};
  auto inside_mpi = slurm;
  inside_mpi.insert({{"OMPI_COMM_WORLD_RANK", "11"}, {"OMPI_COMM_WORLD_SIZE", "32"}});
  EXPECT_EQ(rank_in(inside_mpi)->rank, 11);
  EXPECT_EQ(rank_in(inside_mpi)->num_ranks, 32);
  auto inside_torchrun = slurm;
  inside_torchrun.insert(
      {{"RANK", "5"}, {"WORLD_SIZE", "64"}, {"TORCHELASTIC_RESTART_COUNT", "2"}});
  EXPECT_EQ(rank_in(inside_torchrun)->rank, 5);
  EXPECT_EQ(rank_in(inside_torchrun)->attempt, 2);
  EXPECT_EQ(rank_in(inside_torchrun)->run_id, "slurm-9.0");
}

TEST(Launcher, ARankMustBeOneOfTheJob) {
  expect_error(
      [] {
        rank_in({{"RANK", "8"}, {"WORLD_SIZE", "8"}});
      },
      ErrorKind::kUsage, HasSubstr("RANK=8 is not a rank of WORLD_SIZE=8"), HasSubstr("unset"));
}

TEST(Launcher, AJobNeedsAName) {
  const std::map<std::string, std::string> mpi = {{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
  expect_error([&] { rank_in(mpi); }, ErrorKind::kUsage, HasSubstr("not of which job"),
               HasSubstr("GPUWHY_RUN_ID=NAME"));
  auto named = mpi;
  named["GPUWHY_RUN_ID"] = "run-1";
  EXPECT_EQ(rank_in(named)->run_id, "run-1");
  for (const char* bad : {"../x", "a/b", ".hidden", "-x", "a b"}) {
    named["GPUWHY_RUN_ID"] = bad;
    EXPECT_THROW(rank_in(named), Error) << bad;
  }
  named["GPUWHY_RUN_ID"] = "run-1";
  named["PMI_RANK"] = "one";
  EXPECT_THROW(rank_in(named), Error);
}

}  // namespace
}  // namespace gpuwhy
