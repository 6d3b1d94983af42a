// SPDX-License-Identifier: Apache-2.0
//
// Creation of the model's file, before the passes that need it.
#include <fmt/format.h>

#include "base/text.h"
#include "session/record/pass_runner.h"

namespace gpuwhy {
namespace {

std::vector<PassCommand> prepare_commands(const CommandInputs& inputs) {
  return {
      {filled_for(inputs, inputs.setup.target.prepare, "prepare"), inputs.system.environment, {}}};
}

void run_prepare(PassRunner& runner) {
  const TargetWorkload& target = runner.setup().target;
  const std::string file = printable(target.model_file.string());
  runner.note(fmt::format("making {}", file));
  runner.add(check_step("prepare", {}, runner.run_only_step(), {}));
  if (!runner.stop_reason() && target.needs_preparation()) {
    runner.fail(Reason::kWorkloadFailed,
                fmt::format("model.workload.prepare ran and left no {}", file));
  }
}

}  // namespace

Pass prepare_pass() {
  return {"prepare", "prepare", prepare_commands, run_prepare, nullptr, true};
}

}  // namespace gpuwhy
