// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy skill: SKILL.md, for coding agents that profile.
#include "agents/skill.h"

#include "base/exit_code.h"
#include "cli/command.h"

namespace gpuwhy {

Command skill_command() {
  Command command;
  command.name = "skill";
  command.summary = "Print SKILL.md: how a coding agent records and reads profiles";
  command.examples = "  gpuwhy skill > skills/gpuwhy/SKILL.md\n";
  command.run = [](Context& context) {
    context.console.out(skill_text());
    return kExitOk;
  };
  return command;
}

}  // namespace gpuwhy
