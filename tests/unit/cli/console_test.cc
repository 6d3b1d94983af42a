// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include "testing.h"

namespace gpuwhy {
namespace {

using Environment = std::map<std::string, std::string>;

bool colored(const std::string& choice, const Environment& environment) {
  Console console;
  console.configure(choice, environment);
  return console.painted(Color::kRed, "x") != "x";
}

// Under ctest standard output is not a terminal, so auto means plain unless something forces it.
TEST(Console, ColorRules) {
  EXPECT_FALSE(colored("auto", {{"TERM", "xterm"}}));
  EXPECT_TRUE(colored("always", {}));
  EXPECT_TRUE(colored("always", {{"NO_COLOR", "1"}})) << "the command line beats the environment";
  EXPECT_FALSE(colored("never", {{"CLICOLOR_FORCE", "1"}}));
  EXPECT_TRUE(colored("auto", {{"CLICOLOR_FORCE", "1"}}));
  EXPECT_FALSE(colored("auto", {{"CLICOLOR_FORCE", "0"}}));
  EXPECT_FALSE(colored("auto", {{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}));
  EXPECT_TRUE(colored("auto", {{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", ""}})) << "empty is unset";
}

TEST(Table, AlignsByCharactersAndCutsTheLastColumn) {
  const Table table{{"name", "text"}, {{"größer", "one"}, {"a", std::string(50, 'x')}}};
  EXPECT_EQ(table_text(table, 0),
            "name    text\ngrößer  one\na       " + std::string(50, 'x') + "\n");
  EXPECT_EQ(table_text(table, 40),
            "name    text\ngrößer  one\na       " + std::string(29, 'x') + "...\n");
}

}  // namespace
}  // namespace gpuwhy
