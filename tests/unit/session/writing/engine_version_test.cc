// SPDX-License-Identifier: Apache-2.0
#include "session/writing/engine_version.h"

#include <filesystem>
#include <fstream>

#include "session/record/rank_run.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
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

// A version that knows some, all or none of what the preset sets.
TEST(EngineVersion, WhatTheSourcesDoNotHaveIsNotSet) {
  const TemporaryDirectory folder;
  const std::string program = folder.path() / "bin" / "vllm";
  const fs::path packages = folder.path() / "lib" / "python3.12" / "site-packages";
  EXPECT_FALSE(preset_fit({program, "serve"}));
  fs::create_directories(packages / "vllm" / "config");
  fs::create_directories(packages / "vllm-0.9.1.dist-info");
  const std::vector<std::string> arguments = {
      "--profiler-config.profiler", "cuda", "--profiler-config.detailed_trace_annotation", "true"};
  const auto unknown = [&] { return preset_fit({program, "serve"})->unknown; };
  const auto accepted = [&] { return accepted_arguments(arguments, unknown()); };
  EXPECT_THAT(unknown(), ElementsAre("profiler", "detailed_trace_annotation", "max_iterations"));
  EXPECT_THAT(accepted(), ElementsAre());
  const fs::path source = packages / "vllm" / "config" / "profiler.py";
  std::ofstream(source) << "torch_profiler_dir: str\nprofiler: str\nmax_iterations: int\n";
  EXPECT_THAT(unknown(), ElementsAre("detailed_trace_annotation"));
  EXPECT_THAT(accepted(), ElementsAre("--profiler-config.profiler", "cuda"));

  System system;
  fs::create_directories(folder.path() / "bin");
  std::ofstream(program) << "#!/bin/sh\n";
  fs::permissions(program, fs::perms::owner_all);
  system.environment["PATH"] = folder.path() / "bin";
  const Check check = check_engines(system);
  EXPECT_EQ(check.status, CheckStatus::kWarn);
  EXPECT_EQ(check.finding,
            "vllm 0.9.1 has no detailed_trace_annotation in vllm/config/profiler.py, which its "
            "preset uses (read in 0.26.1rc0)");

  std::ofstream(source, std::ios::app) << "detailed_trace_annotation: bool\n";
  EXPECT_THAT(unknown(), ElementsAre());
  EXPECT_EQ(accepted(), arguments);
  EXPECT_EQ(check_engines(system).status, CheckStatus::kOk);
  system.environment["PATH"] = "/nowhere";
  EXPECT_EQ(check_engines(system).status, CheckStatus::kSkip);
}

TEST(EngineVersion, LabelsOfTheEnvironmentWin) {
  System system;
  system.environment = {{"SLURM_JOB_ID", "4711"},
                        {"GITHUB_SHA", "1f3c"},
                        {"SLURM_CLUSTER_NAME", "a b,c"},
                        {"GPUWHY_LABELS", "job=mine,engine=own,engine_version=3"}};
  const RankIdentity identity = described_run({"/bin/true"}, system);
  EXPECT_EQ(identity.labels, "git_sha=1f3c\njob=mine");
  EXPECT_EQ(identity.engine, "own");
  EXPECT_EQ(identity.engine_version, "3");
  system.environment["GPUWHY_LABELS"] = "nonsense";
  EXPECT_THROW(described_run({"/bin/true"}, system), Error);
}

}  // namespace
}  // namespace gpuwhy
