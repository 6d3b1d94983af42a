// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include "testing.h"

namespace gpuwhy {
namespace {

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
    Command count;
    count.name = "count";
    count.summary = "Count things";
    count.group = "Numbers";
    count.options = {required({"--ranks", "N", "How many", &ranks}),
                     at_most(1000, {"--repeat", "N", "Runs", &repeats}),
                     {"--pid", "N", "Process", &pid},
                     {"--budget", "BYTES", "The most", &budget_bytes},
                     {"--limit", "BYTES", "Memory", &limit_bytes},
                     {"--effect", "PERCENT", "Change", &effect},
                     {"--top", "N", "Rows, or all", &top},
                     {"--from", "TIME", "Start", &from},
                     {"--steps", "A..B", "Which", &steps}};
    count.run = [](Context&) { return 10; };
    commands = {parent, choice, start, count};
  }

  Parsed parse(std::vector<std::string> arguments) {
    return parse_arguments(commands, std::move(arguments), color, named);
  }

  void expect_usage(std::vector<std::string> arguments, const std::string& message,
                    const std::string& hint) {
    expect_error([&] { parse(std::move(arguments)); }, ErrorKind::kUsage, message, hint);
  }

  const Command* named = nullptr;
  bool json = false;
  std::string file;
  std::string what;
  std::string color = "auto";
  std::int64_t ranks = 0;
  std::optional<std::int64_t> repeats;
  std::optional<std::uint32_t> pid;
  std::uint64_t budget_bytes = 200'000'000;
  std::optional<std::uint64_t> limit_bytes;
  double effect = 0.01;
  RowLimit top{20};
  std::optional<std::chrono::nanoseconds> from;
  std::optional<StepSpan> steps;
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

TEST_F(Args, AliasesAndFilesStandForCommands) {
  commands[1].aliases = {"choose"};
  Context* none = nullptr;
  EXPECT_EQ(parse({"choose", "red"}).run(*none), 8);
  EXPECT_EQ(parse({"--color", "never", "choose", "green"}).run(*none), 8);
  EXPECT_EQ(parse({"version"}).text, parse({"--version"}).text);
  // A word that looks like a file is analyzed; here there is no command analyze.
  commands[0].subcommands.clear();
  commands[0].name = "analyze";
  commands[0].options = {{"WORD", "", "Words", &words}};
  commands[0].run = [](Context&) { return 11; };
  EXPECT_EQ(parse({"run.sqlite"}).run(*none), 11);
  EXPECT_THAT(words, ElementsAre("run.sqlite"));
  expect_usage({"nowhere"}, "unknown command 'nowhere'",
               "commands: gpuwhy --help; to profile a program: gpuwhy run -- PROGRAM [ARG...]");
}

TEST(Help, KeepsDescriptionsInTheirColumn) {
  const std::string text = "Usage\n  --passes LIST                   One two three four five\n";
  EXPECT_EQ(wrapped_help(text, 0), text);
  EXPECT_EQ(wrapped_help(text, 50), "Usage\n  --passes LIST                   One two three\n" +
                                        std::string(34, ' ') + "four five\n");
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
  expect_usage({"pick", "red", "blue"}, "pick: unexpected 'blue'", "usage: gpuwhy pick --help");
}

TEST_F(Args, OneCommandIsRun) {
  expect_usage({"pick", "red", "thing"}, "pick: unexpected 'thing'", "usage: gpuwhy pick --help");
  expect_usage({"thing", "--json", "show"}, "thing show: misplaced option '--json'",
               "options of a command follow its name");
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
  EXPECT_THAT(rest, ElementsAre("program", "--flag")) << "a value of an option is not a command";
}

TEST_F(Args, WithoutDashesOrWordsBehindThereIsNoRest) {
  parse({"start", "a=1"});
  EXPECT_THAT(rest, IsEmpty());
  parse({"start", "--"});
  EXPECT_THAT(rest, IsEmpty());
  EXPECT_THAT(parse({"start", "--help", "--", "x"}).text, HasSubstr("Usage: gpuwhy start"));
  expect_usage({"start", "--jsno", "--", "x"}, "start: unknown option '--jsno'",
               "did you mean '--json'?");
}

TEST_F(Args, OtherCommandsTakeNoProgram) {
  expect_usage({"pick", "red", "--", "start", "x"}, "pick: unexpected 'start'",
               "usage: gpuwhy pick --help");
  EXPECT_THAT(rest, IsEmpty());
}

TEST_F(Args, HelpIsOfTheInnermostCommand) {
  EXPECT_THAT(parse({"thing", "show", "--help"}).text, HasSubstr("Usage: gpuwhy thing show"));
  EXPECT_THAT(parse({"--help"}).text, HasSubstr("Usage: gpuwhy [--color "));
  EXPECT_THAT(parse({}).text, HasSubstr("Pick one"));
  EXPECT_EQ(parse({"help", "count"}).text, parse({"count", "--help"}).text);
  EXPECT_EQ(parse({"help"}).text, parse({}).text);
  EXPECT_THAT(parse({"--version"}).text, HasSubstr("gpuwhy 0."));
}

TEST_F(Args, NumbersAreReadByTheTypeOfTheirTarget) {
  parse({"count", "--ranks", "16", "--repeat", "1000", "--pid", "0", "--budget", "0", "--limit",
         "4GiB", "--effect", "2.5 %", "--top", "all"});
  EXPECT_EQ(ranks, 16);
  EXPECT_EQ(repeats, 1000);
  EXPECT_EQ(pid, 0U);
  EXPECT_EQ(budget_bytes, 0U);
  EXPECT_EQ(limit_bytes, std::uint64_t{4} << 30);
  EXPECT_DOUBLE_EQ(effect, 0.025);
  EXPECT_EQ(top.rows, SIZE_MAX);
  parse({"count", "--ranks", "1", "--top", "7", "--effect", "3"});
  EXPECT_EQ(top.rows, 7U);
  EXPECT_DOUBLE_EQ(effect, 0.03);
}

TEST_F(Args, WhatIsNoNumberIsRefused) {
  const auto refused = [&](const char* option, const char* value, const std::string& message,
                           const char* hint = "") {
    expect_usage({"count", "--ranks", "1", option, value}, message, hint);
  };
  for (const char* value : {"x", "0", "-1", "1.5", "7x", " 7", "+7", "1e3", "all"}) {
    refused("--repeat", value,
            std::string("--repeat takes a whole number of at least 1, not '") + value + "'");
  }
  refused("--repeat", "1001", "--repeat takes at most 1000, not '1001'");
  refused("--repeat", "99999999999999999999",
          "--repeat takes at most 1000, not '99999999999999999999'");
  refused("--pid", "-1", "--pid takes a whole number of at least 0, not '-1'");
  refused("--pid", "4294967296", "--pid takes at most 4294967295, not '4294967296'");
  refused("--limit", "many", "--limit takes a size, not 'many'", "as 4GiB, 500MB or 1048576");
  for (const char* value : {"0", "-1", "inf", "nan", "1000", "2 px"}) {
    refused("--effect", value,
            std::string("--effect takes a percentage above 0 and below 1000, not '") + value + "'",
            "as 1, 2.5 or '5 %'");
  }
  refused("--top", "ALL", "--top takes a whole number of at least 1, or all, not 'ALL'");
  refused("--top", "\x1b", "--top takes a whole number of at least 1, or all, not '\\x1b'");
  refused("--top", "", "count: --top takes no empty value", "usage: gpuwhy count --help");
  expect_usage({"count"}, "count: needs --ranks", "usage: gpuwhy count --help");
  EXPECT_THAT(parse({"count", "--top", "x", "--help"}).text, HasSubstr("Usage:"));
}

TEST_F(Args, TimesAndStepsAreReadAsUsersTypeThem) {
  const auto given = [&](const char* value) {
    parse({"count", "--ranks", "1", "--steps", value, "--from", "150ms"});
    return std::pair(steps->first, steps->last);
  };
  EXPECT_EQ(given("10..20"), std::pair(std::int64_t{10}, std::int64_t{20}));
  EXPECT_EQ(given("10.."), std::pair(std::int64_t{10}, INT64_MAX));
  EXPECT_EQ(given("0"), std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_EQ(from, std::chrono::milliseconds(150));
  for (const char* value :
       {"20..10", "..", "..5", "a..b", "1...2", "-1..2", "1..99999999999999999999"}) {
    expect_usage({"count", "--ranks", "1", "--steps", value},
                 std::string("--steps takes numbers of steps, not '") + value + "'",
                 "as 10..20, 10.. or 10; the first step is 0");
  }
  expect_usage({"count", "--ranks", "1", "--from", "soon"}, "--from takes a time, not 'soon'",
               "as 2s, 1.5s, 150ms, 40us or 900ns; a bare number is seconds");
}

TEST_F(Args, HelpShowsDefaultsAndGroups) {
  const std::string text = parse({"count", "--help"}).text;
  EXPECT_THAT(text, HasSubstr("Rows, or all (default 20)"));
  EXPECT_THAT(text, HasSubstr("The most (default 200MB)"));
  EXPECT_THAT(text, HasSubstr("Change (default 1 %)"));
  EXPECT_THAT(text, HasSubstr("  Memory\n")) << "without a default";
  EXPECT_THAT(text, HasSubstr("  How many\n")) << "must be given";
  EXPECT_THAT(parse({}).text, HasSubstr("\nNumbers:\n  count "));
  EXPECT_THAT(parse({"start", "--help"}).text,
              HasSubstr("Usage: gpuwhy start [OPTIONS] [WORD...] -- PROGRAM [ARG...]\n"));
}

TEST_F(Args, SharedOptionsAreNamedAndExplainedElsewhere) {
  for (Option& option : commands[3].options) {
    if (option.name == "--ranks" || option.name == "--top" || option.name == "--from") {
      option.group = OptionGroup::kHistory;
    }
  }
  commands[3].examples = "  gpuwhy count 1\n";
  const std::string text = parse({"count", "--help"}).text;
  EXPECT_THAT(text, Not(HasSubstr("Rows, or all")));
  EXPECT_THAT(text,
              HasSubstr("\nShared options, explained by:\n"
                        "  gpuwhy fleet --help             --ranks N (required), --top, --from\n"
                        "\nExamples:\n  gpuwhy count 1\n"));
  parse({"count", "--ranks", "3", "--top", "all"});
  EXPECT_EQ(top.rows, SIZE_MAX);
  EXPECT_THAT(option_rows({commands[3].options[0]}),
              testing::Eq("  --ranks N                       How many\n"));
}

TEST_F(Args, ACommandOfACommandHasItsOwnOptions) {
  commands[3].subcommands = {commands[0].subcommands[0]};
  Context* none = nullptr;
  EXPECT_EQ(parse({"count", "show", "--file", "x"}).run(*none), 7) << "--ranks is not its own";
  EXPECT_EQ(parse({"count", "--ranks", "1"}).run(*none), 10);
  expect_usage({"count", "show", "--ranks", "1"}, "count show: unknown option '--ranks'",
               "options: gpuwhy count show --help");
}

TEST_F(Args, HiddenCommandsRunAndAreNotListed) {
  commands[1].is_hidden = true;
  Context* none = nullptr;
  EXPECT_EQ(parse({"pick", "red"}).run(*none), 8);
  EXPECT_THAT(parse({}).text, Not(HasSubstr("pick")));
}

TEST_F(Args, HostileWordsAreShownSafely) {
  expect_usage({"a\x1b[31m"}, "unknown command 'a\\x1b[31m'",
               "commands: gpuwhy --help; to profile a program: gpuwhy run -- PROGRAM [ARG...]");
}

}  // namespace
}  // namespace gpuwhy
