// SPDX-License-Identifier: Apache-2.0
//
// Entry point: runs the command that the arguments name and returns its exit code.
//
// An Error that no caller could do without ends here, as a message and an exit code. Only here is
// the environment read: everything below gets what it needs handed over.
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "capture/subprocess.h"
#include "cli/args.h"
#include "cli/command.h"
#include "cli/console.h"

namespace gpuwhy {
namespace {

int run(const std::vector<std::string>& arguments, Console& console) {
  Context context{this_system(), console};
  const std::vector<Command> commands = all_commands();
  std::string color = "auto";
  const Command* refused = nullptr;
  const Parsed parsed = [&] {
    try {
      return parse_arguments(commands, arguments, color, refused);
    } catch (const Error& error) {
      if (refused != nullptr && refused->refused) {
        refused->refused(error, context);
      }
      throw;
    }
  }();
  console.configure(color, context.system.environment);
  if (!parsed.run) {
    console.out(wrapped_help(parsed.text, console.width()));
    return kExitOk;
  }
  return parsed.run(context);
}

int guarded_run(const std::vector<std::string>& arguments, Console& console) {
  try {
    return run(arguments, console);
  } catch (const Error& error) {
    const std::size_t width = console.error_width();
    console.err(wrapped("gpuwhy: " + printable(error.what()), width, 2) + "\n");
    if (!error.hint().empty()) {
      console.err(wrapped("  hint: " + printable(error.hint()), width, 8) + "\n");
    }
    return exit_code_of(error.kind());
  } catch (const std::bad_alloc&) {
    console.err("gpuwhy: out of memory\n");
  } catch (const std::exception& error) {
    console.err(fmt::format("gpuwhy: internal error: {}\n", printable(error.what())));
  }
  return kExitFailure;
}

}  // namespace
}  // namespace gpuwhy

int main(int argc, char** argv) {
  gpuwhy::end_programs_with_us();
  gpuwhy::Console console;
  const int code = gpuwhy::guarded_run({argv + (argc > 0 ? 1 : 0), argv + argc}, console);
  if (!console.flush() && code == gpuwhy::kExitOk) {
    console.err("gpuwhy: cannot write to standard output\n");
    return gpuwhy::kExitFailure;
  }
  return code;
}
