// SPDX-License-Identifier: Apache-2.0
//
// The program once more, for its operator table. Operators are timed one by one, so the stages of
// this pass do not count.
#include <filesystem>

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"
#include "bundle/layout.h"
#include "session/reading/operator_table.h"
#include "session/record/pass_runner.h"

namespace gpuwhy {
namespace {

std::vector<PassCommand> operators_commands(const CommandInputs& inputs) {
  PassCommand command = program_command(inputs, "operators");
  for (std::string& word : filled_for(inputs, inputs.setup.target.operators, "operators")) {
    command.argv.push_back(std::move(word));
  }
  return {command};
}

void run_operators(PassRunner& runner) {
  const StepResult step = runner.run_only_step();
  const std::vector<Breach> found =
      check_step("operators", runner.setup().options.contract, step, {});
  runner.add(found);
  if (!found.empty()) {
    return;
  }
  const std::filesystem::path file = runner.artifacts().path(layout::kOperatorTable);
  if (!std::filesystem::exists(file)) {
    runner.fail(Reason::kReportMissing, "the program wrote no table of its operators",
                "model.workload.operators says how it is asked; {file} is where it must write");
    return;
  }
  try {
    const Operators operators = operators_of(load_operators_csv(file));
    runner.note(
        fmt::format("{} operators; {} of the time of its passes has a name", operators.rows.size(),
                    format_fraction(fraction_of(operators.covered_ns, operators.whole_ns))));
  } catch (const Error& error) {
    runner.fail(Reason::kReportUnreadable, error);
  }
}

}  // namespace

Pass operators_pass() {
  return {"operators", "operators", operators_commands, run_operators};
}

}  // namespace gpuwhy
