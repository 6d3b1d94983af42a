// SPDX-License-Identifier: Apache-2.0
//
// Model-target parts of a run: creation of the model's file, placeholders, and the operators pass.
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "session/operator_table.h"
#include "session/pass_runner.h"

namespace gpuwhy {

namespace fs = std::filesystem;

void PassRunner::run_prepare(const Pass& pass, PassRecord& record) {
  const std::string file = printable(setup_.target.model_file.string());
  progress_.note(fmt::format("making {}", file));
  add(check_step(pass.name, {}, run_only_step(pass, record), {}));
  if (!stop_reason() && setup_.target.needs_preparation()) {
    add({{Reason::kWorkloadFailed, pass.name,
          fmt::format("model.workload.prepare ran and left no {}", file), "", ""}});
  }
}

// Runs the program once more to get its operator table. Operators are timed one by one, so the
// stages of this pass do not count.
void PassRunner::run_operators(const Pass& pass, PassRecord& record) {
  const StepResult step = run_only_step(pass, record);
  const std::vector<Breach> found = check_step(pass.name, setup_.options.contract, step, {});
  add(found);
  if (found.empty()) {
    read_operators();
  }
}

void PassRunner::read_operators() {
  const fs::path file = artifacts_.path(kOperatorsFile);
  if (!fs::exists(file)) {
    add({{Reason::kReportMissing, "operators", "the program wrote no table of its operators",
          "model.workload.operators says how it is asked; {file} is where it must write", ""}});
    return;
  }
  try {
    const Operators operators = operators_of(load_operators_csv(file));
    progress_.note(
        fmt::format("{} operators; {} of the time of its passes has a name", operators.rows.size(),
                    format_fraction(fraction_of(operators.covered_ns, operators.whole_ns))));
  } catch (const Error& error) {
    add({{Reason::kReportUnreadable, "operators", error.what(), error.hint(), ""}});
  }
}

}  // namespace gpuwhy
