// SPDX-License-Identifier: Apache-2.0
//
// From the command table to CLI11 and back. The only file that includes CLI11: it takes nine
// seconds to compile.
//
// CLI11 answers a mistyped command with "A subcommand is required" and a mistyped option without a
// suggestion, so unknown words are collected instead of refused (allow_extras) and judged here,
// with the table at hand.
#include "cli/args.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/option_values.h"
#include "session/version.h"

namespace gpuwhy {
namespace {

constexpr const char* kDescription =
    "gpuwhy: where the GPU time of an LLM workload goes, and what to fix first.\n\n"
    "Start here:\n"
    "  gpuwhy doctor                 Is this machine ready to profile?\n"
    "  gpuwhy run -- PROGRAM ARG...  Profile a program and write a report\n"
    "  gpuwhy FILE                   Analyze a recording of Nsight Systems or PyTorch\n"
    "  gpuwhy diff BEFORE AFTER      Compare two recordings or runs\n"
    "  gpuwhy explain launch_bound   What a finding, a metric or a term means\n\n"
    "Usage: gpuwhy [--color auto|always|never] COMMAND [OPTION...]\n"
    "       gpuwhy COMMAND --help explains a command; gpuwhy --version\n";
constexpr std::size_t kHelpColumn = 34;

// By OptionGroup: what to type to read about its options.
constexpr const char* kExplainedBy[] = {"",
                                        "gpuwhy explain recording",
                                        "gpuwhy explain model",
                                        "gpuwhy explain output",
                                        "gpuwhy fleet --help",
                                        "gpuwhy compare --help"};

std::string help_of(const Option& option) {
  const std::string value = option.is_required ? "" : default_text(option);
  return value.empty() ? option.help : fmt::format("{} (default {})", option.help, value);
}

// A row for each group of shared options, which names them.
std::string shared_rows(const Command& command) {
  std::string rows;
  for (std::size_t group = 1; group < std::size(kExplainedBy); ++group) {
    std::vector<std::string> names;
    for (const Option& option : command.options) {
      if (option.group == static_cast<OptionGroup>(group)) {
        names.push_back(option.is_required
                            ? fmt::format("{} {} (required)", option.long_name(), option.value)
                            : option.long_name());
      }
    }
    rows += names.empty() ? ""
                          : fmt::format("  {:<{}}{}\n", kExplainedBy[group], kHelpColumn - 2,
                                        fmt::join(names, ", "));
  }
  return rows.empty() ? "" : "\nShared options, explained by:\n" + rows;
}

void add_option(CLI::App& app, const Option& option) {
  const std::string help = help_of(option);
  const char* const heading = option.group == OptionGroup::kOwn ? "Options" : "";  // not in help
  if (bool* const* flag = std::get_if<bool*>(&option.target)) {
    app.add_flag(option.name, **flag, help)->group(heading);
    return;
  }
  CLI::Option* added = nullptr;
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&option.target)) {
    added = app.add_option(option.name, **list, help);
    if (!option.is_positional()) {
      const bool takes_many = option.value.ends_with("...");
      added->expected(takes_many ? -1 : 1)->allow_extra_args(takes_many)->take_all();
    }
  } else {
    // CLI11 keeps the words; read_values() reads them.
    added = app.add_option(
        option.name, [](const CLI::results_t&) { return true; }, help);
    added->take_last();
  }
  // Without this CLI11 prints the C++ type, as in "WHAT TEXT".
  added->option_text(option.value.empty() ? " " : option.value);
  added->required(option.is_required)->group(heading);
}

// A command and the CLI11 app made from it.
struct Node {
  const Command* command;
  CLI::App* app;
  std::vector<Node> children;
};

// Options of a command are added only if a word names it, and none of its own commands: all of them
// would take longer than everything else that a start does.
std::vector<Node> add_commands(CLI::App& parent, const std::vector<Command>& commands,
                               const std::vector<std::string>& words) {
  std::vector<Node> nodes;
  nodes.reserve(commands.size());
  for (const Command& command : commands) {
    CLI::App* app = parent.add_subcommand(command.name, command.summary);
    app->allow_extras();
    app->fallthrough();
    app->require_subcommand(0, 1);
    app->set_help_flag("-h,--help", "Print this help");
    const auto word = std::find(words.begin(), words.end(), command.name);
    const bool names_other =
        word != words.end() && word + 1 != words.end() &&
        std::ranges::count(command.subcommands, *(word + 1), &Command::name) > 0;
    if (word != words.end() && !names_other) {
      for (const Option& option : command.options) {
        add_option(*app, option);
      }
    }
    nodes.push_back({&command, app, add_commands(*app, command.subcommands, words)});
  }
  return nodes;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known,
                       const std::string& otherwise) {
  const auto guess = nearest(word, known);
  return guess ? fmt::format("did you mean '{}'?", *guess) : otherwise;
}

std::vector<std::string> names_of(const std::vector<Node>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const Node& node : nodes) {
    names.push_back(node.command->name);
  }
  return names;
}

// "list config: " in front of what is wrong with it; nothing for gpuwhy itself.
std::string about(const std::string& path) {
  return path.empty() ? "" : path + ": ";
}

std::string help_line(const std::string& path) {
  return fmt::format("gpuwhy {}{}--help", path, path.empty() ? "" : " ");
}

// For a word that no option or command took. `path` is what was understood before it.
Error unknown_word(const std::string& word, const std::string& path,
                   const std::vector<Node>& children, const std::vector<Option>& options) {
  if (word.starts_with('-')) {
    std::vector<std::string> known = {"--help", "-V", "--version", "--color"};
    for (const Option& option : options) {
      if (!option.is_positional()) {
        known.push_back(option.long_name());
      }
    }
    const std::string typed = word.substr(0, word.find('='));
    if (std::find(known.begin(), known.end(), typed) != known.end()) {
      return {ErrorKind::kUsage, fmt::format("{}misplaced option '{}'", about(path), typed),
              "options of a command follow its name"};
    }
    return {ErrorKind::kUsage, fmt::format("{}unknown option '{}'", about(path), printable(typed)),
            suggestion(typed, known, "options: " + help_line(path))};
  }
  if (!children.empty()) {
    return {ErrorKind::kUsage, fmt::format("{}unknown command '{}'", about(path), printable(word)),
            suggestion(word, names_of(children),
                       path.empty() ? "commands: gpuwhy --help; to profile a program: gpuwhy run "
                                      "-- PROGRAM [ARG...]"
                                    : "commands: " + help_line(path))};
  }
  return {ErrorKind::kUsage, fmt::format("{}unexpected '{}'", about(path), printable(word)),
          "usage: " + help_line(path)};
}

std::string choices_line(const Option& option) {
  return option.choices.empty() ? "" : fmt::format("one of: {}", fmt::join(option.choices, ", "));
}

// Fills in the targets, but for flags and lists, which CLI11 has filled in. Throws kUsage.
void read_values(const Node& node, const std::string& path) {
  for (const Option& option : node.command->options) {
    const std::string name = option.long_name();
    const CLI::Option* given = node.app->get_option(name);
    if (given->count() == 0 && option.is_required) {
      throw Error(ErrorKind::kUsage, fmt::format("{}needs {}", about(path), name),
                  option.choices.empty() ? "usage: " + help_line(path) : choices_line(option));
    }
    if (given->count() == 0 || std::holds_alternative<bool*>(option.target) ||
        std::holds_alternative<std::vector<std::string>*>(option.target)) {
      continue;
    }
    const std::string& value = given->results().back();
    if (value.empty()) {  // mostly a shell variable that was not set
      throw Error(ErrorKind::kUsage, fmt::format("{}{} takes no empty value", about(path), name),
                  "usage: " + help_line(path));
    }
    const auto& choices = option.choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}{} cannot be '{}'", about(path), name, printable(value)),
                  suggestion(value, choices, choices_line(option)));
    }
    set_value(option, value);
  }
}

// The deepest command that was named, and the words that lead to it.
struct Named {
  const Node* node;
  std::string path;  // "list config"; empty: gpuwhy itself
};

Named find_named(const Named& parent) {
  for (const Node& node : parent.node->children) {
    if (node.app->parsed()) {
      const std::string& name = node.command->name;
      return find_named({&node, parent.path.empty() ? name : parent.path + " " + name});
    }
  }
  return parent;
}

// Of gpuwhy itself: its commands by what they are for.
std::string program_help(const Node& root) {
  std::string text = kDescription;
  std::string group;
  for (const Node& node : root.children) {
    const Command& command = *node.command;
    if (command.is_hidden) {
      continue;
    }
    text += command.group == group ? "" : fmt::format("\n{}:\n", command.group);
    text += fmt::format("  {:<12}{}\n", command.name, command.summary);
    group = command.group;
  }
  return text;
}

// Of the innermost command that was named. CLI11 ends it without a newline or with two, and knows
// nothing about the words after "--".
std::string help_text(const Node& root) {
  const Node& node = *find_named({&root, ""}).node;
  if (&node == &root) {
    return program_help(root);
  }
  const Command& command = *node.command;
  std::string text = root.app->help();
  text = text.substr(0, text.find_last_not_of('\n') + 1) + "\n";
  if (command.rest != nullptr) {
    text.insert(text.find('\n', text.find("\nUsage: ") + 1), " -- PROGRAM [ARG...]");
  }
  if (const std::size_t gap = text.find("\n\n\n"); gap != std::string::npos) {
    text.erase(gap, 1);
  }
  text += shared_rows(command);
  return command.examples.empty() ? text : text + "\nExamples:\n" + command.examples;
}

// Hands the words after "--" to the command that takes them; others ignore a "--". The first word
// that names a command is it: before it stands at most a colour.
void cut_rest(const std::vector<Command>& commands, std::vector<std::string>& arguments) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const auto command_of = [&](const std::string& word) {
    return std::find_if(commands.begin(), commands.end(),
                        [&](const Command& c) { return c.name == word; });
  };
  const auto word = std::find_if(arguments.begin(), dashes, [&](const std::string& w) {
    return command_of(w) != commands.end();
  });
  if (dashes == arguments.end() || word == dashes || command_of(*word)->rest == nullptr) {
    std::erase(arguments, "--");
    return;
  }
  command_of(*word)->rest->assign(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
}

// Words that stand for others: `help run` is `run --help`, an alias is its command, and a file
// without a command is analyzed.
void expand_first_word(const std::vector<Command>& commands, std::vector<std::string>& arguments) {
  auto word = arguments.begin();
  while (word != arguments.end() && word->starts_with('-')) {
    word += *word == "--color" && word + 1 != arguments.end() ? 2 : 1;
  }
  if (word == arguments.end()) {
    return;
  }
  if (*word == "help") {
    arguments.erase(word);
    arguments.emplace_back("--help");
    return;
  }
  if (*word == "version") {
    *word = "--version";
    return;
  }
  for (const Command& command : commands) {
    if (command.name == *word || std::ranges::count(command.aliases, *word) > 0) {
      *word = command.name;
      return;
    }
  }
  std::error_code ignored;
  if (word->find_first_of("./") != std::string::npos || std::filesystem::exists(*word, ignored)) {
    arguments.insert(word, "analyze");
  }
}

// Fills in the texts that were given, whatever is wrong with the other words.
void read_texts(const Node& node) {
  for (const Option& option : node.command->options) {
    std::string* const* target = std::get_if<std::string*>(&option.target);
    const CLI::Option* given = node.app->get_option_no_throw(option.long_name());
    if (target == nullptr || given == nullptr || given->count() == 0) {
      continue;
    }
    const std::string& value = given->results().back();
    if (option.choices.empty() || std::ranges::count(option.choices, value) > 0) {
      **target = value;
    }
  }
}

Parsed take_apart(const Node& root, CLI::App& app, std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForVersion&) {
    return {nullptr, version_text()};
  } catch (const CLI::CallForHelp&) {
    return {nullptr, help_text(root)};
  } catch (const CLI::ArgumentMismatch& error) {
    const Named named = find_named({&root, ""});
    const std::string_view said = error.what();  // "--out: 1 required FILE missing"
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{}{} needs a value", about(named.path), said.substr(0, said.find(':'))),
        "usage: " + help_line(named.path));
  } catch (const CLI::ParseError& error) {
    const Named named = find_named({&root, ""});
    read_values(*named.node, named.path);  // says it better, if that is what is wrong
    throw Error(ErrorKind::kUsage, about(named.path) + error.what(),
                "usage: " + help_line(named.path));
  }

  read_values(root, "");
  const auto [node, path] = find_named({&root, ""});
  if (const auto extras = app.remaining(true); !extras.empty()) {
    throw unknown_word(extras[0], path, node->children, node->command->options);
  }
  if (node == &root) {
    return {nullptr, program_help(root)};
  }
  if (!node->command->run) {
    throw Error(ErrorKind::kUsage, about(path) + "needs a command",
                fmt::format("one of: {}", fmt::join(names_of(node->children), ", ")));
  }
  read_values(*node, path);
  return {node->command->run, ""};
}

}  // namespace

std::string option_rows(const std::vector<Option>& options) {
  std::string rows;
  for (const Option& option : options) {
    rows +=
        fmt::format("  {:<{}}{}\n", option.name + (option.value.empty() ? "" : " ") + option.value,
                    kHelpColumn - 2, help_of(option));
  }
  return rows;
}

std::string wrapped_help(const std::string& text, std::size_t width) {
  std::string lines;
  for (const std::string_view line : split(text, '\n')) {
    // A row goes on below its text, which blanks divide from its name.
    const std::size_t column = line.find_first_not_of(' ', line.find("  ", 2));
    const bool is_row = line.find_first_not_of(' ') == 2 && column != std::string_view::npos;
    lines += wrapped(line, width, is_row ? column : 2) + "\n";
  }
  lines.pop_back();  // the text ends with a line break
  return lines;
}

Parsed parse_arguments(const std::vector<Command>& commands, std::vector<std::string> arguments,
                       std::string& color, const Command*& named) {
  // gpuwhy itself: the command above all others.
  Command program;
  program.options = {
      {"--color", "WHEN", "Colour: auto, always or never", &color, {"auto", "always", "never"}}};
  CLI::App app("", "gpuwhy");
  app.get_formatter()->column_width(kHelpColumn);
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("-V,--version", version_text(), "Print version and build");
  add_option(app, program.options[0]);
  app.allow_extras();
  app.require_subcommand(0, 1);
  expand_first_word(commands, arguments);
  cut_rest(commands, arguments);
  const Node root{&program, &app, add_commands(app, commands, arguments)};

  try {
    return take_apart(root, app, std::move(arguments));
  } catch (const Error&) {
    const Node& node = *find_named({&root, ""}).node;
    read_texts(node);
    named = &node == &root ? nullptr : node.command;
    throw;
  }
}

}  // namespace gpuwhy
