// SPDX-License-Identifier: Apache-2.0
//
// What a model target adds to a run: its file made before the first pass, its words filled in, and
// a pass that asks the program for a table of its operators.
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "session/operator_table.h"
#include "session/run_session.h"

namespace llmprof {

namespace fs = std::filesystem;

void RunSession::run_prepare(const Pass& pass, PassRecord& record) {
  const std::string file = printable(setup_.target.model_file.string());
  progress_.note(fmt::format("making {}", file));
  add(check_step(pass.name, {}, run_only_step(pass, record), {}));
  if (!stop_reason() && setup_.target.needs_preparation()) {
    add({{Reason::kWorkloadFailed, pass.name,
          fmt::format("model.workload.prepare ran and left no {}", file), "", ""}});
  }
}

// The program once more, asked for a table of its operators: they are timed one by one, so this is
// never the pass whose stages count.
void RunSession::run_operators(const Pass& pass, PassRecord& record) {
  const StepResult step = run_only_step(pass, record);
  const std::vector<Breach> found = check_step(pass.name, setup_.options.contract, step, {});
  add(found);
  if (found.empty()) {
    read_operators();
  }
}

void RunSession::read_operators() {
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

}  // namespace llmprof
