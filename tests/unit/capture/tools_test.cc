// SPDX-License-Identifier: Apache-2.0
#include "capture/tools.h"

#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// A tool that answers its questions the way nsys 2022.4 does, or in the words given.
std::string nsys_script(const std::string& version, const std::string& reports) {
  return "case \"$*\" in\n"
         "  --version) echo 'NVIDIA Nsight Systems version " +
         version +
         "' ;;\n"
         "  'stats --help-reports') printf '" +
         reports +
         "' ;;\n"
         "  'profile --help') printf '\\t-c, --capture-range=\\n\\n\\t   Use --start-later here.\\n"
         "\\t--cuda-graph-trace=\\n\\t-t, --trace=\\n' ;;\n"
         "esac\n";
}

constexpr const char* kOldReports =
    "\\nThe following built-in reports are available:\\n\\n"
    "  gpukernsum[:base|:mangled] -- CUDA GPU Kernel Summary\\n  osrtsum -- OS Runtime Summary\\n";

System system_with(const TemporaryDirectory& directory) {
  return {{{"PATH", (directory.path() / "bin").string()}}, directory.path() / "root"};
}

TEST(ToolVersion, IsFoundInWhatToolsPrint) {
  const auto nsys = parse_tool_version("NVIDIA Nsight Systems version 2022.4.2.1-df9881f\n");
  ASSERT_TRUE(nsys);
  EXPECT_EQ(nsys->text(), "2022.4.2");
  EXPECT_EQ(nsys->full, "2022.4.2.1-df9881f");
  const auto ncu = parse_tool_version(
      "NVIDIA (R) Nsight Compute Command Line Profiler\nCopyright (c) 2018-2022 NVIDIA "
      "Corporation\nVersion 2022.3.0.0 (build 31729285) (public-release)\n");
  ASSERT_TRUE(ncu);
  EXPECT_EQ(ncu->text(), "2022.3.0");
  EXPECT_EQ(parse_tool_version("version 2026.10")->text(), "2026.10.0");
  for (const char* text : {"", "20", "version 3.1.4", "Copyright 2022", "2022.", "202222.4",
                           "12022.4.1", "2022.x", "2022.99999999999999999999"}) {
    EXPECT_FALSE(parse_tool_version(text)) << text;
  }
}

TEST(ToolVersion, Compares) {
  const ToolVersion version = *parse_tool_version("2023.1.0");
  EXPECT_TRUE(version.is_at_least(2023, 1));
  EXPECT_TRUE(version.is_at_least(2022, 4));
  EXPECT_FALSE(version.is_at_least(2023, 2));
  EXPECT_FALSE(version.is_at_least(2024, 0));
}

TEST(Nsys, DialectIsAsked) {
  const TemporaryDirectory directory;
  directory.add_script("bin/nsys", nsys_script("2022.4.2.1-df9881f", kOldReports));
  const NsysTool nsys = ensure_nsys(system_with(directory));
  EXPECT_TRUE(nsys.has_old_report_names);
  EXPECT_TRUE(nsys.reports_asked);
  EXPECT_EQ(nsys.kernel_summary_report, "gpukernsum");
  EXPECT_THAT(nsys.reports, ElementsAre("gpukernsum", "osrtsum"));
  EXPECT_THAT(nsys.options, ElementsAre("--capture-range", "--cuda-graph-trace", "--trace"));
  EXPECT_TRUE(nsys.has_option("--cuda-graph-trace"));
  EXPECT_FALSE(nsys.has_option("--start-later")) << "a word of the prose is not an option";
}

TEST(Nsys, WhatItDoesNotSayIsConcludedFromTheVersion) {
  const TemporaryDirectory directory;
  directory.add_script("bin/nsys",
                       "echo 'NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0'\n");
  const NsysTool nsys = ensure_nsys(system_with(directory));
  EXPECT_EQ(nsys.version.text(), "2025.3.1");
  EXPECT_FALSE(nsys.has_old_report_names);
  EXPECT_FALSE(nsys.reports_asked);
  EXPECT_EQ(nsys.kernel_summary_report, "cuda_gpu_kern_sum");
  EXPECT_THAT(nsys.options, IsEmpty());
}

TEST(Nsys, ImporterStandsBesideTheRealProgram) {
  const TemporaryDirectory directory;
  directory.add_script("nsight/target-linux-x64/nsys", nsys_script("2024.1.1", ""));
  std::filesystem::create_directories(directory.path() / "bin");
  std::filesystem::create_symlink("../nsight/target-linux-x64/nsys", directory.path() / "bin/nsys");
  EXPECT_TRUE(ensure_nsys(system_with(directory)).importer.empty());
  directory.add_script("nsight/host-linux-x64/QdstrmImporter", "exit 0\n");
  EXPECT_EQ(ensure_nsys(system_with(directory)).importer.filename(), "QdstrmImporter");
}

TEST(Tools, AreSoughtInOrder) {
  const TemporaryDirectory directory;
  System system = system_with(directory);
  directory.add_script("root/opt/nvidia/nsight-systems/2024.9.1/bin/nsys",
                       nsys_script("2024.9.1", ""));
  directory.add_script("root/opt/nvidia/nsight-systems/2024.10.1/bin/nsys",
                       nsys_script("2024.10.1", ""));
  EXPECT_EQ(ensure_nsys(system).version.text(), "2024.10.1") << "newest of NVIDIA's directories";
  directory.add_script("bin/nsys", nsys_script("2023.2.1", ""));
  EXPECT_EQ(ensure_nsys(system).version.text(), "2023.2.1") << "PATH comes first";
  system.environment["GPUWHY_NSYS"] =
      directory.add_script("elsewhere/my-nsys", nsys_script("2025.1.1", "")).string();
  EXPECT_EQ(ensure_nsys(system).version.text(), "2025.1.1") << "the variable comes before";
}

TEST(Tools, MissingOnesSayHowToInstall) {
  const TemporaryDirectory directory;
  expect_error([&] { ensure_nsys(system_with(directory)); }, ErrorKind::kEnvironment,
               "nsys was not found",
               AllOf(HasSubstr("apt-get install nsight-systems"), HasSubstr("GPUWHY_NSYS=")));
  expect_error([&] { ensure_ncu(system_with(directory)); }, ErrorKind::kEnvironment,
               "ncu was not found",
               AllOf(HasSubstr("apt-get install nsight-compute"), HasSubstr("GPUWHY_NCU=")));
}

TEST(Tools, AVariableThatNamesNoProgramIsSaid) {
  const TemporaryDirectory directory;
  System system = system_with(directory);
  system.environment["GPUWHY_NCU"] = "/absent/ncu";
  expect_error([&] { ensure_ncu(system); }, ErrorKind::kEnvironment,
               "GPUWHY_NCU=/absent/ncu is not a program", HasSubstr("unset GPUWHY_NCU"));
}

TEST(Tools, OneThatTellsNoVersionIsRefused) {
  const TemporaryDirectory directory;
  directory.add_script("bin/nsys", "printf 'segm\\033[31mentation fault' >&2; exit 139\n");
  expect_error([&] { ensure_nsys(system_with(directory)); }, ErrorKind::kEnvironment,
               HasSubstr("does not print its version: it prints \"segm\\x1b[31mentation fault\""),
               _);
}

TEST(Tools, RelativePathEntriesAreNotTrusted) {
  const TemporaryDirectory directory;
  directory.add_script("nsys", nsys_script("2023.2.1", ""));
  std::filesystem::current_path(directory.path());
  const System system{{{"PATH", ".::bin"}}, directory.path() / "root"};
  EXPECT_FALSE(find_on_path(system, "nsys"));
  std::filesystem::current_path("/");
}

TEST(Ncu, DialectIsAsked) {
  const TemporaryDirectory directory;
  directory.add_script(
      "bin/ncu",
      "case \"$*\" in\n"
      "  --version) echo 'Version 2022.3.0.0 (build 31729285)' ;;\n"
      "  --list-sets) printf -- '------ ---\\nIdentifier Sections Enabled Metrics\\n"
      "------ ---\\ndefault    LaunchStats, Occupancy  yes     45\\n"
      "detailed   Compute, Memory no      212\\n           sis, Occ\\n' ;;\n"
      "  --help) printf '  -k [ --kernel-name ] arg   Filter\\n"
      "  --target-processes arg (=application-only)\\n' ;;\n"
      "esac\n");
  const NcuTool ncu = ensure_ncu(system_with(directory));
  EXPECT_EQ(ncu.version.text(), "2022.3.0");
  EXPECT_THAT(ncu.sets, ElementsAre("default", "detailed"));
  EXPECT_EQ(ncu.default_set, "default");
  EXPECT_EQ(ncu.default_target_processes, "application-only");
  EXPECT_THAT(ncu.options, ElementsAre("--kernel-name", "--target-processes"));
}

TEST(Ncu, WhatItDoesNotSayStaysUnknown) {
  const TemporaryDirectory directory;
  directory.add_script("bin/ncu", "echo 'Version 2025.1.0.0 (build 1)'\n");
  const NcuTool ncu = ensure_ncu(system_with(directory));
  EXPECT_EQ(ncu.default_set, "");
  EXPECT_EQ(ncu.default_target_processes, "");
}

}  // namespace
}  // namespace gpuwhy
