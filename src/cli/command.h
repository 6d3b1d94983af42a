// SPDX-License-Identifier: Apache-2.0
//
// Commands as data: one table of names, options and functions, from which parsing, --help,
// completion, `gpuwhy list commands` and the checks of docs/cli.md are all made. Only args.cc
// knows the library that parses.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analysis/stages/window_options.h"
#include "base/error.h"
#include "capture/system.h"
#include "cli/console.h"

namespace gpuwhy {

// What main() knows and hands to a command.
struct Context {
  System system;
  Console& console;
};

// Rows of a table to print; "all" on the command line is the largest number.
struct RowLimit {
  std::size_t rows = 10;
  bool is_given = false;
};

// Where the value of an option goes. Its type says how the words of a user are read, what an error
// says and how the default is shown (option_values.cc).
using OptionTarget =
    std::variant<bool*,                          // a flag
                 std::string*,                   // any text, or one of the choices
                 std::vector<std::string>*,      // texts
                 std::int64_t*,                  // a whole number of at least 1
                 std::optional<std::int64_t>*,   // the same, without a default
                 std::optional<std::uint32_t>*,  // a number that a machine gave, as a pid
                 std::uint64_t*,                 // bytes, as 4GiB
                 std::optional<std::uint64_t>*,  // the same, without a default
                 double*,                        // a fraction, given as a percentage
                 std::optional<std::chrono::nanoseconds>*,  // a time, as 2s or 150ms
                 std::optional<StepSpan>*,                  // numbers of steps, as 10..20
                 RowLimit*>;                                // a whole number of at least 1, or all

// Options that mean the same in every command that has them are explained in one place
// (args.cc): the help of each command only names them. Programs type those that are hidden.
enum class OptionGroup : std::uint8_t {
  kOwn,
  kRecording,
  kModel,
  kOutput,
  kHistory,
  kComparison,
  kHidden
};

struct Option {
  std::string name;  // "--json", or "OVERRIDE" for a positional
  // What stands for the value in help, as "FILE"; empty for a flag and a positional.
  std::string value;
  std::string help;  // without the default, which is printed from the target
  OptionTarget target;
  std::vector<std::string> choices = {};                // all allowed values; empty: anything
  std::vector<std::string> (*suggestions)() = nullptr;  // likely values, for completion
  bool is_required = false;
  // The largest whole number it takes: by default beyond any count of tokens, rows or GPUs.
  std::int64_t most = std::int64_t{1} << 40;
  OptionGroup group = OptionGroup::kOwn;

  bool is_positional() const { return !name.starts_with('-'); }
  // "--out" of "-o,--out".
  std::string long_name() const { return is_positional() ? name : name.substr(name.find("--")); }
};

// The option, with a restriction.
Option required(Option option);
Option one_of(std::vector<std::string> choices, Option option);
Option at_most(std::int64_t most, Option option);
// The options that are a command's own so far are of this group from `first` on.
void share_options(OptionGroup group, std::vector<Option>& options, std::size_t first = 0);
Option shared(OptionGroup group, Option option);

struct Command {
  std::string name;
  std::string summary;  // one line
  std::vector<Option> options;
  std::vector<Command> subcommands;
  std::function<int(Context&)> run;  // returns an ExitCode; empty: a subcommand must be named
  std::string examples;              // printed below the options
  // Where the words after "--" go: another program's command line. Null: there are none.
  std::vector<std::string>* rest = nullptr;
  std::string group = {};  // the heading above it in gpuwhy --help; empty for subcommands
  bool is_hidden = false;  // other commands type it; docs/serving.md describes it
  std::vector<std::string> aliases = {};  // other names, as people know them from other tools
  // Called if the words are refused, so that files of an earlier run do not stay; may be empty.
  // Flags and options that take a text are filled in as far as they were understood.
  std::function<void(const Error&, Context&)> refused = {};

  void add(const std::vector<Option>& more) {
    options.insert(options.end(), more.begin(), more.end());
  }
  void add(OptionGroup of, std::vector<Option> more) {
    share_options(of, more);
    add(more);
  }
};

// A command whose options live as long as it does.
template <typename Options, typename Run>
Command command_of(const char* name, const char* summary, std::shared_ptr<Options> options,
                   Run run) {
  Command command;
  command.name = name;
  command.summary = summary;
  command.run = [options, run](Context& context) { return run(*options, context); };
  return command;
}

// The table, in the order --help shows. Targets of the options live as long as the table.
std::vector<Command> all_commands();

// One line a command, defined in the file of its name.
Command analyze_command();
Command attach_command();
Command baseline_command();
Command compare_command();
Command completion_command();
Command doctor_command();
Command drive_command();
Command rank_program_command();
Command explain_command();
Command export_command();
Command fleet_command();
Command gate_command();
Command launch_command();
Command list_command();
Command load_command();
Command mcp_command();
Command merge_command();
Command model_command();
Command ncu_command();
Command ncu_plan_command();
Command report_command();
Command run_command();
Command scrub_command();
Command table_command();
Command view_command();
Command watch_command();

struct RecordingPeriod;

// Which part of a server's work is recorded.
std::vector<Option> period_options(RecordingPeriod& target);

// --json and --quiet, as every reading command has them.
Option json_option(bool& target);
Option quiet_option(bool& target);

// --ci FORM, of commands that pipelines run.
Option ci_option(std::string& target);

// --ncu FILE..., of commands that join counters.
Option ncu_option(std::vector<std::string>& target);

// Configuration overrides, as every command has them that is configured.
Option override_option(std::vector<std::string>& target);

// --config FILE, beside them.
Option config_option(std::string& target);

}  // namespace gpuwhy
