// SPDX-License-Identifier: Apache-2.0
//
// Commands as data: one table of names, options and functions, from which parsing, --help,
// completion, `llmprof list commands` and the checks of docs/cli.md are all made. Only args.cc
// knows the library that parses.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "capture/system.h"
#include "cli/console.h"

namespace llmprof {

// What main() knows and hands to whoever runs.
struct Context {
  System system;
  Console& console;
};

struct Option {
  std::string name;  // "--json", or "OVERRIDE" for a positional
  std::string
      value;  // what stands for the value in help, as "FILE"; empty for a flag and a positional
  std::string help;
  std::variant<bool*, std::string*, std::vector<std::string>*> target;
  std::vector<std::string> choices = {};                // all allowed values; empty: anything
  std::vector<std::string> (*suggestions)() = nullptr;  // likely values; asked by completion only
  bool is_required = false;

  bool is_positional() const { return !name.starts_with('-'); }
  std::string long_name() const { return name.substr(name.find("--")); }  // of "-o,--out"
};

struct Command {
  std::string name;
  std::string summary;  // one line
  std::vector<Option> options;
  std::vector<Command> subcommands;
  std::function<int(Context&)>
      run;               // returns an ExitCode; not set where a subcommand must be named
  std::string examples;  // printed below the options
  // Where the words behind "--" go: another program's command line. Null: there are none.
  std::vector<std::string>* rest = nullptr;
};

// The table, in the order --help shows. Targets of the options live as long as the table.
std::vector<Command> all_commands();

// One line a command, defined in the file of its name.
Command analyze_command();
Command artifacts_command();
Command baseline_command();
Command compare_command();
Command completion_command();
Command config_command();
Command doctor_command();
Command explain_command();
Command export_command();
Command fleet_command();
Command gate_command();
Command kernels_command();
Command launch_command();
Command list_command();
Command merge_command();
Command model_command();
Command ncu_command();
Command plan_command();
Command ranges_command();
Command report_command();
Command run_command();
Command scrub_command();
Command view_command();

// --json, as every reading command has it.
Option json_option(bool& target);

// Configuration overrides, as every command has them that is configured.
Option override_option(std::vector<std::string>& target);

// --config FILE, beside them.
Option config_option(std::string& target);

}  // namespace llmprof
