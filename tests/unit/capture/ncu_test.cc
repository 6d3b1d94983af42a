// SPDX-License-Identifier: Apache-2.0
//
// The command for ncu by dialect; names checked against the lists of the real ncu, if installed.
#include "capture/ncu.h"

#include <algorithm>
#include <cstdlib>

#include <regex.h>

#include "capture/subprocess.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

NcuTool ncu_2022() {
  NcuTool ncu;
  ncu.path = "/opt/ncu";
  ncu.version = *parse_tool_version("2022.3.0");
  ncu.options = {"--kernel-name", "--nvtx"};
  ncu.sets = {"default", "full"};
  return ncu;
}

NcuTool ncu_2025() {
  NcuTool ncu = ncu_2022();
  ncu.version = *parse_tool_version("2025.1.0");
  ncu.options = {"--graph-profiling", "--kernel-name", "--nvtx", "--nvtx-push-pop-scope"};
  ncu.has_per_launch_config = true;
  return ncu;
}

NcuSettings settings() {
  NcuSettings settings;
  settings.sections = {"SpeedOfLight", "Occupancy"};
  settings.target_processes = "all";
  settings.replay_mode = "kernel";
  settings.cache_control = "all";
  settings.clock_control = "base";
  return settings;
}

NcuFilter filter_on(std::vector<std::string> names) {
  NcuFilter filter;
  filter.names = std::move(names);
  filter.launch_skip = 7;
  filter.launch_count = 3;
  return filter;
}

// The word behind an option.
std::string value_of(const std::vector<std::string>& argv, const std::string& option) {
  const auto found = std::find(argv.begin(), argv.end(), option);
  return found == argv.end() || found + 1 == argv.end() ? "" : *(found + 1);
}

TEST(NcuCmd, OldDialectInFull) {
  NcuFilter filter = filter_on({"_Z4gemmv"});
  filter.is_mangled = true;
  filter.marks = {{{"LLM", "prefill"}, 1, true, true, false}};
  EXPECT_THAT(
      build_ncu_cmd(ncu_2022(), settings(), filter, "/b/run.ncu-rep", {"/bin/x", "--set", "y"}),
      ElementsAre("/opt/ncu", "--target-processes", "all", "--replay-mode", "kernel",
                  "--cache-control", "all", "--clock-control", "base", "--section", "SpeedOfLight",
                  "--section", "Occupancy", "--kernel-name-base", "mangled", "--kernel-name",
                  "regex:^(_Z4gemmv)$", "--launch-skip", "7", "--launch-count", "3", "--nvtx",
                  "--nvtx-include", "LLM@prefill/", "--force-overwrite", "--export",
                  "/b/run.ncu-rep", "/bin/x", "--set", "y"));
}

TEST(NcuCmd, NewDialectCountsSignaturesAndNodes) {
  NcuFilter filter = filter_on({"gemm"});
  filter.is_per_launch_config = true;
  filter.marks = {{{"LLM", "prefill"}, 1, true, true, false}};
  const auto argv = build_ncu_cmd(ncu_2025(), settings(), filter, "r.ncu-rep", {"/bin/x"});
  EXPECT_EQ(value_of(argv, "--filter-mode"), "per-launch-config");
  EXPECT_EQ(value_of(argv, "--graph-profiling"), "node");
  EXPECT_EQ(value_of(argv, "--nvtx-push-pop-scope"), "process");
  EXPECT_EQ(value_of(argv, "--kernel-name-base"), "demangled");
  EXPECT_EQ(argv.back(), "/bin/x");
}

TEST(NcuCmd, AnOldNcuCannotCountSignatures) {
  NcuFilter filter = filter_on({"gemm"});
  filter.is_per_launch_config = true;
  expect_error(
      [&] { build_ncu_cmd(ncu_2022(), settings(), filter, "r", {"/bin/x"}); },
      ErrorKind::kEnvironment,
      AllOf(HasSubstr("tool_too_old"), HasSubstr("ncu 2022.3.0"), HasSubstr("per-launch-config")),
      _);
}

TEST(NcuCmd, WithoutMarksNothingIsSaidOfNvtx) {
  const auto argv = build_ncu_cmd(ncu_2025(), settings(), filter_on({"x"}), "r", {"/bin/x"});
  EXPECT_THAT(argv, Not(Contains(HasSubstr("nvtx"))));
  EXPECT_THAT(argv, Not(Contains("--filter-mode")));
}

TEST(NcuCmd, SetMetricsAndExtraOptions) {
  NcuSettings wanted = settings();
  wanted.set = "full";
  wanted.sections = {};
  wanted.metrics = {"sm__cycles_active.avg", "dram__bytes.sum"};
  wanted.extra_options = {"--import-source", "yes"};
  const auto argv = build_ncu_cmd(ncu_2022(), wanted, filter_on({"x"}), "r", {"/bin/x", "-k"});
  EXPECT_EQ(value_of(argv, "--set"), "full");
  EXPECT_EQ(value_of(argv, "--metrics"), "sm__cycles_active.avg,dram__bytes.sum");
  EXPECT_EQ(value_of(argv, "--import-source"), "yes");
  EXPECT_THAT(argv, Not(Contains("--section")));
  EXPECT_LT(std::find(argv.begin(), argv.end(), "--import-source"),
            std::find(argv.begin(), argv.end(), "/bin/x"))
      << "after the program it would be the program's option";
}

const std::vector<std::string> kNastyNames = {
    "void at::native::elementwise_kernel<4, at::native::f(x)::{lambda(int)#1}>(int, T2)",
    "a|b",
    "a.b",
    "^a$",
    "a*b+c?",
    "[x]",
    "{1,2}",
    "back\\slash",
    "_ZN2at6nativeEv",
    "a b",
    "(anonymous namespace)::k",
    "\xc3\xa9"};

// The expression that is handed over, without ncu's prefix.
std::string expression_for(const std::vector<std::string>& names) {
  const std::string value = value_of(
      build_ncu_cmd(ncu_2022(), settings(), filter_on(names), "r", {"/bin/x"}), "--kernel-name");
  EXPECT_TRUE(value.starts_with("regex:")) << value;
  return value.substr(6);
}

// The C library's regular expressions, which agree with ncu's on what a backslash does.
class Expression {
 public:
  explicit Expression(const std::string& text) {
    EXPECT_EQ(::regcomp(&compiled_, text.c_str(), REG_EXTENDED | REG_NOSUB), 0) << text;
  }
  ~Expression() { ::regfree(&compiled_); }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;

  bool finds(const std::string& text) const {
    return ::regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_{};
};

TEST(NcuCmd, ANameMatchesItselfAndNothingElse) {
  for (const std::string& name : kNastyNames) {
    const Expression expression(expression_for({name}));
    for (const std::string& other : kNastyNames) {
      EXPECT_EQ(expression.finds(other), other == name) << name << " on " << other;
    }
    EXPECT_FALSE(expression.finds(name + "x")) << name;
    EXPECT_FALSE(expression.finds("x" + name)) << name;
  }
  const Expression all(expression_for(kNastyNames));
  for (const std::string& name : kNastyNames) {
    EXPECT_TRUE(all.finds(name)) << name;
  }
  EXPECT_FALSE(all.finds("a"));
  EXPECT_FALSE(all.finds("acb"));
}

class RealNcu : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"PATH", "HOME"}) {
      const char* value = std::getenv(name);
      system.environment[name] = value == nullptr ? "" : value;
    }
    if (!find_on_path(system, "ncu")) {
      GTEST_SKIP() << "ncu is not installed";
    }
    ncu = ensure_ncu(system);
  }

  System system;
  NcuTool ncu;
};

TEST_F(RealNcu, TakesTheCommandAsItIsBuilt) {
  const TemporaryDirectory directory;
  NcuFilter filter = filter_on(kNastyNames);
  filter.marks = {{{"LLM", "prefill"}, 1, true, true, true}};
  const auto run = [&](const NcuFilter& wanted, const NcuSettings& with) {
    Process process{build_ncu_cmd(ncu, with, wanted, directory.path() / "r.ncu-rep", {"/bin/true"}),
                    system.environment};
    process.timeout = std::chrono::seconds(60);
    return run_process(process);
  };
  const ProcessResult result = run(filter, settings());
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out + result.err, HasSubstr("No kernels were profiled"));
  NcuSettings broken = settings();
  broken.replay_mode = "nonsense";
  EXPECT_NE(run(filter, broken).exit_code, 0) << "it does look at what it is told";
}

TEST_F(RealNcu, KnownNamesPass) {
  NcuSettings wanted;
  wanted.sections = {"SpeedOfLight", "Occupancy", "LaunchStats", "regex:Memory.*"};
  wanted.metrics = {"sm__cycles_active.avg", "dram__bytes.sum", "launch__registers_per_thread",
                    "group:memory__dram_table"};
  EXPECT_NO_THROW(check_ncu_names(system, ncu, wanted));
  wanted.set = "full";
  EXPECT_NO_THROW(check_ncu_names(system, ncu, wanted));
}

TEST_F(RealNcu, UnknownOnesAreNamedWithTheNearest) {
  const auto expect_unknown = [&](const NcuSettings& wanted, const std::string& message,
                                  const std::string& hint) {
    expect_error([&] { check_ncu_names(system, ncu, wanted); }, ErrorKind::kUsage,
                 HasSubstr(message), HasSubstr(hint));
  };
  NcuSettings wanted;
  wanted.set = "ful";
  expect_unknown(wanted, "unknown_set: this ncu has no set 'ful'", "did you mean 'full'?");
  wanted.set = "";
  wanted.sections = {"Occupancy", "SpeedOfLihgt"};
  expect_unknown(wanted, "unknown_section: this ncu has no section 'SpeedOfLihgt'",
                 "did you mean 'SpeedOfLight'?");
  wanted.sections = {};
  wanted.metrics = {"sm__cycles_active.avg", "sm__cycels_active.avg"};
  expect_unknown(wanted, "unknown_metric: this ncu has no metric 'sm__cycels_active'",
                 "did you mean 'sm__cycles_active'?");
}

TEST(CheckNcuNames, AnNcuThatSaysNothingIsNotHeldAgainstAnyone) {
  const TemporaryDirectory directory;
  NcuTool silent = ncu_2022();
  silent.path = directory.add_script("ncu", "exit 1\n");
  silent.sets = {};
  NcuSettings wanted;
  wanted.set = "anything";
  wanted.sections = {"Anything"};
  wanted.metrics = {"anything__at_all.sum"};
  EXPECT_NO_THROW(check_ncu_names({{}, "/"}, silent, wanted));
}

}  // namespace
}  // namespace gpuwhy
