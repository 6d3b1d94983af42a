// SPDX-License-Identifier: Apache-2.0
//
// Exports with a made nsys; the real one is asked in tests/real/report_export.py.
#include "capture/nsys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "expect_error.h"
#include "temporary.h"

namespace llmprof {
namespace {

using testing::_;
using testing::HasSubstr;

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
  EXPECT_TRUE(std::filesystem::is_empty(directory.path() / "cache/llmprof/exports"));
}

}  // namespace
}  // namespace llmprof
