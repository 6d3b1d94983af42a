// SPDX-License-Identifier: Apache-2.0
#include "session/engine_version.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "session/rank_run.h"
#include "temporary.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

TEST(EngineVersion, IsThatOfThePackageBesideTheProgram) {
  const TemporaryDirectory folder;
  const std::string program = folder.path() / "bin" / "vllm";
  const fs::path packages = folder.path() / "lib" / "python3.12" / "site-packages";
  fs::create_directories(packages / "vllm-0.10.1.dist-info");
  fs::create_directories(packages / "vllm_flash_attn-2.6.dist-info");
  EXPECT_EQ(engine_of({program, "serve", "model"}).name, "vllm");
  EXPECT_EQ(engine_of({program, "serve", "model"}).version, "0.10.1");
  // Two versions: which one is imported is not known.
  fs::create_directories(packages / "vllm-0.9.dist-info");
  EXPECT_EQ(engine_of({program, "serve"}).version, "");
  EXPECT_EQ(engine_of({program, "serve"}).name, "vllm");
  EXPECT_EQ(engine_of({"/bin/true"}).name, "");
  EXPECT_EQ(engine_of({}).name, "");
}

TEST(EngineVersion, LabelsOfTheEnvironmentWin) {
  System system;
  system.environment = {{"SLURM_JOB_ID", "4711"},
                        {"GITHUB_SHA", "1f3c"},
                        {"SLURM_CLUSTER_NAME", "a b,c"},
                        {"LLMPROF_LABELS", "job=mine,engine=own,engine_version=3"}};
  const RankIdentity identity = described_run({"/bin/true"}, system);
  EXPECT_EQ(identity.labels, "git_sha=1f3c\njob=mine");
  EXPECT_EQ(identity.engine, "own");
  EXPECT_EQ(identity.engine_version, "3");
  system.environment["LLMPROF_LABELS"] = "nonsense";
  EXPECT_THROW(described_run({"/bin/true"}, system), Error);
}

}  // namespace
}  // namespace llmprof
