// SPDX-License-Identifier: Apache-2.0
//
// The recording command by dialect, and exports with a made nsys; the real one is asked in
// tests/real/.
#include "capture/nsys.h"

#include <unistd.h>

#include "base/file.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

class Export : public testing::Test {
 protected:
  Export() {
    system.environment = {{"PATH", (directory.path() / "target").string() + ":/usr/bin:/bin"},
                          {"XDG_CACHE_HOME", (directory.path() / "cache").string()}};
    // Copies what it is given, so that a test sees what was exported.
    directory.add_script(
        "target/nsys",
        "case \"$1\" in\n"
        "  --version) echo 'version 2024.2.1' ;;\n"
        "  export) for a; do case $a in --output=*) out=${a#--output=} ;; esac; done\n"
        "    for last; do :; done; { echo exported; cat \"$last\"; } > \"$out\" ;;\n"
        "esac\n");
    directory.add_script("host-linux-x64/QdstrmImporter",
                         "{ echo imported; cat \"$2\"; } > \"$4\"\n");
  }

  TemporaryDirectory directory;
  System system;
};

TEST_F(Export, ARawCaptureGoesThroughTheImporter) {
  const auto raw = directory.add("run.qdstrm", "raw bytes\n");
  EXPECT_EQ(read_file(exported_sqlite(system, raw, "")), "exported\nimported\nraw bytes\n");
}

TEST_F(Export, ContentsDecideNotNames) {
  const auto report = directory.add("run.nsys-rep", "one\n");
  const auto first = exported_sqlite(system, report, "");
  EXPECT_EQ(exported_sqlite(system, directory.add("other.nsys-rep", "one\n"), ""), first);
  directory.add("run.nsys-rep", "two\n");
  EXPECT_EQ(read_file(exported_sqlite(system, report, "")), "exported\ntwo\n");
}

TEST_F(Export, AReportOfANewerNsysIsNotTried) {
  const auto report = directory.add("run.nsys-rep", "one\n");
  expect_error([&] { exported_sqlite(system, report, "2024.3.1.7-x"); }, ErrorKind::kEnvironment,
               HasSubstr("was written by nsys 2024.3.1, and nsys 2024.2.1 here cannot open it"),
               HasSubstr("install nsys 2024.3 or newer"));
  EXPECT_NO_THROW(exported_sqlite(system, report, "2024.2.9"));
}

TEST_F(Export, SuccessWithoutAFileIsAFailure) {
  directory.add_script("target/nsys",
                       "[ \"$1\" = --version ] && echo 'version 2024.2.1'; exit 0\n");
  const auto report = directory.add("run.nsys-rep", "one\n");
  expect_error([&] { exported_sqlite(system, report, ""); }, ErrorKind::kEnvironment,
               HasSubstr("exporting"), _);
  EXPECT_TRUE(std::filesystem::is_empty(directory.path() / "cache/gpuwhy/exports"));
}

// An export holds what the report does: the whole environment, where an older nsys made it.
TEST_F(Export, TheCacheIsForItsOwnerAlone) {
  const auto cache = directory.path() / "cache/gpuwhy/exports";
  const auto report = directory.add("run.nsys-rep", "one\n");
  exported_sqlite(system, report, "");
  EXPECT_EQ(std::filesystem::status(cache).permissions(), std::filesystem::perms::owner_all);
  std::filesystem::permissions(cache, std::filesystem::perms::all);
  exported_sqlite(system, report, "");
  EXPECT_EQ(std::filesystem::status(cache).permissions(), std::filesystem::perms::owner_all);
}

// In /tmp anybody could have made the folder first, with an export in it that is none.
TEST_F(Export, WithoutAHomeTheCacheIsOursAloneOrNotUsed) {
  const auto tmpdir = directory.path() / "tmp";
  const auto cache = tmpdir / ("gpuwhy-exports-" + std::to_string(::geteuid()));
  std::filesystem::create_directory(tmpdir);
  system.environment.erase("XDG_CACHE_HOME");
  system.environment["TMPDIR"] = tmpdir.string();
  const auto report = directory.add("run.nsys-rep", "one\n");
  EXPECT_EQ(exported_sqlite(system, report, "").parent_path(), cache);
  EXPECT_EQ(std::filesystem::status(cache).permissions(), std::filesystem::perms::owner_all);
  std::filesystem::permissions(cache, std::filesystem::perms::all);
  expect_error([&] { exported_sqlite(system, report, ""); }, ErrorKind::kEnvironment,
               HasSubstr("not a folder of yours alone"), HasSubstr("XDG_CACHE_HOME"));
  std::filesystem::rename(cache, tmpdir / "elsewhere");
  std::filesystem::create_directory_symlink(tmpdir / "elsewhere", cache);
  expect_error([&] { exported_sqlite(system, report, ""); }, ErrorKind::kEnvironment,
               HasSubstr("not a folder of yours alone"), _);
}

NsysTool nsys_with(std::vector<std::string> options) {
  NsysTool nsys;
  nsys.path = "/opt/nsys";
  nsys.version = *parse_tool_version("2022.4.2");
  nsys.options = std::move(options);
  return nsys;
}

NsysSettings nsys_settings() {
  NsysSettings settings;
  settings.trace = {"cuda", "nvtx"};
  settings.cuda_graph_trace = "node";
  settings.sample = "none";
  settings.cpuctxsw = "none";
  return settings;
}

const NsysOutput kOutput{"gpuwhy-1", "/b/nsys/run.nsys-rep", "/tmp"};

TEST(NsysCmd, InFull) {
  NsysSettings settings = nsys_settings();
  settings.trace_fork_before_exec = true;
  settings.duration_s = 30;
  settings.extra_options = {"--cuda-memory-usage=true"};
  const CaptureTrigger gate{TriggerWish::Kind::kMark, {"LLM", "request"}, true, ""};
  EXPECT_THAT(build_nsys_cmd(nsys_with({"--cuda-graph-trace", "--discard-environment",
                                        "--trace-fork-before-exec"}),
                             settings, gate, kOutput, {"/bin/x", "--output=y"}),
              ElementsAre("/opt/nsys", "profile", "--trace=cuda,nvtx", "--sample=none",
                          "--cpuctxsw=none", "--session-new=gpuwhy-1", "--force-overwrite=true",
                          "--output=/b/nsys/run.nsys-rep", "--env-var=TMPDIR=/tmp",
                          "--cuda-graph-trace=node", "--trace-fork-before-exec=true",
                          "--duration=30", "--discard-environment=true", "--capture-range=nvtx",
                          "--nvtx-capture=request@LLM", "--capture-range-end=none",
                          "--cuda-memory-usage=true", "/bin/x", "--output=y"));
}

TEST(NsysCmd, WhatAnOldNsysDoesWithoutIsLeftOut) {
  const auto argv = build_nsys_cmd(nsys_with({}), nsys_settings(), {}, kOutput, {"/bin/x"});
  for (const char* absent : {"--cuda-graph-trace", "--discard-environment", "--trace-fork",
                             "--duration", "--capture-range", "--nvtx-capture"}) {
    EXPECT_THAT(argv, Not(Contains(HasSubstr(absent))));
  }
  EXPECT_EQ(argv.back(), "/bin/x");
}

TEST(NsysCmd, WhatItCannotDoWithoutIsAnError) {
  NsysSettings settings = nsys_settings();
  settings.trace_fork_before_exec = true;
  expect_error([&] { build_nsys_cmd(nsys_with({}), settings, {}, kOutput, {"/bin/x"}); },
               ErrorKind::kEnvironment,
               AllOf(HasSubstr("tool_too_old"), HasSubstr("nsys 2022.4.2")),
               HasSubstr("pipeline.nsys.trace_fork_before_exec=false"));
}

TEST(NsysCmd, ACommaCannotBeSaidInAVariable) {
  NsysOutput output = kOutput;
  output.workload_tmpdir = "/a,b";
  EXPECT_THAT(build_nsys_cmd(nsys_with({}), nsys_settings(), {}, output, {"/bin/x"}),
              Not(Contains(HasSubstr("--env-var"))));
}

TEST(NsysCmd, ExportAndImport) {
  NsysTool nsys = nsys_with({});
  nsys.importer = "/opt/QdstrmImporter";
  EXPECT_THAT(build_export_cmd(nsys, "a.nsys-rep", "b.sqlite"),
              ElementsAre("/opt/nsys", "export", "--type=sqlite", "--force-overwrite=true",
                          "--quiet=true", "--output=b.sqlite", "a.nsys-rep"));
  EXPECT_THAT(build_import_cmd(nsys, "a.qdstrm", "b.nsys-rep"),
              ElementsAre("/opt/QdstrmImporter", "--input-file", "a.qdstrm", "--output-file",
                          "b.nsys-rep"));
}

}  // namespace
}  // namespace gpuwhy
