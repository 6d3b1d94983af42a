// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace gpuwhy {

// What a command line asks for: `run` is set, or `text` is to be printed (--help, --version).
struct Parsed {
  std::function<int(Context&)> run;
  std::string text;
};

// Takes arguments (without the program's name) apart by the table; option targets are filled in,
// `color` too. Throws kUsage with "did you mean" for what is not known; `named` is then the command
// whose words they are, null if none was named.
Parsed parse_arguments(const std::vector<Command>& commands, std::vector<std::string> arguments,
                       std::string& color, const Command*& named);

// Options with their help, a row each, as in --help.
std::string option_rows(const std::vector<Option>& options);

// A help text with lines of at most `width` columns; descriptions stay in their column.
std::string wrapped_help(const std::string& text, std::size_t width);

}  // namespace gpuwhy
