// SPDX-License-Identifier: Apache-2.0
//
// llmprof skill: SKILL.md, for coding agents that profile.
#include "agents/skill.h"

#include "base/exit_code.h"
#include "cli/command.h"

namespace llmprof {

Command skill_command() {
  Command command;
  command.name = "skill";
  command.summary = "Print SKILL.md: how a coding agent records and reads profiles";
  command.examples = "  llmprof skill > skills/llmprof/SKILL.md\n";
  command.run = [](Context& context) {
    context.console.out(skill_text());
    return kExitOk;
  };
  return command;
}

}  // namespace llmprof
