// SPDX-License-Identifier: Apache-2.0
//
// A made machine: files under a root of the test's, tools as small scripts.
#include "capture/doctor.h"

#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// As /proc/<pid>/stat, whose fields behind the parent do not matter here.
std::string stat_line(int pid, const std::string& name) {
  std::string line = std::to_string(pid) + " (" + name + ") S 1";
  for (int field = 5; field <= 52; ++field) {
    line += " 0";
  }
  return line + "\n";
}

class Machine : public testing::Test {
 protected:
  Machine() {
    system.root = directory.path() / "root";
    system.environment = {{"PATH", (directory.path() / "bin").string()},
                          {"TMPDIR", directory.path().string()},
                          {"HOME", directory.path().string()}};
    set_capabilities("0000000000000000");
  }

  void set_capabilities(const std::string& hex) {
    directory.add("root/proc/self/status", "Name:\tx\nCapEff:\t" + hex + "\nSeccomp:\t0\n");
  }

  void add_driver(const std::string& version, int admin_only) {
    directory.add("root/proc/driver/nvidia/version",
                  "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " + version +
                      "  Release Build  (x@y)\nGCC version: 12.2.0\n");
    directory.add("root/proc/driver/nvidia/params",
                  "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: " +
                      std::to_string(admin_only) + "\nDmaRemapPeerMmio: 1\n");
  }

  void add_gpu(const std::string& mig, const std::string& persistence) {
    directory.add_script("bin/nvidia-smi", "echo '0, 81559, " + mig + ", " + persistence +
                                               ", 550.54.15, NVIDIA H100 80GB HBM3'\n");
  }

  Check check(const std::string& id) {
    const Diagnosis diagnosis = diagnose(system, directory.path() / "not/yet/there");
    for (const Check& one : diagnosis.checks) {
      if (one.id == id) {
        return one;
      }
    }
    ADD_FAILURE() << "no check " << id;
    return {};
  }

  TemporaryDirectory directory;
  System system;
};

TEST_F(Machine, WithoutDriverSaysSoAndSkipsWhatNeedsOne) {
  EXPECT_EQ(check("driver").status, CheckStatus::kFail);
  EXPECT_THAT(check("driver").remedy, HasSubstr("install NVIDIA's driver"));
  for (const char* id : {"gpus", "counter_permission", "gpu_sharing", "gpu_persistence"}) {
    EXPECT_EQ(check(id).status, CheckStatus::kSkip) << id;
  }
}

TEST_F(Machine, EveryFailureAndWarningHasARemedy) {
  add_driver("535.104.05", 1);
  const Diagnosis diagnosis = diagnose(system, "/proc/nothing");
  for (const Check& one : diagnosis.checks) {
    if (one.status == CheckStatus::kFail || one.status == CheckStatus::kWarn) {
      EXPECT_NE(one.remedy, "") << one.id;
      EXPECT_EQ(one.remedy.find('\n'), std::string::npos) << one.id;
    }
    EXPECT_NE(one.finding, "") << one.id;
  }
}

TEST_F(Machine, FindsDriverAndGpus) {
  add_driver("550.54.15", 0);
  add_gpu("Disabled", "Enabled");
  EXPECT_EQ(check("driver").finding, "NVIDIA driver 550.54.15");
  EXPECT_EQ(check("gpus").finding, "0: NVIDIA H100 80GB HBM3 (79.6 GiB)");
  EXPECT_EQ(check("counter_permission").status, CheckStatus::kOk);
  EXPECT_EQ(check("gpu_sharing").status, CheckStatus::kOk);
  EXPECT_EQ(check("gpu_persistence").status, CheckStatus::kOk);
}

TEST_F(Machine, ABrokenNvidiaSmiIsSaid) {
  add_driver("550.54.15", 0);
  EXPECT_THAT(check("gpus").finding, HasSubstr("nvidia-smi is not on PATH"));
  directory.add_script("bin/nvidia-smi", "echo 'Failed to initialize NVML'; exit 9\n");
  EXPECT_THAT(check("gpus").finding, HasSubstr("Failed to initialize NVML"));
  EXPECT_EQ(check("gpus").status, CheckStatus::kFail);
}

TEST_F(Machine, AnUnusableNvidiaSmiDoesNotStopTheReport) {
  add_driver("550.54.15", 0);
  const auto smi = directory.add("bin/nvidia-smi", "not a program");
  std::filesystem::permissions(smi, std::filesystem::perms::owner_all);
  EXPECT_THAT(check("gpus").finding, HasSubstr("cannot start"));
}

TEST_F(Machine, OneLostGpuDoesNotHideTheOthers) {
  add_driver("550.54.15", 0);
  directory.add_script(
      "bin/nvidia-smi",
      "echo '0, 81559, Disabled, Enabled, 550.54.15, NVIDIA H100 80GB HBM3'\n"
      "echo 'Unable to determine the device handle for GPU1: Unknown Error'; exit 15\n");
  EXPECT_EQ(check("gpus").status, CheckStatus::kWarn);
  EXPECT_THAT(check("gpus").finding,
              AllOf(HasSubstr("NVIDIA H100 80GB HBM3"), HasSubstr("nvidia-smi failed")));
}

TEST_F(Machine, WhatTheDriverDoesNotSayIsNotZero) {
  add_driver("580.1", 0);
  directory.add_script("bin/nvidia-smi", "echo '0, [N/A], [N/A], [N/A], 580.1, NVIDIA GB10'\n");
  EXPECT_EQ(check("gpus").finding, "0: NVIDIA GB10 (memory shared with the CPU)");
  EXPECT_EQ(check("gpu_persistence").status, CheckStatus::kSkip);
}

// WSL2 has a driver but no /proc/driver/nvidia.
TEST_F(Machine, TheDriverIsAlsoKnownFromNvidiaSmi) {
  add_gpu("[N/A]", "Enabled");
  EXPECT_EQ(check("driver").finding, "NVIDIA driver 550.54.15");
  EXPECT_EQ(check("gpus").status, CheckStatus::kOk);
}

TEST_F(Machine, CapabilitiesInsideAUserNamespaceDoNotCount) {
  add_driver("535.104.05", 1);
  set_capabilities("0000000000200000");
  directory.add("root/proc/self/uid_map", "         0       1000          1\n");
  EXPECT_EQ(check("counter_permission").status, CheckStatus::kFail);
  directory.add("root/proc/self/uid_map", "         0          0 4294967295\n");
  EXPECT_EQ(check("counter_permission").status, CheckStatus::kOk);
}

TEST_F(Machine, APlaceThatCannotBeWrittenIsSaid) {
  const auto file = directory.add("file", "");
  const Diagnosis diagnosis = diagnose(system, file);
  const auto disk = std::find_if(diagnosis.checks.begin(), diagnosis.checks.end(),
                                 [](const Check& one) { return one.id == "disk"; });
  EXPECT_EQ(disk->status, CheckStatus::kFail);
}

TEST_F(Machine, CountersForAdministrators) {
  add_driver("535.104.05", 1);
  EXPECT_EQ(check("counter_permission").status, CheckStatus::kFail);
  EXPECT_THAT(check("counter_permission").remedy, HasSubstr("RestrictProfilingToAdminUsers=0"));
  set_capabilities("0000000000200000");  // CAP_SYS_ADMIN
  EXPECT_EQ(check("counter_permission").status, CheckStatus::kOk);
  set_capabilities("0000004000000000");  // CAP_PERFMON, which this driver does not take
  EXPECT_EQ(check("counter_permission").status, CheckStatus::kFail);
  add_driver("565.57.01", 1);
  EXPECT_EQ(check("counter_permission").status, CheckStatus::kOk);
}

TEST_F(Machine, ContainersGetTheirOwnRemedy) {
  add_driver("535.104.05", 1);
  directory.add("root/.dockerenv", "");
  EXPECT_THAT(check("counter_permission").remedy, HasSubstr("--cap-add=SYS_ADMIN"));
  EXPECT_EQ(check("container").finding, "docker container");
  add_driver("570.1.1", 1);
  EXPECT_THAT(check("counter_permission").remedy, HasSubstr("--cap-add=PERFMON"));
}

TEST_F(Machine, OtherCounterClientsAreNamed) {
  EXPECT_EQ(check("counter_clients").status, CheckStatus::kOk);
  directory.add("root/proc/4711/stat", stat_line(4711, "nv-hostengine"));
  EXPECT_EQ(check("counter_clients").status, CheckStatus::kWarn);
  EXPECT_THAT(check("counter_clients").finding, HasSubstr("nv-hostengine (pid 4711)"));
  EXPECT_THAT(check("counter_clients").remedy, HasSubstr("dcgmi profiling --pause"));
}

TEST_F(Machine, SharedGpusAreWarnedOf) {
  add_driver("550.54.15", 0);
  add_gpu("Enabled", "Disabled");
  EXPECT_THAT(check("gpu_sharing").finding, HasSubstr("MIG"));
  EXPECT_NE(check("gpu_sharing").remedy, "");
  EXPECT_EQ(check("gpu_persistence").status, CheckStatus::kWarn);
  directory.add("root/proc/99/stat", stat_line(99, "nvidia-cuda-mps"));
  EXPECT_THAT(check("gpu_sharing").finding, HasSubstr("MPS"));
}

TEST_F(Machine, ParanoidKernelsAreWarnedOf) {
  EXPECT_EQ(check("perf_event_paranoid").status, CheckStatus::kSkip);
  directory.add("root/proc/sys/kernel/perf_event_paranoid", "2\n");
  EXPECT_EQ(check("perf_event_paranoid").status, CheckStatus::kOk);
  directory.add("root/proc/sys/kernel/perf_event_paranoid", "4\n");
  EXPECT_EQ(check("perf_event_paranoid").status, CheckStatus::kWarn);
}

TEST_F(Machine, DirectoriesAreLookedAt) {
  EXPECT_NE(check("disk").status, CheckStatus::kSkip) << "the nearest parent stands for it";
  EXPECT_EQ(check("home").status, CheckStatus::kOk);
  system.environment["HOME"] = "/absent";
  EXPECT_EQ(check("home").status, CheckStatus::kWarn);
  system.environment["TMPDIR"] = "/absent";
  EXPECT_EQ(check("tmpdir").status, CheckStatus::kFail);
}

TEST_F(Machine, ImporterMattersOnlyWithNsys) {
  EXPECT_EQ(check("nsys").status, CheckStatus::kFail);
  EXPECT_EQ(check("nsys_importer").status, CheckStatus::kSkip);
  directory.add_script("bin/nsys", "echo 'version 2024.1.1'\n");
  EXPECT_EQ(check("nsys").status, CheckStatus::kOk);
  EXPECT_EQ(check("nsys_importer").status, CheckStatus::kSkip) << "a script may start another nsys";
}

}  // namespace
}  // namespace gpuwhy
