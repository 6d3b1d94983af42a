// SPDX-License-Identifier: Apache-2.0
#include "capture/workload.h"

#include <filesystem>

#include "capture/subprocess.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(WorkArgv, TheProgramIsFoundOnPathAndArgumentsStandBehind) {
  const TemporaryDirectory directory;
  const auto program = directory.add_script("bin/serve", "exit 0\n");
  const System system{{{"PATH", program.parent_path().string()}}, "/"};
  WorkloadSettings settings;
  settings.arguments = {"--enforce-eager", ""};
  EXPECT_THAT(build_work_argv(system, settings, {"serve", "a b", "--x"}),
              ElementsAre(program.string(), "a b", "--x", "--enforce-eager", ""));
  EXPECT_THAT(build_work_argv(system, {}, {program.string()}), ElementsAre(program.string()))
      << "a path is taken as it is";
}

TEST(WorkArgv, WhatCannotBeStartedIsSaidBefore) {
  const TemporaryDirectory directory;
  const System system{{{"PATH", directory.path().string()}}, "/"};
  const auto expect_refused = [&](const std::vector<std::string>& command,
                                  const std::string& message, const std::string& hint) {
    expect_error([&] { build_work_argv(system, {}, command); }, ErrorKind::kUsage,
                 HasSubstr(message), HasSubstr(hint));
  };
  expect_refused({}, "needs a command", "gpuwhy run [OVERRIDE...] -- PROGRAM");
  expect_refused({"absent"}, "there is no program 'absent' on PATH", "./program");
  expect_refused({""}, "there is no program '' on PATH", "./program");
  expect_refused({"./absent"}, "there is no program ./absent", "");
  expect_refused({directory.path().string()}, "is a directory", "");
  const std::string script = directory.add("x.py", "print()\n").string();
  expect_refused({script}, script + " is not executable", "python " + script);
  expect_refused({"x\x1b[2J"}, "x\\x1b[2J", "");
}

TEST(WorkEnvironment, TheUsersValueWins) {
  const System system{{{"SET", "mine"}, {"EMPTY", ""}, {"OTHER", "1"}}, "/"};
  WorkloadSettings settings;
  settings.environment = {{"SET", "preset"}, {"EMPTY", "preset"}, {"NEW", "preset"}};
  std::vector<std::string> notes;
  EXPECT_THAT(work_environment(system, settings, true, notes),
              UnorderedElementsAre(Pair("SET", "mine"), Pair("EMPTY", ""), Pair("OTHER", "1"),
                                   Pair("NEW", "preset")));
  EXPECT_THAT(notes, IsEmpty());
}

TEST(WorkEnvironment, ARivalProfilerIsSwitchedOffUnderAProfilerOnly) {
  const System system{{{"KINETO", "1"}, {"OTHER", "1"}}, "/"};
  WorkloadSettings settings;
  settings.environment = {{"PRESET", "1"}};
  settings.strip_environment = {"KINETO", "ABSENT", "PRESET"};
  std::vector<std::string> notes;
  EXPECT_THAT(work_environment(system, settings, false, notes),
              UnorderedElementsAre(Pair("KINETO", "1"), Pair("OTHER", "1"), Pair("PRESET", "1")));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_THAT(work_environment(system, settings, true, notes),
              UnorderedElementsAre(Pair("OTHER", "1")));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("KINETO is not handed"), HasSubstr("PRESET")))
      << "what was not there needs no word";
}

std::optional<std::size_t> position(const std::vector<std::string>& command,
                                    const std::vector<std::string>& words) {
  return position_of(command, words);
}

TEST(PositionOf, ProgramsAndModulesBehindLaunchersAndInterpreters) {
  const std::vector<std::string> module = {"/usr/bin/python3.11", "-m",
                                           "vllm.entrypoints.openai.api_server", "--model", "x"};
  EXPECT_EQ(position(module, {"vllm"}), 2U);
  EXPECT_EQ(position(module, {"python"}), 0U);
  EXPECT_EQ(position(module, {"sglang"}), std::nullopt);
  EXPECT_EQ(position({"uv", "run", "vllm", "serve", "model"}, {"vllm"}), 2U);
  const std::vector<std::string> ranks = {"mpirun", "-n", "2", "python", "x.py"};
  EXPECT_EQ(position(ranks, {"python"}), 3U);
  EXPECT_EQ(position(ranks, {"mpirun", "python"}), 3U) << "the last one tells the kind";
  EXPECT_EQ(position({"/opt/llama.cpp/build/bin/llama-cli", "-m", "model.gguf"}, {"llama-cli"}),
            0U);
  EXPECT_EQ(position({"python3", "script.py"}, {"python3"}), 0U) << "the whole name counts too";
}

TEST(PositionOf, AnArgumentIsNoProgram) {
  EXPECT_EQ(position({}, {"vllm"}), std::nullopt);
  EXPECT_EQ(position({"./bench", "--engine=vllm"}, {"vllm"}), std::nullopt);
  std::vector<std::string> far(13, "x");
  far[12] = "vllm";
  EXPECT_EQ(position(far, {"vllm"}), std::nullopt);
  far[11] = "vllm";
  EXPECT_EQ(position(far, {"vllm"}), 11U);
}

TEST(ShellText, PlainWordsStayPlain) {
  EXPECT_EQ(shell_text({"/usr/bin/python3.11", "-m", "a.b", "--x=1,2:3@4%5+6_7"}),
            "/usr/bin/python3.11 -m a.b --x=1,2:3@4%5+6_7");
  EXPECT_EQ(shell_text({"a b", "", "it's"}), R"('a b' '' 'it'\''s')");
  EXPECT_EQ(shell_text({"", ""}), "'' ''");
  EXPECT_EQ(shell_text({}), "");
}

TEST(ShellText, AShellReadsWhatWasMeant) {
  const std::vector<std::string> words = {
      "",     "a b",      "it's",     "''",    "\"$HOME\"", "`id`", "$(id)", "*",
      "?",    "[a-z]",    "~",        "~root", "a;b",       "a|b",  "a&b",   "<in",
      ">out", "#no",      "!!",       "\\",    "\\n",       "a\nb", "\t",    "{a,b}",
      "x=y",  "\xc3\xa9", "\xff\xfe", "%s",    "-n",        "()",   "^x",    "$'a'"};
  Process shell{{"/bin/sh", "-c", R"(printf '%s\0' )" + shell_text(words)}, {{"HOME", "/home"}}};
  const ProcessResult result = run_process(shell);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::string expected;
  for (const std::string& word : words) {
    expected += word + '\0';
  }
  EXPECT_EQ(result.out, expected);
  // A word that looks like an assignment would be one in front.
  Process first{{"/bin/sh", "-c", shell_text({"/bin/echo", "x=1"})}, {}};
  EXPECT_EQ(run_process(first).out, "x=1\n");
}

TEST(SplitCommand, WordsAsAShellSplitsThem) {
  EXPECT_THAT(split_command("vllm  serve 'a b' --x=\"c \\\" d\" e\\ f ''"),
              ElementsAre("vllm", "serve", "a b", "--x=c \" d", "e f", ""));
  EXPECT_THAT(split_command("  "), IsEmpty());
  const std::vector<std::string> words = {"a", "b c", "d'e", "$HOME", "", "x=\"y\""};
  EXPECT_EQ(split_command(shell_text(words)), words);
}

TEST(SplitCommand, ThereIsNoShell) {
  for (const char* text : {"a | b", "a $HOME", "a > b"}) {
    expect_error([&] { split_command(text); }, ErrorKind::kUsage, HasSubstr("is for a shell"),
                 HasSubstr("sh -c"));
  }
  expect_error([] { split_command("a 'b"); }, ErrorKind::kUsage, HasSubstr("not closed"),
               IsEmpty());
}

}  // namespace
}  // namespace gpuwhy
