// SPDX-License-Identifier: Apache-2.0
//
// The program without a profiler once more, so that ranks under one do not wait for this rank.
#include "session/pass_runner.h"

namespace gpuwhy {
namespace {

std::vector<PassCommand> companion_commands(const CommandInputs& inputs) {
  return {program_command(inputs, "nsys")};
}

void run_companion(PassRunner& runner) {
  runner.add(check_step("companion", runner.setup().options.contract, runner.run_only_step(), {}));
}

}  // namespace

Pass companion_pass() {
  return {"companion", "nsys", companion_commands, run_companion};
}

}  // namespace gpuwhy
