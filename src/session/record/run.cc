// SPDX-License-Identifier: Apache-2.0
//
// One run, from its options to its bundle.
//
// Everything that can be checked before a model is loaded is checked first: configuration, program,
// gate, tools, names of counters. Then come the passes, and finally the manifest, so that a bundle
// with a manifest is complete.
#include "session/record/run.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/names/rules.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "bundle/layout.h"
#include "bundle/manifest.h"
#include "bundle/scrub.h"
#include "capture/mark_module.h"
#include "capture/stale_runs.h"
#include "config/compose.h"
#include "config/reader.h"
#include "session/reading/recording.h"
#include "session/record/rank_run.h"
#include "session/writing/engine_version.h"
#include "session/writing/machine_json.h"
#include "session/writing/run_report.h"

namespace gpuwhy {
namespace {

bool names_workload(const std::vector<std::string>& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), [](const std::string& given) {
    return given.starts_with("workload=") || given == "~workload";
  });
}

// A tool, or the consequence of its absence for the run.
template <typename Tool>
std::optional<Tool> find_for(const char* pass, Tool (*ensure)(const System&), const System& system,
                             std::vector<Breach>& missing) {
  try {
    return ensure(system);
  } catch (const Error& error) {
    missing.push_back({Reason::kToolMissing, pass, error.message(), error.hint(), ""});
    return std::nullopt;
  }
}

// The file of rules that is given, or configured; empty: none.
std::string rules_of(const RunRequest& request, const RunOptions& options) {
  return request.rules.empty() ? options.rules : request.rules;
}

// With a = it is a rule for ranges, as in `analyze`. Without, it is a module that makes ranges.
bool is_stage_mark(const std::string& mark) {
  return mark.find('=') != std::string::npos;
}

std::vector<std::string> stage_marks(const RunRequest& request) {
  std::vector<std::string> marks;
  std::copy_if(request.marks.begin(), request.marks.end(), std::back_inserter(marks),
               is_stage_mark);
  return marks;
}

// Adds the modules of --mark to those of the workload, each once. Throws kUsage.
void add_mark_modules(const RunRequest& request, std::vector<std::string>& modules) {
  for (const std::string& mark : request.marks) {
    if (!is_stage_mark(mark) && std::find(modules.begin(), modules.end(), mark) == modules.end()) {
      modules.push_back(mark);
    }
  }
  check_mark_modules(modules);
}

// An engine ends at an option that it does not know, so those are left out.
void fit_to_engine(const std::vector<std::string>& command, ServerSetup& server,
                   std::vector<std::string>& notes) {
  const auto fit = preset_fit(command);
  if (!fit || fit->unknown.empty()) {
    return;
  }
  bool has_changed = false;
  const auto fit_words = [&](std::vector<std::string>& words) {
    const std::size_t num_before = words.size();
    words = accepted_arguments(words, fit->unknown);
    has_changed = has_changed || words.size() != num_before;
  };
  fit_words(server.arguments);
  if (server.torch) {
    fit_words(server.torch->arguments);
  }
  if (server.window.num_steps) {
    fit_words(server.steps->arguments);
  }
  if (!has_changed) {
    return;
  }
  // Without any of them the engine has no profiler to start.
  if (server.arguments.empty()) {
    server.start_url.clear();
    server.stop_url.clear();
  }
  notes.push_back(
      fmt::format("{} {} does not know {}: left out, so steps are marked with fewer "
                  "facts or not at all",
                  fit->package, fit->version, fmt::join(fit->unknown, ", ")));
}

// Throws kUsage for what only a server can do.
void check_server_options(const RunRequest& request, const RunSetup& setup) {
  const RecordingPeriod& window = request.server.window;
  const std::pair<const char*, bool> given[] = {{"--slo", !request.server.service_limits.empty()},
                                                {"--steps", window.num_steps.has_value()},
                                                {"--seconds", window.num_seconds.has_value()},
                                                {"--after", window.after_s.has_value()},
                                                {"--stage", !window.stage.empty()},
                                                {"--passes torch", setup.options.has_torch}};
  for (const auto& [option, is_given] : given) {
    if (is_given && !setup.server) {
      throw Error(ErrorKind::kUsage, fmt::format("{} requires --server", option),
                  fmt::format("gpuwhy run --server COMMAND {} ...", option));
    }
  }
  if (setup.options.has_torch && !setup.server->torch) {
    throw Error(ErrorKind::kUsage, "--passes torch: this kind of server has no profiler of its own",
                "gpuwhy run --server COMMAND --passes baseline,nsys");
  }
}

// nsys start and stop are the window of a server, or the engine's count of its steps. Ranks are
// each recorded by an nsys of their own, from their start or as the preset says.
void choose_server_gate(RunSetup& setup, const System& system) {
  ServerSetup& server = *setup.server;
  server.ranks = rank_command(setup.work_argv);
  if (server.ranks) {
    const std::vector<std::string> program(
        setup.work_argv.begin() + static_cast<std::ptrdiff_t>(server.ranks->program),
        setup.work_argv.end());
    with_context("as the program that each rank starts",
                 [&] { build_work_argv(system, {}, program); });
  }
  if (server.window.num_steps) {
    setup.options.gate = {TriggerWish::Kind::kCudaProfilerApi, {}};
  } else if (!server.ranks) {
    setup.options.gate = {TriggerWish::Kind::kEverything, {}};
  }
}

RunSetup make_setup(const RunRequest& request, Config composed, const System& system,
                    std::vector<std::string> notes) {
  RunSetup setup;
  setup.notes = std::move(notes);
  setup.config = std::make_shared<const Config>(std::move(composed));
  const Config& config = *setup.config;
  setup.options = run_options_of(config);
  add_mark_modules(request, setup.options.mark_modules);
  setup.rules_file = rules_of(request, setup.options);
  setup.stage_marks = stage_marks(request);
  setup.rules = recording_rules(setup.rules_file, system);
  use_secret_rules(setup.rules_file, system);
  add_marks(setup.stage_marks, {}, setup.rules);
  setup.rank = launched_rank(system);
  if (setup.rank) {
    choose_rank_passes(*setup.rank, setup.options, setup.notes);
  }
  setup.target = target_workload_of(config, system, !request.command.empty());
  setup.has_placeholders = request.command.empty();
  const std::vector<std::string>& command =
      request.command.empty() ? setup.target.command : request.command;
  if (command.empty()) {
    throw Error(ErrorKind::kUsage, "run: needs a program after --, or a target that names one",
                "gpuwhy run [OVERRIDE...] -- PROGRAM [ARGUMENT...]");
  }
  setup.work_argv = build_work_argv(system, setup.options.workload, command);
  if (request.server.is_wanted()) {
    setup.server = server_setup_of(request.server, config, command);
    fit_to_engine(setup.work_argv, *setup.server, setup.notes);
    choose_server_gate(setup, system);
  }
  check_server_options(request, setup);
  setup.described = described_run(setup.work_argv, system);
  setup.passes = passes_of(setup.options, setup.target);
  setup.machine = machine_facts(system);
  if (setup.options.contract.gpu == Contract::Gpu::kRequired && setup.machine.gpus.empty()) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("{}: contract.gpu=required, and {}", code_of(Reason::kNoGpu),
                            setup.machine.gpu_problem.empty() ? "there is none"
                                                              : setup.machine.gpu_problem),
                "gpuwhy doctor says what is missing");
  }
  if (setup.options.has_nsys) {
    setup.nsys = find_for("nsys", ensure_nsys, system, setup.missing);
  }
  // Without a GPU, ncu is not needed.
  std::vector<Breach> missing_ncu;
  if (setup.options.has_ncu) {
    setup.ncu = find_for("ncu", ensure_ncu, system, missing_ncu);
    if (!setup.machine.gpus.empty() || !request.plan.empty()) {
      setup.missing.insert(setup.missing.end(), missing_ncu.begin(), missing_ncu.end());
    }
  }
  if (setup.ncu) {
    check_ncu_names(system, *setup.ncu, setup.options.ncu);
  }
  return setup;
}

// The recording of --plan, which must be usable for a plan.
std::optional<Profile> planned_recording(const RunRequest& request, const RunSetup& setup,
                                         const System& system) {
  if (request.plan.empty()) {
    return std::nullopt;
  }
  if (!setup.options.has_ncu) {
    throw Error(ErrorKind::kUsage, "--plan is for the ncu pass, which is not among the passes");
  }
  RecordingOptions options;
  options.rules = rules_of(request, setup.options);
  options.marks = stage_marks(request);
  Profile profile = profile_alone({request.plan}, options, system);
  if (!profile.trace || profile.trace->kernels.size() == 0) {
    throw Error(ErrorKind::kContract,
                fmt::format("{}: {} holds no kernel to plan for", code_of(Reason::kNoKernels),
                            request.plan),
                "gpuwhy analyze says what it holds");
  }
  return profile;
}

void check_manifest(const Config& config) {
  const Json* manifest = find_value(*config.tree, "inputs.manifest");
  if (manifest != nullptr && manifest->is_string()) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(manifest->get<std::string>(), ignored)) {
      throw Error(ErrorKind::kUsage, fmt::format("inputs.manifest: there is no file {}",
                                                 printable(manifest->get<std::string>())));
    }
  }
}

Json provenance_inputs(const RunRequest& request, const Config& config, const RunSetup& setup,
                       const Json& model) {
  Json inputs = {{"command", setup.work_argv}, {"overrides", request.overrides}, {"model", model}};
  const Json* manifest = find_value(*config.tree, "inputs.manifest");
  inputs["manifest"] = manifest != nullptr ? *manifest : Json(nullptr);
  inputs["arguments"] = request.words;
  inputs["files"] = Json::array();
  std::vector<std::string> words = request.words;
  words.insert(words.end(), setup.work_argv.begin() + 1, setup.work_argv.end());
  for (const std::string& word : std::set(words.begin(), words.end())) {
    const std::string path = word.substr(word.find('=') + 1);  // an option's, an override's, or all
    std::error_code ignored;
    if (!path.empty() && std::filesystem::exists(path, ignored)) {
      inputs["files"].push_back(path);
    }
  }
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
                     {"peak_memory_bytes", step.peak_memory_bytes},
                     {"left_over", step.left_over}});
  }
  return {{"pass", record.name},
          {"status", record.status},
          {"reason", record.reason ? Json(code_of(*record.reason)) : Json(nullptr)},
          {"steps", steps}};
}

Json verdict_json(const Config& config, const std::vector<Breach>& breaches, bool is_met) {
  return {{"declared", *find_value(*config.tree, "contract")},
          {"verdict", is_met ? "met" : "not_met"},
          {"findings", contract_json(contract_of(breaches))}};
}

// What the user did comes first, then what the machine lacks, which explains an incomplete capture.
int exit_code_of(const std::vector<Breach>& breaches) {
  const auto has = [&](int code) {
    return std::any_of(breaches.begin(), breaches.end(), [&](const Breach& breach) {
      return breach.is_fatal && info_of(breach.reason).exit_code == code;
    });
  };
  for (const int code : {kExitInterrupted, kExitEnvironment, kExitIncomplete}) {
    if (has(code)) {
      return code;
    }
  }
  return kExitOk;
}

std::vector<Breach> breaches_of(const RunSetup& setup, const PassRunner& runner) {
  std::vector<Breach> breaches = setup.missing;
  breaches.insert(breaches.end(), runner.breaches().begin(), runner.breaches().end());
  const bool has_captured =
      std::any_of(runner.passes().begin(), runner.passes().end(), [](const PassRecord& record) {
        return record.status != "skipped" && record.name != "prepare";
      });
  if (!has_captured) {
    breaches.push_back({Reason::kNothingCaptured, "run",
                        "no pass could run, so nothing was captured",
                        "gpuwhy doctor says what is missing", ""});
  }
  return breaches;
}

// A word that is not an override is usually the program, without the -- before it.
void check_dashes(const RunRequest& request) {
  const auto word = std::find_if(
      request.overrides.begin(), request.overrides.end(), [](const std::string& given) {
        return given.find('=') == std::string::npos && !given.starts_with('~');
      });
  if (!request.command.empty() || word == request.overrides.end()) {
    return;
  }
  std::vector<std::string> argv = {"gpuwhy", "run"};
  argv.insert(argv.end(), request.overrides.begin(), word);
  argv.emplace_back("--");
  argv.insert(argv.end(), word, request.overrides.end());
  throw Error(ErrorKind::kUsage, fmt::format("run: '{}' is not an override", printable(*word)),
              "to run a program, put it after --: " + printable(shell_text(argv)));
}

}  // namespace

// Composes the configuration twice if the command is recognised: the workload's preset comes before
// the user's overrides, so that these win.
Config config_of(const RunRequest& request, std::vector<std::string>& notes) {
  check_dashes(request);
  std::vector<std::string> overrides = request.overrides;
  if (!request.passes.empty()) {
    overrides.push_back("run.passes=[" + request.passes + "]");
  } else if (request.server.is_wanted()) {
    // ncu replays kernels, for which no client waits: only if it is asked for.
    overrides.insert(overrides.begin(), "run.passes=[baseline,nsys]");
  }
  if (!request.out.empty()) {
    overrides.push_back("artifacts.dir=" + Json(request.out).dump());
  }
  Config config = compose(user_file(request.file), overrides);
  std::vector<std::string> command = request.command;
  if (command.empty()) {
    command = SettingsReader(config).texts("model.workload.command");
  }
  if (const auto kind = recognised_workload(command); kind && !names_workload(overrides)) {
    overrides.insert(overrides.begin(), "workload=" + *kind);
    notes.push_back(fmt::format("the command looks like {0}: workload={0}", *kind));
    config = compose(user_file(request.file), overrides);
  }
  return config;
}

RunSetup prepare_run(const RunRequest& given, const System& system) {
  RunRequest request = given;
  if (!request.server.command.empty()) {
    if (!request.command.empty()) {
      throw Error(ErrorKind::kUsage, "run: give the server with --server or after --, not both");
    }
    request.command = split_command(request.server.command);
  }
  std::vector<std::string> notes;
  Config config = config_of(request, notes);
  check_manifest(config);
  RunSetup setup = make_setup(request, std::move(config), system, std::move(notes));
  setup.planned_from = planned_recording(request, setup, system);
  const std::vector<std::string>& composed = setup.config->notes;
  setup.notes.insert(setup.notes.end(), composed.begin(), composed.end());
  return setup;
}

Json run_facts(const RunSetup& setup, const std::optional<ProcessFiles>& seen, const Json& source) {
  Json facts = {{"gpuwhy", gpuwhy_json()}, {"machine", machine_json(setup.machine)}};
  facts["machine"]["tools"] = tools_json(setup.nsys, setup.ncu);
  facts["program"] = program_json(setup.work_argv, seen);
  facts["program"]["git"] = source;
  return facts;
}

RunOutcome execute_run(const RunSetup& setup, const RunRequest& request, const System& system,
                       Progress& progress) {
  const Config& config = *setup.config;
  const auto now = std::chrono::system_clock::now();
  const std::filesystem::path& directory = setup.options.artifacts_dir;
  const Artifacts artifacts =
      setup.rank ? create_rank_bundle(directory, *setup.rank) : Artifacts::create(directory, now);
  artifacts.write(layout::kRunning,
                  running_text(session_name(artifacts), scratch_folder(artifacts, system)));
  for (const std::string& note : setup.notes) {
    progress.note(note);
  }
  const InterruptCounter interrupts([scratch = scratch_folder(artifacts, system)] {
    std::error_code ignored;
    std::filesystem::remove_all(scratch, ignored);
  });
  PassRunner runner(setup, artifacts, system, progress);
  runner.prepare();
  const Json model = target_json(config, runner.results().model);
  const Json source = source_json(system, setup.work_argv);
  const Json inputs = provenance_inputs(request, config, setup, model);
  const auto write_facts = [&] {
    const Json facts = run_facts(setup, runner.seen_program(), source);
    write_provenance(artifacts, {facts, system.environment, *config.tree, inputs}, now);
  };
  write_facts();  // a run that is killed has the rest
  runner.run_passes();
  try {
    write_facts();
  } catch (const Error& error) {  // a full disk must not cost the report
    progress.note(error.what());
  }
  runner.look_for_signal("run");
  std::vector<Breach> breaches = breaches_of(setup, runner);
  Results metrics =
      write_run_report(setup, runner, breaches, artifacts,
                       {std::chrono::system_clock::to_time_t(now), request.with == "trace"});
  Json run = {{"gpuwhy", gpuwhy_json()},
              {"command", request.command.empty() ? setup.work_argv : request.command},
              {"model", model}};
  run["workload_exit_code"] = runner.workload_exit_code();
  run["passes"] = Json::array();
  for (const PassRecord& record : runner.passes()) {
    run["passes"].push_back(pass_json(record));
  }
  const SecretValues values = secret_values(system.environment);
  int code = kExitOk;
  // Written again where a signal comes meanwhile: exit code and manifest say the same.
  do {
    breaches = breaches_of(setup, runner);
    code = exit_code_of(breaches);
    run["exit_code"] = code;
    run["contract"] = verdict_json(config, breaches, code == kExitOk);
    std::error_code ignored;
    std::filesystem::remove(artifacts.path(layout::kRunning), ignored);
    write_manifest(artifacts, without_values(scrub_tree(run), values));
  } while (runner.look_for_signal("run"));
  RunOutcome outcome;
  outcome.code = code;
  outcome.workload_exit_code = runner.workload_exit_code();
  outcome.bundle = artifacts.root();
  outcome.metrics = std::move(metrics);
  outcome.contract = std::make_shared<Json>(run["contract"]);
  outcome.breaches = std::move(breaches);
  outcome.passes = runner.passes();
  return outcome;
}

}  // namespace gpuwhy
