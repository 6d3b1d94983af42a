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
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "session/version.h"

namespace llmprof {
namespace {

constexpr const char* kDescription =
    "llmprof: deep profiling of LLM workloads on NVIDIA GPUs, from the command line.";

void add_option(CLI::App& app, const Option& option) {
  CLI::Option* added = nullptr;
  if (bool* const* flag = std::get_if<bool*>(&option.target)) {
    added = app.add_flag(option.name, **flag, option.help);
  } else if (std::string* const* text = std::get_if<std::string*>(&option.target)) {
    added = app.add_option(option.name, **text, option.help);
  } else {
    added = app.add_option(option.name, *std::get<std::vector<std::string>*>(option.target),
                           option.help);
    if (!option.is_positional()) {
      const bool takes_many = option.value.ends_with("...");
      added->expected(takes_many ? -1 : 1)->allow_extra_args(takes_many)->take_all();
    }
  }
  // Without this CLI11 prints the C++ type, as in "WHAT TEXT".
  if (std::get_if<std::string*>(&option.target) != nullptr) {
    added->take_last();
    // An empty value is mostly a shell variable that was not set.
    added->check(
        [](const std::string& value) { return value.empty() ? "takes no empty value" : ""; });
  }
  if (std::get_if<bool*>(&option.target) == nullptr) {
    added->option_text(option.value.empty() ? " " : option.value);
  }
  added->required(option.is_required);
}

// The command a CLI11 app stands for is remembered by position: apps[i] was made from commands[i].
struct Node {
  const Command* command;
  CLI::App* app;
  std::vector<Node> children;
};

std::vector<Node> add_commands(CLI::App& parent, const std::vector<Command>& commands) {
  std::vector<Node> nodes;
  nodes.reserve(commands.size());
  for (const Command& command : commands) {
    CLI::App* app = parent.add_subcommand(command.name, command.summary);
    app->allow_extras();
    app->fallthrough();
    app->require_subcommand(0, 1);
    app->set_help_flag("-h,--help", "Print this help");
    for (const Option& option : command.options) {
      add_option(*app, option);
    }
    app->footer(command.examples.empty() ? "" : "Examples:\n" + command.examples);
    nodes.push_back({&command, app, add_commands(*app, command.subcommands)});
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

// "config show: " in front of what is wrong with it; nothing for llmprof itself.
std::string about(const std::string& path) {
  return path.empty() ? "" : path + ": ";
}

std::string help_line(const std::string& path) {
  return fmt::format("llmprof {}{}--help", path, path.empty() ? "" : " ");
}

// For a word that no option or command took. `path` is what was understood before it.
Error unknown_word(const std::string& word, const std::string& path,
                   const std::vector<Node>& children, const std::vector<Option>& options) {
  if (word.starts_with('-')) {
    std::vector<std::string> known = {"--help", "--version", "--color"};
    for (const Option& option : options) {
      if (!option.is_positional()) {
        known.push_back(option.long_name());
      }
    }
    const std::string typed = word.substr(0, word.find('='));
    if (std::find(known.begin(), known.end(), typed) != known.end()) {
      return {ErrorKind::kUsage, fmt::format("{}misplaced option '{}'", about(path), typed),
              "options of a command stand behind its name"};
    }
    return {ErrorKind::kUsage, fmt::format("{}unknown option '{}'", about(path), printable(typed)),
            suggestion(typed, known, "options: " + help_line(path))};
  }
  if (!children.empty()) {
    return {ErrorKind::kUsage, fmt::format("{}unknown command '{}'", about(path), printable(word)),
            suggestion(word, names_of(children), "commands: " + help_line(path))};
  }
  return {ErrorKind::kUsage, fmt::format("{}unexpected '{}'", about(path), printable(word)),
          "usage: " + help_line(path)};
}

std::string choices_line(const Option& option) {
  return option.choices.empty() ? "" : fmt::format("one of: {}", fmt::join(option.choices, ", "));
}

void check_values(const Command& command, const std::string& path) {
  for (const Option& option : command.options) {
    std::string* const* text = std::get_if<std::string*>(&option.target);
    if (text == nullptr) {
      continue;
    }
    const std::string& value = **text;
    if (value.empty() && option.is_required) {
      throw Error(ErrorKind::kUsage, fmt::format("{}needs {}", about(path), option.name),
                  option.choices.empty() ? "usage: " + help_line(path) : choices_line(option));
    }
    const bool is_choice =
        std::find(option.choices.begin(), option.choices.end(), value) != option.choices.end();
    if (!value.empty() && !option.choices.empty() && !is_choice) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}{} cannot be '{}'", about(path), option.name, printable(value)),
                  suggestion(value, option.choices, choices_line(option)));
    }
  }
}

// The deepest command that was named, and the words that lead to it.
struct Named {
  const Node* node = nullptr;
  std::string path;  // "config show"
};

Named find_named(const std::vector<Node>& nodes, Named parent) {
  for (const Node& node : nodes) {
    if (node.app->parsed()) {
      const std::string path =
          parent.path.empty() ? node.command->name : parent.path + " " + node.command->name;
      return find_named(node.children, {&node, path});
    }
  }
  return parent;
}

// Of the innermost command that was named. CLI11 ends it without a newline or with two.
std::string help_text(const CLI::App& app) {
  const std::string text = app.help();
  return text.substr(0, text.find_last_not_of('\n') + 1) + "\n";
}

// Hands the words behind "--" to the command that takes them; others ignore a "--". The first word
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

}  // namespace

Parsed parse_arguments(const std::vector<Command>& commands, std::vector<std::string> arguments,
                       std::string& color) {
  CLI::App app(kDescription, "llmprof");
  app.get_formatter()->column_width(34);
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", version_text(), "Print version and build");
  app.add_option("--color", color, "Colour: auto, always or never")
      ->option_text("WHEN")
      ->take_last();
  app.allow_extras();
  app.require_subcommand(0, 1);
  app.footer("llmprof COMMAND --help explains a command.");
  const std::vector<Node> nodes = add_commands(app, commands);
  cut_rest(commands, arguments);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForVersion&) {
    return {nullptr, version_text()};
  } catch (const CLI::CallForHelp&) {
    return {nullptr, help_text(app)};
  } catch (const CLI::ParseError& error) {
    const Named named = find_named(nodes, {});
    if (named.node != nullptr) {
      check_values(*named.node->command, named.path);  // says it better, if that is what is wrong
    }
    throw Error(ErrorKind::kUsage, about(named.path) + error.what(),
                "usage: " + help_line(named.path));
  }
  if (color != "auto" && color != "always" && color != "never") {
    throw Error(ErrorKind::kUsage, fmt::format("--color cannot be '{}'", printable(color)),
                "one of: auto, always, never");
  }
  const Named named = find_named(nodes, {});
  const std::vector<Node>& children = named.node == nullptr ? nodes : named.node->children;
  if (const auto extras = app.remaining(true); !extras.empty()) {
    throw unknown_word(
        extras[0], named.path, children,
        named.node == nullptr ? std::vector<Option>{} : named.node->command->options);
  }
  if (named.node == nullptr) {
    return {nullptr, help_text(app)};
  }
  if (!named.node->command->run) {
    throw Error(ErrorKind::kUsage, about(named.path) + "needs a command",
                fmt::format("one of: {}", fmt::join(names_of(children), ", ")));
  }
  check_values(*named.node->command, named.path);
  return {named.node->command->run, ""};
}

}  // namespace llmprof
