// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.h"

namespace llmprof {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Args : public testing::Test {
 protected:
  Args() {
    Command leaf;
    leaf.name = "show";
    leaf.summary = "Show it";
    leaf.options = {{"--json", "", "As JSON", &json},
                    {"--file", "FILE", "A file", &file},
                    {"WORD", "", "Words", &words}};
    leaf.run = [](Context&) { return 7; };
    Command parent;
    parent.name = "thing";
    parent.summary = "Things";
    parent.subcommands = {leaf};
    Command choice;
    choice.name = "pick";
    choice.summary = "Pick one";
    choice.options = {{"WHAT", "", "What", &what, {"red", "green"}, nullptr, true}};
    choice.run = [](Context&) { return 8; };
    Command start;
    start.name = "start";
    start.summary = "Start a program";
    start.options = {{"--json", "", "As JSON", &json},
                     {"--file", "FILE", "A file", &file},
                     {"WORD", "", "Words", &words}};
    start.run = [](Context&) { return 9; };
    start.rest = &rest;
    commands = {parent, choice, start};
  }

  Parsed parse(std::vector<std::string> arguments) {
    return parse_arguments(commands, std::move(arguments), color);
  }

  void expect_usage(std::vector<std::string> arguments, const std::string& message,
                    const std::string& hint) {
    expect_error([&] { parse(std::move(arguments)); }, ErrorKind::kUsage, message, hint);
  }

  bool json = false;
  std::string file;
  std::string what;
  std::string color = "auto";
  std::vector<std::string> words;
  std::vector<std::string> rest;
  std::vector<Command> commands;
};

TEST_F(Args, FillsTargetsAndFindsTheCommand) {
  const Parsed parsed = parse({"thing", "show", "a=1", "--json", "~b", "--file", "x", "+c=2"});
  ASSERT_TRUE(parsed.run);
  EXPECT_TRUE(json);
  EXPECT_EQ(file, "x");
  EXPECT_THAT(words, ElementsAre("a=1", "~b", "+c=2"));
}

TEST_F(Args, GlobalOptionsGoAnywhere) {
  parse({"thing", "show", "--color", "never"});
  EXPECT_EQ(color, "never");
  parse({"--color=always", "thing", "show"});
  EXPECT_EQ(color, "always");
  expect_usage({"--color", "blue", "thing", "show"}, "--color cannot be 'blue'",
               "one of: auto, always, never");
}

TEST_F(Args, TyposAreAnsweredWithTheNearest) {
  expect_usage({"thnig"}, "unknown command 'thnig'", "did you mean 'thing'?");
  expect_usage({"thing", "sohw"}, "thing: unknown command 'sohw'", "did you mean 'show'?");
  expect_usage({"thing", "show", "--jsno"}, "thing show: unknown option '--jsno'",
               "did you mean '--json'?");
  expect_usage({"--colour=never"}, "unknown option '--colour'", "did you mean '--color'?");
  expect_usage({"pick", "gren"}, "pick: WHAT cannot be 'gren'", "did you mean 'green'?");
}

TEST_F(Args, WhatIsMissingIsNamed) {
  expect_usage({"thing"}, "thing: needs a command", "one of: show");
  expect_usage({"pick"}, "pick: needs WHAT", "one of: red, green");
  expect_usage({"pick", "red", "blue"}, "pick: unexpected 'blue'", "usage: llmprof pick --help");
}

TEST_F(Args, OneCommandIsRun) {
  expect_usage({"pick", "red", "thing"}, "pick: unexpected 'thing'", "usage: llmprof pick --help");
  expect_usage({"thing", "--json", "show"}, "thing show: misplaced option '--json'",
               "options of a command stand behind its name");
}

TEST_F(Args, RepeatedAndEmptyValues) {
  parse({"thing", "show", "--file", "a", "--file", "b", "--color", "always", "--color", "never"});
  EXPECT_EQ(file, "b");
  EXPECT_EQ(color, "never");
  expect_error(
      [&] {
        parse({"thing", "show", "--file", ""});
      },
      ErrorKind::kUsage, HasSubstr("takes no empty value"), _);
  parse({"thing", "show", "--", "a=1"});
  EXPECT_THAT(words, ElementsAre("a=1"));
}

TEST_F(Args, BehindTheDashesIsAnotherProgramsLine) {
  parse({"start", "a=1", "--json", "--", "program", "--json", "--file", "", "--", "-x", "--help"});
  EXPECT_THAT(words, ElementsAre("a=1"));
  EXPECT_TRUE(json);
  EXPECT_THAT(rest, ElementsAre("program", "--json", "--file", "", "--", "-x", "--help"));
  EXPECT_EQ(file, "");
}

TEST_F(Args, TheCommandOfTheDashesIsFoundBehindGlobalOptions) {
  parse({"--color=never", "start", "--", "pick", "blue"});
  EXPECT_THAT(rest, ElementsAre("pick", "blue"));
  EXPECT_EQ(color, "never");
  rest.clear();
  parse({"--color", "never", "start", "--", "program", "--flag"});
  EXPECT_THAT(rest, ElementsAre("program", "--flag")) << "a value of an option is no command";
}

TEST_F(Args, WithoutDashesOrWordsBehindThereIsNoRest) {
  parse({"start", "a=1"});
  EXPECT_THAT(rest, IsEmpty());
  parse({"start", "--"});
  EXPECT_THAT(rest, IsEmpty());
  EXPECT_THAT(parse({"start", "--help", "--", "x"}).text, HasSubstr("Usage: llmprof start"));
  expect_usage({"start", "--jsno", "--", "x"}, "start: unknown option '--jsno'",
               "did you mean '--json'?");
}

TEST_F(Args, OtherCommandsTakeNoProgram) {
  expect_usage({"pick", "red", "--", "start", "x"}, "pick: unexpected 'start'",
               "usage: llmprof pick --help");
  EXPECT_THAT(rest, IsEmpty());
}

TEST_F(Args, HelpIsOfTheInnermostCommand) {
  EXPECT_THAT(parse({"thing", "show", "--help"}).text, HasSubstr("Usage: llmprof thing show"));
  EXPECT_THAT(parse({"--help"}).text, HasSubstr("Usage: llmprof [OPTIONS]"));
  EXPECT_THAT(parse({}).text, HasSubstr("Pick one"));
  EXPECT_THAT(parse({"--version"}).text, HasSubstr("llmprof 0."));
}

TEST_F(Args, HostileWordsAreShownSafely) {
  expect_usage({"a\x1b[31m"}, "unknown command 'a\\x1b[31m'", "commands: llmprof --help");
}

}  // namespace
}  // namespace llmprof
