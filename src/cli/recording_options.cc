// SPDX-License-Identifier: Apache-2.0
//
// Command-line options for reading a recording, shared by the commands that do.
#include "cli/recording_options.h"

namespace llmprof {

Option rules_option(std::string& target) {
  return {"--rules", "FILE", "Your own rules for stages and families, before those of llmprof",
          &target};
}

void add_recording_options(Command& command, RecordingOptions& target) {
  command.options.insert(
      command.options.end(),
      {{"--gpu", "N", "Only this GPU, as CUDA numbers it", &target.gpu},
       {"--pid", "N", "Only this process", &target.pid},
       {"--threads", "N", "Threads that read the file (2)", &target.threads},
       {"--memory-limit", "BYTES",
        "Memory it may take, as 4GiB: else a coarser picture, or nothing", &target.memory_limit},
       rules_option(target.rules)});
}

}  // namespace llmprof
