// SPDX-License-Identifier: Apache-2.0
//
// The command table. A new command is a file of its name and a line here.
#include "cli/command.h"

namespace llmprof {

std::vector<Command> all_commands() {
  return {
      run_command(),         //
      doctor_command(),      //
      config_command(),      //
      analyze_command(),     //
      report_command(),      //
      view_command(),        //
      explain_command(),     //
      compare_command(),     //
      gate_command(),        //
      baseline_command(),    //
      launch_command(),      //
      merge_command(),       //
      export_command(),      //
      fleet_command(),       //
      plan_command(),        //
      kernels_command(),     //
      ranges_command(),      //
      ncu_command(),         //
      model_command(),       //
      artifacts_command(),   //
      list_command(),        //
      completion_command(),  //
  };
}

Option json_option(bool& target) {
  return {"--json", "", "Print JSON with schema and schema_version", &target};
}

}  // namespace llmprof
