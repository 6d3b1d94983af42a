// SPDX-License-Identifier: Apache-2.0
#include "capture/rank_command.h"

#include "capture/workload.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(RankCommand, TheProgramIsFoundBehindTheLaunchersOptions) {
  const auto program = [](const char* line) {
    const std::vector<std::string> argv = split_command(line);
    const auto found = rank_command(argv);
    return found ? argv[found->program] + " " + std::to_string(found->num_ranks.value_or(-1))
                 : "none";
  };
  EXPECT_EQ(program("mpirun -n 8 trtllm-llmapi-launch trtllm-serve model"),
            "trtllm-llmapi-launch 8");
  EXPECT_EQ(program("/opt/ompi/bin/mpirun --allow-run-as-root -np 2 -x A=1 --mca btl tcp,self "
                    "--bind-to none ./serve -n 4"),
            "./serve 2");
  EXPECT_EQ(program("mpiexec.hydra -genv A 1 -n 4 python serve.py"), "python 4");
  EXPECT_EQ(program("srun --mpi=pmix --ntasks=8 bash run.sh"), "bash 8");
  EXPECT_EQ(program("srun --mpi pmix bash run.sh"), "bash -1");
  EXPECT_EQ(program("mpirun -n 2 -- ./serve"), "./serve 2");
  // Elsewhere their files would not be here.
  EXPECT_EQ(program("mpirun -n 16 --hostfile hosts ./serve"), "none");
  EXPECT_EQ(program("mpirun -H a,b -n 16 ./serve"), "none");
  EXPECT_EQ(program("srun --nodes=2 --ntasks=16 ./serve"), "none");
  EXPECT_EQ(program("trtllm-serve model --tp_size 8"), "none");
  EXPECT_EQ(program("mpirun -n 8"), "none");
  EXPECT_EQ(program("mpirun -n"), "none");
}

TEST(RankCommand, OnlyTheProfilersOptionsGetTheRank) {
  EXPECT_THAT(as_rank({"/usr/bin/nsys", "profile", "--output=/b/rank-{rank}.nsys-rep",
                       "--session-new=a-{rank}", "serve", "--name={rank}"},
                      3),
              ElementsAre("/usr/bin/nsys", "profile", "--output=/b/rank-3.nsys-rep",
                          "--session-new=a-3", "serve", "--name={rank}"));
}

}  // namespace
}  // namespace gpuwhy
