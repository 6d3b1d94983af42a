// SPDX-License-Identifier: Apache-2.0
//
// llmprof run: one command, a bundle, and an exit code that can be trusted.
//
// Everything that can be known before a model is loaded is checked first: configuration, program,
// gate, tools, names of counters. Then the passes; then the manifest, written last, so that a
// bundle with one is whole. Standard output has one line, the bundle's path.
#include <algorithm>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "bundle/manifest.h"
#include "capture/leftovers.h"
#include "cli/command.h"
#include "cli/facts.h"
#include "cli/rank_run.h"
#include "cli/recording.h"
#include "cli/run_dry.h"
#include "cli/run_once.h"
#include "cli/run_report.h"
#include "cli/run_session.h"
#include "config/reader.h"
#include "report/sections.h"

namespace llmprof {
namespace {

bool names_workload(const std::vector<std::string>& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), [](const std::string& given) {
    return given.starts_with("workload=") || given == "~workload";
  });
}

// A tool, or what its absence means to the run.
template <typename Tool>
std::optional<Tool> find_for(const char* pass, Tool (*ensure)(const System&), const System& system,
                             std::vector<Breach>& missing) {
  try {
    return ensure(system);
  } catch (const Error& error) {
    missing.push_back({"tool_missing", pass, error.message(), error.hint(), ""});
    return std::nullopt;
  }
}

RunSetup make_setup(const RunCommandOptions& asked, const Config& config, const System& system,
                    std::vector<std::string>& notes) {
  RunSetup setup;
  setup.options = run_options_of(config);
  setup.rank = launched_rank(system);
  if (setup.rank) {
    choose_rank_passes(*setup.rank, setup.options, notes);
  }
  setup.config = &config;
  setup.target = target_workload_of(config, system, !asked.command.empty());
  setup.has_placeholders = asked.command.empty();
  const std::vector<std::string>& command =
      asked.command.empty() ? setup.target.command : asked.command;
  if (command.empty()) {
    throw Error(ErrorKind::kUsage, "run: needs a program behind --, or a target that names one",
                "llmprof run [OVERRIDE...] -- PROGRAM [ARGUMENT...]");
  }
  setup.work_argv = build_work_argv(system, setup.options.workload, command);
  setup.machine = machine_facts(system);
  if (setup.options.contract.gpu == Contract::Gpu::kRequired && setup.machine.gpus.empty()) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("no_gpu: contract.gpu=required, and {}",
                            setup.machine.gpu_problem.empty() ? "there is none"
                                                              : setup.machine.gpu_problem),
                "llmprof doctor says what is missing");
  }
  if (setup.options.has_nsys) {
    setup.nsys = find_for("nsys", ensure_nsys, system, setup.missing);
  }
  // Without a GPU ncu has nothing to do, and nobody misses it.
  std::vector<Breach> missing_ncu;
  if (setup.options.has_ncu) {
    setup.ncu = find_for("ncu", ensure_ncu, system, missing_ncu);
    if (!setup.machine.gpus.empty() || !asked.plan.empty()) {
      setup.missing.insert(setup.missing.end(), missing_ncu.begin(), missing_ncu.end());
    }
  }
  if (setup.ncu) {
    check_ncu_names(system, *setup.ncu, setup.options.ncu);
  }
  return setup;
}

// The recording of --plan, which must be one that a plan can be made from.
std::optional<Trace> planned_recording(const RunCommandOptions& asked, const RunSetup& setup,
                                       const System& system) {
  if (asked.plan.empty()) {
    return std::nullopt;
  }
  if (!setup.options.has_ncu) {
    throw Error(ErrorKind::kUsage, "--plan is for the ncu pass, which is not among the passes");
  }
  Trace trace = load_recording(asked.plan, system);
  if (trace.kernels.size() == 0) {
    throw Error(ErrorKind::kContract,
                fmt::format("no_kernels: {} holds no kernel to plan for", asked.plan),
                "llmprof analyze says what it holds");
  }
  return trace;
}

void check_manifest(const Config& config) {
  const Json* manifest = find_value(config.tree, "inputs.manifest");
  if (manifest != nullptr && manifest->is_string()) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(manifest->get<std::string>(), ignored)) {
      throw Error(ErrorKind::kUsage, fmt::format("inputs.manifest: there is no file {}",
                                                 printable(manifest->get<std::string>())));
    }
  }
}

Json provenance_inputs(const RunCommandOptions& asked, const Config& config, const RunSetup& setup,
                       const Json& model) {
  Json inputs = {{"command", asked.command.empty() ? setup.work_argv : asked.command},
                 {"overrides", asked.overrides},
                 {"model", model}};
  const Json* manifest = find_value(config.tree, "inputs.manifest");
  inputs["manifest"] = manifest != nullptr ? *manifest : Json(nullptr);
  return inputs;
}

Json pass_json(const PassRecord& record) {
  Json steps = Json::array();
  for (std::size_t i = 0; i < record.steps.size(); ++i) {
    const StepResult& step = record.steps[i];
    steps.push_back({{"argv", record.commands[i]},
                     {"exit_code", step.exit_code},
                     {"ended_by", step_end_name(step.end)},
                     {"duration_ns", step.duration_ns},
                     {"written_bytes", step.bytes},
                     {"left_over", step.left_over}});
  }
  return {{"pass", record.name},
          {"status", record.status},
          {"reason", text_or_null(record.reason)},
          {"steps", steps}};
}

Json contract_json(const Config& config, const std::vector<Breach>& breaches, bool is_met) {
  return {{"declared", *find_value(config.tree, "contract")},
          {"verdict", is_met ? "met" : "not_met"},
          {"findings", breaches_json(breaches)}};
}

// The same run with one more override.
std::string next_command(const RunCommandOptions& asked, const std::string& next_override) {
  std::vector<std::string> argv = {"llmprof", "run"};
  if (!asked.file.empty()) {
    argv.insert(argv.end(), {"--config", asked.file});
  }
  if (!asked.passes.empty()) {
    argv.insert(argv.end(), {"--passes", asked.passes});
  }
  const std::string key = next_override.substr(0, next_override.find('=') + 1);
  std::copy_if(asked.overrides.begin(), asked.overrides.end(), std::back_inserter(argv),
               [&](const std::string& given) { return !given.starts_with(key); });
  argv.push_back(next_override);
  if (!asked.command.empty()) {
    argv.emplace_back("--");
  }
  argv.insert(argv.end(), asked.command.begin(), asked.command.end());
  return shell_text(argv);
}

void print_breaches(const RunCommandOptions& asked, const std::vector<Breach>& breaches,
                    Console& console) {
  for (const Breach& breach : breaches) {
    console.err(
        fmt::format("{} ({}): {}\n", breach.reason, breach.pass, printable(breach.sentence)));
    if (!breach.next_override.empty()) {
      console.err(fmt::format("  next: {}: {}\n", breach.next,
                              printable(next_command(asked, breach.next_override))));
    } else if (!breach.next.empty()) {
      console.err(fmt::format("  next: {}\n", breach.next));
    }
  }
}

// Interrupted before all else, then what the environment lacks, then what the capture lacks.
int exit_code_of(const RunSession& session, const std::vector<Breach>& breaches) {
  if (session.is_interrupted()) {
    return kExitInterrupted;
  }
  int code = kExitOk;
  for (const Breach& breach : breaches) {
    for (const ReasonMeaning& reason : all_reasons()) {
      if (breach.is_fatal && breach.reason == reason.code) {
        code = std::max(code, reason.exit_code);
      }
    }
  }
  return code;
}

// How it ended, in the words a person needs: what is in the bundle, what is not, what it cost.
void print_end(const RunCommandOptions& asked, const Json& metrics,
               const std::vector<Breach>& breaches, Console& console) {
  if (!asked.is_one_of_many) {
    console.err("\n" + terminal_text(run_document(metrics), console.error_width()));
    console.err(breaches.empty() ? "" : "\n");
  }
  print_breaches(asked, breaches, console);
}

int print_dry(const RunSetup& setup, Console& console) {
  for (const DryCommand& command : dry_commands(setup)) {
    std::vector<std::string> argv;
    if (!command.environment.empty()) {
      argv.emplace_back("env");
      for (const auto& [name, value] : command.environment) {
        argv.push_back(name + "=" + value);
      }
    }
    argv.insert(argv.end(), command.argv.begin(), command.argv.end());
    console.out(fmt::format("# {}\n{}\n", command.pass, printable(shell_text(argv))));
  }
  for (const Breach& breach : setup.missing) {
    console.out(fmt::format("# {}: {} ({})\n", breach.pass, breach.sentence, breach.reason));
  }
  return setup.missing.empty() ? kExitOk : kExitEnvironment;
}

// A word that is no override is mostly the program, without the -- before it.
void check_dashes(const RunCommandOptions& asked) {
  const auto word =
      std::find_if(asked.overrides.begin(), asked.overrides.end(), [](const std::string& given) {
        return given.find('=') == std::string::npos && !given.starts_with('~');
      });
  if (!asked.command.empty() || word == asked.overrides.end()) {
    return;
  }
  std::vector<std::string> argv = {"llmprof", "run"};
  argv.insert(argv.end(), asked.overrides.begin(), word);
  argv.emplace_back("--");
  argv.insert(argv.end(), word, asked.overrides.end());
  throw Error(ErrorKind::kUsage, fmt::format("run: '{}' is no override", printable(*word)),
              "a program stands behind --: " + printable(shell_text(argv)));
}

Config config_of(const RunCommandOptions& asked, std::vector<std::string>& notes) {
  check_dashes(asked);
  std::vector<std::string> overrides = asked.overrides;
  if (!asked.passes.empty()) {
    overrides.push_back("run.passes=[" + asked.passes + "]");
  }
  Config config = compose(user_file(asked.file), overrides);
  std::vector<std::string> command = asked.command;
  if (command.empty()) {
    command = SettingsReader(config).texts("model.workload.command");
  }
  if (const auto kind = recognised_workload(command); kind && !names_workload(overrides)) {
    overrides.insert(overrides.begin(), "workload=" + *kind);
    notes.push_back(fmt::format("the command looks like {0}: workload={0}", *kind));
    config = compose(user_file(asked.file), overrides);
  }
  return config;
}

int count_steps(const RunSetup& setup) {
  const RunOptions& options = setup.options;
  int count = 0;
  for (const bool is_wanted :
       {setup.target.needs_preparation(), options.has_baseline, options.has_operators,
        options.has_companion, options.has_nsys, options.has_ncu}) {
    count += is_wanted ? 1 : 0;
  }
  return count;
}

}  // namespace

RunOutcome run_once(const RunCommandOptions& asked, Context& context) {
  std::vector<std::string> notes;
  const Config config = config_of(asked, notes);
  check_manifest(config);
  RunSetup setup = make_setup(asked, config, context.system, notes);
  const std::optional<Trace> planned_from = planned_recording(asked, setup, context.system);
  setup.planned_from = planned_from ? &*planned_from : nullptr;
  if (asked.dry_run) {
    return {print_dry(setup, context.console), {}, {}};
  }
  const auto now = std::chrono::system_clock::now();
  const std::filesystem::path& stage2_dir = setup.options.common.stage2_dir;
  const Artifacts artifacts =
      setup.rank ? create_rank_bundle(stage2_dir, *setup.rank) : Artifacts::create(stage2_dir, now);
  artifacts.write(kRunningFile,
                  running_text(session_name(artifacts), scratch_folder(artifacts, context.system)));
  const RunOptions& options = setup.options;
  const bool is_quiet = asked.is_one_of_many && asked.progress == "auto";
  Progress progress(context.console, is_quiet ? "none" : asked.progress, count_steps(setup));
  notes.insert(notes.end(), config.notes.begin(), config.notes.end());
  for (const std::string& note : notes) {
    progress.note(note);
  }
  const InterruptCounter interrupts;
  RunSession session(setup, artifacts, context, progress);
  session.prepare();
  const Json model = target_json(config, session.model());
  Json machine = machine_json(setup.machine);
  machine["tools"] = tools_json(setup.nsys, setup.ncu);
  const Json inputs = provenance_inputs(asked, config, setup, model);
  write_provenance(artifacts, {machine, context.system.environment, config.tree, inputs}, now);
  if (options.has_baseline) {
    session.baseline_pass();
  }
  if (options.has_operators) {
    session.operators_pass();
  }
  if (options.has_companion) {
    session.companion_pass();
  }
  if (options.has_nsys) {
    session.nsys_pass();
  }
  if (options.has_ncu) {
    session.ncu_pass();
  }
  std::vector<Breach> breaches = setup.missing;
  breaches.insert(breaches.end(), session.breaches().begin(), session.breaches().end());
  const bool has_captured =
      std::any_of(session.passes().begin(), session.passes().end(), [](const PassRecord& record) {
        return record.status != "skipped" && record.name != "prepare";
      });
  if (!has_captured) {
    breaches.push_back({"nothing_captured", "run",
                        "no pass could run: the bundle holds nothing but where it comes from",
                        "llmprof doctor says what is missing", ""});
  }
  const int code = exit_code_of(session, breaches);
  const Json metrics = write_run_report(setup, session, breaches, artifacts,
                                        std::chrono::system_clock::to_time_t(now));
  Json run = {{"command", asked.command.empty() ? setup.work_argv : asked.command},
              {"exit_code", code},
              {"model", model}};
  run["workload_exit_code"] = session.workload_exit_code();
  run["passes"] = Json::array();
  for (const PassRecord& record : session.passes()) {
    run["passes"].push_back(pass_json(record));
  }
  run["contract"] = contract_json(config, breaches, code == kExitOk);
  std::filesystem::remove(artifacts.path(kRunningFile));
  write_manifest(artifacts, run);
  if (asked.progress == "json") {
    context.console.err(to_json_line({{"event", "result"},
                                      {"exit_code", code},
                                      {"bundle", artifacts.root().string()},
                                      {"contract", run["contract"]}}) +
                        "\n");
  } else {
    print_end(asked, metrics, breaches, context.console);
  }
  const bool forwards = asked.propagate_exit && session.workload_exit_code() > 0;
  return {forwards ? session.workload_exit_code() : code, artifacts.root(), metrics};
}

namespace {

int run_run(const RunCommandOptions& asked, Context& context) {
  if (!asked.repeat.empty() || !asked.against.empty()) {
    return run_repeats(asked, context);
  }
  const RunOutcome outcome = run_once(asked, context);
  if (!outcome.bundle.empty()) {
    context.console.out(outcome.bundle.string() + "\n");
  }
  return outcome.code;
}

}  // namespace

Command run_command() {
  auto asked = std::make_shared<RunCommandOptions>();
  Command command;
  command.name = "run";
  command.summary = "Run a program bare, under nsys and under ncu: a bundle of what it did";
  command.options = {
      {"--passes", "LIST", "Of baseline,operators,nsys,ncu; all unless told otherwise",
       &asked->passes},
      {"--dry-run", "", "Check everything, print the commands, start nothing", &asked->dry_run},
      {"--plan", "RECORDING", "Plan ncu from this recording or bundle", &asked->plan},
      {"--progress",
       "HOW",
       "On standard error: auto, plain, json or none",
       &asked->progress,
       {"auto", "plain", "json", "none"}},
      {"--propagate-exit", "", "Exit with the program's own code if it is not 0",
       &asked->propagate_exit},
      {"--repeat", "N", "So many runs, after one that is not counted (5 with --against)",
       &asked->repeat},
      {"--against", "CONFIG|OVERRIDE",
       "Runs with this laid over the configuration, interleaved A B B A, and compared; may be "
       "repeated",
       &asked->against},
      config_option(asked->file),
      override_option(asked->overrides),
  };
  command.examples =
      "  llmprof run -- python generate.py\n"
      "  llmprof run model.target=llama_100m\n"
      "  llmprof run --passes baseline,nsys run.mode=light -- ./llama-cli -m model.gguf\n"
      "  llmprof run --repeat 9 --against workload.environment.OMP_NUM_THREADS=8 -- python "
      "generate.py\n";
  command.rest = &asked->command;
  command.run = [asked](Context& context) { return run_run(*asked, context); };
  return command;
}

}  // namespace llmprof
