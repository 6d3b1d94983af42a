// SPDX-License-Identifier: Apache-2.0
//
// What a model target adds to a run: its file made before the first pass, its words filled in, and
// a pass that asks the program for a table of its operators.
#include <fmt/format.h>

#include "base/error.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "base/units.h"
#include "session/operator_table.h"
#include "session/run_session.h"

namespace llmprof {

namespace fs = std::filesystem;

std::map<std::string, std::string> placeholder_values(const TargetWorkload& target,
                                                      const fs::path& root,
                                                      const std::string& folder) {
  return {{"model", target.model_file.string()},
          {"out", (root / folder).string()},
          {"file", (root / kOperatorsFile).string()}};
}

std::map<std::string, std::string> RunSession::values_for(const std::string& folder) const {
  return placeholder_values(setup_.target, fs::absolute(artifacts_.root()), folder);
}

std::vector<std::string> RunSession::work_argv(const std::string& folder) const {
  return setup_.has_placeholders ? filled(setup_.work_argv, values_for(folder)) : setup_.work_argv;
}

void RunSession::run_prepare() {
  if (setup_.target.needs_preparation()) {
    const fs::path file = setup_.target.model_file;
    progress_.begin("prepare");
    const std::size_t before = breaches_.size();
    progress_.note(fmt::format("making {}", printable(file.string())));
    make_inner_folder(artifacts_.path("prepare"), 0700);
    PassRecord record{"prepare", "", {}, {}, {}};
    const auto values = values_for("prepare");
    const StepResult step = run_step(record, "prepare", filled(setup_.target.prepare, values),
                                     system_.environment, setup_.options.limits);
    add(check_step("prepare", {}, step, {}));
    if (!stop_reason() && setup_.target.needs_preparation()) {
      add({{Reason::kWorkloadFailed, "prepare",
            fmt::format("model.workload.prepare ran and left no {}", printable(file.string())), "",
            ""}});
    }
    progress_.end(outcome_of(breaches_, before));
    finish(std::move(record));
  }
  if (stop_reason()) {
    return;
  }
  try {
    model_ = target_model(*setup_.config);
  } catch (const Error& error) {
    add({{Reason::kPassFailed, "prepare", error.what(), error.hint(), ""}});
  }
}

// The program once more, asked for a table of its operators: they are timed one by one, so this is
// never the pass whose stages count.
void RunSession::run_operators() {
  if (const auto reason = stop_reason()) {
    return skip("operators", *reason, "");
  }
  progress_.begin("operators");
  const std::size_t before = breaches_.size();
  make_inner_folder(artifacts_.path("operators"), 0700);
  PassRecord record{"operators", "", {}, {}, {}};
  std::vector<std::string> notes;
  std::vector<std::string> argv = work_argv("operators");
  const std::vector<std::string> asking = filled(setup_.target.operators, values_for("operators"));
  argv.insert(argv.end(), asking.begin(), asking.end());
  const StepResult step = run_step(record, "operators", argv,
                                   work_environment(system_, setup_.options.workload, false, notes),
                                   setup_.options.limits);
  const std::vector<Breach> found = check_step("operators", setup_.options.contract, step, {});
  add(found);
  if (found.empty()) {
    read_operators();
  }
  progress_.end(outcome_of(breaches_, before));
  finish(std::move(record));
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
