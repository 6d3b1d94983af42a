// SPDX-License-Identifier: Apache-2.0
//
// The command table, and options that several commands share. A new command is a file of its name
// in commands/ and a word here.
#include <utility>

#include "cli/command.h"
#include "serve/window.h"

namespace gpuwhy {

std::vector<Command> all_commands() {
  std::vector<Command> commands;
  const auto add = [&](const char* group, std::vector<Command> members) {
    for (Command& member : members) {
      member.group = group;
      commands.push_back(std::move(member));
    }
  };
  add("Record", {run_command(), doctor_command(), launch_command(), attach_command(),
                 load_command(), drive_command(), rank_program_command()});
  add("Understand", {analyze_command(), report_command(), explain_command(), table_command(),
                     ncu_command(), model_command()});
  add("Compare", {compare_command(), gate_command(), baseline_command()});
  add("Many ranks", {merge_command(), fleet_command(), watch_command()});
  add("Share", {view_command(), export_command(), scrub_command()});
  add("Agents and shells", {mcp_command(), list_command(), completion_command()});
  return commands;
}

Option required(Option option) {
  option.is_required = true;
  return option;
}

Option one_of(std::vector<std::string> choices, Option option) {
  option.choices = std::move(choices);
  return option;
}

Option at_most(std::int64_t most, Option option) {
  option.most = most;
  return option;
}

void share_options(OptionGroup group, std::vector<Option>& options, std::size_t first) {
  for (std::size_t i = first; i < options.size(); ++i) {
    options[i].group = options[i].group == OptionGroup::kOwn ? group : options[i].group;
  }
}

Option shared(OptionGroup group, Option option) {
  option.group = group;
  return option;
}

std::vector<Option> period_options(RecordingPeriod& target) {
  constexpr std::int64_t kMostSteps = 1'000'000;
  constexpr std::int64_t kMostSeconds = 3600;
  return {
      at_most(kMostSteps, {"--steps", "N",
                           "Record N steps by the engine's own count (vLLM, SGLang, TensorRT-LLM)",
                           &target.num_steps}),
      at_most(kMostSeconds,
              {"--seconds", "N", "Record N seconds (default: as long as the client runs)",
               &target.num_seconds}),
      at_most(kMostSeconds, {"--after", "SECONDS",
                             "Begin to record this long after the load began (default: before it)",
                             &target.after_s}),
      one_of({"prefill", "decode"},
             {"--stage", "NAME",
              "Record prefill or decode steps: the default load is mostly of them, and the "
              "recording must have them",
              &target.stage})};
}

Option json_option(bool& target) {
  return shared(OptionGroup::kOutput,
                {"--json", "", "Print JSON with schema and schema_version", &target});
}

Option quiet_option(bool& target) {
  return shared(
      OptionGroup::kOutput,
      {"-q,--quiet", "", "Print the verdict alone; warnings about a recording go to standard error",
       &target});
}

Option ci_option(std::string& target) {
  return one_of(
      {"github", "gitlab", "bencher", "gbench"},
      {"--ci", "FORM",
       "For continuous integration: github (step summary), gitlab (metrics report), bencher or gbench "
       "(JSON)",
       &target});
}

Option ncu_option(std::vector<std::string>& target) {
  return shared(
      OptionGroup::kRecording,
      {"--ncu", "FILE...",
       "Counters to join, files or folders: .ncu-rep, or what ncu --csv printed", &target});
}

}  // namespace gpuwhy
